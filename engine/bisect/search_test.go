package bisect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

// TestKnownAnswers checks everything that a report concludes, on one line, for pipelines whose answer is known: A1 to A4
// are the SPDL project's published queue experiments.
func TestKnownAnswers(t *testing.T) {
	off := func(boundaries ...int) func(*engine.Plan) {
		return func(p *engine.Plan) {
			for _, k := range boundaries {
				p.Points[k] = false
			}
		}
	}
	transfer := func(pinned bool) func(*engine.Plan) {
		return func(p *engine.Plan) {
			st := &p.Experiment.Stages[2]
			st.Address, st.Block, st.Spec = "transfer", engine.TransferBlock, &engine.TransferSpec{Pinned: pinned}
		}
	}
	for _, tt := range []struct {
		name string
		m    sim
		edit func(*engine.Plan)
		want string
	}{
		{"A1", sim{cost: []float64{10, 25, 40}, step: 30, cores: 8}, nil,
			"input_bound prepare.s2, 4 probes, next train.step, advice more_workers"},
		{"A1, a queue filling", sim{cost: []float64{10, 25, 40}, step: 30, cores: 8, filling: 1}, nil,
			"input_bound prepare.s2, 4 probes, next train.step, advice more_workers"},
		{"A2", sim{cost: []float64{40, 25, 10}, step: 30, cores: 8}, nil,
			"input_bound load.s0, 4 probes, next train.step, advice more_workers"},
		{"A3", sim{cost: []float64{10, 25, 40}, workers: []int{1, 1, 2}, step: 30, cores: 8}, nil,
			"step_bound train.step, 2 probes, advice nothing_to_gain"},
		{"A4, faster than the step", sim{cost: []float64{25}, step: 30}, nil,
			"step_bound train.step, 2 probes, advice nothing_to_gain"},
		{"A4, slower than the step", sim{cost: []float64{35}, step: 30}, nil,
			"input_bound load.s0, 2 probes, next train.step, advice cheaper_operator"},

		{"the largest drop is elsewhere", sim{cost: []float64{40, 10, 25}, step: 5, cores: 8}, nil,
			"input_bound load.s0, 4 probes, next prepare.s2, advice more_workers"},
		{"the last have the cores to themselves", sim{cost: []float64{4, 4, 6, 4, 4}, spin: slices.Repeat([]bool{true}, 5), cores: 2, step: 1}, nil,
			"input_bound prepare.s2, 10 probes, advice cheaper_operator keep_checkpoint"},
		{"more than half of the time", sim{cost: []float64{1, 1, 30, 1, 1, 1, 1, 1}, workers: slices.Repeat([]int{1}, 8), fused: []bool{false, true, true, true, true, true, true, true}, step: 1, cores: 8}, nil,
			"input_bound prepare.s2, 6 probes, advice more_workers"},
		{"fused", sim{cost: []float64{1, 8, 2, 1, 3}, workers: []int{2, 2, 2, 2, 2}, fused: []bool{false, true, true, true, true}, step: 2, cores: 8}, nil,
			"input_bound prepare.s1, 6 probes, next prepare.s4, advice more_workers"},
		{"augmented above", sim{cost: []float64{1, 2, 9}, step: 2}, func(p *engine.Plan) { p.Experiment.Stages[1].Block = stages.Augment },
			"input_bound prepare.s2, 4 probes, advice cheaper_operator"},
		{"fused, a queue filling before", sim{cost: []float64{1, 8, 9, 2}, fused: []bool{false, false, false, true}, step: 2, cores: 8, filling: 1}, nil,
			"input_bound prepare.s2, 6 probes, next prepare.s1, advice more_workers"},
		{"transfer", sim{cost: []float64{1, 2, 9}, step: 2}, transfer(false), "input_bound transfer, 4 probes, advice pinned"},
		{"transfer, pinned", sim{cost: []float64{1, 2, 9}, step: 2}, transfer(true), "input_bound transfer, 4 probes"},

		{"a tie", sim{cost: []float64{1, 40, 2, 40, 1}, step: 5}, nil, "undecided, 5 probes, notes no_stage_alone"},
		{"a tie of fused stages", sim{cost: []float64{1, 9, 2, 9, 1}, fused: []bool{false, true, true, true, true}, step: 2}, nil,
			"undecided, 8 probes, notes not_separated"},
		{"a gain of min_effect", sim{cost: []float64{20}, step: 19, busy: asleep}, nil,
			"undecided, 2 probes, notes near_min_effect"},

		{"a gain near min_effect in noise, and waiting", sim{cost: []float64{1, 20}, step: 18, noise: 0.1, rng: rand.New(rand.NewPCG(1, 3))}, nil,
			"input_bound prepare.s1, 4 probes, next train.step, advice cheaper_operator keep_checkpoint"},
		{"a step slowed a little by the stages", sim{cost: []float64{5, 9}, step: 20, drag: 3}, nil,
			"step_bound train.step, 2 probes, notes interference, advice nothing_to_gain"},
		{"a step slowed much by the stages", sim{cost: []float64{5, 9}, step: 20, drag: 20}, nil,
			"undecided, 4 probes, notes no_stage_alone"},

		{"no accounts at all", sim{cost: []float64{1, 2, 3, 4, 20, 5, 1, 2}, step: 5, silent: true}, nil,
			"input_bound prepare.s4, 6 probes, advice cheaper_operator keep_checkpoint"},
		{"no accounts", sim{cost: []float64{1, 2, 3, 4, 20, 5, 1, 2}, step: 5, busy: asleep}, nil,
			"input_bound prepare.s4, 6 probes, advice cheaper_operator keep_checkpoint"},
		{"accounts that lie", sim{cost: []float64{1, 2, 3, 4, 20, 5, 1, 2}, step: 5, cores: 8, busy: pointTo(6)}, nil,
			"input_bound prepare.s4, 8 probes, next prepare.s6, notes witness_disagrees"},
		{"accounts that lie about shared workers", sim{cost: []float64{1, 2, 3, 9, 2}, fused: []bool{false, true, true, true, true}, step: 1, cores: 8, busy: pointTo(1)}, nil,
			"input_bound prepare.s3, 11 probes, next prepare.s1, notes witness_disagrees, advice more_workers"},

		{"points off", sim{cost: []float64{1, 2, 20, 3, 2}, step: 5}, off(1, 4),
			"input_bound prepare.s2, 6 probes, next train.step, advice cheaper_operator keep_checkpoint"},
		{"points off beside the bottleneck", sim{cost: []float64{1, 2, 20, 3, 2}, step: 5}, off(3),
			"undecided, 6 probes, notes merged_stages"},
		{"all points off", sim{cost: []float64{1, 2, 20}, step: 5}, off(1, 2, 3), "undecided, 2 probes, notes merged_stages"},
		{"a cache too small", sim{cost: []float64{1, 2, 20, 3, 2}, step: 5, measure: limited(2)}, nil,
			"undecided, 7 probes, notes cache_limit merged_stages"},

		{"a checkpoint slower than an earlier one", sim{cost: []float64{1, 20, 1, 2, 1}, replay: []float64{0, 0, 0, 9, 0, 0}, step: 5}, nil,
			"input_bound prepare.s1, 6 probes, next train.step, advice cheaper_operator keep_checkpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := tt.m
			if got := summary(m.search(t, tt.edit), &m); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// summary tells what a report concludes.
func summary(r *Report, m *sim) string {
	s := string(r.Verdict)
	if r.Bottleneck != "" {
		s += " " + r.Bottleneck
	}
	s += fmt.Sprintf(", %d probes", len(m.probes))
	if r.Next != "" {
		s += ", next " + r.Next
	}
	sep := ", notes "
	for _, n := range r.Notes {
		s += sep + n.Code
		sep = " "
	}
	sep = ", advice "
	for _, a := range r.Advice {
		s += sep + a.Code
		sep = " "
	}
	return s
}

// asleep is an accounting that sees nothing.
func asleep(int, time.Duration) time.Duration { return 0 }

// pointTo is an accounting in which one stage is busy all the time and no other is.
func pointTo(stage int) func(int, time.Duration) time.Duration {
	return func(i int, d time.Duration) time.Duration {
		if i != stage {
			return d / 100
		}
		return 200 * time.Millisecond
	}
}

// limited makes one boundary's cache too small.
func limited(k int) func(engine.Probe) error {
	return func(p engine.Probe) error {
		if p.To == k {
			return &engine.LimitError{Address: "prepare.s1", Limit: 1}
		}
		return nil
	}
}

// TestReport checks a whole report: that of a chain in which the largest drop between two checkpoints (20 ms at the
// third stage) is not the bottleneck.
func TestReport(t *testing.T) {
	m := &sim{cost: []float64{40, 10, 25}, step: 5, cores: 8}
	got := m.search(t, func(p *engine.Plan) {
		p.Experiment.Stages[0].Checkpoint = &engine.Checkpoint{Name: "raw"}
		p.Points[2] = false
	})

	exactly := func(v float64) *Estimate { return &Estimate{v, v, v} }
	share := func(v float64) *float64 { return &v }
	want := &Report{
		Experiment: "test", Verdict: InputBound, Bottleneck: "load.s0", Confidence: 0.95,
		Starvation: exactly(0.875), Baseline: exactly(25), Ceiling: exactly(200), SpeedupIfFixed: exactly(1.6),
		Next: "prepare.s2",
		Probes: []ProbeResult{
			{Probe: engine.Probe{}, Rate: *exactly(25)},
			{Probe: engine.Probe{To: 1}, After: "load.s0", Checkpoint: "raw", Stages: []string{"load.s0"}, Rate: *exactly(40)},
			{Probe: engine.Probe{To: 3}, After: "prepare.s2", Stages: []string{"load.s0", "prepare.s1", "prepare.s2"}, Rate: *exactly(200)},
		},
		Isolated: []ProbeResult{
			{Probe: engine.Probe{From: 1, To: 3}, After: "prepare.s2", Stages: []string{"prepare.s1", "prepare.s2"}, Rate: *exactly(25)},
		},
		Stages: []StageResult{
			{Address: "load.s0", Workers: 1, StepMS: exactly(40), Busy: share(1), WaitIn: share(0), WaitOut: share(0), CostMS: exactly(15), GainMS: exactly(15)},
			{Address: "prepare.s1", Workers: 1, StepMS: exactly(10), Busy: share(0.25), WaitIn: share(0.75), WaitOut: share(0)},
			{Address: "prepare.s2", Workers: 1, StepMS: exactly(25), Busy: share(0.625), WaitIn: share(0.375), WaitOut: share(0)},
			{Address: "train.step", Workers: 1, StepMS: exactly(5), Busy: share(0.125), WaitIn: share(0.875), WaitOut: share(0), CostMS: exactly(5)},
		},
		Advice: []Advice{{Code: MoreWorkers, Address: "load.s0",
			Text: "Its one worker is busy 100 % of the time, while the 8 cores are at most 25 % busy: give it a second worker (workers = 2)."}},
	}
	if d := cmp.Diff(want, got, cmpopts.IgnoreFields(ProbeResult{}, "Rounds"), cmpopts.EquateApprox(1e-6, 0)); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
	for _, p := range slices.Concat(got.Probes, got.Isolated) {
		if len(p.Rounds) < 6 {
			t.Errorf("%d rounds of %s, want 6 at least", len(p.Rounds), p.Probe)
		}
	}
}

// TestAdvice checks the words of advice on a stage that computes.
func TestAdvice(t *testing.T) {
	pool := []bool{false, true, true}
	twice := []int{2, 2, 2}
	for _, tt := range []struct {
		name string
		m    sim
		edit func(*engine.Plan)
		want []string
	}{
		{"workers", sim{cost: []float64{1, 10, 1}, workers: []int{1, 2, 1}, cores: 4}, nil,
			[]string{"Its 2 workers are busy 100 % of the time, while the 4 cores are at most 63 % busy: give it one more (workers = 3)."}},
		{"fused", sim{cost: []float64{1, 10, 1}, workers: twice, fused: pool, cores: 4, used: 1.5}, nil,
			[]string{"The 2 workers of load.s0 to prepare.s2 are busy 100 % of the time, while the 4 cores are at most 38 % busy: give them one more (workers = 3)."}},
		{"a pool", sim{cost: []float64{1, 10, 1}, workers: twice, fused: pool, cores: 4, used: 2}, func(p *engine.Plan) { p.Segments[0].Pool = "loader" },
			[]string{"The 2 workers of pool loader are busy 100 % of the time, while the 4 cores are at most 50 % busy: give the pool one more (workers = 3)."}},
		{"one worker", sim{cost: []float64{1, 10, 1}, cores: 2, used: 0.02}, nil,
			[]string{"Its one worker is busy 100 % of the time, while the 2 cores are at most 1 % busy: give it a second worker (workers = 2)."}},
		{"one core, waiting", sim{cost: []float64{1, 10, 1}, cores: 1, used: 0.01}, nil,
			[]string{"Its one worker is busy 100 % of the time, while the one core is at most 1 % busy: give it a second worker (workers = 2)."}},
		{"waiting, beside others who compute", sim{cost: []float64{1, 10, 1}, cores: 2, used: 0.05, disturb: func(iv *engine.Interval) { iv.Others = 1.95 }}, nil,
			[]string{"Its one worker is busy 100 % of the time, and little of that is computing: it waits, for storage or something else. More workers wait side by side: " +
				"give it a second worker (workers = 2)."}},
		{"a worker for each core, computing", sim{cost: []float64{1, 10, 1}, workers: twice, cores: 2, used: 1.7}, nil, []string{
			"As the 2 cores are 85 % busy, more workers would hardly help. Make the stage cheaper: smaller inputs, a fused or faster operator.",
			"Its output is the same in every epoch: storing it saves the work after the first."}},
		{"the step", sim{cost: []float64{0.1}, cores: 2}, nil,
			[]string{"No change before the step is worth the effort: make the step faster, or stop here."}},
		{"saturated", sim{cost: []float64{1, 10, 1}, workers: twice, fused: pool, cores: 2, used: 1.95},
			func(p *engine.Plan) { p.Types[2] = stages.ImageType(224, 224) }, []string{
				"As the 2 cores are 98 % busy, more workers would hardly help. Make the stage cheaper: smaller inputs, a fused or faster operator.",
				"Its output is the same in every epoch: storing it, 147 KiB a sample, saves the work after the first."}},
		{"unknown", sim{cost: []float64{1, 10, 1}}, nil, []string{
			"More workers help only if cores are free. Make the stage cheaper: smaller inputs, a fused or faster operator.",
			"Its output is the same in every epoch: storing it saves the work after the first."}},
		{"not busy", sim{cost: []float64{1, 10, 1}, cores: 4, busy: func(_ int, d time.Duration) time.Duration { return d / 2 }}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.m.step = 0.5
			var got []string
			for _, a := range tt.m.search(t, tt.edit).Advice {
				got = append(got, a.Text)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("advice (-want +got):\n%s", d)
			}
		})
	}
}

// TestNoteWords checks how notes name probes and sizes: as their readers do.
func TestNoteWords(t *testing.T) {
	m := &sim{cost: []float64{5, 20, 40, 5}, step: 5, cores: 8}
	s := &session{plan: m.plan()}
	s.bounds = bounds(s.plan)
	s.at(engine.Probe{})
	s.at(engine.Probe{To: s.train()})
	for _, tt := range []struct {
		probe engine.Probe
		want  string
	}{
		{engine.Probe{}, "the pipeline as it is"},
		{engine.Probe{To: 2}, "the cache after prepare.s1"},
		{engine.Probe{To: 4}, "the step alone"},
		{engine.Probe{From: 2, To: 3}, "prepare.s2 made free"},
		{engine.Probe{From: 1, To: 4}, "prepare.s1 to prepare.s3 made free"},
	} {
		if got := s.words(tt.probe); got != tt.want {
			t.Errorf("%v is %q, want %q", tt.probe, got, tt.want)
		}
	}

	m.measure = limited(2)
	r := m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Rounds = 4 })
	var got []string
	for _, n := range r.Notes {
		if n.Code == FewRounds || n.Code == CacheLimit {
			got = append(got, n.Text)
		}
	}
	want := []string{
		"The boundary after prepare.s1 is left out: the cache after prepare.s1 may take 1 B, and one batch needs more.",
		"Too few rounds for an interval at confidence 0.95: 4 of prepare.s2 made free, for one.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestNotMonotone replays a cache that is slower than making what it holds. The report says so, shows the checkpoints
// beside it, and names the same stage whatever the order of the search.
func TestNotMonotone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		replay []float64 // milliseconds a step at each boundary
		want   string
		note   string
	}{
		{"slower than the one before", []float64{0, 0, 0, 12, 0, 0, 0}, "prepare.s1",
			"With the cache after prepare.s2 the step rate is 83.33/s, with the cache after prepare.s1 it is 166.7/s: replaying what the later one holds costs more than making it."},
		{"slower than the pipeline", []float64{0, 0, 0, 30, 0, 0, 0}, "prepare.s1",
			"With the cache after prepare.s2 the step rate is 33.33/s, with the cache after prepare.s1 it is 166.7/s: replaying what the later one holds costs more than making it."},
		{"hides what lies above", []float64{0, 30, 0, 0, 0, 0, 0}, "prepare.s1",
			"With the cache after load.s0 the step rate is 33.33/s, without a cache it is 50/s: replaying what the later one holds costs more than making it."},
	} {
		for _, strategy := range []string{Bisection, Ladder} {
			for _, pointed := range []int{-1, 1, 5} { // where the accounting makes the search begin
				t.Run(fmt.Sprintf("%s, %s, from %d", tt.name, strategy, pointed), func(t *testing.T) {
					m := &sim{cost: []float64{1, 20, 2, 6, 1, 2}, replay: tt.replay, step: 1, busy: asleep}
					if pointed >= 0 {
						m.busy = pointTo(pointed)
					}
					r := m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Strategy = strategy })
					if r.Bottleneck != tt.want && r.Bottleneck != "" {
						t.Errorf("got %q, want %q or none", r.Bottleneck, tt.want)
					}
					at := slices.IndexFunc(r.Notes, func(n Note) bool { return n.Code == NotMonotone })
					slow := slices.Index(tt.replay, slices.Max(tt.replay))
					if !m.probes[engine.Probe{To: slow}] {
						if r.Bottleneck != tt.want || at >= 0 {
							t.Errorf("without the slow checkpoint: %q, notes %v", r.Bottleneck, r.Notes)
						}
						return
					}
					if at < 0 || r.Notes[at].Text != tt.note {
						t.Errorf("notes %v, want %s", r.Notes, tt.note)
					}
					if slow > 1 && !m.probes[engine.Probe{To: slow - 1}] || !m.probes[engine.Probe{To: slow + 1}] {
						t.Errorf("the neighbours of boundary %d weren't measured: %v", slow, m.probes)
					}
				})
			}
		}
	}
}

