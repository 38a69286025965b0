package predict_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/predict"
	"github.com/pipectl/pipectl/stages"
)

// processor is a machine in virtual time: its cores are shared evenly by all who compute.
type processor struct {
	cores float64
	mu    sync.Mutex
	jobs  map[*job]bool
	since time.Time
	used  float64 // CPU seconds, by the pipeline
	timer *time.Timer
}

type job struct {
	left float64 // CPU seconds
	done chan struct{}
}

// compute takes so much CPU time.
func (p *processor) compute(d time.Duration) {
	if d <= 0 {
		return
	}
	j := &job{d.Seconds(), make(chan struct{})}
	p.mu.Lock()
	p.advance()
	p.jobs[j] = true
	p.schedule()
	p.mu.Unlock()
	<-j.done
}

// advance gives all jobs what they got since the last time.
func (p *processor) advance() {
	now := time.Now()
	passed := now.Sub(p.since).Seconds()
	p.since = now
	speed := min(1, p.cores/float64(len(p.jobs)))
	for j := range p.jobs {
		j.left -= passed * speed
		if !math.IsInf(j.left, 1) { // it is ours
			p.used += passed * speed
		}
		if j.left < 1e-9 {
			delete(p.jobs, j)
			close(j.done)
		}
	}
}

// schedule wakes up when the next job is done.
func (p *processor) schedule() {
	if p.timer != nil {
		p.timer.Stop()
	}
	next := math.Inf(1)
	for j := range p.jobs {
		next = min(next, j.left)
	}
	if math.IsInf(next, 1) {
		return
	}
	next *= max(1, float64(len(p.jobs))/p.cores)
	p.timer = time.AfterFunc(time.Duration(math.Ceil(next*1e9)), func() {
		p.mu.Lock()
		p.advance()
		p.schedule()
		p.mu.Unlock()
	})
}

// load keeps so many other processes computing until the end of the test.
func (p *processor) load(processes int) {
	for range processes {
		p.mu.Lock()
		p.advance()
		p.jobs[&job{math.Inf(1), nil}] = true
		p.schedule()
		p.mu.Unlock()
	}
}

// spinner is a stage that computes on a processor.
type spinner struct {
	*processor
	time time.Duration
}

func (s spinner) Output(in stages.Type) (stages.Type, error) { return in, nil }
func (s spinner) New() (stages.Stage, error)                 { return s, nil }
func (s spinner) Process(_ *stages.Call, in, out *stages.Element) error {
	out.Pass(in)
	s.compute(s.time)
	return nil
}

// on makes stages of a line compute on a processor.
func (l line) on(p *processor, spins []bool) *engine.Experiment {
	e := l.experiment()
	for i := range l.stages {
		if spins[i] {
			e.Stages[i+1].Spec = spinner{p, l.stages[i].time}
		}
	}
	return e
}

// computing returns a plan whose stages are known to compute where they do.
func computing(plan *engine.Plan, spins []bool) *engine.Plan {
	p, e := *plan, *plan.Experiment
	e.Stages = slices.Clone(e.Stages)
	for i, spin := range spins {
		if spin {
			e.Stages[i+1].Spec = &stages.Spin{}
		}
	}
	p.Experiment = &e
	return &p
}

// TestSharedCores predicts the probes of random lines whose workers share two cores, with other processes or without, and what other
// workers and costs give.
func TestSharedCores(t *testing.T) {
	for _, tt := range []struct {
		name               string
		others             int // processes
		sleeping           bool
		median, mostWanted float64
	}{
		{"computing", 0, false, 0.03, 0.6},
		{"mixed", 0, true, 0.03, 0.6},
		{"beside others", 1, true, 0.03, 0.6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var probes, changes errors
			for seed := range 8 {
				rng := rand.New(rand.NewPCG(uint64(seed), 10))
				l := random(rng, 0)
				spins := make([]bool, len(l.stages))
				for i := range spins {
					spins[i] = !tt.sleeping || rng.IntN(2) == 0
				}
				synctest.Test(t, func(t *testing.T) {
					cpu := &processor{cores: 2, jobs: map[*job]bool{}, since: time.Now()}
					run := func(l line, probe engine.Probe, n, steps int) (*engine.Plan, []engine.Interval) {
						p := open(t, l.on(cpu, spins))
						defer p.Close()
						var list []engine.Interval
						for range n {
							before, began := cpu.used, time.Now()
							iv := measure(t, p, probe, 1, steps)[0]
							iv.CPU = (cpu.used - before) / time.Since(began).Seconds()
							list = append(list, iv)
						}
						return p.Plan, list
					}
					cpu.load(tt.others)
					defer func() { // let nobody wait for the endless jobs
						cpu.mu.Lock()
						clear(cpu.jobs)
						cpu.schedule()
						cpu.mu.Unlock()
					}()
					plan, baseline := run(l, engine.Probe{}, 6, 40)
					m, err := predict.Learn(computing(plan, spins), baseline, predict.Options{Cores: 2, Confidence: 0.95})
					if err != nil {
						t.Fatal(err)
					}
					n := len(l.stages) + 2
					for k := 1; k <= n; k++ {
						for _, probe := range []engine.Probe{{To: k}, {From: k - 1, To: k}} {
							_, ivs := run(l, probe, 1, 60)
							probes.add(t, m.Probe(probe).Rate.Median, rate(ivs), fmt.Sprintf("seed %d, %v of %+v", seed, probe, l))
						}
					}
					for i := range l.stages {
						changed := l
						changed.stages = slices.Clone(l.stages)
						text := ""
						if pooled := l.stages[i].workers == 0 || i+1 < len(l.stages) && l.stages[i+1].workers == 0; !pooled && rng.IntN(2) == 0 {
							changed.stages[i].workers = 1 + rng.IntN(6)
							text = fmt.Sprintf("prepare.s%d.workers=%d", i+1, changed.stages[i].workers)
						} else {
							changed.stages[i].time /= 2
							text = fmt.Sprintf("prepare.s%d.cost=0.5x", i+1)
						}
						c, err := predict.ParseChange(text)
						if err != nil {
							t.Fatal(err)
						}
						got, err := m.With(c)
						if err != nil {
							t.Fatal(err)
						}
						_, ivs := run(changed, engine.Probe{}, 1, 60)
						changes.add(t, got.Rate.Median, rate(ivs), fmt.Sprintf("seed %d, %s of %+v", seed, text, l))
					}
				})
			}
			probes.within(t, tt.median, tt.mostWanted)
			changes.within(t, tt.median, tt.mostWanted)
		})
	}
}
