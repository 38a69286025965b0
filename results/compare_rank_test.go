package results

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

// TestRegressions looks for baselines that are slower.
func TestRegressions(t *testing.T) {
	run := func(rates ...float64) *Stored {
		return stored("x", pipelineA, map[engine.Probe][]float64{{}: rates, {To: 4}: {1, 2, 3, 4}})
	}
	of := func(experiment string, run *Stored) *Stored {
		copied := *run
		copied.Experiment = experiment
		return &copied
	}
	column := func(runs ...*Stored) Column { return Column{Name: "x", Runs: runs} }
	base, slow := run(10, 10.1, 9.9, 10.2, 9.8, 10.05), run(8, 8.1, 7.9, 8.2, 7.8, 8.05)
	slower := run(7, 7.1, 6.9, 7.2, 6.8, 7.05)
	four := column(run(10), run(10.1), run(9.9), run(10.2))
	for _, tt := range []struct {
		name      string
		columns   []Column
		threshold float64
		want      string
		err       string
	}{
		{"the same", columns(base, base), 0, "", ""},
		{"slower by a fifth", columns(base, slow), 0.1, "photos B -20 %", ""},
		{"slower by less than the threshold", columns(base, slow), 0.25, "", ""},
		{"faster", columns(slow, base), 0, "", ""},
		{"slower, not significantly", columns(base, run(8, 11, 7, 10, 9, 10.3)), 0, "", ""},
		{"too few rounds", columns(run(10, 11, 12), run(1, 2, 3)), 0, "",
			"3 and 3 rounds of the baseline are too few to judge a regression at confidence 0.95: run with more rounds"},
		{"no baseline", columns(base, run()), 0, "",
			"the baseline was not measured in both A and B: run both again"},
		{"several, the worst first", columns(base, slow, base, slower), 0.1, "photos D -30 %, photos B -20 %", ""},
		{"rounds are no runs", []Column{column(base, base, base), column(slow, slow, slow)}, 0.1, "",
			"3 and 3 runs of the baseline are too few to judge a regression at confidence 0.95: measure each more often"},
		{"by runs", []Column{four, column(run(8), run(8.1), run(7.9), run(8.2))}, 0.1, "photos B -20 %", ""},
		{"runs apart more than their rounds", []Column{four, column(slow, base, slow, base)}, 0, "", ""},
		{"one that can't tell doesn't hide another", columns(base, run(1), slow), 0.1, "photos C -20 %", ""},
		{"an experiment that is new", []Column{column(base), column(base, of("sounds", run(1)))}, 0, "", ""},
		{"one experiment of two", []Column{
			column(of("sounds", base), of("photos", base)), column(of("sounds", base), of("photos", slow)),
		}, 0.1, "photos B -20 %", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Compare(tt.columns, 0.95)
			found, err := c.Regressions(tt.threshold)
			var got []string
			for _, change := range found {
				got = append(got, fmt.Sprintf("%s %s %+.0f %%", change.Group.Name(c), change.Pair.B.Label, 100**change.Row.Change))
			}
			message := ""
			if err != nil {
				message = err.Error()
			}
			if s := strings.Join(got, ", "); s != tt.want || message != tt.err {
				t.Errorf("got %s, %s\nwant %s, %s", s, message, tt.want, tt.err)
			}
		})
	}
}

// TestChanges looks at the order of the rows: regressions, improvements, the rest, what isn't known.
func TestChanges(t *testing.T) {
	near := func(rate float64) []float64 {
		return []float64{rate, 1.01 * rate, 0.99 * rate, 1.02 * rate, 0.98 * rate, rate}
	}
	pipeline := []Stage{{"load.photos", ""}, {"batch", ""}, {"train.step", ""}}
	a := stored("a", pipeline, map[engine.Probe][]float64{{}: near(5), {To: 1}: near(6), {To: 2}: near(10)})
	b := stored("b", pipeline, map[engine.Probe][]float64{{}: near(4), {To: 1}: near(6), {To: 2}: near(12)})
	c := stored("c", pipeline, map[engine.Probe][]float64{{}: near(2), {To: 2}: near(10)})
	var got strings.Builder
	for _, change := range Compare(columns(a, b, c), 0.95).Changes() {
		fmt.Fprintf(&got, "%s %s %s", change.Pair.B.Label, change.Role, change.Address)
		if change.Row.Change != nil {
			fmt.Fprintf(&got, " %+.0f%% %+d", 100**change.Row.Change, change.Effect())
		}
		got.WriteString("\n")
	}
	want := `C baseline  -60% -1
B baseline  -20% -1
C  load.photos +150% -1
C  batch +150% -1
C  train.step +150% -1
B  load.photos +25% -1
B  batch +25% -1
B  train.step +25% -1
B ceiling batch +20% +1
B cached load.photos +0% +0
C ceiling batch +0% +0
C cached load.photos
`
	if d := cmp.Diff(want, got.String()); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
}
