package results

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

// TestCompareMany compares columns of several runs, of several experiments and on several hosts.
func TestCompareMany(t *testing.T) {
	pipeline := []Stage{{"batch", ""}, {"train.step", ""}}
	number := 0
	run := func(id, experiment, host string, rates ...float64) *Stored {
		r := stored(id, pipeline, map[engine.Probe][]float64{{}: rates})
		r.Experiment, r.HostKey, r.Hostname, r.Host.Hostname = experiment, host, host, host
		number++
		r.Started = time.Unix(int64(number), 0)
		return r
	}
	set := func(r *Stored, attribute, value string) *Stored {
		r.Settings = append(r.Settings, engine.Setting{Address: "prepare.decode", Attribute: attribute, Value: value})
		return r
	}
	column := func(runs ...*Stored) Column { return Column{Runs: runs} }
	var unnamed [8]*Stored
	for i := range unnamed {
		unnamed[i] = run(string(rune('s'+i)), "photos", "h1", []float64{10, 10.2, 10.1, 9.9, 8, 8.2, 8.1, 7.9}[i])
	}
	for _, tt := range []struct {
		name    string
		columns []Column
		want    string
	}{{
		name:    "four runs a column",
		columns: []Column{column(unnamed[:4]...), column(append([]*Stored{set(unnamed[4], "workers", "8")}, unnamed[5:]...)...)},
		want: `A s t u v
B w x y z
group photos: hosts h1, runs
probes A 4, B 4 at 0.95
baseline|||| 10.05 [-Inf +Inf] n=4 [need >= 6 samples for confidence interval at level 0.95] | 8.05 [-Inf +Inf] n=4 [need >= 6 samples for confidence interval at level 0.95] | -19.9% [-22.5% -17.2%] p=0.029 n=4+4 significant=true detectable=true []
stages
|batch||| 99.50 [-Inf +Inf] n=4 [need >= 6 samples for confidence interval at level 0.95] | 124.23 [-Inf +Inf] n=4 [need >= 6 samples for confidence interval at level 0.95] | +24.8% [+20.7% +29.1%] p=0.029 n=4+4 significant=true detectable=true []
|train.step||| 49.75 [-Inf +Inf] n=4 [need >= 6 samples for confidence interval at level 0.95] | 62.11 [-Inf +Inf] n=4 [need >= 6 samples for confidence interval at level 0.95] | +24.8% [+20.7% +29.1%] p=0.029 n=4+4 significant=true detectable=true []
settings
geomean B -19.9% of 1 significant=true
warnings
mixed_column: The runs of B count as samples of one version, but differ in prepare.decode.workers.
`,
	}, {
		name: "two experiments, the one that lost first, and one that is new",
		columns: []Column{
			column(run("a", "photos", "h1", 5, 5.1, 4.9, 5.2, 4.8, 5), run("b", "sounds", "h1", 2, 2.1, 1.9, 2.2, 1.8, 2)),
			column(run("c", "photos", "h1", 5, 5.1, 4.9, 5.2, 4.8, 5), run("d", "sounds", "h1", 1, 1.1, 0.9, 1.2, 0.8, 1), run("e", "words", "h1", 1)),
		},
		want: `A a b
B c d e
group sounds: hosts h1, rounds
probes A 1, B 1 at 0.95
baseline|||| 2.00 [1.80 2.20] n=6 [] | 1.00 [0.80 1.20] n=6 [] | -50.0% [-57.9% -42.1%] p=0.002 n=6+6 significant=true detectable=true []
stages
|batch||| 500.00 [454.55 555.56] n=6 [] | 1000.00 [833.33 1250.00] n=6 [] | +100.0% [+72.7% +137.5%] p=0.002 n=6+6 significant=true detectable=true []
|train.step||| 250.00 [227.27 277.78] n=6 [] | 500.00 [416.67 625.00] n=6 [] | +100.0% [+72.7% +137.5%] p=0.002 n=6+6 significant=true detectable=true []
settings
group photos: hosts h1, rounds
probes A 1, B 1 at 0.95
baseline|||| 5.00 [4.80 5.20] n=6 [] | 5.00 [4.80 5.20] n=6 [] | +0.0% [-3.9% +4.1%] p=1.000 n=6+6 significant=false detectable=true []
stages
|batch||| 200.00 [192.31 208.33] n=6 [] | 200.00 [192.31 208.33] n=6 [] | +0.0% [-3.9% +4.1%] p=1.000 n=6+6 significant=false detectable=true []
|train.step||| 100.00 [96.15 104.17] n=6 [] | 100.00 [96.15 104.17] n=6 [] | +0.0% [-3.9% +4.1%] p=1.000 n=6+6 significant=false detectable=true []
settings
group words: hosts h1, rounds
geomean B -29.3% of 2 significant=true
warnings
not_compared: Only B has runs of words, which are compared with none.
`,
	}, {
		name: "hosts apart where each column has one in common",
		columns: []Column{
			column(run("a", "photos", "h1", 5), run("b", "photos", "h2", 9)),
			column(run("c", "photos", "h2", 9)),
			column(set(run("d", "photos", "h1", 5), "workers", "8")),
		},
		want: `A a b
B c
C d
group photos on h1: hosts h1, rounds
probes A 1, C 1 at 0.95
baseline|||| 5.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 5.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +0.0% p=1.000 n=1+1 significant=false detectable=false [all samples are equal]
stages
|batch||| 200.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 200.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +0.0% p=1.000 n=1+1 significant=false detectable=false [all samples are equal]
|train.step||| 100.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 100.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +0.0% p=1.000 n=1+1 significant=false detectable=false [all samples are equal]
settings
prepare.decode|workers: -, 8
group photos on h2: hosts h2, rounds
probes A 1, B 1 at 0.95
baseline|||| 9.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 9.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +0.0% p=1.000 n=1+1 significant=false detectable=false [all samples are equal]
stages
|batch||| 111.11 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 111.11 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +0.0% p=1.000 n=1+1 significant=false detectable=false [all samples are equal]
|train.step||| 55.56 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 55.56 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +0.0% p=1.000 n=1+1 significant=false detectable=false [all samples are equal]
settings
geomean B +0.0% of 1 significant=false
geomean C +0.0% of 1 significant=false
warnings
few_rounds: With 1+1 rounds of A and C, no difference in photos on h1 can be significant at confidence 0.95: run with more rounds.
few_rounds: With 1+1 rounds of A and B, no difference in photos on h2 can be significant at confidence 0.95: run with more rounds.
`,
	}, {
		name: "a column that has no host in common",
		columns: []Column{
			column(run("a", "photos", "h1", 5), run("b", "photos", "h2", 9)),
			column(set(run("d", "photos", "h3", 5), "workers", "8"), set(run("c", "photos", "h1", 4), "workers", "4")),
			column(run("e", "photos", "h3", 4)),
		},
		want: `A a b
B d c
C e
group photos on h1: hosts h1, rounds
probes A 1, B 1 at 0.95
baseline|||| 5.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 4.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | -20.0% p=1.000 n=1+1 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
stages
|batch||| 200.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 250.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +25.0% p=1.000 n=1+1 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|train.step||| 100.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | 125.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +25.0% p=1.000 n=1+1 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
settings
prepare.decode|workers: -, 4
group photos on h3: hosts h3, rounds
group photos on h1, h2, h3: hosts h1 h2 h3, runs
probes A 2, C 1 at 0.95
baseline|||| 7.00 [-Inf +Inf] n=2 [need >= 6 samples for confidence interval at level 0.95] | 4.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | -42.9% p=0.667 n=2+1 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
stages
|batch||| 155.56 [-Inf +Inf] n=2 [need >= 6 samples for confidence interval at level 0.95] | 250.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +60.7% p=0.667 n=2+1 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
|train.step||| 77.78 [-Inf +Inf] n=2 [need >= 6 samples for confidence interval at level 0.95] | 125.00 [-Inf +Inf] n=1 [need >= 6 samples for confidence interval at level 0.95] | +60.7% p=0.667 n=2+1 significant=false detectable=false [need >= 4 samples to detect a difference at alpha level 0.05]
settings
geomean B -20.0% of 1 significant=false
geomean C -42.9% of 1 significant=false
warnings
few_rounds: With 1+1 rounds of A and B, no difference in photos on h1 can be significant at confidence 0.95: run with more rounds.
not_compared: Only B has runs of photos on h3, which are compared with none.
hosts_differ: The hosts differ: hostname h1 (A), h2 (A) and h3 (C).
few_runs: With 2+1 runs of A and C, no difference in photos on h1, h2, h3 can be significant at confidence 0.95: measure each more often.
`,
	}} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, render(Compare(tt.columns, 0.95))); d != "" {
				t.Errorf("comparison (-want +got):\n%s", d)
			}
		})
	}
}

