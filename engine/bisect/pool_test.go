package bisect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/stages"
)

// crewed is the spec of a load block whose pool works elsewhere: goroutines that sleep as long as a DataLoader's workers would work.
type crewed struct {
	blanks
	times   []time.Duration // of each stage: an item's, the last a batch's
	refuses error
	broken  int  // the stage that fails after the first batch; 0: none
	endless bool // how many items there are isn't known
}

func (s crewed) Fuses([]stages.PoolStage) error { return s.refuses }

func (s crewed) OpenPool(_ context.Context, setup stages.PoolSetup) (stages.Pool, error) {
	if len(setup.Stages) != len(s.times) {
		return nil, fmt.Errorf("%d stages, want %d", len(setup.Stages), len(s.times))
	}
	return &crew{spec: s, setup: setup}, nil
}

// crew is a fused pool of sleeping workers, who make batches in turn.
type crew struct {
	blanks
	spec   crewed
	setup  stages.PoolSetup
	mode   stages.PoolMode
	next   int64
	queues []chan *stages.PoolBatch
	stop   context.CancelFunc
	gone   sync.WaitGroup
	out    int // batches that aren't released
}

func (p *crew) Items() int {
	if p.spec.endless {
		return 0
	}
	return p.Len()
}
func (p *crew) Steps() int               { return p.Items() / p.setup.Batch }
func (p *crew) Kept(int) int64           { return 1 }
func (p *crew) Notes() []stages.PoolNote { return nil }
func (p *crew) Start(_ context.Context, mode stages.PoolMode) error {
	p.Close()
	ctx, stop := context.WithCancel(context.Background())
	p.mode, p.next, p.stop, p.queues = mode, 0, stop, nil
	for range p.setup.Workers {
		q := make(chan *stages.PoolBatch, p.setup.Prefetch-1)
		p.queues = append(p.queues, q)
		p.gone.Go(func() {
			for since := time.Now(); ; {
				b := p.work()
				b.Work.Wait = time.Since(since)
				for _, d := range b.Work.Busy {
					b.Work.Wait -= d
				}
				since = time.Now()
				select {
				case q <- b:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return nil
}

// work makes a batch.
func (p *crew) work() *stages.PoolBatch {
	n := len(p.spec.times)
	b := &stages.PoolBatch{Len: p.setup.Batch, Bytes: 1, Work: stages.PoolWork{Busy: make([]time.Duration, n), Items: make([]int64, n)}}
	for i, d := range p.spec.times {
		if p.mode.From <= i && i < p.mode.To {
			continue
		}
		if i+1 < n {
			d *= time.Duration(p.setup.Batch)
		}
		time.Sleep(d)
		b.Work.Busy[i], b.Work.Items[i] = d, int64(p.setup.Batch)
	}
	if p.mode.To == n {
		b.Len = 0
	}
	return b
}

func (p *crew) Next(ctx context.Context) (*stages.PoolBatch, error) {
	if epoch := int64(p.Steps()); p.mode.Epochs > 0 && p.next == epoch*int64(p.mode.Epochs) {
		return nil, io.EOF
	}
	if p.spec.broken > 0 && p.next > 0 {
		return nil, &stages.PoolError{Stage: p.spec.broken, Item: 7, Err: errors.New("boom")}
	}
	worker := int(p.next) % len(p.queues)
	select {
	case b := <-p.queues[worker]:
		b.Number, b.Work.Worker = p.next, worker
		if n := p.Steps(); n > 0 {
			b.Epoch, b.Last = int(p.next)/n, int(p.next+1)%n == 0
		}
		p.next++
		p.out++
		b.Release = func() { p.out-- }
		return b, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *crew) Close() error {
	if p.stop != nil {
		p.stop()
		p.gone.Wait()
	}
	return nil
}

// pooled describes an experiment whose stages up to the batch run in a fused pool.
type pooled struct {
	crewed
	workers, prefetch, batch int
	step                     time.Duration
}

func (l pooled) experiment() *engine.Experiment {
	e := &engine.Experiment{Name: "pooled", Pools: []engine.Pool{{Name: "loader", Workers: l.workers, Prefetch: l.prefetch}},
		Bisect: engine.Bisect{Strategy: bisect.Bisection, Warmup: 2, Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	add := func(block, address string, spec any) {
		e.Stages = append(e.Stages, engine.Stage{Address: address, Block: block, Spec: spec, Pool: "loader", Workers: l.workers, MaxSkips: -1})
	}
	add(stages.Load, "load.items", l.crewed)
	for i := range l.times[1 : len(l.times)-1] {
		add(stages.Prepare, fmt.Sprintf("prepare.s%d", i+1), &stages.Sleep{})
	}
	add(engine.BatchBlock, engine.BatchBlock, &engine.BatchSpec{Size: l.batch, DropLast: true})
	e.Stages = append(e.Stages, engine.Stage{Address: "train.step", Block: stages.Train, Spec: &gpu.Emulated{Time: l.step, Mode: "sleep"}})
	return e
}

func (l pooled) open(t *testing.T) *engine.Pipeline {
	t.Helper()
	p, problems, err := engine.Open(t.Context(), l.experiment(), engine.Options{OpenDevice: devices.Open, Cores: 2})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return p
}

// TestPlantedInPool plants a bottleneck in random fused pools: in one of the stages of an item, in the collation, in the step.
func TestPlantedInPool(t *testing.T) {
	pools := 100
	if raceEnabled {
		pools = 30
	}
	for seed := range pools {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		l := pooled{workers: 1 + rng.IntN(4), prefetch: 1 + rng.IntN(3), batch: 1 + rng.IntN(8), crewed: crewed{endless: seed%4 == 0}}
		n := 3 + rng.IntN(6)
		planted := rng.IntN(n)
		slowest := time.Duration(10+rng.IntN(30)) * ms
		var total time.Duration
		for i := range n {
			d := slowest
			if i != planted {
				d = time.Duration(rng.Float64() * float64(slowest) / 1.5)
			}
			if i == n-1 {
				d *= time.Duration(l.batch)
			}
			l.times = append(l.times, d)
			if i < n-1 {
				d *= time.Duration(l.batch)
			}
			total += d
		}
		each := total / time.Duration(l.workers)
		want := fmt.Sprintf("prepare.s%d", planted)
		switch planted {
		case 0:
			want = "load.items"
		case n - 1:
			want = engine.BatchBlock
		}
		l.step = time.Duration(rng.Float64() * 0.3 * float64(each))
		if rng.IntN(4) == 0 {
			want, l.step = "train.step", each+each/2
		}
		synctest.Test(t, func(t *testing.T) {
			p := l.open(t)
			defer p.Close()
			r, err := bisect.Search(t.Context(), p.Plan, p, bisect.Options{Cores: 2})
			if err != nil {
				t.Fatal(err)
			}
			if r.Bottleneck != want {
				t.Errorf("seed %d: %s %q, want %q: %+v; notes %v", seed, r.Verdict, r.Bottleneck, want, l, r.Notes)
			}
		})
	}
}

// TestPoolEpochs trains for two epochs: so many steps, and the accounts of what the workers did.
func TestPoolEpochs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pooled{crewed: crewed{times: []time.Duration{ms, 2 * ms, 4 * ms}}, workers: 2, prefetch: 2, batch: 100, step: ms}.open(t)
		defer p.Close()
		var last []int64
		var steps []int
		accounts := make([]engine.Account, 3)
		err := p.Train(t.Context(), 2, func(s engine.Step) {
			if s.LastStep {
				last = append(last, s.Number)
			}
		}, func(iv engine.Interval, _ bool) {
			steps = append(steps, iv.Steps)
			for i := range accounts {
				accounts[i].Workers = iv.Stages[i].Workers
				accounts[i].Items += iv.Stages[i].Items
				accounts[i].Busy += iv.Stages[i].Busy
			}
		})
		if err != nil || fmt.Sprint(steps) != "[10 10]" || fmt.Sprint(last) != "[9 19]" {
			t.Errorf("intervals of %d steps, epochs end at %v, error %v", steps, last, err)
		}
		for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 80 * ms} {
			if a := accounts[i]; a.Busy != want || a.Workers != 2 || a.Items != 2000 {
				t.Errorf("stage %d: %+v, want busy for %v", i, a, want)
			}
		}
	})
}

// TestPoolFails sees which stage and item a pool's failure is told of, and that a pool that can't be is a problem.
func TestPoolFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pooled{crewed: crewed{times: []time.Duration{ms, ms, ms}, broken: 1}, workers: 1, prefetch: 1, batch: 2, step: ms}
		p := l.open(t)
		_, err := p.Measure(t.Context(), engine.Probe{}, 1, 3)
		var failure *engine.StageError
		if !errors.As(err, &failure) || failure.Error() != "prepare.s1: item 7: boom" {
			t.Errorf("error %v", err)
		}
		p.Close()
		l.refuses = errors.New("It can't.")
		_, problems, err := engine.Open(t.Context(), l.experiment(), engine.Options{OpenDevice: devices.Open, Cores: 2})
		if err != nil || len(problems) != 1 || problems[0].Address != "pool.loader" || problems[0].Detail != "It can't." {
			t.Errorf("problems %v, error %v", problems, err)
		}
		// A pool that isn't fused needs workers, wherever it stands.
		l.refuses = nil
		e := l.experiment()
		e.Stages[0].Pool, e.Pools[0].Workers = "", engine.None
		_, problems, err = engine.Open(t.Context(), e, engine.Options{OpenDevice: devices.Open})
		if err != nil || len(problems) != 1 || problems[0].Address != "pool.loader" || problems[0].Attribute != "workers" {
			t.Errorf("problems %v, error %v", problems, err)
		}
	})
}
