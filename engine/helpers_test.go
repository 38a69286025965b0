package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/stages"
)

// countSource is a load spec whose items are small tensors that hold their own number.
type countSource struct {
	items   int
	shuffle bool
	ragged  bool              // elements are opaque bytes of different lengths
	shared  bool              // elements are passed on by reference
	bad     func(i int) error // Read's error
	files   []string          // that it says it reads
}

func (s *countSource) Output() stages.Type {
	if s.ragged {
		return stages.Type{Kind: stages.Opaque}
	}
	return stages.TensorType(1, 2, 2)
}
func (s *countSource) Shuffled() bool { return s.shuffle }
func (s *countSource) Open(context.Context, uint64) (stages.Source, error) {
	return openCount{s}, nil
}

type openCount struct{ *countSource }

func (s openCount) Len() int          { return s.items }
func (s openCount) Classes() int      { return 10 }
func (s openCount) Name(i int) string { return fmt.Sprintf("item %d", i) }
func (s openCount) Close() error      { return nil }
func (s openCount) Files() iter.Seq[string] {
	if s.files == nil {
		return nil
	}
	return slices.Values(s.files)
}
func (s openCount) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	if s.bad != nil {
		if err := s.bad(i); err != nil {
			return 0, err
		}
	}
	switch {
	case s.shared:
		out.Pass(&sharedElement)
	case s.ragged:
		b := out.Bytes(s.Output(), 1+i%7)
		for k := range b {
			b[k] = byte(i)
		}
	default:
		for k := range out.Tensor(1, 2, 2) {
			out.F32[k] = float32(i)
		}
	}
	return int32(i % 10), nil
}

var sharedElement = func() (e stages.Element) {
	e.Tensor(1, 2, 2)
	return e
}()

// stageFunc is a prepare or augment spec made of a function.
type stageFunc struct {
	f func(c *stages.Call, in, out *stages.Element) error
}

func (s *stageFunc) Output(in stages.Type) (stages.Type, error) { return in, nil }
func (s *stageFunc) New() (stages.Stage, error)                 { return s, nil }
func (s *stageFunc) Process(c *stages.Call, in, out *stages.Element) error {
	return s.f(c, in, out)
}

// double writes in's values, doubled, to out.
func double(_ *stages.Call, in, out *stages.Element) error {
	o := out.Tensor(1, 2, 2)
	for i, v := range in.F32 {
		o[i] = 2 * v
	}
	return nil
}

// noise adds what it draws.
func noise(c *stages.Call, in, out *stages.Element) error {
	o := out.Tensor(1, 2, 2)
	for i, v := range in.F32 {
		o[i] = v + c.Rand.Float32()
	}
	return nil
}

func pass(_ *stages.Call, in, out *stages.Element) error {
	out.Pass(in)
	return nil
}

// hostDevice is a device whose memory is the host's.
type hostDevice struct {
	cpu.Device
	mu    sync.Mutex
	taken int // allocations not given back
}

func (d *hostDevice) Info() gpu.Info {
	return gpu.Info{Kind: "cpu", Name: "test", Why: "It is a test."}
}
func (d *hostDevice) Alloc(n int, pinned bool) ([]byte, func(), error) {
	d.mu.Lock()
	d.taken++
	d.mu.Unlock()
	return make([]byte, n), func() {
		d.mu.Lock()
		d.taken--
		d.mu.Unlock()
	}, nil
}
func (d *hostDevice) Upload(_ context.Context, b *stages.Batch) (*gpu.Batch, error) {
	return &gpu.Batch{Batch: b, Ready: passed{}}, nil
}

type passed struct{}

func (passed) Wait(context.Context) error             { return nil }
func (passed) Elapsed() (d time.Duration, known bool) { return 0, false }

// stepFunc is a train spec made of a function.
type stepFunc func(ctx context.Context, b *gpu.Batch) error

func (s stepFunc) Accepts(stages.Type) error                       { return nil }
func (s stepFunc) Want() string                                    { return "auto" }
func (s stepFunc) NewStep(gpu.Device, gpu.Input) (gpu.Step, error) { return s, nil }
func (s stepFunc) Close() error                                    { return nil }
func (s stepFunc) Submit(ctx context.Context, b *gpu.Batch) (gpu.Event, error) {
	return passed{}, s(ctx, b)
}

