//go:build linux && !core

package python

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
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
def together(samples): return samples
class Faulty(GeneratorExit):
    def __str__(self): raise SystemExit(7)
Faulty.__module__ = None
def noise(x): return x + random.random() + torch.rand(1)
def misbehave(x):
    how = os.environ.get("HOW")
    if x[0, 0, 0] == 12.0:
        if how == "raise": raise ValueError("bad sample")
        if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
        if how == "exit": sys.exit(3)
        if how == "interrupt": raise KeyboardInterrupt
        if how == "faulty": raise Faulty()
        if how == "gone": print("before the end", flush=True); os._exit(0)
        if how == "crash": print("before the end"); os.kill(os.getpid(), signal.SIGSEGV)
        if how == "unpickled": return lambda: x
        if how == "flood":
            while True: print("x" * 1000)
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
	return poolWith(t.Context(), t, in, loader, steps, workers, change)
}

func poolWith(ctx context.Context, t *testing.T, in Interpreter, loader string, steps int, workers int, change func(*Load, *stages.PoolSetup)) (*Load, stages.Pool, error) {
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
	pool, err := load.OpenPool(ctx, setup)
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

func TestStepOfMixedSamples(t *testing.T) {
	const want = "the training function gets samples of one label, and batch mixes them: remove mixup and cutmix there, and mix the samples in the function"
	if _, err := new(Train).NewStep(nil, gpu.Input{Mixed: true}); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

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
			shown           string // in the error's detail
		}{
			{how: "raise", want: "ValueError: bad sample", kind: Exception},
			{how: "raise", skip: true},
			{how: "exit", want: "SystemExit: 3", kind: Exception},
			{how: "kill", want: "SIGKILL", kind: ExitError},
			{how: "hang", want: "was at it for longer than 2s (timeout), and was killed", kind: TimeoutError, shown: "(most recent call first):\n  File \"*\", line * in misbehave"},
			{how: "interrupt", want: "KeyboardInterrupt", kind: Exception, shown: "*, in misbehave\n*"},
			{how: "interrupt", skip: true},
			{how: "faulty", want: "Faulty: (its text can't be had: SystemExit)", kind: Exception, shown: "*, in misbehave\n*"},
			{how: "gone", want: "ended with exit status 0", kind: ExitError, shown: "It printed last:\nbefore the end"},
			{how: "crash", want: "SIGSEGV", kind: ExitError, shown: "before the end\nFatal Python error: Segmentation fault\n*in misbehave"},
			{how: "flood", want: "printed more than 64 MiB", kind: OutputError},
		} {
			t.Run(fmt.Sprintf("%d workers, %s, %v", workers, tt.how, tt.skip), func(t *testing.T) {
				in := torchCode(t, new(manager), "train", poolCode)
				in.Env = map[string]string{"HOW": tt.how}
				in.Timeout = time.Minute
				if tt.how == "hang" {
					in.Timeout = 2 * time.Second
				}
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
				shown := "(?s)" + strings.ReplaceAll(regexp.QuoteMeta(tt.shown), `\*`, ".*") + "$"
				if !regexp.MustCompile(shown).MatchString(e.Detail()) || strings.Contains(e.Detail(), "pipectl_python") {
					t.Errorf("shown: %s", e.Detail())
				}
				if err := pool.Close(); err != nil {
					t.Error(err)
				}
				if groupRuns(pid) {
					t.Error("processes are left")
				}
			})
		}
	}
}

