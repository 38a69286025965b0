// Command storage measures where along the pipeline of storage.hcl a checkpoint should keep its samples: how fast they come from there, from
// memory and from the disk, how much room they take, how long it takes to store them, and after how many epochs that was worth it.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/pipectl/pipectl/internal/pagecache"
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/stages"
)

//go:embed storage.hcl
var experiment []byte

// epochs is how many a run takes that is served: the first from the disk, the others from memory.
const epochs = 4

// place is a checkpoint, as storage.hcl's variables name it.
type place struct{ keep, compress string }

func (p place) String() string {
	if p.compress == "none" {
		return p.keep
	}
	return p.keep + ", " + p.compress
}

// result is what was measured of a place, a value a round.
type result struct {
	place
	memory, disk []float64 // samples/s
	fill         []float64 // seconds
	even         []float64 // epochs until less time has passed than without the checkpoint
	stored       int64     // bytes
}

func main() {
	b := &bench{}
	flag.StringVar(&b.pipectl, "pipectl", "bin/pipectl", "the `program` that is measured")
	photos := flag.String("photos", "examples/photos/photos", "`folder` with one sub-folder of photos per class")
	copies := flag.Int("copies", 10, "how many copies of each photo the data set has")
	rounds := flag.Int("rounds", 6, "how often each place is measured: 95 % intervals need 6")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := b.measure(ctx, *photos, *copies, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "storage:", err)
		os.Exit(1)
	}
}

// bench measures in a folder of its own.
type bench struct {
	pipectl string
	folder  string // with the experiment and the photos
}

func (b *bench) measure(ctx context.Context, photos string, copies, rounds int) (err error) {
	if copies < 1 || rounds < 1 {
		return errors.New("-copies and -rounds are at least 1")
	}
	if photos, err = filepath.EvalSymlinks(photos); err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "pipectl-storage-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	if err := os.WriteFile(filepath.Join(b.folder, "storage.hcl"), experiment, 0o666); err != nil {
		return err
	}
	for n := range copies {
		if err := copyPhotos(photos, filepath.Join(b.folder, "photos"), n); err != nil {
			return err
		}
	}
	results := []*result{
		{place: place{"nothing", "none"}}, {place: place{"read", "none"}},
		{place: place{"decoded", "none"}}, {place: place{"decoded", "zstd"}},
		{place: place{"cropped", "none"}}, {place: place{"cropped", "zstd"}},
		{place: place{"floats", "none"}}, {place: place{"floats", "zstd"}},
	}
	for round := range rounds {
		fmt.Fprintf(os.Stderr, "round %d of %d\n", round+1, rounds)
		var online float64 // seconds an epoch takes
		for _, r := range results {
			took, err := b.round(ctx, r)
			if err != nil {
				return fmt.Errorf("keeping %s: %w", r.place, err)
			}
			if r.keep == "nothing" {
				online = took
				continue
			}
			// fill + (n − 1) · took = n · online
			r.even = append(r.even, (r.fill[round]-took)/(online-took))
		}
	}
	return write(os.Stdout, results)
}

// round measures a place once, from an empty cache on. It returns the seconds of an epoch that comes from memory.
func (b *bench) round(ctx context.Context, r *result) (float64, error) {
	if err := os.RemoveAll(filepath.Join(b.folder, ".pipectl", "cache")); err != nil {
		return 0, err
	}
	if r.keep != "nothing" {
		events, err := b.run(ctx, r.place, 1)
		if err != nil {
			return 0, err
		}
		// What is kept is whole when the run ends: after its last line but one, the epoch's, it waits for the disk.
		epoch, end := events[len(events)-2], events[len(events)-1]
		r.fill = append(r.fill, epoch.Seconds+end.Time.Sub(epoch.Time).Seconds())
		if r.stored, err = b.stored(ctx); err != nil {
			return 0, err
		}
	}
	dropped, err := b.drop()
	if err != nil {
		return 0, err
	}
	events, err := b.run(ctx, r.place, epochs)
	if err != nil {
		return 0, err
	}
	var samples, seconds float64
	for _, e := range events {
		switch {
		case e.Type == "epoch" && e.Epoch == 1 && dropped:
			r.disk = append(r.disk, float64(e.Samples)/e.Seconds)
		case e.Type == "epoch" && e.Epoch > 1:
			samples, seconds = samples+float64(e.Samples), seconds+e.Seconds
		}
	}
	r.memory = append(r.memory, samples/seconds)
	return seconds / (epochs - 1), nil
}

