//go:build linux && !core

package python

import (
	"os/exec"
	"strconv"
	"testing"

	"github.com/pipectl/pipectl/internal/testpython"
	"github.com/pipectl/pipectl/stages"
)

const transported = `
import numpy as np
made = {n: np.ones(n // 4, "float32") for n in (40_000_000, 150_000)}
def big(x): return made[40_000_000]
def small(x): return made[150_000]
def nothing(x): return None
def look(x): return len(x) if x[:: 1024].sum() == -(-len(x) // 1024) else None
`

// BenchmarkTransport hands arrays from one Python process to another, through pipectl: the first copies its array to the arena, the
// second reads a number of each page.
func BenchmarkTransport(b *testing.B) {
	in := torchCode(b, new(manager), "train", transported)
	start(b, &in)
	stage := func(b *testing.B, name string) stages.Stage {
		s, err := (&Callable{Callable: "train:" + name, As: "array", Kind: "object", Interpreter: in}).New()
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.(*caller).Close() })
		return s
	}
	for _, size := range []struct {
		name, callable string
		bytes          int64
	}{{"batch=40MB", "big", 40_000_000}, {"sample=150kB", "small", 150_000}} {
		b.Run(size.name, func(b *testing.B) {
			from, to := stage(b, size.callable), stage(b, "look")
			seed := &stages.Element{Type: stages.Type{Kind: stages.Encoded}, U8: []byte("x")}
			call := &stages.Call{Context: b.Context()}
			var object, result stages.Element
			pass := func() {
				if err := from.Process(call, seed, &object); err != nil {
					b.Fatal(err)
				}
				if err := to.Process(call, &object, &result); err != nil {
					b.Fatal(err)
				}
			}
			pass() // the processes start, and find how much room they need
			b.SetBytes(size.bytes)
			for b.Loop() {
				pass()
			}
		})
	}
	b.Run("nothing", func(b *testing.B) {
		s := stage(b, "nothing")
		seed := &stages.Element{Type: stages.Type{Kind: stages.Encoded}, U8: []byte("x")}
		var out stages.Element
		for b.Loop() {
			if err := s.Process(&stages.Call{Context: b.Context()}, seed, &out); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// torchQueue measures torch's own queue: a process puts tensors, each copied to new shared memory as DataLoader's workers do, and
// waits until the other has read a number of each page.
const torchQueue = `
import sys, time, torch, torch.multiprocessing as mp
def work(q, back, size, n):
    torch.set_num_threads(1)
    x = torch.ones(size // 4)
    for _ in range(n):
        shared = torch.tensor([], dtype=x.dtype).set_(x.storage()._new_shared(len(x)), 0, x.shape)
        q.put(shared.copy_(x))
        back.get()
if __name__ == "__main__":
    size, n = map(int, sys.argv[1:])
    q, back = mp.Queue(), mp.Queue()
    p = mp.Process(target=work, args=(q, back, size, n + 1)); p.start()
    for i in range(n + 1):
        x = q.get()
        assert x[::1024].sum() == -(-len(x) // 1024)
        back.put(None)
        if i == 0: start = time.perf_counter()
    print((time.perf_counter() - start) / n)
    p.join()
`

// BenchmarkTorchQueue does with torch's queue what BenchmarkTransport does.
func BenchmarkTorchQueue(b *testing.B) {
	python := testpython.Interpreter(b, "torch")
	for _, size := range []struct {
		name  string
		bytes int64
		n     int
	}{{"batch=40MB", 40_000_000, 50}, {"sample=150kB", 150_000, 2000}} {
		b.Run(size.name, func(b *testing.B) {
			for b.Loop() {
				out, err := exec.Command(python, "-W", "ignore", "-c", torchQueue, strconv.FormatInt(size.bytes, 10), strconv.Itoa(size.n)).Output()
				if err != nil {
					b.Fatal(err)
				}
				each, err := strconv.ParseFloat(string(out[:len(out)-1]), 64)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(each*1e9, "ns/item")
				b.ReportMetric(float64(size.bytes)/each/1e6, "MB/s")
			}
		})
	}
}
