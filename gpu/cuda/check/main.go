//go:build cuda

// Command check checks the training step on the GPU of this machine against the CPU, measures it, and runs the photos
// example on it. It prints a table, and its exit code is 1 where a result is wrong. `make gpu-check` packs it with all that
// it needs, for machines without Go and without a network.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/pipectl/pipectl/gpu/cuda"
)

func main() {
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random networks and batches")
	small := flag.Bool("small", false, "small shapes, for the emulated driver")
	flag.Parse()
	// A hung driver ends the check too: four minutes are for all of it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, 220*time.Second)
	defer cancel()
	report := &report{}
	err := run(ctx, report, *seed, *small)
	report.print()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
	}
	if err != nil || report.wrong {
		os.Exit(1)
	}
}

func run(ctx context.Context, r *report, seed uint64, small bool) (err error) {
	d, err := cuda.Open("It is what is checked.")
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := d.Close(); err == nil {
			err = closeErr
		}
	}()
	info := d.Info()
	r.add("GPU", info.Name, fmt.Sprintf("%.1f GiB; %s", float64(info.Memory)/(1<<30), info.Why))
	r.add("seed", fmt.Sprint(seed), "-seed repeats it")
	m := &measurement{ctx: ctx, d: d, report: r, small: small}
	for _, part := range []func() error{
		func() error { return numerics(ctx, d, r, seed, small) },
		m.copies, m.steps, m.overlap,
	} {
		if err := part(); err != nil {
			return err
		}
	}
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	return photos(ctx, r, filepath.Dir(executable))
}

// report is the table.
type report struct {
	rows  [][3]string
	wrong bool // a result is
}

func (r *report) add(what, value, note string) {
	r.rows = append(r.rows, [3]string{what, value, note})
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, value)
}

// verify adds a row for a result that is right or wrong.
func (r *report) verify(what string, right bool, note string) {
	value := "right"
	if !right {
		value, r.wrong = "WRONG", true
	}
	r.add(what, value, note)
}

func (r *report) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range r.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", row[0], row[1], row[2])
	}
	w.Flush()
}
