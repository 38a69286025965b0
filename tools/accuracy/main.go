// Accuracy plants bottlenecks in random pipelines, has pipectl search them in real time, and prints how often it was right.
// It runs in the repository's root, on a machine with nothing else to do: each pipeline takes half a minute or so.
//
//	go run ./tools/accuracy -n 200 bin/pipectl
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	n := flag.Int("n", 200, "pipelines in all, in turn of each kind")
	seed := flag.Uint64("seed", 1, "what they are drawn from")
	only := flag.String("kind", "", "the one kind to try")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: accuracy [-n N] [-seed S] [-kind KIND] PIPECTL")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, flag.Arg(0), *n, *seed, *only); err != nil {
		log.Fatal(err)
	}
}

// kind is a kind of pipelines.
type kind struct {
	name    string
	cpu     float64 // share of the stages that compute
	crowded bool    // several workers at stages that compute, on few cores
	tie     bool    // two stages are within 5 % of each other
	pool    bool    // one pool of workers runs all stages
	noisy   bool    // other processes keep half of the cores busy for part of the time
	burning bool    // the step computes
}

var kinds = []kind{
	{name: "waiting"},
	{name: "CPU-bound", cpu: 1},
	{name: "mixed", cpu: 0.5},
	{name: "shared cores", cpu: 1, crowded: true},
	{name: "one pool", cpu: 0.3, pool: true},
	{name: "near ties", tie: true},
	{name: "burning step", cpu: 0.3, burning: true},
	{name: "noisy", cpu: 0.5, noisy: true},
}

// stage is a stage of a planted pipeline.
type stage struct {
	computes bool
	time     time.Duration // an item's
	workers  int
}

// pipeline is a pipeline whose bottleneck is known.
type pipeline struct {
	*kind
	stages  []stage
	workers int // of the pool
	batch   int
	step    time.Duration
}

// plant draws a pipeline: 3 to 9 stages, one of them at least 1.5 times as slow as the next.
func plant(rng *rand.Rand, k *kind) *pipeline {
	n := 3 + rng.IntN(7)
	p := &pipeline{kind: k, workers: 1 + rng.IntN(3), batch: 1 << rng.IntN(4)}
	slowest := (3 + 9*rng.Float64()) * float64(time.Millisecond)
	at, second := rng.IntN(n), rng.IntN(n)
	for i := range n {
		t := (0.05 + 0.95*rng.Float64()) * slowest / 1.5
		switch {
		case i == at:
			t = slowest
		case k.tie && i == second:
			t = slowest * (0.95 + 0.05*rng.Float64())
		}
		s := stage{computes: rng.Float64() < k.cpu, workers: 1}
		if k.crowded || !s.computes && rng.IntN(3) == 0 {
			s.workers = 2
		}
		if !k.crowded && !k.pool {
			t *= float64(s.workers)
		}
		s.time = time.Duration(t).Round(time.Microsecond)
		p.stages = append(p.stages, s)
	}
	limit := p.stepTime(-1)
	p.step = time.Duration(limit * (0.1 + 0.6*rng.Float64())).Round(time.Microsecond)
	if rng.IntN(4) == 0 {
		p.step = time.Duration(limit * (1.3 + 0.5*rng.Float64())).Round(time.Microsecond)
	}
	return p
}

// stepTime returns the nanoseconds a step without one of the stages, -1: with all of them.
func (p *pipeline) stepTime(without int) float64 {
	slowest, all, computing := 0.0, 0.0, 0.0
	for i, s := range p.stages {
		if i == without {
			continue
		}
		each := float64(s.time) * float64(p.batch)
		slowest = max(slowest, each/float64(s.workers))
		all += each
		if s.computes {
			computing += each
		}
	}
	if p.pool {
		slowest = all / float64(p.workers)
	}
	if p.burning {
		computing += float64(p.step)
	}
	return max(float64(p.step), slowest, computing/float64(runtime.NumCPU()))
}