// event is a line of `pipectl run --json`: of an epoch all of this, of others type and time.
type event struct {
	Type    string
	Time    time.Time
	Epoch   int
	Samples int
	Seconds float64
}

// run trains for some epochs and returns the events: one for each of them, and one for the end.
func (b *bench) run(ctx context.Context, p place, epochs int) ([]event, error) {
	out, err := b.command(ctx, "run", "--quiet", "--json", "--epochs", fmt.Sprint(epochs), "--var", "keep="+p.keep, "--var", "compress="+p.compress,
		"--var", "photos="+filepath.Join(b.folder, "photos"), b.folder)
	if err != nil {
		return nil, err
	}
	var events []event
	for line := range bytes.Lines(out) {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%w in %s", err, line)
		}
		if e.Type == "epoch" || e.Type == "verdict" {
			events = append(events, e)
		}
	}
	if len(events) != epochs+1 {
		return nil, fmt.Errorf("pipectl run tells of %d epochs, not %d", len(events)-1, epochs)
	}
	return events, nil
}

// stored returns how many bytes the caches take.
func (b *bench) stored(ctx context.Context) (int64, error) {
	out, err := b.command(ctx, "cache", "ls", "--json", "--path", b.folder)
	if err != nil {
		return 0, err
	}
	var list struct {
		Caches []struct {
			Size int64 `json:"file_bytes"`
		}
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return 0, err
	}
	var size int64
	for _, c := range list.Caches {
		size += c.Size
	}
	return size, nil
}

func (b *bench) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, b.pipectl, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("pipectl %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// drop drops photos and caches from memory, so that they come from the disk. It reports false where the system can't do that.
func (b *bench) drop() (bool, error) {
	err := filepath.WalkDir(b.folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return pagecache.Kernel{}.Drop(path)
	})
	if errors.Is(err, errors.ErrUnsupported) {
		return false, nil
	}
	return err == nil, err
}

// copyPhotos copies a folder's photos into another, under the same names with a number in front.
func copyPhotos(from, to string, number int) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		class, name := filepath.Split(name)
		if class == "" { // no photo
			return nil
		}
		photo, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(to, class), 0o777); err != nil {
			return err
		}
		file, err := os.Create(filepath.Join(to, class, fmt.Sprintf("%d-%s", number, name)))
		if err != nil {
			return err
		}
		_, err = file.Write(photo)
		return errors.Join(err, file.Sync(), file.Close()) // only what is on the disk can be dropped from memory
	})
}

// write writes the table.
func write(w io.Writer, results []*result) error {
	t := ui.Table{Columns: []ui.Column{{Head: "kept"}, {Head: "samples/s\nfrom memory", Right: true}, {Head: "samples/s\nfrom disk", Right: true},
		{Head: "bytes\non disk", Right: true}, {Head: "fill\ntime, s", Right: true}, {Head: "break-even,\nepochs", Right: true}}}
	for _, r := range results {
		even := ui.Unknown
		if stats.Compare(r.memory, results[0].memory, 0.05).Significant {
			even = median(r.even)
			if stats.Summarize(r.memory, 0.95).Median < stats.Summarize(results[0].memory, 0.95).Median {
				even = "never"
			}
		}
		t.Row(ui.Cell{Text: r.place.String()}, ui.Cell{Text: median(r.memory)}, ui.Cell{Text: median(r.disk)}, ui.Cell{Text: stages.Bytes(r.stored).String()},
			ui.Cell{Text: median(r.fill)}, ui.Cell{Text: even})
	}
	_, err := fmt.Fprint(w, t.Render(ui.Detect(w, os.Getenv)))
	return err
}

// median words the median of values with its 95 % interval.
func median(values []float64) string {
	if len(values) == 0 {
		return ui.Unknown
	}
	s := stats.Summarize(values, 0.95)
	return ui.PlusMinus(s.Median, s.Low, s.High)
}
