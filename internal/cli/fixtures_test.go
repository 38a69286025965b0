package cli

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/views/name.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "views", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

// goldenTerminals are what views are shown on: the name in the golden file's, and the terminal.
var goldenTerminals = map[string]ui.Terminal{
	"80":        {Width: 80},
	"120":       {Width: 120},
	"80.color":  {Width: 80, Interactive: true, Color: true},
	"120.color": {Width: 120, Interactive: true, Color: true},
}

// goldenViews compares what show writes on each terminal with golden files, and checks that colour changes nothing else,
// that no line is wider than 80 columns where the terminal isn't, and that no terminal is too narrow.
func goldenViews(t *testing.T, name string, show func(out *bytes.Buffer, term ui.Terminal)) {
	t.Helper()
	for suffix, term := range goldenTerminals {
		var out bytes.Buffer
		show(&out, term)
		golden(t, name+"."+suffix+".golden", out.Bytes())
	}
	on := func(term ui.Terminal) string {
		var out bytes.Buffer
		show(&out, term)
		return out.String()
	}
	for width := range 100 {
		plain, color := on(ui.Terminal{Width: width}), on(ui.Terminal{Width: width, Color: true})
		if d := cmp.Diff(plain, ansi.Strip(color)); d != "" {
			t.Errorf("%s: with colour, %d columns wide (-without +with):\n%s", name, width, d)
		}
	}
	for line := range strings.Lines(on(ui.Terminal{Width: 80})) {
		if w := lipgloss.Width(strings.TrimSuffix(line, "\n")); w > 80 {
			t.Errorf("%s: a line is %d columns wide: %s", name, w, line)
		}
	}
}

// goldenJSON compares the JSON object of v with a golden file, and checks that it has no null where a list is due.
func goldenJSON(t *testing.T, name string, v any) {
	t.Helper()
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name+".json.golden", append(out, '\n'))
	checkLists(t, name, reflect.ValueOf(v))
}

