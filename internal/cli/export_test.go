package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/results"
)

// exported is a run with all that an export has: names that CSV has to quote, and what isn't known.
func exported() *results.Stored {
	run := stored("6a3f9k2m0x", 2, 0.889, 3.49)
	run.Experiment, run.Tags = `"quoted", with a comma`, []string{"base", "v1"}
	run.File = "experiment \"photos\" {\n  # <&>\n}\n"
	run.Part = &results.Part{Session: "6a3f9k2m0w", Change: "prepare.decode.workers = 4"}
	run.Notes = []bisect.Note{{Code: bisect.CacheLimit, Text: "The boundary after augment.crop is left out: its cache can't hold one batch."}}
	run.Skipped = []engine.SkippedItem{{Address: "prepare.decode", Index: 3, Item: "photos/cat/cat_03.jpg", Reason: "decoding a JPEG: it ends too early"}}
	run.Probes = []results.Probe{run.Probes[0], run.Probes[2]}
	run.Stages = run.Stages[:3]
	for i := range run.Probes {
		run.Probes[i].Rounds = intervals(2, 0.889, "load.photos", "prepare.decode", "augment.crop")
	}
	iv := &run.Probes[1].Rounds[1]
	iv.Others, iv.Throttled, iv.Swapped, iv.Resident, iv.Frequency, iv.Overheats = 0.25, 3*time.Millisecond, 4096, 0.5, 3.2e9, 2
	iv = &run.Probes[1].Rounds[0]
	iv.CPU, iv.Others, iv.Throttled, iv.Swapped, iv.Resident, iv.Frequency, iv.Overheats = -1, -1, -1, -1, -1, -1, -1
	return run
}

// bare is a run that ended before anything was measured.
func bare() *results.Stored {
	run := stored("6a3f9k2m0z", 0, 0, 0)
	run.Status, run.Error, run.Finished = results.Failed, "disk full", time.Time{}
	run.Host, run.Args, run.Report, run.Probes, run.Baseline, run.Verdict, run.Bottleneck = results.Host{}, nil, nil, nil, nil, "", ""
	return run
}

func TestExportJSON(t *testing.T) {
	goldenJSON(t, "export_whole", newExportView(exported()))
	goldenJSON(t, "export_bare", newExportView(bare()))
	var out bytes.Buffer
	e := newExporter("json", &out)
	if err := errors.Join(e.write(exported()), e.write(bare()), e.flush()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if len(lines) != 3 || lines[2] != "" || !strings.Contains(lines[0], `# <&>\n`) || !strings.HasPrefix(lines[1], `{"format_version":1,"type":"export","run":{"id":"6a3f9k2m0z",`) {
		t.Errorf("want a line for each run:\n%s", out.String())
	}
}

func TestExportCSV(t *testing.T) {
	var out bytes.Buffer
	e := newExporter("csv", &out)
	if err := errors.Join(e.write(exported()), e.write(bare()), e.flush()); err != nil {
		t.Fatal(err)
	}
	golden(t, "export.csv.golden", out.Bytes())
	rows, err := csv.NewReader(&out).ReadAll() // all have as many fields
	if err != nil || rows[1][1] != exported().Experiment {
		t.Errorf("%v, %q", err, rows[1])
	}
	out.Reset()
	if err := newExporter("csv", &out).flush(); err != nil || !strings.HasPrefix(out.String(), "run,experiment,") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("of no runs: %v, %s", err, out.String())
	}
}

func TestWriteWhole(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "runs.json")
	text := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error { return errors.Join(err, ignore(io.WriteString(w, text))) }
	}
	expect := func(what string, err error, wantErr string, want map[string]string) {
		t.Helper()
		message := ""
		if err != nil {
			message = err.Error()
		}
		got := map[string]string{}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			got[e.Name()] = string(data)
		}
		if d := cmp.Diff(want, got); d != "" || message != wantErr {
			t.Errorf("%s: %s, want %s; files (-want +got):\n%s", what, message, wantErr, d)
		}
	}
	broken := errors.New("the database is damaged")
	expect("new, failing", writeWhole(name, text("half", broken)), "writing "+name+": the database is damaged", map[string]string{})
	expect("new", writeWhole(name, text("one", nil)), "", map[string]string{"runs.json": "one"})
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	expect("failing", writeWhole(name, text("half", broken)), "writing "+name+": the database is damaged", map[string]string{"runs.json": "one"})
	link := filepath.Join(dir, "link.json")
	if err := os.Symlink("runs.json", link); err != nil {
		t.Fatal(err)
	}
	expect("through a link", writeWhole(link, text("two", nil)), "", map[string]string{"runs.json": "two", "link.json": "two"})
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("who may read it has changed: %v, %v", info, err)
	}
	expect("a folder", writeWhole(dir, text("x", nil)), "writing "+dir+": it is a folder: name a file", map[string]string{"runs.json": "two", "link.json": "two"})
	// What isn't a file is not replaced by one.
	expect("a device", writeWhole(os.DevNull, text("x", nil)), "", map[string]string{"runs.json": "two", "link.json": "two"})
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Errorf("%s: %v, %v", os.DevNull, info, err)
	}
}

func ignore(_ int, err error) error { return err }
