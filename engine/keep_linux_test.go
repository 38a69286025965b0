package engine

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestKeepFullDisk fills a cache whose file can't grow beyond 2 KiB, as if the disk were full then: the run goes on, and nothing is left.
func TestKeepFullDisk(t *testing.T) {
	k := newKept(t)
	plain := newKept(t)
	plain.Stages[1].Checkpoint = nil
	want, _ := plain.train(t, 2)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 2 << 10, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	got, _ := k.train(t, 2)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
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
