package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// fingerprint returns the key of what is kept at a boundary: of all that it follows from. That is the program, the stages above with the
// values of their attributes, the versions of all files that these name and that items are read from, and the seed where anything is drawn.
func (p *Pipeline) fingerprint(ctx context.Context, boundary int) (cache.Key, error) {
	h := sha256.New()
	c := p.Plan.Experiment.Stages[boundary-1].Checkpoint
	fmt.Fprintf(h, "%s\n%d items, limit %d, compress %v\n", program(), p.Plan.Items, c.Limit, c.Compress)
	listed, err := p.hashData(ctx, h)
	if err != nil {
		return cache.Key{}, err
	}
	drawn := len(listed) == 0 // the items may be made up
	for _, s := range p.Plan.Experiment.Stages[:boundary] {
		fmt.Fprintf(h, "%s %q\n", s.Block, s.Type)
		if s.Block == stages.Augment {
			drawn = true
			fmt.Fprintf(h, "draws as %q\n", s.Address)
		}
		for _, a := range stages.Attributes(s.Spec) {
			v := reflect.ValueOf(s.Spec).Elem().FieldByIndex(a.Field.Index)
			if v.Kind() == reflect.Pointer {
				if v.IsNil() {
					continue
				}
				v = v.Elem()
			}
			fmt.Fprintf(h, "%s = %#v\n", a.Name, v.Interface())
			var paths []stages.Path
			switch v := v.Interface().(type) {
			case stages.Path:
				paths = []stages.Path{v}
			case []stages.Path:
				paths = v
			}
			for _, path := range paths {
				if s.Block == stages.Load && covered(string(path), listed) {
					continue
				}
				if err := hashPath(ctx, h, string(path)); err != nil {
					return cache.Key{}, err
				}
			}
		}
	}
	if drawn {
		fmt.Fprintf(h, "seed %d\n", p.Plan.Experiment.Seed)
	}
	return cache.Key(h.Sum(nil)), nil
}

// hashData hashes the versions of the files that items are read from, and returns their paths: none where items are made up, or held in memory.
func (p *Pipeline) hashData(ctx context.Context, h io.Writer) (paths []string, err error) {
	if v, ok := p.source.(stages.Versioner); ok {
		if versions := v.Versions(); versions != nil {
			for path, version := range versions {
				fmt.Fprintf(h, "%q %q\n", path, version)
				paths = append(paths, path)
			}
			return paths, nil
		}
	}
	if lister, ok := p.source.(stages.FileLister); ok && lister.Files() == nil {
		return nil, fmt.Errorf("of some files that %s reads its items from no version is known, so that a change of them would go unnoticed",
			p.Plan.Experiment.Stages[0].Address)
	}
	for _, path := range p.files {
		if err := errors.Join(ctx.Err(), hashFile(h, path)); err != nil {
			return nil, err
		}
	}
	return p.files, nil
}

// covered reports whether a file, a folder's files or those that match a pattern are among files that are listed.
func covered(path string, listed []string) bool {
	if slices.Contains(listed, path) {
		return true
	}
	prefix := strings.TrimRight(path, `/\`) + string(filepath.Separator)
	if i := strings.IndexAny(path, "*?[{"); i >= 0 {
		prefix = path[:i]
	} else if storage.Remote(path) {
		prefix = strings.TrimRight(path, "/") + "/"
	}
	return path != "" && slices.ContainsFunc(listed, func(file string) bool { return strings.HasPrefix(file, prefix) })
}

// hashPath hashes the version of a file, or of all files in a folder.
func hashPath(ctx context.Context, h io.Writer, path string) error {
	info, err := os.Stat(path)
	switch {
	case storage.Remote(path):
		return fmt.Errorf("of %s no version is known, so that a change of it would go unnoticed", storage.Redacted(path))
	case errors.Is(err, fs.ErrNotExist): // an option that isn't set
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return hashFile(h, path)
	}
	return filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		return hashFile(h, name)
	})
}

// hashFile hashes a file's name, size and time of change.
func hashFile(h io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
	return err
}

// program identifies what the operators' code is: by the versions of all modules of a program that was built from released ones, and
// otherwise by the size and time of change of its file.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" && !strings.HasSuffix(info.Main.Version, "+dirty") {
		modules := []string{info.GoVersion, info.Main.Path + "@" + info.Main.Version}
		for _, m := range info.Deps {
			for m.Replace != nil {
				m = m.Replace
			}
			if m.Version == "" { // a folder
				ok = false
			}
			modules = append(modules, m.Path+"@"+m.Version)
		}
		if ok {
			slices.Sort(modules)
			return strings.Join(modules, " ")
		}
	}
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	file, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(file.Size(), " ", file.ModTime().UnixNano())
}
