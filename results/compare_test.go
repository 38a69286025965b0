package results

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
)

// stored returns a finished run over this pipeline, with probes whose rounds have the given rates.
func stored(id string, pipeline []Stage, rates map[engine.Probe][]float64) *Stored {
	run := &Stored{
		Summary:  Summary{ID: id, Experiment: "photos", Status: Done, Version: "1.0.0"},
		Host:     Host{Hostname: "a", CPU: "EPYC", CPUs: 8},
		Settings: []engine.Setting{{Attribute: "seed", Value: "1"}, {Address: "batch", Attribute: "size", Value: "64"}},
		Stages:   pipeline,
	}
	for p, list := range rates {
		probe := describe(p, pipeline)
		for _, rate := range list {
			iv := interval(rate)
			iv.Stages = nil
			for i, s := range pipeline {
				items := iv.Samples
				if s.Address == "transfer" || s.Address == "train.step" {
					items = int64(iv.Steps)
				}
				iv.Stages = append(iv.Stages, engine.Account{Address: s.Address, Workers: i + 1, Items: items, Busy: iv.Elapsed})
			}
			probe.Rounds = append(probe.Rounds, iv)
		}
		run.Probes = append(run.Probes, probe)
	}
	return run
}

// columns returns columns of a run each.
func columns(runs ...*Stored) []Column {
	var list []Column
	for _, run := range runs {
		list = append(list, Column{Name: run.ID, Runs: []*Stored{run}})
	}
	return list
}

// render writes a comparison as text, everything in it.
func render(c *Comparison) string {
	var out strings.Builder
	sample := func(s *stats.Summary) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf("%.2f [%.2f %.2f] n=%d %v", s.Median, s.Low, s.High, s.N, s.Warnings)
	}
	rows := func(list []Row) {
		for _, r := range list {
			fmt.Fprintf(&out, "%s|%s|%s|%s| %s | %s |", r.Role, r.Address, r.Checkpoint, strings.Join(r.Frees, "+"), sample(r.A), sample(r.B))
			if r.Change != nil {
				fmt.Fprintf(&out, " %+.1f%%", 100**r.Change)
				if !math.IsInf(r.High, 0) {
					fmt.Fprintf(&out, " [%+.1f%% %+.1f%%]", 100*r.Low, 100*r.High)
				}
			}
			if d := r.Difference; d != nil {
				fmt.Fprintf(&out, " p=%.3f n=%d+%d significant=%v detectable=%v %v", d.P, d.N1, d.N2, d.Significant, d.Detectable, d.Warnings)
			}
			out.WriteString("\n")
		}
	}
	for _, column := range c.Columns {
		fmt.Fprintf(&out, "%s", column.Label)
		for _, run := range column.Runs {
			fmt.Fprintf(&out, " %s", run.ID)
		}
		out.WriteString("\n")
	}
	value := func(v *string) string {
		if v == nil {
			return "-"
		}
		return *v
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		fmt.Fprintf(&out, "group %s: hosts %s, %s\n", g.Name(c), strings.Join(g.Hosts, " "), g.Unit)
		for _, p := range g.Pairs {
			fmt.Fprintf(&out, "probes %s %d, %s %d at %g\n", p.A.Label, len(p.A.Runs), p.B.Label, len(p.B.Runs), c.Confidence)
			rows(p.Probes)
			out.WriteString("stages\n")
			rows(p.Stages)
			out.WriteString("settings\n")
			for _, s := range p.Settings {
				fmt.Fprintf(&out, "%s|%s: %s, %s\n", s.Address, s.Attribute, value(s.A), value(s.B))
			}
		}
	}
	for _, m := range c.Geomeans {
		fmt.Fprintf(&out, "geomean %s %+.1f%% of %d significant=%v\n", m.Label, 100*m.Change, m.Groups, m.Significant)
	}
	out.WriteString("warnings\n")
	for _, w := range c.Warnings {
		fmt.Fprintf(&out, "%s: %s\n", w.Code, w.Text)
	}
	return out.String()
}

var (
	pipelineA = []Stage{{"load.photos", "raw"}, {"prepare.decode", ""}, {"augment.crop", ""}, {"batch", ""}, {"train.step", ""}}
	pipelineB = []Stage{{"load.photos", "bytes"}, {"prepare.decode_crop", ""}, {"batch", ""}, {"transfer", ""}, {"train.step", ""}}
)

