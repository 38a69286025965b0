// Command fidelity compares the throughput of PyTorch's DataLoader, as a script loops over it, with that of the same loader run as one of
// pipectl's pools, side by side. Rounds of the two alternate, so that what else the machine does disturbs both.
//
// usage: go run ./bench/fidelity [-python INTERPRETER] [-data FOLDER] [-modes pil,io] [-workers 0,1,2,4] [-rounds N] [-batches N]
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pipectl/pipectl/python"
	"github.com/pipectl/pipectl/stages"
)

const batch = 64

func main() {
	c := config{}
	flag.StringVar(&c.python, "python", "python3", "the `interpreter`, which has torch and torchvision")
	flag.StringVar(&c.peers, "peers", "bench/peers", "the `folder` of the scripts")
	flag.StringVar(&c.data, "data", "examples/photos/photos", "a `folder` of images, in folders of classes")
	flag.IntVar(&c.rounds, "rounds", 7, "how often each is measured")
	flag.IntVar(&c.batches, "batches", 12, "batches of 64 in a round")
	modes := flag.String("modes", "pil,io,ov32", "modes of bench_torch.py")
	workers := flag.String("workers", "0,1,2,4", "numbers of workers")
	flag.Parse()
	if err := c.run(strings.Split(*modes, ","), strings.Split(*workers, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

type config struct {
	python, peers, data string
	rounds, batches     int
}

func (c *config) run(modes, workers []string) (err error) {
	if c.data, err = filepath.Abs(c.data); err != nil {
		return err
	}
	fmt.Println("samples/s, medians of the rounds, and CPU time a sample:")
	fmt.Printf("%-6s %7s %11s %9s %6s %11s %9s %6s  %s\n", "mode", "workers", "DataLoader", "pipectl", "ratio", "DataLoader", "pipectl", "ratio", "ratios of the rounds")
	for _, mode := range modes {
		for _, w := range workers {
			n, err := strconv.Atoi(w)
			if err != nil {
				return fmt.Errorf("workers: %w", err)
			}
			if err := c.compare(mode, n); err != nil {
				return fmt.Errorf("%s with %d workers: %w", mode, n, err)
			}
		}
	}
	return nil
}

// compare prints the line of a mode and a number of workers.
func (c *config) compare(mode string, workers int) (err error) {
	ctx := context.Background()
	script, err := c.script(mode, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, script.close()) }()
	pool, err := c.pool(ctx, mode, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var plain, ours, ratios []float64
	var before times
	for i := range c.rounds + 1 {
		if i == 1 { // the first round is a warm-up
			before = script.cpuTimes()
		}
		a, err := script.round()
		if err != nil {
			return err
		}
		b, err := c.round(ctx, pool, workers)
		if err != nil {
			return err
		}
		plain, ours, ratios = append(plain, a), append(ours, b), append(ratios, b/a)
	}
	used := script.cpuTimes()
	around := 2 * max(workers, 1)
	a := (used.script - before.script) / time.Duration(c.rounds*(c.batches+2*around)*batch)
	b := (used.others - before.others) / time.Duration(c.rounds*(c.batches+around)*batch)
	fmt.Printf("%-6s %7d %11.1f %9.1f %6.3f %11v %9v %6.3f ", mode, workers, median(plain[1:]), median(ours[1:]), median(ratios[1:]),
		a.Round(time.Microsecond), b.Round(time.Microsecond), float64(a)/float64(b))
	for _, r := range ratios[1:] {
		fmt.Printf(" %.2f", r)
	}
	fmt.Println()
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// script is a process that loops over the loader by itself.
type script struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (c *config) script(mode string, workers int) (*script, error) {
	cmd := exec.Command(c.python, filepath.Join(c.peers, "rounds.py"), mode, strconv.Itoa(workers), c.data, strconv.Itoa(c.batches))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &script{cmd, in, bufio.NewReader(out)}, cmd.Start()
}

// times is the CPU time that the script's processes have used, and those of the pool.
type times struct{ script, others time.Duration }

// cpuTimes reads the times of the groups of processes that this process has started: see proc_pid_stat(5).
func (s *script) cpuTimes() times {
	const tick = 10 * time.Millisecond // the kernel's, for programs
	type process struct {
		parent, group int
		used          time.Duration
	}
	var all []process
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n } // the kernel's
		all = append(all, process{number(1), number(2), time.Duration(number(11)+number(12)) * tick})
	}
	groups := map[int]bool{}
	for _, p := range all {
		if p.parent == os.Getpid() {
			groups[p.group] = true
		}
	}
	var t times
	for _, p := range all {
		switch {
		case p.group == s.cmd.Process.Pid:
			t.script += p.used
		case groups[p.group]:
			t.others += p.used
		}
	}
	return t
}

// round returns the samples/s of a round.
func (s *script) round() (float64, error) {
	if _, err := io.WriteString(s.in, "\n"); err != nil {
		return 0, err
	}
	line, err := s.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(line), 64)
}

func (s *script) close() error { return errors.Join(s.in.Close(), s.cmd.Wait()) }

// pool opens the pool of a mode: in the mode pil, with the transform's steps as stages.
func (c *config) pool(ctx context.Context, mode string, workers int) (stages.Pool, error) {
	var r stages.Registry
	python.Add(&r)
	spec := func(block string) any {
		op, _ := r.Lookup(block, "python")
		return op.New()
	}
	load := spec(stages.Load).(*python.Load)
	load.Loader = "pipeline:loader"
	load.Python, load.Pythonpath = c.python, []stages.Path{stages.Path(c.peers)}
	around := 2 * max(workers, 1)
	load.Env = map[string]string{"MODE": mode, "WORKERS": strconv.Itoa(workers), "DATA": c.data, "SAMPLES": strconv.Itoa((c.batches + 2*around) * batch)}
	list := []stages.PoolStage{{Address: "load", Spec: load}}
	if mode == "pil" {
		load.Lift = []string{"transform"}
		for i := range 4 {
			step := spec(stages.Augment).(*python.Callable)
			step.Callable = fmt.Sprintf("pipeline:loader.dataset.transform.transforms[%d]", i)
			step.Inherit(load)
			list = append(list, stages.PoolStage{Address: fmt.Sprintf("augment.%d", i), Spec: step})
		}
	}
	list = append(list, stages.PoolStage{Address: "batch"})
	if err := load.Fuses(list); err != nil {
		return nil, err
	}
	pool, err := load.OpenPool(ctx, stages.PoolSetup{Stages: list, Workers: workers, Batch: batch, DropLast: true, Seed: 1})
	if err != nil {
		return nil, err
	}
	if err := pool.Start(ctx, stages.PoolMode{}); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	return pool, nil
}

// round returns the samples/s of a round: batches that were waiting when it begins aren't timed, nor those that the workers had begun.
func (c *config) round(ctx context.Context, pool stages.Pool, workers int) (float64, error) {
	around := 2 * max(workers, 1)
	var start time.Time
	for n := range around + c.batches {
		b, err := pool.Next(ctx)
		if err != nil {
			return 0, err
		}
		b.Release()
		if n == around-1 {
			start = time.Now()
		}
	}
	return float64(c.batches*batch) / time.Since(start).Seconds(), nil
}
