package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pipectl/pipectl/engine"
)

// TestFullDisk fills a small file system of its own, in a process that may mount one. Where the system lets nobody but its
// administrator do that, TestFaults alone shows what a full disk does.
func TestFullDisk(t *testing.T) {
	cmd, err := testProcess("PIPECTL_TEST_FULL", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Logf("no file system can be mounted: %v", err)
		return
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// fillDisk stores intervals in a small file system until it is full, again when there is space, and reads them from the full one.
func fillDisk(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		fmt.Println("no file system can be mounted:", err)
		return nil
	}
	ctx, path, ballast := context.Background(), filepath.Join(dir, "results.db"), filepath.Join(dir, "ballast")
	// Nothing is left of a database that can't be made, however much of it could be.
	for pages := range 4 {
		if err := os.WriteFile(ballast, make([]byte, 512<<10-pages*4096), 0o644); err != nil {
			return err
		}
		if s, err := Create(ctx, path); err == nil {
			return errors.Join(errors.New("a database is made on a full disk"), s.Close())
		} else if !strings.Contains(err.Error(), "free some disk space") {
			return err
		}
		if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
			return fmt.Errorf("with %d pages free, %v are left of a database that can't be made", pages, left)
		}
	}
	if err := os.WriteFile(ballast, make([]byte, 128<<10), 0o644); err != nil {
		return err
	}
	s, err := Create(ctx, path)
	if err != nil {
		return err
	}
	run, err := s.Begin(ctx, Start{Experiment: experiment("photos"), Kind: Session})
	if err != nil {
		return err
	}
	stored := 0
	fill := func() error {
		for range 10_000 {
			if err := run.AddInterval(engine.Probe{}, interval(5)); err != nil {
				if !strings.Contains(err.Error(), "free some disk space") {
					return err
				}
				return nil
			}
			stored++
		}
		return errors.New("the disk isn't full")
	}
	check := func(s *Store) error {
		got, err := s.Load(ctx, run.ID())
		if err != nil {
			return err
		}
		if n := len(got.Probes[0].Rounds); n != stored {
			return fmt.Errorf("%d intervals were reported as stored, %d are", stored, n)
		}
		return nil
	}
	if err := errors.Join(fill(), check(s)); err != nil {
		return fmt.Errorf("full: %w", err)
	}
	first := stored
	if err := errors.Join(os.Remove(ballast), fill(), check(s)); err != nil {
		return fmt.Errorf("full again: %w", err)
	}
	if stored == first {
		return errors.New("nothing could be stored once there was space")
	}
	if err := s.Close(); err != nil {
		return err
	}
	f, err := os.Create(ballast)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if r, err := Open(ctx, path); err != nil {
		return fmt.Errorf("reading from a full disk: %w", err)
	} else if err := errors.Join(check(r), r.Close()); err != nil {
		return fmt.Errorf("reading from a full disk: %w", err)
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if s, err = Create(ctx, path); err != nil {
		return err
	}
	return errors.Join(check(s), s.Close())
}