func TestLabel(t *testing.T) {
	var got []string
	for _, i := range []int{0, 25, 26, 51, 52, 701, 702} {
		got = append(got, Label(i))
	}
	if s := strings.Join(got, " "); s != "A Z AA AZ BA ZZ AAA" {
		t.Errorf("got %s", s)
	}
}

// TestVariationBetweenRuns compares versions that are alike, whose runs differ more than the rounds of one run do: where there are
// several runs, no more differences are called significant than 1 − confidence says. A comparison of their rounds would call most
// of them so.
func TestVariationBetweenRuns(t *testing.T) {
	const trials = 400
	rng := rand.New(rand.NewPCG(1, 2))
	pipeline := []Stage{{"batch", ""}, {"train.step", ""}}
	version := func(runs int) (c Column) {
		for range runs {
			mean := 10 * math.Exp(0.05*rng.NormFloat64())
			var rates []float64
			for range 8 {
				rates = append(rates, mean*math.Exp(0.01*rng.NormFloat64()))
			}
			c.Runs = append(c.Runs, stored("x", pipeline, map[engine.Probe][]float64{{}: rates}))
		}
		return c
	}
	share := func(runs int) float64 {
		significant := 0
		for range trials {
			if Compare([]Column{version(runs), version(runs)}, 0.95).Groups[0].Pairs[0].Baseline().Difference.Significant {
				significant++
			}
		}
		return float64(significant) / trials
	}
	if s := share(6); s > 0.07 {
		t.Errorf("%.3f of the comparisons of six runs with six alike are significant at 0.05", s)
	}
	if s := share(1); s < 0.5 {
		t.Errorf("only %.3f of the single runs differ: the runs of this test should", s)
	}
}
