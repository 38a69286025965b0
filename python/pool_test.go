//go:build linux && !core

package python

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

const poolCode = `
import os, random, signal, sys, time
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

class Compose:
    def __init__(self, transforms): self.transforms = transforms
    def __call__(self, x):
        for t in self.transforms: x = t(x)
        return x
def scale(x): return x * 2
def noise(x): return x + random.random() + torch.rand(1)
def misbehave(x):
    how = os.environ.get("HOW")
    if x[0, 0, 0] == 12.0:
        if how == "raise": raise ValueError("bad sample")
        if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit": sys.exit(3)
        if how == "hang": time.sleep(1000)
    return x
class Data(Dataset):
    classes = ["a", "b"]
    transform = None
    def __init__(self, n=10): self.n, self.transform = n, Compose([scale, noise])
    def __len__(self): return self.n
    def __getitem__(self, i): return self.transform(torch.full((1, 2, 3), float(i))), i % 2
loader = DataLoader(Data(), batch_size=4, shuffle=True, num_workers=2)
faulty = DataLoader(Data(), batch_size=4)
faulty.dataset.transform = Compose([scale, misbehave])
class Stream(IterableDataset):
    def __iter__(self): return iter(range(6))
stream = DataLoader(Stream(), batch_size=2)
def refuse(what): raise ValueError("refused")
def report(batch): print([round(float(x.sum()), 3) for x in batch[0]], batch[1].tolist(), flush=True)
def plain(seed=5):
    random.seed(seed); torch.manual_seed(seed)
    return [[round(float(x.sum()), 3) for x in batch[0]] for epoch in range(2) for batch in loader]
`