// checkLists reports the nil slices in v, which JSON would have as null.
func checkLists(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			checkLists(t, path, v.Elem())
		}
	case reflect.Slice:
		if v.IsNil() {
			t.Errorf("%s is null", path)
		}
		for i := range v.Len() {
			checkLists(t, fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			checkLists(t, path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
}

var began = time.Date(2026, 3, 14, 9, 26, 53, 589_000_000, time.UTC)

// estimate returns a median whose interval reaches so many percent to both sides.
func estimate(median, percent float64) bisect.Estimate {
	d := math.Abs(median) * percent / 100
	return bisect.Estimate{Median: median, Low: median - d, High: median + d}
}

func pointer[T any](v T) *T { return &v }

// intervals returns n intervals of 20 steps at about rate steps/s.
func intervals(n int, rate float64, stages ...string) []engine.Interval {
	var list []engine.Interval
	for i := range n {
		elapsed := time.Duration(20 / rate * (1 + 0.01*float64(i%3-1)) * float64(time.Second)).Round(time.Microsecond)
		iv := engine.Interval{
			Start: began.Add(time.Duration(i) * time.Minute), Steps: 20, Samples: 1280, Elapsed: elapsed, FirstBatch: 1500 * time.Millisecond,
			Starved: elapsed / 2, CPU: 1.75, Resident: -1,
		}
		for j, address := range stages {
			items := iv.Samples
			if address == engine.TransferBlock || strings.HasPrefix(address, "train.") {
				items = int64(iv.Steps)
			}
			iv.Stages = append(iv.Stages, engine.Account{
				Address: address, Workers: 1 + j%2, Items: items, Busy: elapsed / time.Duration(j+1), WaitIn: elapsed / 10, WaitOut: elapsed / 5, Queue: 0.5,
			})
		}
		list = append(list, iv)
	}
	return list
}

// photos are the stages of most fixtures, with the checkpoints after them.
var photos = []struct{ address, checkpoint string }{
	{"load.photos", "raw"}, {"prepare.decode", "decoded"}, {"augment.crop", ""}, {"augment.flip", ""}, {"prepare.normalize", ""},
	{"batch", ""}, {"transfer", ""}, {"train.step", ""},
}

// suffix returns the probe of a checkpoint after the first k stages of photos.
func suffix(k int, rate bisect.Estimate) bisect.ProbeResult {
	p := bisect.ProbeResult{Probe: engine.Probe{To: k}, Rate: rate, Rounds: intervals(6, rate.Median)}
	for _, s := range photos[:k] {
		p.After, p.Checkpoint = s.address, s.checkpoint
		p.Stages = append(p.Stages, s.address)
	}
	return p
}

// isolated returns the probe that makes the stages from … to-1 of photos free.
func isolated(from, to int, rate bisect.Estimate) bisect.ProbeResult {
	p := suffix(to, rate)
	p.Probe.From, p.Stages = from, p.Stages[from:]
	return p
}

func inputBoundReport() *bisect.Report {
	base, ceiling := estimate(0.889, 2), estimate(3.49, 1)
	r := &bisect.Report{
		Experiment: "photos", Verdict: bisect.InputBound, Bottleneck: "prepare.decode", Confidence: 0.95,
		Starvation: &bisect.Estimate{Median: 0.743, Low: 0.72, High: 0.76}, Baseline: &base, Ceiling: &ceiling,
		SpeedupIfFixed: &bisect.Estimate{Median: 3.81, Low: 3.62, High: 3.99}, Next: "train.step", PageCache: bisect.Cold,
		Probes: []bisect.ProbeResult{suffix(0, base), suffix(1, estimate(0.901, 3)), suffix(2, estimate(3.41, 1.6)), suffix(7, ceiling)},
		Isolated: []bisect.ProbeResult{
			isolated(1, 2, estimate(3.387, 2)), isolated(2, 7, estimate(0.893, 2.2)),
		},
		Notes: []bisect.Note{{Code: bisect.NotMonotone, Text: "The checkpoint after prepare.normalize is slower than the one after augment.flip, 3.30 against 3.41 steps/s: what it stores is larger."}},
		Advice: []bisect.Advice{
			{Code: bisect.MoreWorkers, Address: "prepare.decode", Text: "Its worker is busy for 99 % of the time while at most 31 % of the 8 cores are: give it more than 1."},
			{Code: bisect.KeepCheckpoint, Address: "prepare.decode", Text: "Its output is the same in every epoch: storing it saves the work after the first."},
		},
	}
	for _, list := range [][]bisect.ProbeResult{r.Probes, r.Isolated} {
		for i := range list {
			list[i].Predicted = pointer(estimate(1.02*list[i].Rate.Median, 3))
		}
	}
	for i := range r.Probes[0].Rounds {
		r.Probes[0].Rounds[i].Resident = 0.03
	}
	r.Probes[0].Predicted = nil // as where a run is of an older version
	work := []float64{12.3, 1101, 44.2, 3.1, 61, 0.4, 9.8, 286}
	for i, s := range photos {
		step := estimate(work[i], 4)
		r.Stages = append(r.Stages, bisect.StageResult{
			Address: s.address, Workers: 1, StepMS: &step, Busy: pointer(min(1, work[i]/1125)),
			WaitIn: pointer(0.01 * float64(i)), WaitOut: pointer(max(0, 0.9-0.3*float64(i))),
		})
	}
	r.Stages[0].CostMS = &bisect.Estimate{Median: 15, Low: -9, High: 33}
	r.Stages[1].CostMS = &bisect.Estimate{Median: 817, Low: 790, High: 840}
	r.Stages[1].GainMS = &bisect.Estimate{Median: 829.6, Low: 801, High: 850}
	r.Stages[2].GainMS = &bisect.Estimate{Median: 31, Low: math.Inf(-1), High: math.Inf(1)} // from too few rounds
	r.Stages[7].CostMS = &bisect.Estimate{Median: 286, Low: 284, High: 289}
	return r
}

func stepBoundReport() *bisect.Report {
	base, ceiling := estimate(3.38, 1.1), estimate(3.45, 0.6)
	r := &bisect.Report{
		Experiment: "photos", Verdict: bisect.StepBound, Bottleneck: "train.step", Confidence: 0.95,
		Starvation: &bisect.Estimate{Median: 0.004, Low: 0, High: 0.01}, Baseline: &base, Ceiling: &ceiling,
		Probes: []bisect.ProbeResult{suffix(0, base), suffix(7, ceiling)},
		Control: &bisect.Control{
			BurnMS: 4.5, BurnedMS: 4.4, Rate: estimate(3.39, 0.8), Probe: engine.Probe{To: 7, Burn: 4500 * time.Microsecond}, Rounds: intervals(6, 3.39),
			WaitingMS: &bisect.Estimate{Median: 0.9, Low: -1.2, High: 2.3}, InterferenceMS: &bisect.Estimate{Median: 5.1, Low: 3.9, High: 6.2},
		},
		Notes:  []bisect.Note{{Code: bisect.Controlled, Text: "Beside a burner of as much CPU time as the stages take, 4.5 ms a step, the step alone takes 295 ms instead of 290: that is all that the pipeline takes longer."}},
		Advice: []bisect.Advice{{Code: bisect.NothingToGain, Address: "train.step", Text: "The step itself is the slowest: making everything before it free would gain less than min_effect = 0.05. Stop here, or make the step faster."}},
	}
	for i, s := range photos {
		step := estimate(20*float64(i+1), 3)
		r.Stages = append(r.Stages, bisect.StageResult{Address: s.address, Workers: 2, StepMS: &step, Busy: pointer(0.07 * float64(i)),
			WaitIn: pointer(0.0003), WaitOut: pointer(0.9)})
	}
	r.Stages[7].CostMS = &bisect.Estimate{Median: 289.9, Low: 288, High: 291}
	return r
}

func undecidedReport() *bisect.Report {
	base, ceiling := estimate(1.9, 14), estimate(3.45, 0.6)
	r := &bisect.Report{
		Experiment: "photos", Verdict: bisect.Undecided, Confidence: 0.95, Starvation: &bisect.Estimate{Median: 0.44, Low: 0.4, High: 0.5},
		Baseline: &base, Ceiling: &ceiling,
		Probes:   []bisect.ProbeResult{suffix(0, base), suffix(3, estimate(2.6, 12)), suffix(7, ceiling)},
		Isolated: []bisect.ProbeResult{isolated(1, 2, estimate(2.4, 11)), isolated(2, 3, estimate(2.35, 13))},
		Notes: []bisect.Note{
			{Code: bisect.BudgetUsed, Text: "The budget of 1m0s was used up."},
			{Code: bisect.NotSeparated, Text: "Making prepare.decode free seems to gain most, but not for certain more than augment.crop."},
			{Code: bisect.FewRounds, Text: "Fewer rounds than an interval at confidence 0.95 needs: those of baseline, for one, are from the smallest to the largest value."},
		},
	}
	for _, s := range photos { // without accounts
		r.Stages = append(r.Stages, bisect.StageResult{Address: s.address, Workers: 1})
	}
	return r
}

// longNamesReport has many stages with names that are too long for a terminal, in several scripts, rates from very slow
// to very fast and intervals without ends.
func longNamesReport() *bisect.Report {
	base := bisect.Estimate{Median: 12345.6, Low: math.Inf(-1), High: math.Inf(1)}
	r := &bisect.Report{
		Experiment: "a-very-long-name-of-an-experiment", Verdict: bisect.InputBound, Confidence: 0.999, Baseline: &base,
		Bottleneck:     "prepare.a_name_that_somebody_generated_0123456789_and_that_never_ends_000",
		SpeedupIfFixed: &bisect.Estimate{Median: 1.07, Low: math.Inf(-1), High: math.Inf(1)},
	}
	for i := range 12 {
		address := fmt.Sprintf("prepare.a_name_that_somebody_generated_0123456789_and_that_never_ends_%03d", i)
		if i == 5 {
			address = "prepare.写真を復号して拡大縮小する処理_写真を復号して拡大縮小する処理"
		}
		r.Probes = append(r.Probes, bisect.ProbeResult{Probe: engine.Probe{To: i}, Rate: estimate(12345.6*float64(i+1), 0.01)})
		if i > 0 {
			r.Probes[i].After, r.Probes[i].Checkpoint = r.Stages[i-1].Address, "a_checkpoint_with_a_long_name"
		}
		r.Isolated = append(r.Isolated, bisect.ProbeResult{Probe: engine.Probe{From: i, To: i + 1}, Stages: []string{address}, Rate: base})
		step := estimate(0.0000123, 150)
		r.Stages = append(r.Stages, bisect.StageResult{Address: address, Workers: 128, StepMS: &step, Busy: pointer(1.0), WaitIn: pointer(1.0), WaitOut: pointer(1.0)})
	}
	return r
}