// answers returns the bottlenecks that are right, "" for undecided among them where that is excused.
func (p *pipeline) answers() []string {
	base := p.stepTime(-1)
	order, gain := make([]int, len(p.stages)), make([]float64, len(p.stages))
	for i := range order {
		order[i], gain[i] = i, base-p.stepTime(i)
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(gain[b], gain[a]) })
	name := func(rank int) string { return fmt.Sprintf("prepare.s%d", order[rank]+1) }
	best, next := gain[order[0]], gain[order[1]]
	switch slack := 1 - float64(p.step)/base; {
	case slack <= 0.02:
		return []string{"train.step"}
	case slack < 0.1:
		return []string{"", "train.step", name(0)}
	case best < 0.05*base: // no stage alone is worth it
		return []string{"", name(0), name(1)}
	case p.tie || next >= 0.9*best:
		return []string{"", name(0), name(1)}
	case p.noisy:
		return []string{"", name(0)}
	}
	return []string{name(0)}
}

// file writes the pipeline as an experiment.
func (p *pipeline) file() string {
	var s strings.Builder
	s.WriteString("experiment \"planted\" {\n")
	if p.pool {
		fmt.Fprintf(&s, "pool \"all\" {\nworkers = %d\n", p.workers)
	}
	s.WriteString("load \"synthetic\" \"items\" {\nkind = \"bytes\"\nbytes = \"1KiB\"\n}\n")
	for i, st := range p.stages {
		typ, workers := "sleep", ""
		if st.computes {
			typ = "spin"
		}
		if !p.pool {
			workers = fmt.Sprintf("workers = %d\n", st.workers)
		}
		fmt.Fprintf(&s, "prepare %q \"s%d\" {\ntime = \"%dus\"\n%s}\n", typ, i+1, st.time.Microseconds(), workers)
	}
	fmt.Fprintf(&s, "batch { size = %d }\n", p.batch)
	if p.pool {
		s.WriteString("}\n")
	}
	mode := "sleep"
	if p.burning {
		mode = "spin"
	}
	fmt.Fprintf(&s, "train \"emulated\" \"step\" {\ntime = \"%dus\"\nmode = %q\n}\n}\n", p.step.Microseconds(), mode)
	return s.String()
}

// verdict is what a session prints last.
type verdict struct {
	Verdict    string  `json:"verdict"`
	Bottleneck *string `json:"bottleneck"`
	Probes     []probe `json:"probes"`
	Isolated   []probe `json:"isolated"`
	Notes      []struct {
		Code string `json:"code"`
	} `json:"notes"`
}

type probe struct {
	Rate      estimate  `json:"steps_per_second"`
	Predicted *estimate `json:"predicted_steps_per_second"`
}

type estimate struct {
	Median float64 `json:"median"`
}

// score is what came of the pipelines of a kind.
type score struct {
	searched, right, excused, disturbed, undecided, wrong int
	over                                                  float64 // probes beyond log2(n) + 3
	took                                                  time.Duration
	errors                                                []float64 // of the predicted rates
}

// run searches n pipelines and prints the table. It fails where a verdict is wrong.
func run(ctx context.Context, binary string, n int, seed uint64, only string) error {
	folder, err := os.MkdirTemp("", "accuracy")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	scores := make([]score, len(kinds))
	for i := 0; i < n && ctx.Err() == nil; i++ {
		k := i % len(kinds)
		if only != "" {
			if k = slices.IndexFunc(kinds, func(k kind) bool { return k.name == only }); k < 0 {
				return fmt.Errorf("there is no kind %q", only)
			}
		}
		p := plant(rand.New(rand.NewPCG(seed, uint64(i))), &kinds[k])
		v, took, err := p.search(ctx, binary, folder)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return fmt.Errorf("pipeline %d, %s: %w\n%s", i, p.name, err, p.file())
		}
		outcome := scores[k].add(p, v, took)
		fmt.Printf("%3d %-12s %-9s got %-11s want %-28s %2.0fs\n", i, p.name, outcome, name(v), strings.Join(p.answers(), "|"), took.Seconds())
		if outcome == "wrong" {
			fmt.Println(p.file())
		}
	}
	wrong := print(scores)
	if wrong > 0 {
		return fmt.Errorf("%d wrong verdicts", wrong)
	}
	return nil
}

