// Command peers compares pipectl's fused image pipeline with PyTorch's DataLoaders and with the limit of the machine, which is a
// program in C, all on the same JPEG files. Rounds of them alternate, so that what else the machine does disturbs all of them.
//
// usage: go run ./bench/peers [-python INTERPRETER] [-limit PROGRAM] [-workers N] [-rounds N] [-batches N] [-modes pil,draft] FOLDER
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/stages"
)

const (
	batch      = 64
	confidence = 0.95
)

func main() {
	b := benchmark{}
	flag.StringVar(&b.python, "python", "python3", "the `interpreter`, which has torch and torchvision")
	flag.StringVar(&b.limit, "limit", "bin/peers/limit", "the `program` that limit/limit.c is compiled to")
	flag.StringVar(&b.here, "peers", "bench/peers", "the `folder` of the scripts")
	flag.IntVar(&b.workers, "workers", runtime.NumCPU(), "of pipectl and of the limit")
	flag.IntVar(&b.rounds, "rounds", 10, "how often each is measured")
	flag.IntVar(&b.batches, "batches", 12, "batches of 64 in a round")
	modes := flag.String("modes", "pil", "modes of bench_torch.py")
	counts := flag.String("loaders", "1,2,4", "numbers of a DataLoader's workers")
	flag.Parse()
	b.data = flag.Arg(0)
	b.modes, b.counts = strings.Split(*modes, ","), strings.Split(*counts, ",")
	if err := b.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

type benchmark struct {
	python, limit, here, data string
	modes, counts             []string
	workers, rounds, batches  int
}

// peer is one of the programs that are compared. Its round makes so many batches, in steady state, and returns images/s and the CPU
// time of one image.
type peer struct {
	name  string
	round func() (rate float64, cpu time.Duration, err error)
	close func() error
	rates []float64
	cpu   []float64 // ms
}

func (b *benchmark) run(ctx context.Context) (err error) {
	if b.data, err = filepath.Abs(b.data); err != nil {
		return err
	}
	peers, err := b.open(ctx)
	defer func() {
		for _, p := range peers {
			err = errors.Join(err, p.close())
		}
	}()
	if err != nil {
		return err
	}
	for i := range b.rounds + 1 {
		for _, p := range peers {
			rate, cpu, err := p.round()
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if i > 0 { // the first round is a warm-up
				p.rates, p.cpu = append(p.rates, rate), append(p.cpu, cpu.Seconds()*1000)
			}
		}
	}
	fmt.Printf("%s: medians of %d rounds with their %.0f %% intervals, pipectl with %d workers\n\n", b.data, b.rounds, 100*confidence, b.workers)
	fmt.Printf("%-22s %24s %24s %28s %28s\n", "", "images/s", "CPU ms/image", "pipectl's rate / this one's", "this one's CPU / pipectl's")
	for _, p := range peers {
		fmt.Printf("%-22s %24s %24s %28s %28s\n", p.name, interval(p.rates, 0), interval(p.cpu, 2),
			interval(ratios(peers[0].rates, p.rates), 2), interval(ratios(p.cpu, peers[0].cpu), 2))
	}
	return nil
}

// ratios returns those of the rounds: what disturbs a round disturbs both of its sides.
func ratios(a, b []float64) []float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = a[i] / b[i]
	}
	return r
}

func interval(values []float64, digits int) string {
	s := stats.Summarize(values, confidence)
	return fmt.Sprintf("%.*f [%.*f %.*f]", digits, s.Median, digits, s.Low, digits, s.High)
}

// open starts all peers, pipectl first.
func (b *benchmark) open(ctx context.Context) ([]*peer, error) {
	ours, err := b.pipeline(ctx)
	if err != nil {
		return nil, err
	}
	peers := []*peer{ours}
	images, err := filepath.Glob(filepath.Join(b.data, "*", "*.jpg"))
	if err != nil || len(images) == 0 {
		return peers, fmt.Errorf("%s has no folders of *.jpg files", b.data)
	}
	limit, err := start("C limit", b.batches*batch, b.limit, append([]string{strconv.Itoa(b.workers), strconv.Itoa(b.batches)}, images...)...)
	if err != nil {
		return peers, err
	}
	peers = append(peers, limit)
	for _, mode := range b.modes {
		for _, count := range b.counts {
			workers, err := strconv.Atoi(count)
			if err != nil {
				return peers, fmt.Errorf("loaders: %w", err)
			}
			needed := (b.batches + 4*max(workers, 1)) * batch // with those that rounds.py doesn't time
			made := (needed + len(images) - 1) / len(images) * len(images) / batch * batch
			loader, err := start(fmt.Sprintf("DataLoader %s, %d", mode, workers), made,
				b.python, filepath.Join(b.here, "rounds.py"), mode, count, b.data, strconv.Itoa(b.batches))
			if err != nil {
				return peers, err
			}
			peers = append(peers, loader)
		}
	}
	return peers, nil
}

// pipeline opens the experiment of pipeline.hcl.
func (b *benchmark) pipeline(ctx context.Context) (*peer, error) {
	registry := stages.Builtin()
	gpu.Add(registry)
	cfg, diags := config.Load(config.Options{
		Path:        filepath.Join(b.here, "pipeline.hcl"),
		Registry:    registry,
		Assignments: []config.Assignment{{Var: "data=" + b.data}, {Var: fmt.Sprint("workers=", b.workers)}},
	})
	if diags.HasErrors() {
		return nil, diags
	}
	p, problems, err := engine.Open(ctx, cfg.Experiments[0], engine.Options{OpenDevice: devices.Open, Cores: b.workers})
	for _, problem := range problems {
		if !problem.Warning {
			err = errors.Join(err, fmt.Errorf("%s: %s. %s", problem.Address, problem.Summary, problem.Detail))
		}
	}
	if err != nil {
		return nil, err
	}
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + p.Plan.Workers()) // as `pipectl run` does
	return &peer{name: "pipectl", close: p.Close, round: func() (float64, time.Duration, error) {
		iv, err := p.Measure(ctx, engine.Probe{}, 4, b.batches)
		if err != nil {
			return 0, 0, err
		}
		cpu := iv.CPU * iv.Elapsed.Seconds() / float64(iv.Samples)
		return float64(iv.Samples) / iv.Elapsed.Seconds(), time.Duration(cpu * float64(time.Second)), nil
	}}, nil
}