// TestBudget ends searches early in virtual time: what isn't proven by then is undecided, and a verdict that is proven
// stands.
func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		budget time.Duration
		want   string
	}{
		{time.Second, "undecided, 2 probes, notes budget_used few_rounds"},
		{3 * time.Second, "undecided, 3 probes, notes budget_used few_rounds"},
		{10 * time.Second, "undecided, 6 probes, notes budget_used not_separated few_rounds"},
		{12 * time.Second, "input_bound prepare.s2, 6 probes, next prepare.s1, notes budget_used few_rounds, advice more_workers"},
		{14 * time.Second, "input_bound prepare.s2, 6 probes, next prepare.s1, advice more_workers"},
	} {
		t.Run(tt.budget.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &sim{cost: []float64{5, 20, 40, 5}, step: 5, sleeps: true, cores: 8}
				began := time.Now()
				r := m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Budget = tt.budget })
				if got := summary(r, m); got != tt.want {
					t.Errorf("\n got %s\nwant %s", got, tt.want)
				}
				if d := time.Since(began); d > tt.budget+time.Second {
					t.Errorf("took %v of %v", d, tt.budget)
				}
			})
		})
	}
}

// TestFailure ends searches by an error, at each interval in turn: the report tells what was measured, and no verdict.
func TestFailure(t *testing.T) {
	errDisk := errors.New("disk on fire")
	for _, tt := range []struct {
		name string
		fail func(cancel func()) error
		want error
	}{
		{"cancelled", func(cancel func()) error { cancel(); return nil }, context.Canceled},
		{"failed", func(func()) error { return errDisk }, errDisk},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for n := 1; ; n++ {
				ctx, cancel := context.WithCancel(t.Context())
				measured := 0
				m := &sim{cost: []float64{5, 20, 40, 5}, step: 5}
				m.measure = func(engine.Probe) error {
					if measured++; measured == n {
						return tt.fail(cancel)
					}
					return nil
				}
				r, err := Search(ctx, m.plan(), m, Options{})
				cancel()
				if err == nil {
					if n < 30 {
						t.Errorf("ended after %d intervals", n-1)
					}
					return
				}
				if !errors.Is(err, tt.want) {
					t.Fatalf("error %v, want %v", err, tt.want)
				}
				kept := 0
				for _, p := range slices.Concat(r.Probes, r.Isolated) {
					kept += len(p.Rounds)
				}
				if kept != n-1 || (n > 1) != (r.Baseline != nil) || len(r.Stages) != 5 {
					t.Errorf("%d of %d intervals reported: %+v", kept, n-1, r)
				}
			}
		})
	}
}