func name(v *verdict) string {
	if v.Bottleneck == nil {
		return "undecided"
	}
	return *v.Bottleneck
}

// search has pipectl search the pipeline.
func (p *pipeline) search(ctx context.Context, binary, folder string) (*verdict, time.Duration, error) {
	file := filepath.Join(folder, "planted.hcl")
	if err := os.WriteFile(file, []byte(p.file()), 0o644); err != nil {
		return nil, 0, err
	}
	if p.noisy {
		burning, stop := context.WithCancel(ctx)
		defer stop()
		go burn(burning)
	}
	began := time.Now()
	cmd := exec.CommandContext(ctx, binary, "run", "-q", "--json", "--db", filepath.Join(folder, "results.db"), file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	v := new(verdict)
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), v); err != nil {
		return nil, 0, err
	}
	if v.Verdict == "" {
		return nil, 0, errors.New("the last line is no verdict")
	}
	return v, time.Since(began), nil
}

// burn keeps half of the cores busy for 40 % of the time, some seconds at once, in processes of their own.
func burn(ctx context.Context) {
	for ctx.Err() == nil {
		busy, done := context.WithTimeout(ctx, 4*time.Second)
		var burners []*exec.Cmd
		for range max(runtime.NumCPU()/2, 1) {
			c := exec.CommandContext(busy, "sh", "-c", "while :; do :; done")
			if c.Start() == nil {
				burners = append(burners, c)
			}
		}
		for _, c := range burners {
			c.Wait()
		}
		done()
		select {
		case <-ctx.Done():
		case <-time.After(6 * time.Second):
		}
	}
}

// add counts a verdict, and returns what it counts as.
func (s *score) add(p *pipeline, v *verdict, took time.Duration) string {
	s.searched++
	s.took += took
	s.over += float64(len(v.Probes)+len(v.Isolated)) - math.Log2(float64(len(p.stages)+2)) - 3
	for _, x := range slices.Concat(v.Probes, v.Isolated) {
		if x.Predicted != nil && x.Rate.Median > 0 {
			s.errors = append(s.errors, math.Abs(x.Predicted.Median/x.Rate.Median-1))
		}
	}
	want := p.answers()
	disturbed := slices.ContainsFunc(v.Notes, func(n struct {
		Code string `json:"code"`
	}) bool {
		return n.Code == "disturbed" || n.Code == "outside_load"
	})
	switch {
	case v.Bottleneck != nil && slices.Contains(want, *v.Bottleneck):
		s.right++
		return "right"
	case v.Bottleneck != nil:
		s.wrong++
		return "wrong"
	case slices.Contains(want, ""):
		s.excused++
		return "near tie"
	case disturbed:
		s.disturbed++
		return "disturbed"
	}
	s.undecided++
	return "undecided"
}

// print writes the table and returns how many verdicts were wrong.
func print(scores []score) (wrong int) {
	fmt.Printf("\n%-13s %8s %6s %9s %10s %10s %6s %14s %5s %17s\n", "kind", "searched", "right", "near tie", "disturbed", "undecided", "wrong", "probes beyond", "took", "prediction error")
	for i, s := range scores {
		if s.searched == 0 {
			continue
		}
		slices.Sort(s.errors)
		off := "–"
		if n := len(s.errors); n > 0 {
			off = fmt.Sprintf("%.1f %%", 100*s.errors[n/2])
		}
		fmt.Printf("%-13s %8d %6d %9d %10d %10d %6d %14.1f %4.0fs %17s\n", kinds[i].name, s.searched, s.right, s.excused, s.disturbed, s.undecided, s.wrong,
			s.over/float64(s.searched), s.took.Seconds()/float64(s.searched), off)
		wrong += s.wrong
	}
	fmt.Println("probes beyond: beyond log2(n) + 3, for n stages. prediction error: median over all probes, from the baseline's accounts alone.")
	return wrong
}
