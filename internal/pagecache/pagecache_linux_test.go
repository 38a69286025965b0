package pagecache

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDrop writes a file, which the page cache then holds, and drops it. A file system in memory keeps it.
func TestDrop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	page := os.Getpagesize()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(bytes.Repeat([]byte{1}, 63*page+1)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	var k Kernel
	if resident, pages, err := k.Resident(path); resident != 64 || pages != 64 || err != nil {
		t.Fatalf("after it was written: %d of %d pages, %v", resident, pages, err)
	}
	if err := k.Drop(path); err != nil {
		t.Fatal(err)
	}
	var system unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &system); err != nil {
		t.Fatal(err)
	}
	want := 0
	if system.Type == unix.TMPFS_MAGIC || system.Type == unix.RAMFS_MAGIC {
		want = 64
	}
	if resident, pages, err := k.Resident(path); resident != want || pages != 64 || err != nil {
		t.Errorf("after it was dropped: %d of %d pages, %v; want %d", resident, pages, err, want)
	}
}

func TestOddFiles(t *testing.T) {
	var k Kernel
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if resident, pages, err := k.Resident(empty); resident != 0 || pages != 0 || err != nil {
		t.Errorf("an empty file: %d of %d pages, %v", resident, pages, err)
	}
	if err := k.Drop(empty); err != nil {
		t.Error(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	_, _, err := k.Resident(missing)
	if !errors.Is(err, fs.ErrNotExist) || !errors.Is(k.Drop(missing), fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}

func BenchmarkResident(b *testing.B) {
	path := filepath.Join(b.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 100<<10), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := (Kernel{}).Resident(path); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDrop(b *testing.B) {
	path := filepath.Join(b.TempDir(), "data")
	if err := os.WriteFile(path, make([]byte, 100<<10), 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := (Kernel{}).Drop(path); err != nil {
			b.Fatal(err)
		}
	}
}