func TestCompare(t *testing.T) {
	slow := []float64{5, 5.1, 4.9, 5.2, 4.8, 5.05}
	fast := []float64{8, 8.2, 7.9, 8.1, 8.3, 7.8}
	for _, tt := range []struct {
		name string
		a, b func() *Stored
		want string
	}{{
		name: "a stage replaced by another",
		a: func() *Stored {
			return stored("a", pipelineA, map[engine.Probe][]float64{
				{}: slow, {To: 1}: slow, {To: 2}: fast, {To: 4}: {20, 21, 19, 20, 20.5, 20.2}, {From: 1, To: 2}: fast, {From: 2, To: 3}: slow,
			})
		},
		b: func() *Stored {
			run := stored("b", pipelineB, map[engine.Probe][]float64{
				{}: fast, {To: 1}: {5.15, 5, 4.95, 5.3, 4.7, 5}, {To: 3}: fast, {To: 4}: {22, 23, 21.5, 22.2, 22.3, 22.1}, {From: 1, To: 2}: fast,
			})
			run.Settings = []engine.Setting{
				{Attribute: "seed", Value: "1"}, {Attribute: "description", Value: `"x"`}, {Address: "batch", Attribute: "size", Value: "128"}}
			run.Host = Host{Hostname: "b", CPU: "EPYC", CPUs: 16, Governor: "powersave"}
			run.Version = "1.1.0"
			return run
		},
		want: `A a
B b
group photos: hosts , rounds
probes A 1, B 1 at 0.95
baseline|||| 5.03 [4.80 5.20] n=6 [] | 8.05 [7.80 8.30] n=6 [] | +60.2% [+54.9% +66.7%] p=0.002 n=6+6 significant=true detectable=true []
cached|load.photos|bytes|load.photos| 5.03 [4.80 5.20] n=6 [] | 5.00 [4.70 5.30] n=6 [] | -0.5% [-4.1% +5.0%] p=1.000 n=6+6 significant=false detectable=true []
cached|prepare.decode||load.photos+prepare.decode| 8.05 [7.80 8.30] n=6 [] | - |
cached|batch||load.photos+prepare.decode_crop+batch| - | 8.05 [7.80 8.30] n=6 [] |
isolated|prepare.decode||prepare.decode| 8.05 [7.80 8.30] n=6 [] | - |
isolated|augment.crop||augment.crop| 5.03 [4.80 5.20] n=6 [] | - |
isolated|prepare.decode_crop||prepare.decode_crop| - | 8.05 [7.80 8.30] n=6 [] |
ceiling|transfer||load.photos+prepare.decode_crop+batch+transfer| 20.10 [19.00 21.00] n=6 [] | 22.15 [21.50 23.00] n=6 [] | +10.2% [+6.2% +15.0%] p=0.002 n=6+6 significant=true detectable=true []
stages
|load.photos||| 199.01 [192.31 208.33] n=6 [] | 124.23 [120.48 128.21] n=6 [] | -37.6% [-40.0% -35.4%] p=0.002 n=6+6 significant=true detectable=true []
|prepare.decode||| 99.50 [96.15 104.17] n=6 [] | - |
|augment.crop||| 66.34 [64.10 69.44] n=6 [] | - |
|prepare.decode_crop||| - | 62.11 [60.24 64.10] n=6 [] |
|batch||| 49.75 [48.08 52.08] n=6 [] | 41.41 [40.16 42.74] n=6 [] | -16.8% [-20.0% -13.9%] p=0.002 n=6+6 significant=true detectable=true []
|transfer||| - | 31.06 [30.12 32.05] n=6 [] |
|train.step||| 39.80 [38.46 41.67] n=6 [] | 24.85 [24.10 25.64] n=6 [] | -37.6% [-40.0% -35.4%] p=0.002 n=6+6 significant=true detectable=true []
settings
|description: -, "x"
batch|size: 64, 128
geomean B +60.2% of 1 significant=true
warnings
hosts_differ: The hosts differ: hostname a and b; logical CPUs 8 and 16.
versions_differ: The runs were made by different versions of pipectl, 1.0.0 and 1.1.0.
batch_sizes_differ: The batch sizes differ, 64 and 128: a step does not stand for the same number of samples.
`,
	}, {
		name: "unfinished, of different experiments",
		a: func() *Stored {
			run := stored("a", pipelineA, map[engine.Probe][]float64{{}: slow[:3]})
			run.Status = Interrupted
			run.Settings = append(run.Settings, engine.Setting{Address: "checkpoint.raw", Attribute: "store", Value: `"memory"`})
			return run
		},
		b: func() *Stored {
			run := stored("b", pipelineA[1:], map[engine.Probe][]float64{{}: fast[:3]})
			run.Status, run.Experiment = Running, "fashion"
			return run
		},
		want: `A a
B b
group photos, fashion: hosts , rounds
probes A 1, B 1 at 0.95
baseline|||| 5.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 8.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | +60.0% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
stages
|load.photos||| 200.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | - |
|prepare.decode||| 100.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 125.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | +25.0% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|augment.crop||| 66.67 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 62.50 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | -6.2% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|batch||| 50.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 41.67 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | -16.7% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|train.step||| 40.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 31.25 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | -21.9% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
settings
checkpoint.raw|store: "memory", -
geomean B +60.0% of 1 significant=false
warnings
experiments_differ: The runs are of different experiments, photos and fashion.
unfinished: Run a was not finished (interrupted): what it had measured by then is compared.
unfinished: Run b is still running: what it has measured so far is compared.
few_rounds: With 3 and 3 rounds of the baseline, no difference can be significant at confidence 0.95.
`,
	}, {
		name: "a run and itself",
		a:    func() *Stored { return stored("a", pipelineA[3:], map[engine.Probe][]float64{{}: slow}) },
		b:    func() *Stored { return stored("a", pipelineA[3:], map[engine.Probe][]float64{{}: slow}) },
		want: `A a
B a
group photos: hosts , rounds
probes A 1, B 1 at 0.95
baseline|||| 5.03 [4.80 5.20] n=6 [] | 5.03 [4.80 5.20] n=6 [] | +0.0% [-3.9% +4.1%] p=1.000 n=6+6 significant=false detectable=true []
stages
|batch||| 199.01 [192.31 208.33] n=6 [] | 199.01 [192.31 208.33] n=6 [] | +0.0% [-3.9% +4.1%] p=1.000 n=6+6 significant=false detectable=true []
|train.step||| 99.50 [96.15 104.17] n=6 [] | 99.50 [96.15 104.17] n=6 [] | +0.0% [-3.9% +4.1%] p=1.000 n=6+6 significant=false detectable=true []
settings
geomean B +0.0% of 1 significant=false
warnings
same_run: Run a is compared with itself.
`,
	}, {
		name: "nothing measured",
		a: func() *Stored {
			run := stored("a", pipelineA[4:], nil)
			run.Status = Failed
			return run
		},
		b: func() *Stored { return stored("b", pipelineA[4:], nil) },
		want: `A a
B b
group photos: hosts , rounds
probes A 1, B 1 at 0.95
stages
|train.step||| - | - |
settings
warnings
unfinished: Run a was not finished (failed): what it had measured by then is compared.
`,
	}} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, render(Compare(columns(tt.a(), tt.b()), 0.95))); d != "" {
				t.Errorf("comparison (-want +got):\n%s", d)
			}
		})
	}
}

