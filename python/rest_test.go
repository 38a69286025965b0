//go:build linux && !core

package python

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// TestPoolRests stops a pool's workers, and has them go on in another mode.
func TestPoolRests(t *testing.T) {
	in := torchCode(t, new(manager), "train", poolCode)
	in.Timeout = 20 * time.Second
	_, p, err := poolOf(t, in, "loader", 2, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := opened(p)
	states := func() (all string) {
		for w := range 2 {
			pid := binary.NativeEndian.Uint64(pool.control[8*(controlHead+controlWorker*w+3):])
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(string(stat), ") ")
			all += after[:1]
		}
		return all
	}
	if err := pool.Rest(t.Context()); err != nil {
		t.Fatal(err) // before it has begun, it rests
	}
	for range 2 {
		if err := pool.Start(t.Context(), stages.PoolMode{}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			b, err := pool.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			b.Release()
		}
		if err := pool.Rest(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A signal arrives when the process is next seen by the scheduler.
		for deadline := time.Now().Add(10 * time.Second); states() != "TT"; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the workers' states are %s, want TT", states())
			}
		}
		// A rest may be longer than a call may take.
		for w := range 2 {
			words := pool.control[8*(controlHead+controlWorker*w):]
			binary.NativeEndian.PutUint64(words, 1)
			binary.NativeEndian.PutUint64(words[16:], 1)
		}
	}
	if err := pool.Close(); err != nil {
		t.Error(err)
	}
}

// TestApart has the same code run by two processes.
func TestApart(t *testing.T) {
	in := code(t, new(manager), "train", "data = [1, 2, 3]\n")
	load := &Load{Dataset: "train:data", Kind: "object", Interpreter: *in}
	pids := map[int]int{}
	for _, spec := range []*Load{load, load, load.Apart("a").(*Load), load.Apart("a").(*Load), load.Apart("b").(*Load)} {
		p, err := spec.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		pids[p.(*Hold).pid]++
	}
	if len(pids) != 3 {
		t.Errorf("%d processes, want 3", len(pids))
	}
}
