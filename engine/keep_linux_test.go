package engine

import (
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestKeepFullDisk fills a cache whose file can't grow beyond 2 KiB, as if the disk were full then: the run goes on, and nothing is left. The
// limit is a process's, so that it is done in one of its own.
func TestKeepFullDisk(t *testing.T) {
	const limited = "PIPECTL_LIMITED"
	if os.Getenv(limited) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKeepFullDisk$")
		c.Env = append(os.Environ(), limited+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	k := newKept(t)
	plain := newKept(t)
	plain.Stages[1].Checkpoint = nil
	want, _ := plain.train(t, 2)
	signal.Ignore(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 2 << 10, Max: 2 << 10}); err != nil {
		t.Fatal(err)
	}
	got, _ := k.train(t, 2)
	if !slices.Equal(got, want) {
		t.Error("other batches than without a checkpoint")
	}
	if len(k.warned) != 1 || !strings.Contains(k.warned[0], "file too large. The run goes on without it, and nothing is left of it.") {
		t.Errorf("warned %q", k.warned)
	}
	if left, err := os.ReadDir(k.folder); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}
