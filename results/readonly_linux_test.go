package results

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// unprivileged runs f as a user who may read but not write what belongs to the one who runs the tests.
func unprivileged(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is never unlocked, so that it ends with this goroutine, and its rights with it.
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			unix.SetfsuidRetUid(65534)
		}
		f()
	}()
	<-done
}

func TestReadOnlyFolder(t *testing.T) {
	ctx := context.Background()
	base, err := os.MkdirTemp("/tmp", "pipectl-results") // t.TempDir's parents can't be entered by others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(base, 0o755); os.RemoveAll(base) })
	path := filepath.Join(base, "results.db")
	s := create(t, path)
	id := begin(t, s, "photos").ID()
	os.Chmod(path, 0o444)
	os.Chmod(base, 0o555)
	read := func() (err error) {
		unprivileged(func() {
			var r *Store
			if r, err = Open(ctx, path); err != nil {
				return
			}
			defer r.Close()
			_, err = r.Load(ctx, id)
		})
		return err
	}
	if err := read(); err != nil {
		t.Errorf("reading while another process writes: %v", err)
	}
	os.Chmod(base, 0o755)
	s.Close()
	os.Chmod(base, 0o555)
	if err := read(); err != nil {
		t.Errorf("reading what nobody writes: %v", err)
	}
	unprivileged(func() { _, err = Create(ctx, path) })
	want := "results database " + path + ": opening it: attempt to write a readonly database: the file and its folder must be writable, and the disk not full; choose another place with --db"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	unprivileged(func() { _, err = Create(ctx, filepath.Join(base, "new.db")) })
	want = "results database " + base + "/new.db: opening it: unable to open database file: the file and its folder must be writable, and the disk not full; choose another place with --db"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
