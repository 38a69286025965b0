package bisect_test

import (
	"cmp"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
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

var accuracy = flag.Int("accuracy", 0, "pipelines that TestAccuracy searches in virtual time; 0: a few of each kind")

var onlyKind = flag.String("kind", "", "the one kind of pipelines that TestAccuracy searches")

// kinds are the kinds of pipelines that the accuracy suite plants bottlenecks in.
var kinds = []kind{
	{name: "waiting"},
	{name: "CPU-bound", cpu: 1},
	{name: "mixed", cpu: 0.5},
	{name: "shared cores", cpu: 1, crowded: true},
	{name: "near ties", tie: true},
	{name: "non-monotone", grows: true},
	{name: "noisy", cost: noisy},
	{name: "drifting", cost: drifting, moving: true},
	{name: "bursty", cost: bursty},
	{name: "heavy-tailed", cost: heavyTailed},
	{name: "slow first items", cost: slowFirst},
	{name: "one slow worker", cost: oneSlow, crews: true},
}

// kind is a kind of pipelines.
type kind struct {
	name    string
	cpu     float64 // share of the stages that compute instead of waiting
	crowded bool    // there are more workers than cores
	tie     bool    // two stages are within 5 % of each other
	moving  bool    // there is no one true rate
	crews   bool    // every stage has several workers
	// grows has a stage that isn't the bottleneck make so much data that replaying it takes longer than anything else.
	grows bool
	// cost returns how much longer than usual an item takes in a stage; nil: never.
	cost func(c *costed, worker int, item stages.Item) float64
}

// costed is a stage of a planted pipeline.
type costed struct {
	time  time.Duration // a usual item's, of one worker
	cost  func(c *costed, worker int, item stages.Item) float64
	cores *processor // nil: it waits
	seed  uint64
	began time.Time
	calls []int // of each instance
	// made and replayed are of a stage whose output grows, and of the one behind it: which items were made and not replayed, and how long
	// the latter takes to be read.
	made     *sync.Map
	replayed time.Duration
}

func (c *costed) Output(in stages.Type) (stages.Type, error) { return in, nil }
func (c *costed) New() (stages.Stage, error) {
	c.calls = append(c.calls, 0)
	return &costedStage{c, len(c.calls) - 1}, nil
}

type costedStage struct {
	*costed
	worker int
}

func (s *costedStage) Process(call *stages.Call, in, out *stages.Element) error {
	out.Pass(in)
	d := s.time
	if s.made != nil {
		if s.replayed == 0 {
			s.made.Store(call.Item.Seq, true)
		} else if _, made := s.made.LoadAndDelete(call.Item.Seq); !made {
			d += s.replayed
		}
	}
	if s.cost != nil {
		d = time.Duration(float64(d) * s.cost(s.costed, s.worker, call.Item))
	}
	if s.cores != nil {
		s.cores.compute(d)
		return nil
	}
	time.Sleep(d)
	return nil
}

// of returns the random numbers of an item in a stage, the same in every interval.
func (c *costed) of(item stages.Item) *rand.Rand {
	return rand.New(rand.NewPCG(c.seed, uint64(item.Epoch)<<32|uint64(item.Index)))
}

// The costs below have a mean of 1, over long times.

func noisy(c *costed, _ int, item stages.Item) float64 {
	const sigma = 0.4
	return math.Exp(sigma*c.of(item).NormFloat64() - sigma*sigma/2)
}

func bursty(c *costed, _ int, item stages.Item) float64 {
	if item.Index%40 < 4 { // four slow items in a row
		return 5.5
	}
	return 0.5
}

// heavyTailed draws from a Pareto distribution with a shape of 2.5, cut at 20 times its mean.
func heavyTailed(c *costed, _ int, item stages.Item) float64 {
	const shape = 2.5
	return min(math.Pow(1-c.of(item).Float64(), -1/shape)*(shape-1)/shape, 20)
}

// drifting is a machine that gets slower, for a while.
func drifting(c *costed, _ int, _ stages.Item) float64 {
	return 1 + 0.3*min(time.Since(c.began).Seconds()/60, 1)
}

// slowFirst is a worker that has to get its libraries and buffers first.
func slowFirst(c *costed, worker int, _ stages.Item) float64 {
	if c.calls[worker]++; c.calls[worker] <= 8 {
		return 3
	}
	return 1
}

func oneSlow(c *costed, worker int, _ stages.Item) float64 {
	if worker == 0 {
		return 2
	}
	return 1
}

// processor lets jobs share cores as a fair scheduler does, in virtual time: where there are more jobs than cores, each gets its
// share of them.
type processor struct {
	mu    sync.Mutex
	cores float64
	jobs  []job
	used  time.Duration // of CPU time
	done  float64       // seconds of work that each job present from the start on would have got
	at    time.Time
	next  *time.Timer
}

// job is work under way: it is over when the processor has done so much.
type job struct {
	end  float64
	over chan struct{}
}

// compute returns when d of a core's time was spent for the caller.
func (p *processor) compute(d time.Duration) {
	p.mu.Lock()
	p.advance()
	j := job{p.done + d.Seconds(), make(chan struct{})}
	p.jobs = append(p.jobs, j)
	p.schedule()
	p.mu.Unlock()
	<-j.over
}

// cpuTime returns the CPU time used so far.
func (p *processor) cpuTime() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.advance()
	return p.used
}

