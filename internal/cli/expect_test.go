package cli

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/results"
)

func TestExpect(t *testing.T) {
	number := func(v float64) *float64 { return &v }
	report := bisect.Report{
		Confidence: 0.95,
		Baseline:   &bisect.Estimate{Median: 2.5, Low: 2, High: 3},
		Starvation: &bisect.Estimate{Median: 0.4, Low: math.Inf(-1), High: math.Inf(1)},
		Bottleneck: "prepare.decode",
	}
	const again = " The interval includes the threshold: another run may come out otherwise."
	for _, tc := range []struct {
		name     string
		want     engine.Expect
		report   bisect.Report
		searched bool
		list     []expectation
	}{
		{name: "nothing", report: report, searched: true},
		{"met", engine.Expect{StepsPerSecond: number(1), Bottleneck: "prepare.decode"}, report, true, []expectation{
			{"steps_per_second", true, false, "The pipeline makes 2.5 steps/s (95 % interval 2.00 … 3.00); at least 1 are expected."},
			{"bottleneck", true, false, "The bottleneck is prepare.decode; prepare.decode is expected."},
		}},
		{"narrowly", engine.Expect{StepsPerSecond: number(2.5), MaxStarvation: number(0.4)}, report, true, []expectation{
			{"steps_per_second", true, true, "The pipeline makes 2.5 steps/s (95 % interval 2.00 … 3.00); at least 2.5 are expected." + again},
			{"max_starvation", true, true, "The share of the time for which the step waits for data is 0.4; at most 0.4 is expected." + again},
		}},
		{"missed", engine.Expect{StepsPerSecond: number(2.6), MaxStarvation: number(0.39), Bottleneck: "batch"}, report, true, []expectation{
			{"steps_per_second", false, true, "The pipeline makes 2.5 steps/s (95 % interval 2.00 … 3.00); at least 2.6 are expected." + again},
			{"max_starvation", false, true, "The share of the time for which the step waits for data is 0.4; at most 0.39 is expected." + again},
			{"bottleneck", false, false, "The bottleneck is prepare.decode; batch is expected."},
		}},
		{"unknown", engine.Expect{StepsPerSecond: number(1), MaxStarvation: number(1), Bottleneck: "batch"}, bisect.Report{}, true, []expectation{
			{"steps_per_second", false, false, "steps_per_second wasn't measured."},
			{"max_starvation", false, false, "max_starvation wasn't measured."},
			{"bottleneck", false, false, "The run couldn't decide on a bottleneck; batch is expected."},
		}},
		{name: "not looked for", want: engine.Expect{Bottleneck: "batch"}, report: report},
	} {
		got := expect(tc.want, &tc.report, tc.searched)
		if d := cmp.Diff(tc.list, got, cmp.AllowUnexported(expectation{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

func TestUnjudged(t *testing.T) {
	rate := 1.0
	whole, rates := engine.Expect{StepsPerSecond: &rate, Bottleneck: "batch"}, engine.Expect{StepsPerSecond: &rate}
	ceiling := engine.Probe{To: 3}
	for _, tc := range []struct {
		name      string
		want      engine.Expect
		kind      results.Kind
		probe     engine.Probe
		attribute string
		told      bool
	}{
		{"a session", whole, results.Session, engine.Probe{}, "", false},
		{"epochs", rates, results.Epochs, engine.Probe{}, "", true},
		{"the ceiling", rates, results.OneProbe, ceiling, "", true},
		{"the baseline", rates, results.OneProbe, engine.Probe{}, "", false},
		{"the baseline, with a bottleneck", whole, results.OneProbe, engine.Probe{}, "bottleneck", true},
		{"nothing expected", engine.Expect{}, results.Epochs, engine.Probe{}, "", false},
	} {
		if attribute, text := unjudged(tc.want, tc.kind, tc.probe); attribute != tc.attribute || (text != "") != tc.told {
			t.Errorf("%s: %q at %q", tc.name, text, attribute)
		}
	}
}
