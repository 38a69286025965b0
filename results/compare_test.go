package results

import (
	"fmt"
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
			}
			if d := r.Difference; d != nil {
				fmt.Fprintf(&out, " p=%.3f n=%d+%d significant=%v detectable=%v %v", d.P, d.N1, d.N2, d.Significant, d.Detectable, d.Warnings)
			}
			out.WriteString("\n")
		}
	}
	fmt.Fprintf(&out, "%s %s at %g\nprobes\n", c.A.ID, c.B.ID, c.Confidence)
	rows(c.Probes)
	out.WriteString("stages\n")
	rows(c.Stages)
	out.WriteString("settings\n")
	value := func(v *string) string {
		if v == nil {
			return "-"
		}
		return *v
	}
	for _, s := range c.Settings {
		fmt.Fprintf(&out, "%s|%s: %s, %s\n", s.Address, s.Attribute, value(s.A), value(s.B))
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
		want: `a b at 0.95
probes
baseline|||| 5.03 [4.80 5.20] n=6 [] | 8.05 [7.80 8.30] n=6 [] | +60.2% p=0.002 n=6+6 significant=true detectable=true []
cached|load.photos|bytes|load.photos| 5.03 [4.80 5.20] n=6 [] | 5.00 [4.70 5.30] n=6 [] | -0.5% p=1.000 n=6+6 significant=false detectable=true []
cached|prepare.decode||load.photos+prepare.decode| 8.05 [7.80 8.30] n=6 [] | - |
cached|batch||load.photos+prepare.decode_crop+batch| - | 8.05 [7.80 8.30] n=6 [] |
isolated|prepare.decode||prepare.decode| 8.05 [7.80 8.30] n=6 [] | - |
isolated|augment.crop||augment.crop| 5.03 [4.80 5.20] n=6 [] | - |
isolated|prepare.decode_crop||prepare.decode_crop| - | 8.05 [7.80 8.30] n=6 [] |
ceiling|transfer||load.photos+prepare.decode_crop+batch+transfer| 20.10 [19.00 21.00] n=6 [] | 22.15 [21.50 23.00] n=6 [] | +10.2% p=0.002 n=6+6 significant=true detectable=true []
stages
|load.photos||| 199.01 [192.31 208.33] n=6 [] | 124.23 [120.48 128.21] n=6 [] | -37.6% p=0.002 n=6+6 significant=true detectable=true []
|prepare.decode||| 99.50 [96.15 104.17] n=6 [] | - |
|augment.crop||| 66.34 [64.10 69.44] n=6 [] | - |
|prepare.decode_crop||| - | 62.11 [60.24 64.10] n=6 [] |
|batch||| 49.75 [48.08 52.08] n=6 [] | 41.41 [40.16 42.74] n=6 [] | -16.8% p=0.002 n=6+6 significant=true detectable=true []
|transfer||| - | 31.06 [30.12 32.05] n=6 [] |
|train.step||| 39.80 [38.46 41.67] n=6 [] | 24.85 [24.10 25.64] n=6 [] | -37.6% p=0.002 n=6+6 significant=true detectable=true []
settings
|description: -, "x"
batch|size: 64, 128
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
		want: `a b at 0.95
probes
baseline|||| 5.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 8.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | +60.0% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
stages
|load.photos||| 200.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | - |
|prepare.decode||| 100.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 125.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | +25.0% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|augment.crop||| 66.67 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 62.50 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | -6.2% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|batch||| 50.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 41.67 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | -16.7% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|train.step||| 40.00 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | 31.25 [-Inf +Inf] n=3 [need >= 6 samples for confidence interval at level 0.95] | -21.9% p=0.100 n=3+3 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
settings
checkpoint.raw|store: "memory", -
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
		want: `a a at 0.95
probes
baseline|||| 5.03 [4.80 5.20] n=6 [] | 5.03 [4.80 5.20] n=6 [] | +0.0% p=1.000 n=6+6 significant=false detectable=true []
stages
|batch||| 199.01 [192.31 208.33] n=6 [] | 199.01 [192.31 208.33] n=6 [] | +0.0% p=1.000 n=6+6 significant=false detectable=true []
|train.step||| 99.50 [96.15 104.17] n=6 [] | 99.50 [96.15 104.17] n=6 [] | +0.0% p=1.000 n=6+6 significant=false detectable=true []
settings
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
		want: `a b at 0.95
probes
stages
|train.step||| - | - |
settings
warnings
unfinished: Run a was not finished (failed): what it had measured by then is compared.
`,
	}} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, render(Compare(tt.a(), tt.b(), 0.95))); d != "" {
				t.Errorf("comparison (-want +got):\n%s", d)
			}
		})
	}
}

func TestRegressed(t *testing.T) {
	run := func(rates ...float64) *Stored {
		return stored("x", pipelineA, map[engine.Probe][]float64{{}: rates, {To: 4}: {1, 2, 3, 4}})
	}
	base := run(10, 10.1, 9.9, 10.2, 9.8, 10.05)
	for _, tt := range []struct {
		name      string
		a, b      *Stored
		threshold float64
		want      bool
		err       string
	}{
		{"the same", base, base, 0, false, ""},
		{"slower by a fifth", base, run(8, 8.1, 7.9, 8.2, 7.8, 8.05), 0.1, true, ""},
		{"slower by less than the threshold", base, run(8, 8.1, 7.9, 8.2, 7.8, 8.05), 0.25, false, ""},
		{"faster", run(8, 8.1, 7.9, 8.2, 7.8, 8.05), base, 0, false, ""},
		{"slower, not significantly", base, run(8, 11, 7, 10, 9, 10.3), 0, false, ""},
		{"too few rounds", run(10, 11, 12), run(1, 2, 3), 0, false,
			"3 and 3 rounds of the baseline are too few to judge a regression at confidence 0.95: run with more rounds"},
		{"no baseline", base, run(), 0, false,
			"the baseline was not measured in both runs, so a regression can't be judged: run both again"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Compare(tt.a, tt.b, 0.95).Regressed(tt.threshold)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got != tt.want || message != tt.err {
				t.Errorf("got %v, %s\nwant %v, %s", got, message, tt.want, tt.err)
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

// TestOrderChange compares the order of the stages that both runs have.
func TestOrderChange(t *testing.T) {
	list := func(addresses ...string) (s []Stage) {
		for _, a := range addresses {
			s = append(s, Stage{Address: a})
		}
		return s
	}
	if got := orderChange(list("a", "b", "c"), list("a", "x", "b", "c")); got != nil {
		t.Errorf("an added stage is no other order: %v", got)
	}
	got := orderChange(list("a", "b", "c", "y"), list("a", "c", "x", "b"))
	if len(got) != 1 || got[0].Attribute != "order" || *got[0].A != "b, c" || *got[0].B != "c, b" {
		t.Errorf("got %+v", got)
	}
}

// TestStageWork compares rounds in which a stage made more than the steps consumed, as where the queue behind it fills: what
// counts is what a report counts.
func TestStageWork(t *testing.T) {
	run := stored("a", pipelineB, map[engine.Probe][]float64{{}: {8, 8.2, 7.9, 8.1, 8.3, 7.8}})
	for _, iv := range run.Probes[0].Rounds {
		iv.Stages[1].Items *= 2
	}
	c := Compare(run, run, 0.95)
	for i, row := range c.Stages {
		var want []float64
		for _, iv := range run.Probes[0].Rounds {
			want = append(want, bisect.StepMS(iv, i))
		}
		if diff := cmp.Diff(stats.Summarize(want, 0.95), *row.A); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.Address, diff)
		}
	}
	if full, half := c.Stages[0].A.Median, c.Stages[1].A.Median*4; full != half { // half the work, of twice the workers
		t.Errorf("%g ms and %g ms a step, want the same", full, half)
	}
}