// poolOf opens a pool of a loader, whose transform's steps are stages.
func poolOf(t *testing.T, in Interpreter, loader string, steps int, workers int, change func(*Load, *stages.PoolSetup)) (*Load, stages.Pool, error) {
	t.Helper()
	load := &Load{Loader: "train:" + loader, Lift: []string{"transform"}, Kind: "object", Interpreter: in}
	setup := stages.PoolSetup{Workers: workers, Batch: 4, Seed: 5, Stages: []stages.PoolStage{{Address: "load.data", Spec: load}}}
	for i := range steps {
		c := &Callable{Callable: fmt.Sprintf("train:%s.dataset.transform.transforms[%d]", loader, i), Kind: "object", Interpreter: in}
		c.Inherit(load)
		setup.Stages = append(setup.Stages, stages.PoolStage{Address: fmt.Sprintf("augment.%d", i), Spec: c})
	}
	setup.Stages = append(setup.Stages, stages.PoolStage{Address: "batch"})
	if change != nil {
		change(load, &setup)
	}
	if err := load.Fuses(setup.Stages); err != nil {
		t.Fatal(err)
	}
	pool, err := load.OpenPool(t.Context(), setup)
	if err == nil {
		t.Cleanup(func() {
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return load, pool, err
}

func opened(p stages.Pool) *pool { return p.(*pool) }

func TestPool(t *testing.T) {
	for _, workers := range []int{0, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			in := torchCode(t, new(manager), "train", poolCode)
			tensor := func(l *Load, s *stages.PoolSetup) {
				c := s.Stages[2].Spec.(*Callable)
				c.Kind, c.Shape = "tensor", []int{1, 2, 3}
			}
			_, pool, err := poolOf(t, in, "loader", 2, workers, tensor)
			if err != nil {
				t.Fatal(err)
			}
			if pool.Items() != 10 || pool.Steps() != 3 || pool.Classes() != 2 || pool.Name(3) != "item 3" {
				t.Errorf("%d items, %d steps, %d classes, %s", pool.Items(), pool.Steps(), pool.Classes(), pool.Name(3))
			}
			if pool.(stages.FileLister).Files() != nil {
				t.Error("the data set lists no files")
			}
			step, err := (&Train{Callable: "train:report", Interpreter: in}).NewStep(nil, gpu.Input{})
			if err != nil {
				t.Fatal(err)
			}
			defer step.Close()
			if err := pool.Start(t.Context(), stages.PoolMode{Epochs: 2}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for n := int64(0); ; n++ {
				b, err := pool.Next(t.Context())
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if b.Number != n || b.Epoch != int(n/3) || b.Last != (n%3 == 2) || b.Len != []int{4, 4, 2}[n%3] || b.Bytes != int64(b.Len*(24+8)) {
					t.Errorf("got %+v", b)
				}
				if d := cmp.Diff([]int64{int64(b.Len), int64(b.Len), int64(b.Len), int64(b.Len)}, b.Work.Items); d != "" || len(b.Work.Busy) != 4 {
					t.Error(d)
				}
				if _, err := step.Submit(t.Context(), &gpu.Batch{Batch: &stages.Batch{Handle: b.Handle}, Ready: gpu.Passed{}}); err != nil {
					t.Fatal(err)
				}
				to := &stages.Batch{F32: make([]float32, 4*6), Labels: make([]int32, 4)}
				if err := b.Copy(to); err != nil {
					t.Fatal(err)
				}
				sum := float32(0)
				for _, v := range to.F32[:b.Len*6] {
					sum += v
				}
				got = append(got, fmt.Sprintf("%.1f %v", sum, to.Labels[:b.Len]))
				b.Release()
			}
			hold := opened(pool).hold
			printed, _ := hold.printed.last()
			var want []string
			for _, line := range strings.Split(strings.TrimSpace(printed), "\n") {
				var sum float64
				sums, labels, _ := strings.Cut(line, "] ")
				for _, s := range strings.Split(strings.Trim(sums, "["), ", ") {
					var v float64
					fmt.Sscan(s, &v)
					sum += v
				}
				want = append(want, fmt.Sprintf("%.1f %v", sum, strings.ReplaceAll(labels, ",", "")))
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestPoolProbes makes stages of a pool free.
func TestPoolProbes(t *testing.T) {
	in := torchCode(t, new(manager), "train", poolCode)
	_, pool, err := poolOf(t, in, "loader", 2, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	next := func(n int) (b *stages.PoolBatch) {
		t.Helper()
		for range n {
			if b, err = pool.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.Release()
			if b.Copy != nil {
				t.Error("the samples' type isn't known")
			}
		}
		return b
	}
	start := func(m stages.PoolMode) {
		t.Helper()
		if err := pool.Start(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	start(stages.PoolMode{})
	next(3)
	start(stages.PoolMode{Fill: 4, Limits: []int64{0, 1 << 20, 0, 1 << 20}})
	next(4)
	if pool.Kept(1) == 0 || pool.Kept(2) != 0 || pool.Kept(3) == 0 {
		t.Errorf("kept %d, %d, %d", pool.Kept(1), pool.Kept(2), pool.Kept(3))
	}
	for _, tt := range []struct {
		mode stages.PoolMode
		want string
	}{
		{stages.PoolMode{To: 1}, "[0 4 4 4]"},
		{stages.PoolMode{To: 3}, "[0 0 0 4]"},
		{stages.PoolMode{From: 1, To: 3}, "[4 0 0 4]"},
		{stages.PoolMode{From: 2, To: 4}, "[4 4 0 0]"},
		{stages.PoolMode{}, "[4 4 4 4]"},
	} {
		start(tt.mode)
		b := next(1)
		full := strings.NewReplacer("2", "4").Replace(fmt.Sprint(b.Work.Items)) // of an epoch's last batch
		if full != tt.want || b.Number != 0 {
			t.Errorf("%+v: items %v, number %d", tt.mode, b.Work.Items, b.Number)
		}
	}
}

func TestPoolFaults(t *testing.T) {
	for _, workers := range []int{0, 2} {
		for _, tt := range []struct {
			how, want, kind string
			skip            bool
		}{
			{how: "raise", want: "ValueError: bad sample", kind: Exception},
			{how: "raise", skip: true},
			{how: "exit", want: "SystemExit: 3", kind: Exception},
			{how: "kill", want: "SIGKILL", kind: ExitError},
			{how: "hang", want: "was at it for longer than 500ms (timeout), and was killed", kind: TimeoutError},
		} {
			t.Run(fmt.Sprintf("%d workers, %s, %v", workers, tt.how, tt.skip), func(t *testing.T) {
				in := torchCode(t, new(manager), "train", poolCode)
				in.Env = map[string]string{"HOW": tt.how}
				in.Timeout = 500 * time.Millisecond
				_, pool, err := poolOf(t, in, "faulty", 2, workers, func(_ *Load, s *stages.PoolSetup) { s.Stages[2].Skip = tt.skip })
				if err != nil {
					t.Fatal(err)
				}
				pid := opened(pool).hold.pid
				if err := pool.Start(t.Context(), stages.PoolMode{}); err != nil {
					t.Fatal(err)
				}
				var skipped []stages.PoolError
				for range 5 {
					var b *stages.PoolBatch
					if b, err = pool.Next(t.Context()); err != nil {
						break
					}
					skipped = append(skipped, b.Skipped...)
				}
				if tt.skip {
					if err != nil || len(skipped) == 0 || skipped[0].Stage != 2 || skipped[0].Item != 6 {
						t.Errorf("got %v, skipped %v", err, skipped)
					}
					return
				}
				var at *stages.PoolError
				var e *Error
				if !errors.As(err, &at) || !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				if at.Stage != 2 || at.Item != 6 || !strings.Contains(err.Error(), tt.want) || e.Kind != tt.kind {
					t.Errorf("stage %d, item %d, %s error %q", at.Stage, at.Item, e.Kind, err)
				}
				if tt.how == "raise" && !strings.Contains(e.Traceback, "in misbehave") {
					t.Errorf("traceback %s", e.Traceback)
				}
				if err := pool.Close(); err != nil {
					t.Error(err)
				}
				if err := syscall.Kill(-pid, 0); !errors.Is(err, syscall.ESRCH) {
					t.Errorf("processes are left: %v", err)
				}
			})
		}
	}
}

// TestPoolCancelled closes a pool whose process is busy.
func TestPoolCancelled(t *testing.T) {
	in := torchCode(t, new(manager), "train", poolCode)
	in.Env = map[string]string{"HOW": "hang"}
	in.Timeout = 2 * time.Second
	_, pool, err := poolOf(t, in, "faulty", 2, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Start(t.Context(), stages.PoolMode{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for err == nil {
		_, err = pool.Next(ctx)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestOpenPoolRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Load, *stages.PoolSetup)
		stage  int
		want   string
	}{
		{"nothing to lift", func(l *Load, _ *stages.PoolSetup) { l.Lift = []string{"transforms"} }, -1, "the dataset, a Data, has no transforms"},
		{"a stage", func(l *Load, s *stages.PoolSetup) { s.Stages[1].Spec.(*Callable).Callable = "train:refuse" }, 1, "ValueError: refused"},
		{"the batch", func(l *Load, s *stages.PoolSetup) {
			s.Stages[3].Spec = &Collate{Collate: "train:refuse", in: l.Interpreter}
		}, 3, "ValueError: refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := torchCode(t, new(manager), "train", poolCode)
			_, _, err := poolOf(t, in, "loader", 2, 2, func(l *Load, s *stages.PoolSetup) {
				tt.change(l, s)
				for i := range 2 {
					s.Stages[i+1].Spec.(*Callable).Part = l.Lift[0]
				}
			})
			var at *stages.PoolError
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.stage >= 0 && (!errors.As(err, &at) || at.Stage != tt.stage) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFuses(t *testing.T) {
	load := &Load{Lift: []string{"transform"}}
	batch := stages.PoolStage{Address: "batch"}
	for _, tt := range []struct {
		stages []stages.PoolStage
		want   string
	}{
		{[]stages.PoolStage{{Address: "load.a", Spec: load}, {Address: "augment.b", Spec: &Callable{Part: "transform"}}, batch}, ""},
		{[]stages.PoolStage{{Address: "load.a", Spec: load}, {Address: "batch", Spec: &Collate{}}}, ""},
		{[]stages.PoolStage{{Address: "load.a", Spec: load}, {Address: "prepare.b", Spec: &stages.Resize{}}, batch},
			"prepare.b is a stage of pipectl's own, and the processes of a python pool only run Python code. Take the pool block away, so that each stage gets its own workers, or do this stage's work in Python."},
		{[]stages.PoolStage{{Address: "load.a", Spec: load}, {Address: "prepare.b", Spec: &Callable{Interpreter: Interpreter{Python: "python2"}}}, batch},
			"prepare.b runs in another interpreter than the load block, and a pool's processes are of one. Leave out python, pythonpath and env there."},
		{[]stages.PoolStage{{Address: "load.a", Spec: load}, {Address: "prepare.b", Spec: &Callable{Part: "target"}}, batch},
			`prepare.b has part = "target", which isn't in the load block's lift. Add it there, or leave out part.`},
	} {
		got := ""
		if err := load.Fuses(tt.stages); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func BenchmarkPoolNext(b *testing.B) {
	in := torchCode(b, new(manager), "train", poolCode)
	load := &Load{Loader: "train:loader", Kind: "object", Interpreter: in}
	pool, err := load.OpenPool(b.Context(), stages.PoolSetup{Batch: 4, Stages: []stages.PoolStage{{Spec: load}, {}}})
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	if err := pool.Start(b.Context(), stages.PoolMode{}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		batch, err := pool.Next(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		batch.Release()
	}
}
