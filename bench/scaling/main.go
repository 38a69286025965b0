// Command scaling measures how throughput grows with the workers of a stage, and how it falls with the size of samples. It prints two
// tables in Markdown and draws them as a picture.
//
// usage: go run ./bench/scaling [-o PICTURE.svg] [-photos FOLDER] [-rounds N] PIPECTL
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	picture := flag.String("o", "", "`file` to draw the picture into")
	photos := flag.String("photos", "examples/photos/photos", "a `folder` of JPEG files, in folders of classes")
	rounds := flag.Int("rounds", 6, "intervals of each measurement")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: scaling [-o PICTURE.svg] [-photos FOLDER] [-rounds N] PIPECTL")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *photos, *picture, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
}

// bench runs pipelines through a pipectl binary.
type bench struct {
	binary, folder string
	rounds         int
}

// rate is a throughput in samples/s, with its 95 % interval.
type rate struct {
	Median float64  `json:"median"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
}

// figure is what one measurement after the other found along an axis.
type figure struct {
	title, axis string
	places      []string
	lines       []line
}

// line is one curve of a figure.
type line struct {
	name  string
	rates []rate
}

func run(binary, photos, picture string, rounds int) error {
	photos, err := filepath.Abs(photos)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "scaling")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	b := &bench{binary, folder, rounds}
	workers, err := b.byWorkers(photos)
	if err != nil {
		return err
	}
	sizes, err := b.bySize()
	if err != nil {
		return err
	}
	fmt.Print(workers.table(), "\n", sizes.table())
	if picture == "" {
		return nil
	}
	return os.WriteFile(picture, []byte(draw(workers, sizes)), 0o644)
}

// byWorkers varies the workers of one stage, for several kinds of work.
func (b *bench) byWorkers(photos string) (*figure, error) {
	const items = "load \"synthetic\" \"items\" {\nkind = \"bytes\"\nbytes = 1024\n}\n"
	works := []struct{ name, load, stage string }{
		{"waiting for 10 ms", items, "prepare \"sleep\" \"work\" {\ntime = \"10ms\"\n"},
		{"computing for 1 ms", items, "prepare \"spin\" \"work\" {\ntime = \"1ms\"\n"},
		{"decoding a photo", fmt.Sprintf("load \"image_folder\" \"photos\" { path = %q }\n", photos),
			"prepare \"decode_jpeg\" \"work\" {\n"},
		{"nothing", items, "prepare \"sleep\" \"work\" {\ntime = \"0s\"\n"},
	}
	f := &figure{title: "samples/s by the workers of a stage", axis: "workers"}
	for n := 1; n <= 8; n++ {
		f.places = append(f.places, fmt.Sprint(n))
	}
	for _, w := range works {
		l := line{name: w.name}
		for n := range f.places {
			r, err := b.measure(fmt.Sprintf("%s%sworkers = %d\n}\nbatch { size = 16 }\n", w.load, w.stage, n+1), 16)
			if err != nil {
				return nil, err
			}
			l.rates = append(l.rates, r)
		}
		f.lines = append(f.lines, l)
	}
	return f, nil
}

// bySize varies the size of samples, which workers copy into batches.
func (b *bench) bySize() (*figure, error) {
	f := &figure{title: "samples/s by the size of samples, copied into batches", axis: "size"}
	sizes := []struct {
		name         string
		bytes, batch int
	}{{"1 KiB", 1 << 10, 64}, {"10 KiB", 10 << 10, 64}, {"100 KiB", 100 << 10, 64}, {"147 KiB", 224 * 224 * 3, 64}, {"1 MiB", 1 << 20, 16}, {"10 MiB", 10 << 20, 4}}
	for _, s := range sizes {
		f.places = append(f.places, s.name)
	}
	for _, workers := range []int{1, 2, 4} {
		l := line{name: fmt.Sprintf("%d workers", workers)}
		if workers == 1 {
			l.name = "1 worker"
		}
		for _, s := range sizes {
			r, err := b.measure(fmt.Sprintf("pool \"all\" {\nworkers = %d\nload \"synthetic\" \"items\" {\nkind = \"bytes\"\nbytes = %d\n}\nbatch { size = %d }\n}\n",
				workers, s.bytes, s.batch), s.batch)
			if err != nil {
				return nil, err
			}
			l.rates = append(l.rates, r)
		}
		f.lines = append(f.lines, l)
	}
	return f, nil
}

// measure returns the throughput of a pipeline in front of a step that takes no time.
func (b *bench) measure(stages string, batch int) (rate, error) {
	file := filepath.Join(b.folder, "scaling.hcl")
	text := fmt.Sprintf("experiment \"scaling\" {\n%strain \"emulated\" \"step\" { time = \"0s\" }\nbisect { rounds = %d }\n}\n", stages, b.rounds)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return rate{}, err
	}
	cmd := exec.Command(b.binary, "run", "--probe", "baseline", "--json", "-q", "--db", filepath.Join(b.folder, "results.db"), file)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return rate{}, fmt.Errorf("%s: %w", cmd, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	var verdict struct {
		Baseline struct {
			Rate rate `json:"steps_per_second"`
		} `json:"baseline"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &verdict); err != nil {
		return rate{}, fmt.Errorf("reading the verdict: %w", err)
	}
	r := verdict.Baseline.Rate
	r.Median *= float64(batch)
	for _, end := range []*float64{r.Low, r.High} {
		if end != nil {
			*end *= float64(batch)
		}
	}
	return r, nil
}