// TestPoolUnpickled makes batches that can't be handed to another process.
func TestPoolUnpickled(t *testing.T) {
	in := torchCode(t, new(manager), "train", poolCode)
	in.Env = map[string]string{"HOW": "unpickled"}
	_, pool, err := poolOf(t, in, "faulty", 2, 2, func(l *Load, s *stages.PoolSetup) {
		s.Stages[3].Spec = &Collate{Collate: "train:together", in: l.Interpreter}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Start(t.Context(), stages.PoolMode{}); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = pool.Next(t.Context())
	}
	var at *stages.PoolError
	if !errors.As(err, &at) || at.Stage != 3 || at.Item != -1 || !strings.Contains(err.Error(), "Can't pickle local object 'misbehave") {
		t.Errorf("got %v", err)
	}
}

// TestPoolInterrupted ends a run while a worker hangs, and while the main process does.
func TestPoolInterrupted(t *testing.T) {
	for _, workers := range []int{0, 2} {
		in := torchCode(t, new(manager), "train", poolCode)
		in.Env = map[string]string{"HOW": "hang"}
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		_, pool, err := poolWith(ctx, t, in, "faulty", 2, workers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Start(ctx, stages.PoolMode{}); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, interrupt)
		for err == nil {
			_, err = pool.Next(ctx)
		}
		p := opened(pool)
		closing := make(chan struct{})
		go func() {
			defer close(closing)
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}()
		select {
		case <-closing:
		case <-time.After(4 * time.Second): // torch alone waits 5 s for a worker
			t.Errorf("%d workers: it is waited for", workers)
			p.hold.kill()
			<-closing
		}
		if !errors.Is(err, context.Canceled) || groupRuns(p.hold.pid) {
			t.Errorf("got %v", err)
		}
	}
}

// TestPoolSmall has fewer items than a batch.
func TestPoolSmall(t *testing.T) {
	for _, module := range []string{"torch", "math"} {
		in := torchCode(t, new(manager), "small", `
import `+module+`, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN) # as servers do; how processes ended must be known all the same
class Data:
    def __len__(self): return 3
    def __getitem__(self, i):
        if i == 3: raise IndexError
        return i
data = Data()
`)
		load := &Load{Dataset: "small:data", Kind: "object", Interpreter: in}
		pool, err := load.OpenPool(t.Context(), stages.PoolSetup{Workers: 1, Batch: 4, DropLast: true, Stages: []stages.PoolStage{{Spec: load}, {}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := pool.Start(t.Context(), stages.PoolMode{Epochs: 1}); err != nil {
			t.Fatal(err)
		}
		b, err := pool.Next(t.Context())
		if err != nil || b.Len != 3 || !b.Last || pool.Steps() != 1 {
			t.Errorf("with %s: %v, %+v, %d steps", module, err, b, pool.Steps())
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWithoutHelper(t *testing.T) {
	const helper = "  File \"/proc/1/fd/9/pipectl_python/pool.py\", line 3 in f\n"
	const head, other = "Current thread 0x1 (most recent call first):\n", "Thread 0x2 (most recent call first):\n"
	for _, tt := range []struct{ printed, want string }{
		{"", ""},
		{"one\n\ntwo", "one\n\ntwo"},
		{"one\n" + head + "  File \"a.py\", line 1 in a\n" + helper + "  File \"worker.py\", line 2 in loop\nlast\n", "one\n" + head + "  File \"a.py\", line 1 in a\nlast"},
		{other + "  File \"queues.py\", line 1 in _feed\n\n" + head + "  File \"a.py\", line 1 in a\n", "\n" + head + "  File \"a.py\", line 1 in a"},
		{other + "  File \"a.py\", line 1 in a\n" + helper + "  ...\n", other + "  File \"a.py\", line 1 in a"},
		{helper, strings.TrimSuffix(helper, "\n")}, // printed by the user's code
		{"Fatal Python error: Aborted\n\n" + head + "  File \"a.py\", line 1 in a\n" + helper + "\nExtension modules: b (total: 1)\n", "Fatal Python error: Aborted\n\n" + head + "  File \"a.py\", line 1 in a"},
		{"one\nTraceback (most recent call last):\n  File \"/lib/multiprocessing/resource_sharer.py\", line 1, in _serve\n    with\nBrokenPipeError: [Errno 32]\ntwo", "one\ntwo"},
		{"Traceback (most recent call last):\n  File \"a.py\", line 1, in a\nE: e\n", "Traceback (most recent call last):\n  File \"a.py\", line 1, in a\nE: e"},
	} {
		if got := withoutHelper(tt.printed); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.printed, got, tt.want)
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