// rate returns how fast each job goes on: 1 with a core to itself.
func (p *processor) rate() float64 { return min(1, p.cores/float64(len(p.jobs))) }

// advance brings the work done up to now.
func (p *processor) advance() {
	now := time.Now()
	if n := float64(len(p.jobs)); n > 0 {
		p.done += now.Sub(p.at).Seconds() * p.rate()
		p.used += time.Duration(float64(now.Sub(p.at)) * min(n, p.cores))
	}
	p.at = now
}

// schedule sets the timer for the first job that will be over.
func (p *processor) schedule() {
	if p.next != nil {
		p.next.Stop()
	}
	if len(p.jobs) == 0 {
		return
	}
	first := slices.MinFunc(p.jobs, func(a, b job) int { return cmp.Compare(a.end, b.end) })
	p.next = time.AfterFunc(time.Duration(math.Ceil(max(first.end-p.done, 0)/p.rate()*1e9)), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.advance()
		p.jobs = slices.DeleteFunc(p.jobs, func(j job) bool {
			over := j.end <= p.done+1e-9
			if over {
				close(j.over)
			}
			return over
		})
		p.schedule()
	})
}

// planted is a pipeline with a known bottleneck.
type planted struct {
	kind   *kind
	cores  int
	stages []*costed
	crews  []int // workers of each stage
	batch  int
	step   time.Duration
	hidden bool // the stage before the bottleneck makes so much that no cache behind it tells how little it gains
}

// plant draws a pipeline of a kind: 3 to 9 stages, one of them at least 1.5 times as slow as the next, or within 5 % of it.
func plant(rng *rand.Rand, k *kind) *planted {
	n := 3 + rng.IntN(7)
	p := &planted{kind: k, cores: 64, batch: 1 + rng.IntN(4)}
	slowest := float64(4+rng.IntN(12)) * float64(ms)
	at, second := rng.IntN(n), rng.IntN(n)
	for i := range n {
		t := rng.Float64() * slowest / 1.5
		switch {
		case i == at:
			t = slowest
		case k.tie && i == second:
			t = slowest * (0.95 + 0.05*rng.Float64())
		}
		workers := 1 + rng.IntN(2)
		if k.crews {
			workers = 2 + rng.IntN(3)
		}
		c := &costed{cost: k.cost, seed: rng.Uint64()}
		c.time = time.Duration(t * p.capacity(workers))
		if rng.Float64() < k.cpu {
			c.cores = new(processor)
		}
		p.stages, p.crews = append(p.stages, c), append(p.crews, workers)
	}
	if k.crowded {
		p.cores = 2
	}
	if k.grows {
		grown := rng.IntN(n - 1)
		if grown == at {
			grown = (at + 1) % (n - 1)
		}
		p.stages[grown].made = new(sync.Map)
		p.hidden = grown+1 == at
		behind := p.stages[grown+1]
		behind.made, behind.replayed = p.stages[grown].made, time.Duration(1.3*slowest*float64(p.crews[grown+1]))
	}
	limit := p.time(-1)
	p.step = time.Duration(limit * (0.1 + 0.6*rng.Float64()))
	if rng.IntN(4) == 0 {
		p.step = time.Duration(limit * (1.3 + 0.5*rng.Float64()))
	}
	return p
}

