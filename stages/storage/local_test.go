package storage

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write makes files below a folder.
func write(tb testing.TB, folder string, files map[string]string) {
	tb.Helper()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
			tb.Fatal(err)
		}
	}
}

func TestLocal(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a b+%.txt": "0123456789"})
	path := filepath.Join(dir, "a b+%.txt")
	ctx, cancel := context.WithCancel(t.Context())
	f, err := Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := make([]byte, 4)
	if n, err := f.ReadAt(p, 8); n != 2 || err != io.EOF || string(p[:n]) != "89" || f.Size() != 10 {
		t.Errorf("read %d bytes of %d, %q, error %v", n, f.Size(), p[:n], err)
	}
	s, err := Stream(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if all, err := io.ReadAll(s); err != nil || string(all) != "0123456789" {
		t.Errorf("streamed %q, error %v", all, err)
	}
	var whole []byte
	err = New().ReadFile(ctx, path, func(size int64) ([]byte, error) {
		whole = make([]byte, size)
		return whole, nil
	})
	if err != nil || string(whole) != "0123456789" {
		t.Errorf("read %q, error %v", whole, err)
	}
	cancel()
	if _, err := f.ReadAt(p, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("read after the end with error %v", err)
	}
	if _, err := f.ReadAtContext(t.Context(), p, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("read in another context after the end with error %v", err)
	}
	if _, err := s.Read(p); !errors.Is(err, context.Canceled) {
		t.Errorf("streamed after the end with error %v", err)
	}
}

func TestLocalErrors(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		want := "open " + dir + ": not a regular file"
		if path != dir {
			want = "stat " + path + ": no such file or directory"
		}
		if f, err := New().Open(t.Context(), path); f != nil || err == nil || err.Error() != want {
			t.Errorf("opened with error %v, want %s", err, want)
		}
	}
	if _, err := Stream(t.Context(), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("streamed with error %v", err)
	}
}

func TestLocalList(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"real/b": "12", "real/a/z.tar": "1", "real/a-b": "", "real/.hidden": "123"})
	for name, target := range map[string]string{"folder": "real", "real/loop": "..", "real/link": "b", "real/lost": "none"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(dir, "folder")
	got, err := List(t.Context(), folder)
	want := []Entry{{Path: folder + "/.hidden", Size: 3}, {Path: folder + "/a-b", Size: 0}, {Path: folder + "/a/z.tar", Size: 1}, {Path: folder + "/b", Size: 2}, {Path: folder + "/link", Size: 2}}
	for i, e := range got {
		f, err := Open(t.Context(), e.Path)
		if err != nil {
			t.Fatal(err)
		}
		if e.Version == "" || e.Version != f.Version() {
			t.Errorf("%s has the version %s, and its file %s", e.Path, e.Version, f.Version())
		}
		f.Close()
		got[i].Version = ""
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, %s", err, diff)
	}
	for _, path := range []string{folder + "/b", folder + "/none"} {
		if got, err := List(t.Context(), path); err == nil {
			t.Errorf("%s holds %v", path, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := List(ctx, folder); !errors.Is(err, context.Canceled) {
		t.Errorf("listed after the end with error %v", err)
	}
}

func TestRemote(t *testing.T) {
	for path, want := range map[string]bool{
		"https://host/a": true, "http://host": true, "s3://bucket/key": true, "HTTPS://host": false,
		"a/b": false, "/s3://b": false, "file:///a": false, "": false, "s3:/a": false,
	} {
		if Remote(path) != want {
			t.Errorf("%q counts as remote: %t", path, !want)
		}
	}
}

// TestLocalVersion tells a file from others of the same name, size and time of change that take its place.
func TestLocalVersion(t *testing.T) {
	dir := t.TempDir()
	a, b, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "link")
	at := time.Unix(1700000000, 0)
	put := func(path, content string) error {
		return errors.Join(os.WriteFile(path, []byte(content), 0o600), os.Chtimes(path, at, at))
	}
	if err := errors.Join(put(a, "one"), put(b, "two"), os.Symlink("a", link)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func() error
		same   bool
	}{
		{"nothing", func() error { return nil }, true},
		{"written over", func() error { return put(a, "six") }, false},
		{"replaced", func() error {
			return errors.Join(put(filepath.Join(dir, "new"), "new"), os.Rename(filepath.Join(dir, "new"), a))
		}, false},
		{"the link leads elsewhere", func() error { return errors.Join(os.Remove(link), os.Symlink("b", link)) }, false},
	} {
		before, err := Stat(t.Context(), link)
		time.Sleep(20 * time.Millisecond) // a file's times tick every 10 ms at the most
		after, err2 := Entry{}, error(nil)
		if err := errors.Join(err, test.change()); err == nil {
			after, err2 = Stat(t.Context(), link)
		}
		if err := errors.Join(err, err2); err != nil || (before == after) != test.same {
			t.Errorf("%s: %v, then %v, %v", test.name, before, after, err)
		}
	}
	f, err := Open(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if e, err := Stat(t.Context(), a); err != nil || e != (Entry{a, f.Size(), f.Version()}) {
		t.Errorf("%v, %v, and open its version is %s", e, err, f.Version())
	}
}
