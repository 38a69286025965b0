package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWritable(t *testing.T) {
	top := t.TempDir()
	for _, name := range []string{"db", "file"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ path, folder, err string }{
		{"db", "", ""},
		{"new", "", ""},
		{"a/b/new", "", ""},
		{"file/new", "file", "open " + filepath.Join(top, "file/new") + ": not a directory"},
		{".", "..", "open " + top + ": is a directory"},
	} {
		before := list(t, top)
		folder, err := writable(filepath.Join(top, tc.path))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if folder != filepath.Join(top, tc.folder) || got != tc.err {
			t.Errorf("%s: %s, %q, want %s, %q", tc.path, folder, got, filepath.Join(top, tc.folder), tc.err)
		}
		if d := cmp.Diff(before, list(t, top)); d != "" {
			t.Errorf("%s: the folder is no longer what it was:\n%s", tc.path, d)
		}
	}
}

// list returns all files below a folder.
func list(t *testing.T, folder string) []string {
	var names []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestHere(t *testing.T) {
	m := Here(filepath.Join(t.TempDir(), "results.db"))
	if m.CPUs < 1 || m.PageSize < 1 || m.ClockRead < 0 || m.Results.Err != nil || m.Results.Space == nil || m.JPEGDecoder == "" || m.BLAS == "" {
		t.Errorf("%+v", m)
	}
	for _, f := range Examine(m) {
		if f.Err != nil {
			t.Errorf("%+v", f)
		}
	}
}