// capacity returns how many usual workers a stage's workers are worth.
func (p *planted) capacity(workers int) float64 {
	if p.kind.crews {
		return float64(workers) - 0.5 // one is half as fast
	}
	return float64(workers)
}

// time returns the nanoseconds a step of the pipeline without one of its stages, -1: with all of them.
func (p *planted) time(without int) float64 {
	t, computing := float64(p.step), 0.0
	for i, c := range p.stages {
		if i == without {
			continue
		}
		each := float64(c.time) * float64(p.batch)
		t = max(t, each/p.capacity(p.crews[i]))
		if c.cores != nil {
			computing += each
		}
	}
	return max(t, computing/float64(p.cores))
}

// answers returns the bottlenecks that are right, "" for undecided among them where that is excused: where the two best are within 10 %
// of each other, the gain of all is within a little of min_effect, or nothing can show what the stage before the bottleneck gains.
func (p *planted) answers() []string {
	base := p.time(-1)
	if slack := 1 - float64(p.step)/base; slack <= 0.02 {
		return []string{"train.step"}
	} else if slack < 0.1 {
		return []string{"", "train.step", p.best(0)}
	}
	if p.hidden {
		return []string{"", p.best(0)}
	}
	if p.best(1) == "" {
		return []string{p.best(0)}
	}
	return []string{"", p.best(0), p.best(1)}
}

