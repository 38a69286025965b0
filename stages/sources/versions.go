package sources

import (
	"fmt"
	"iter"
	"slices"

	"github.com/pipectl/pipectl/stages/storage"
)

// Versions yields the files with their sizes and versions. It is nil where a server doesn't tell one.
func (s *fileSet) Versions() iter.Seq2[string, string] {
	if slices.ContainsFunc(s.files, func(f storage.File) bool { return f.Version() == "" }) {
		return nil
	}
	return func(yield func(path, version string) bool) {
		for i, f := range s.files {
			if !yield(s.paths[i], fmt.Sprint(f.Size(), " ", f.Version())) {
				return
			}
		}
	}
}