// TestBadSettings refuses what can't lead to a verdict.
func TestBadSettings(t *testing.T) {
	for _, tt := range []struct {
		edit func(*engine.Plan)
		want string
	}{
		{func(p *engine.Plan) { p.Experiment.Stages = p.Experiment.Stages[1:] }, "the pipeline has no stage before its training step"},
		{func(p *engine.Plan) { p.Experiment.Bisect.Strategy = "guess" }, `unknown strategy "guess"`},
		{func(p *engine.Plan) { p.Experiment.Bisect.Rounds = 0 }, "rounds = 0, warmup = 1, steps = 10: want at least 1, 0 and 0"},
		{func(p *engine.Plan) { p.Experiment.Bisect.Confidence = 95 }, "confidence = 95, min_effect = 0.05: both must lie between 0 and 1"},
		{func(p *engine.Plan) { p.Experiment.Bisect.MinEffect = math.NaN() }, "confidence = 0.95, min_effect = NaN: both must lie between 0 and 1"},
	} {
		m := &sim{cost: []float64{5}, step: 1}
		p := m.plan()
		tt.edit(p)
		r, err := Search(t.Context(), p, m, Options{})
		if err == nil || err.Error() != tt.want || r == nil || m.intervals > 0 {
			t.Errorf("error %v after %d intervals, want %s", err, m.intervals, tt.want)
		}
	}
}