func TestPairs(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "", ""},
		{"abc", "abc", "aa bb cc"},
		{"abc", "", "a- b- c-"},
		{"", "abc", "-a -b -c"},
		{"abcd", "axd", "aa b- c- -x dd"},
		{"xab", "aby", "x- aa bb -y"},
		{"ab", "ba", "bb aa"},
		{"aa", "aa", "aa aa"},
	} {
		var got []string
		for _, p := range pairs([]rune(tt.a), []rune(tt.b), func(r rune) string { return string(r) }) {
			x, y := "-", "-"
			if p.a != nil {
				x = string(*p.a)
			}
			if p.b != nil {
				y = string(*p.b)
			}
			got = append(got, x+y)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%s, %s: %s, want %s", tt.a, tt.b, s, tt.want)
		}
	}
}

// TestStageWork compares rounds in which a stage made more than the steps consumed, as where the queue behind it fills: what
// counts is what a report counts.
func TestStageWork(t *testing.T) {
	run := stored("a", pipelineB, map[engine.Probe][]float64{{}: {8, 8.2, 7.9, 8.1, 8.3, 7.8}})
	for _, iv := range run.Probes[0].Rounds {
		iv.Stages[1].Items *= 2
	}
	pair := Compare(columns(run, run), 0.95).Groups[0].Pairs[0]
	for i, row := range pair.Stages {
		var want []float64
		for _, iv := range run.Probes[0].Rounds {
			want = append(want, bisect.StepMS(iv, i))
		}
		if diff := cmp.Diff(stats.Summarize(want, 0.95), *row.A); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.Address, diff)
		}
	}
	if full, half := pair.Stages[0].A.Median, pair.Stages[1].A.Median*4; full != half { // half the work, of twice the workers
		t.Errorf("%g ms and %g ms a step, want the same", full, half)
	}
}