// best returns the stage whose absence gains most, or the second best, "" where that isn't within 10 % of the best.
func (p *planted) best(rank int) string {
	order := make([]int, len(p.stages))
	gain := make([]float64, len(p.stages))
	for i := range order {
		order[i], gain[i] = i, p.time(-1)-p.time(i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	i := order[rank]
	tie := p.kind.tie || gain[i] >= 0.9*gain[order[0]]
	if rank > 0 && !tie {
		return ""
	}
	return fmt.Sprintf("prepare.s%d", i+1)
}

func (p *planted) experiment() *engine.Experiment {
	e := &engine.Experiment{Name: "planted", Bisect: engine.Bisect{Strategy: bisect.Bisection, Warmup: 2, Rounds: 6, Confidence: 0.95, MinEffect: 0.05}}
	e.Stages = append(e.Stages, engine.Stage{Address: "load.items", Block: stages.Load, Spec: blanks{}, Workers: 1, MaxSkips: -1})
	for i, c := range p.stages {
		e.Stages = append(e.Stages, engine.Stage{Address: fmt.Sprintf("prepare.s%d", i+1), Block: stages.Prepare, Spec: c, Workers: p.crews[i], MaxSkips: -1})
	}
	e.Stages = append(e.Stages,
		engine.Stage{Address: "batch", Block: engine.BatchBlock, Spec: &engine.BatchSpec{Size: p.batch, DropLast: true}},
		engine.Stage{Address: "train.step", Block: stages.Train, Spec: &gpu.Emulated{Time: p.step, Mode: "sleep"}})
	return e
}

// open opens the pipeline, on cores of its own.
func (p *planted) open(t *testing.T) *engine.Pipeline {
	cores := &processor{cores: float64(p.cores)}
	for _, c := range p.stages {
		c.began, c.calls = time.Now(), nil
		if c.cores != nil {
			c.cores = cores
		}
	}
	pipeline, problems, err := engine.Open(t.Context(), p.experiment(), engine.Options{OpenDevice: devices.Open, Cores: p.cores, CPUTime: cores.cpuTime})
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return pipeline
}

// search bisects the pipeline, in virtual time. Where long isn't 0 it also measures the baseline for so many steps, for its true rate.
func (p *planted) search(t *testing.T, long int) (r *bisect.Report, took time.Duration, rate float64) {
	pipeline := p.open(t)
	defer pipeline.Close()
	began := time.Now()
	var err error
	if r, err = bisect.Search(t.Context(), pipeline.Plan, pipeline, bisect.Options{Cores: p.cores}); err != nil {
		t.Fatal(err)
	}
	took = time.Since(began)
	if long > 0 {
		iv, err := pipeline.Measure(t.Context(), engine.Probe{}, 50, long)
		if err != nil {
			t.Fatal(err)
		}
		rate = iv.Rate()
	}
	return r, took, rate
}

// measured returns the right answers as answers does, by gains that long intervals show.
func (p *planted) measured(t *testing.T) []string {
	pipeline := p.open(t)
	defer pipeline.Close()
	stepTime := func(probe engine.Probe) float64 {
		iv, err := pipeline.Measure(t.Context(), probe, 300, 1000)
		if err != nil {
			t.Fatal(err)
		}
		return 1 / iv.Rate()
	}
	base := stepTime(engine.Probe{})
	gains := make([]float64, len(p.stages))
	for i := range gains {
		gains[i] = base - stepTime(engine.Probe{From: i + 1, To: i + 2})
	}
	best := slices.Max(gains)
	var list []string
	for i, gain := range gains {
		if gain >= 0.9*best {
			list = append(list, fmt.Sprintf("prepare.s%d", i+1))
		}
	}
	if slack := 1 - p.step.Seconds()/base; slack < 0.1 {
		list = append(list, "train.step")
	}
	if len(list) > 1 || best < 0.06*base {
		list = append(list, "")
	}
	return list
}

// score is what came of the pipelines of a kind.
type score struct {
	searched, right, excused, undecided, wrong int
	over                                       float64 // probes beyond log2(n) + 3
	took                                       time.Duration
	covered, intervals                         int
}

// TestAccuracy plants bottlenecks in random pipelines of many kinds and searches them on the real engine in virtual time. No name may
// be wrong, and undecided is excused only where the two best candidates are within 10 % of each other.
func TestAccuracy(t *testing.T) {
	each := *accuracy / len(kinds)
	if *accuracy == 0 {
		each = 10
		if raceEnabled {
			each = 3
		}
	}
	scores := make([]score, len(kinds))
	for i := range kinds {
		s := &scores[i]
		if *onlyKind != "" && *onlyKind != kinds[i].name {
			continue
		}
		for seed := range each {
			p := plant(rand.New(rand.NewPCG(uint64(seed), uint64(i))), &kinds[i])
			want := p.answers()
			long := 0
			if seed%10 == 0 {
				long = 2000
			}
			var r *bisect.Report
			var took time.Duration
			var rate float64
			synctest.Test(t, func(t *testing.T) { r, took, rate = p.search(t, long) })
			s.searched++
			s.took += took
			s.over += float64(len(r.Probes)+len(r.Isolated)) - math.Log2(float64(len(p.stages)+2)) - 3
			if !slices.Contains(want, r.Bottleneck) {
				// The arithmetic may be at fault: it knows nothing of cores that no stage has work for at times.
				synctest.Test(t, func(t *testing.T) { want = p.measured(t) })
			}
			switch {
			case r.Bottleneck != "" && slices.Contains(want, r.Bottleneck):
				s.right++
			case r.Bottleneck == "" && slices.Contains(want, ""):
				s.excused++
			case r.Bottleneck == "":
				s.undecided++
				t.Logf("%s, seed %d: undecided, want %q; notes %v", kinds[i].name, seed, want, r.Notes)
			default:
				s.wrong++
				t.Errorf("%s, seed %d: %q, want one of %q; notes %v", kinds[i].name, seed, r.Bottleneck, want, r.Notes)
			}
			if long > 0 {
				s.intervals++
				// The rate of so many steps is itself not known better than to some thousandths.
				if b := r.Baseline; kinds[i].moving || b.Low*0.998 <= rate && rate <= b.High*1.002 {
					s.covered++
				} else {
					t.Logf("%s, seed %d: %.5g steps/s, interval %.5g to %.5g", kinds[i].name, seed, rate, b.Low, b.High)
				}
			}
		}
	}
	var table strings.Builder
	fmt.Fprintf(&table, "%-18s %8s %6s %8s %10s %6s %14s %8s %10s\n", "kind", "searched", "right", "excused", "undecided", "wrong", "probes beyond", "took", "covered")
	for i, s := range scores {
		if s.searched == 0 {
			continue
		}
		fmt.Fprintf(&table, "%-18s %8d %6d %8d %10d %6d %14.1f %7.0fs %6d/%d\n", kinds[i].name, s.searched, s.right, s.excused, s.undecided, s.wrong,
			s.over/float64(s.searched), s.took.Seconds()/float64(s.searched), s.covered, s.intervals)
	}
	t.Log("\n" + table.String())
}