// TestNoRate refuses an interval that gives no rate.
func TestNoRate(t *testing.T) {
	m := &sim{cost: []float64{0}}
	_, err := Search(t.Context(), m.plan(), m, Options{})
	if want := `measuring the pipeline as it is: 10 steps took 0s, which gives no rate`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestCalibration checks how many steps an interval has where the experiment leaves it open: as many as fill half a
// second, within limits.
func TestCalibration(t *testing.T) {
	for _, tt := range []struct {
		name string
		m    sim
		want [2]int // steps of the baseline and of the ceiling
	}{
		{"25 ms", sim{cost: []float64{25}, step: 5}, [2]int{20, 100}},
		{"slow", sim{cost: []float64{900}, step: 300}, [2]int{3, 3}},
		{"fast", sim{cost: []float64{0.1}, step: 0.01}, [2]int{5000, 50000}},
		{"full queues at the start", sim{cost: []float64{25}, step: 5, drift: func(i int) float64 {
			if i == 0 {
				return 0.01
			}
			return 1
		}}, [2]int{20, 100}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := tt.m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Steps = 0 })
			got := [2]int{r.Probes[0].Rounds[0].Steps, r.Probes[len(r.Probes)-1].Rounds[0].Steps}
			if got != tt.want {
				t.Errorf("%d steps, want %d", got, tt.want)
			}
		})
	}
}

