package predict

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

func TestParseChange(t *testing.T) {
	for text, want := range map[string]string{ // what the error must hold; "" for none
		"prepare.decode.workers=8":    "",
		"pool.loader.workers = 8":     "",
		"batch.prefetch=1":            "",
		"train.step.cost=0.5x":        "",
		"prepare.decode.cost=12ms":    "",
		"prepare.decode.cost=0ms":     "",
		"prepare.decode.cost=0x":      "",
		"":                            "such as prepare.decode.workers=8",
		"prepare.decode.workers":      "such as prepare.decode.workers=8",
		"workers=8":                   "such as prepare.decode.workers=8",
		"=8":                          "such as prepare.decode.workers=8",
		"prepare.decode.workers=auto": "want a whole number from 1 to 65536",
		"prepare.decode.workers=0":    "want a whole number from 1 to 65536",
		"prepare.decode.workers=1e9":  "want a whole number from 1 to 65536",
		"prepare.decode.prefetch=-3":  "want a whole number from 1 to 65536",
		"prepare.decode.cost=12":      "want a factor such as 0.5x",
		"prepare.decode.cost=-1ms":    "want a factor such as 0.5x",
		"prepare.decode.cost=48h":     "want a factor such as 0.5x",
		"prepare.decode.cost=NaNx":    "want a factor from 0x",
		"prepare.decode.cost=-1x":     "want a factor from 0x",
		"prepare.decode.cost=1e300x":  "want a factor from 0x",
		"batch.size=64":               "measure it with another size",
		"prepare.resize.worker=64":    `Did you mean "workers"?`,
		"prepare.decode.quality=64":   "can't be foretold",
	} {
		_, err := ParseChange(text)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseChange(f *testing.F) {
	for _, text := range []string{"prepare.decode.workers=8", "train.step.cost=0.5x", "a.cost=12ms", "=.", "a.b.cost=0x1px"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseChange(text)
		if err == nil && (c.Address == "" || c.String() != text || !strings.HasSuffix(strings.TrimSpace(text), c.Value())) {
			t.Errorf("%q is read as %+v", text, c)
		}
	})
}

// testPlan returns a plan with an automatic segment, a stage of its own, a pool and a transfer, and an interval of it in which each stage
// took 1 ms an item, its transfer and its step 4 ms a batch of 4.
func testPlan() (*engine.Plan, engine.Interval) {
	e := &engine.Experiment{Name: "test"}
	iv := engine.Interval{Steps: 100, Samples: 400, Elapsed: time.Second, CPU: -1, Others: -1}
	for _, address := range []string{"load.a", "prepare.b", "prepare.c", "augment.d", "prepare.e", "batch", "transfer", "train.f"} {
		block, _, _ := strings.Cut(address, ".")
		st := engine.Stage{Address: address, Block: block}
		if block == engine.BatchBlock {
			st.Spec = &engine.BatchSpec{Size: 4}
		}
		e.Stages = append(e.Stages, st)
		a := engine.Account{Address: address, Workers: 2, Items: 400, Busy: 400 * time.Millisecond, Queue: -1}
		if block == engine.TransferBlock || block == stages.Train {
			a.Workers, a.Items = 1, 100
		}
		iv.Stages = append(iv.Stages, a)
	}
	return &engine.Plan{Experiment: e, Segments: []engine.Segment{
		{First: 0, Last: 2, Workers: 2, Prefetch: 8}, {First: 3, Last: 3, Workers: 2, Prefetch: 8}, {First: 4, Last: 5, Workers: 2, Prefetch: 3, Pool: "p"},
		{First: 6, Last: 6, Workers: 1, Prefetch: 1}, {First: 7, Last: 7, Workers: 1},
	}}, iv
}

func TestWith(t *testing.T) {
	plan, iv := testPlan()
	m, err := Learn(plan, []engine.Interval{iv}, Options{Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		changes string
		rate    float64 // steps/s
		limit   string
		fails   string // what the error must hold
	}{
		{"", 1000. / 6, "load.a", ""}, // 3 stages of 4 ms a step by two workers
		{"prepare.b.workers=2", 250, "prepare.e", ""},
		{"prepare.c.workers=1 prepare.c.cost=1.5x", 1000. / 6, "prepare.c", ""},
		{"load.a.cost=0x prepare.b.cost=500us", 250, "prepare.e", ""},
		{"load.a.cost=0x prepare.b.cost=500us pool.p.workers=4 train.f.cost=8ms", 125, "train.f", ""},
		{"transfer.cost=2x", 125, "transfer", ""},
		{"batch.cost=3ms", 125, "batch", ""},
		{"augment.d.prefetch=1 prepare.c.prefetch=100 transfer.prefetch=2 pool.p.prefetch=4", 1000. / 6, "load.a", ""},
		{"prepare.x.cost=1x", 0, "", `there is no stage prepare.x. Did you mean "prepare.b"? The stages are load.a, `},
		{"prepare.b.prefetch=1", 0, "", "no queue is behind prepare.b, whose workers go on to prepare.c: ask for prepare.c.prefetch"},
		{"prepare.e.workers=1", 0, "", "prepare.e shares the workers of pool p: ask for pool.p.workers"},
		{"batch.prefetch=1", 0, "", "batch shares the workers of pool p: ask for pool.p.prefetch"},
		{"transfer.workers=3", 0, "", "one worker does the transfer"},
		{"train.f.workers=2", 0, "", "a training step has no workers"},
		{"train.f.prefetch=2", 0, "", "a training step has no prefetch"},
		{"pool.q.workers=2", 0, "", "there is no pool q"},
		{"pool.p.cost=2x", 0, "", "a cost is a stage's"},
		{"prepare.b.cost=2x prepare.b.cost=3x", 0, "", "prepare.b.cost is changed twice"},
	} {
		var changes []Change
		for text := range strings.FieldsSeq(tt.changes) {
			c, err := ParseChange(text)
			if err != nil {
				t.Fatal(err)
			}
			changes = append(changes, c)
		}
		got, err := m.With(changes...)
		switch {
		case tt.fails != "":
			if err == nil || !strings.Contains(err.Error(), tt.fails) {
				t.Errorf("%s: error %v, want %s", tt.changes, err, tt.fails)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.changes, err)
		case cmp.Diff(tt.rate, got.Rate.Median, near) != "" || got.Limit.Address != tt.limit:
			t.Errorf("%s: %.4g steps/s, limited by %s; want %.4g, %s", tt.changes, got.Rate.Median, got.Limit.Address, tt.rate, tt.limit)
		}
	}
	for text, want := range map[string]float64{"prepare.b.workers=9": 2, "pool.p.prefetch=9": 3, "augment.d.cost=9x": 1e-3, "train.f.cost=9x": 4e-3} {
		c, err := ParseChange(text)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, m.Now(c), near); d != "" {
			t.Errorf("now %s (-want +got): %s", text, d)
		}
	}
}

// TestFusedPool predicts a pool whose work the main process does between the steps, 12 ms of it and then 4 ms for the step, and the
// same pool with workers.
func TestFusedPool(t *testing.T) {
	plan, iv := testPlan()
	plan.Experiment.Stages = append(plan.Experiment.Stages[:2:2], plan.Experiment.Stages[5], plan.Experiment.Stages[7])
	iv.Stages = append(iv.Stages[:2:2], iv.Stages[5], iv.Stages[7])
	for i := range iv.Stages {
		iv.Stages[i].Workers = 1
	}
	plan.Fused = true
	plan.Segments = []engine.Segment{{First: 0, Last: 2, Workers: 0, Prefetch: 2, Pool: "p"}, {First: 3, Last: 3, Workers: 1}}
	m, err := Learn(plan, []engine.Interval{iv}, Options{Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]struct {
		rate  float64
		limit string
	}{
		"train.f.cost=1x":    {1000. / 16, "load.a"},
		"pool.p.workers=1":   {1000. / 12, "load.a"},
		"pool.p.workers=6":   {250, "train.f"},
		"prepare.b.cost=10x": {1000. / 52, "prepare.b"},
	} {
		c, err := ParseChange(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.With(c)
		if err != nil || cmp.Diff(want.rate, got.Rate.Median, near) != "" || got.Limit.Address != want.limit {
			t.Errorf("%s: %.4g steps/s, limited by %s, %v; want %.4g, %s", text, got.Rate.Median, got.Limit.Address, err, want.rate, want.limit)
		}
	}
	if got, want := m.Probe(engine.Probe{To: 2}).Rate.Median, 125.; cmp.Diff(want, got, near) != "" {
		t.Errorf("with the cache after prepare.b %.4g steps/s, want %.4g", got, want)
	}
}

// near takes numbers for equal whose difference is that of reckoning.
var near = cmp.Comparer(func(a, b float64) bool { return a == b || max(a, -a)*1e-6 > max(a-b, b-a) })

func TestLearnRefuses(t *testing.T) {
	plan, good := testPlan()
	edit := func(f func(iv *engine.Interval)) []engine.Interval {
		_, iv := testPlan()
		f(&iv)
		return []engine.Interval{good, iv}
	}
	for want, ivs := range map[string][]engine.Interval{
		"the baseline was not measured":                                                nil,
		"an interval of the baseline has no steps":                                     edit(func(iv *engine.Interval) { iv.Steps = 0 }),
		"an interval of the baseline has accounts of 0 stages, and the pipeline has 8": edit(func(iv *engine.Interval) { iv.Stages = nil }),
		"an interval of the baseline has an account of prepare.z where the pipeline has prepare.b": edit(func(iv *engine.Interval) {
			iv.Stages[1].Address = "prepare.z"
		}),
	} {
		if _, err := Learn(plan, ivs, Options{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestBusyTime counts the work of the items that the steps took, where it is in reach that the interval's work was theirs.
func TestBusyTime(t *testing.T) {
	iv := engine.Interval{Steps: 10, Samples: 20}
	for _, tt := range []struct {
		items int64
		want  float64 // seconds of work a step, of 60 in all
	}{
		{20, 6}, {21, 6}, {18, 6}, {32, 4}, {12, 60. / 10 * 20 / 14}, {0, 60. / 10 * 20 / 2},
	} {
		a := engine.Account{Workers: 2, Items: tt.items, Busy: time.Minute}
		if d := cmp.Diff(tt.want, busyTime(a, iv, false, 1), near); d != "" {
			t.Errorf("%d items (-want +got): %s", tt.items, d)
		}
	}
	if got := busyTime(engine.Account{Workers: 1, Items: 10, Busy: time.Minute}, iv, true, 1); got != 6 {
		t.Errorf("batches: %g s a step, want 6", got)
	}
}

func BenchmarkProbe(b *testing.B) {
	plan, iv := testPlan()
	iv.CPU = 3.9
	m, err := Learn(plan, []engine.Interval{iv, iv, iv, iv, iv, iv}, Options{Cores: 4, Confidence: 0.95})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Probe(engine.Probe{From: 1, To: 2})
	}
}