// nothing is a step that takes no time.
func nothing(context.Context, *gpu.Batch) error { return nil }

// napStep is a step that takes d.
func napStep(d time.Duration) stepFunc {
	var w stages.Waiter
	return func(ctx context.Context, _ *gpu.Batch) error { return w.Wait(ctx, d) }
}

// hashStep hashes every batch it eats.
func hashStep(sums *[]uint64) stepFunc {
	return func(_ context.Context, b *gpu.Batch) error {
		*sums = append(*sums, hashBatch(b.Batch))
		return nil
	}
}

func hashBatch(b *stages.Batch) uint64 {
	var buf []byte
	for _, v := range b.F32[:min(len(b.F32), b.Len*b.Sample.Len())] {
		buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
	}
	buf = append(buf, b.U8[:min(len(b.U8), b.Len*b.Sample.Len())]...)
	for i := range b.Ragged[:min(b.Len, len(b.Ragged))] {
		buf = append(buf, b.Ragged[i].U8...)
		buf = append(buf, '|')
	}
	for _, l := range b.Labels[:b.Len] {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(l))
	}
	return xxh3.Hash(buf)
}

// chain builds an experiment: a source, item stages, a batch and a step. edit changes it before it is returned.
func chain(src *countSource, batch int, step stepFunc, items ...Stage) *Experiment {
	e := &Experiment{Name: "test", Seed: 7, Bisect: Bisect{Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	e.Stages = append(e.Stages, Stage{Address: "load.items", Block: stages.Load, Name: "items", Spec: src, Workers: 1, OnError: Fail, MaxSkips: -1})
	e.Stages = append(e.Stages, items...)
	e.Stages = append(e.Stages,
		Stage{Address: "batch", Block: BatchBlock, Spec: &BatchSpec{Size: batch, DropLast: true}, OnError: Fail},
		Stage{Address: "train.step", Block: stages.Train, Name: "step", Spec: step, OnError: Fail})
	return e
}

func prepare(name string, f func(*stages.Call, *stages.Element, *stages.Element) error) Stage {
	return Stage{Address: "prepare." + name, Block: stages.Prepare, Name: name, Spec: &stageFunc{f: f}, Workers: 1, OnError: Fail, MaxSkips: -1}
}

func augment(name string, f func(*stages.Call, *stages.Element, *stages.Element) error) Stage {
	s := prepare(name, f)
	s.Address, s.Block = "augment."+name, stages.Augment
	return s
}

// nap is a stage that waits d on every item.
func nap(name string, d time.Duration) Stage {
	s := prepare(name, nil)
	s.Spec = &stages.Sleep{Time: d}
	return s
}

// openTest opens an experiment, and at the test's end checks that all batch memory was given back.
func openTest(t testing.TB, e *Experiment) *Pipeline { return openWith(t, e, Options{}) }

// openWith opens it with options besides the device.
func openWith(t testing.TB, e *Experiment, opts Options) *Pipeline {
	t.Helper()
	d := new(hostDevice)
	opts.OpenDevice = func(string) (gpu.Device, error) { return d, nil }
	p, problems, err := Open(context.Background(), e, opts)
	if err != nil || len(problems) > 0 {
		t.Fatalf("Open: %v, %v", problems, err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if d.taken != 0 {
			t.Errorf("%d batches' memory was not given back", d.taken)
		}
	})
	return p
}

// trainAll trains, and returns what the intervals add up to.
func trainAll(t testing.TB, p *Pipeline, epochs int) (Interval, error) {
	var sum Interval
	err := p.Train(t.Context(), epochs, nil, func(iv Interval, _ bool) {
		sum.Steps += iv.Steps
		sum.Samples += iv.Samples
		sum.Skipped += iv.Skipped
		if sum.Stages == nil {
			sum.Stages = iv.Stages
			return
		}
		for i, a := range iv.Stages {
			sum.Stages[i].Items += a.Items
			sum.Stages[i].Busy += a.Busy
		}
	})
	return sum, err
}