// TestEvents follows a search by its events.
func TestEvents(t *testing.T) {
	m := &sim{cost: []float64{5, 20}, step: 5, busy: pointTo(0)}
	p := m.plan()
	p.Experiment.Stages[0].Checkpoint = &engine.Checkpoint{Name: "raw"}
	p.Experiment.Bisect.Rounds = 1
	p.Experiment.Bisect.Budget = time.Hour
	var got []string
	r, err := Search(t.Context(), p, m, Options{Observe: func(e Event) {
		switch e := e.(type) {
		case ProbeStarted:
			got = append(got, fmt.Sprintf("probe %d of %d: %s, after %q, checkpoint %q", e.Number, e.Expected, e.Probe, e.After, e.Checkpoint))
		case RoundDone:
			if e.Interval.Steps != 10 || e.Done > e.Expected {
				t.Errorf("%+v", e)
			}
			got = append(got, fmt.Sprintf("%s, round %d, interval %d", e.Probe, e.Round, e.Done))
		case Noted:
			got = append(got, "note "+e.Note.Code)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`probe 1 of 5: baseline, after "", checkpoint ""`, "baseline, round 1, interval 1",
		`probe 2 of 5: cached at 2, after "prepare.s1", checkpoint ""`, "cached at 2, round 1, interval 2",
		"cached at 2, round 2, interval 3", "baseline, round 2, interval 4", // in the order that was drawn
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("events begin with\n%s\nwant\n%s", strings.Join(got[:min(len(got), len(want))], "\n"), strings.Join(want, "\n"))
	}
	if at := slices.Index(got, `probe 3 of 5: cached at 1, after "load.s0", checkpoint "raw"`); at < 0 {
		t.Errorf("no checkpoint among\n%s", strings.Join(got, "\n"))
	}
	if last := got[len(got)-1]; last != "note witness_disagrees" && r.Bottleneck != "prepare.s1" {
		t.Errorf("%q, last event %s", r.Bottleneck, last)
	}
}
