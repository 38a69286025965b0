// Package examples_test runs every example with the real binary.
package examples_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// verdict is what these tests read of a run's last line.
type verdict struct {
	Type       string
	Verdict    *string
	Bottleneck *string
	Probes     []struct {
		Rounds []json.RawMessage
	}
}

// build makes the command line in a package, without the race detector: a session needs real speed.
func build(t *testing.T, pkg string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "pipectl")
	if out, err := exec.Command("go", "build", "-o", bin, pkg).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

// run runs an example and returns the last line that it prints for each experiment. Exit code 4, a threshold that isn't
// met, is the machine's business.
func run(t *testing.T, bin string, args ...string) []verdict {
	t.Helper()
	db := filepath.Join(t.TempDir(), "results.db")
	cmd := exec.Command(bin, append([]string{"run", "-q", "--json", "--db", db}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 4) {
		t.Fatalf("pipectl run %v: %v\n%s", args, err, stderr.Bytes())
	}
	var verdicts []verdict
	for line := range bytes.Lines(out) {
		var v verdict
		if err := json.Unmarshal(line, &v); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if v.Type == "verdict" {
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// notWrong checks that a session named the right stage, or none: a busy machine may leave it undecided.
func notWrong(t *testing.T, v verdict, want string) {
	t.Helper()
	if v.Bottleneck == nil {
		t.Logf("undecided; the answer is %s", want)
	} else if *v.Bottleneck != want {
		t.Errorf("the bottleneck is %s, want %s", *v.Bottleneck, want)
	}
}

func TestPhotos(t *testing.T) {
	bin := build(t, "../cmd/pipectl")
	got := run(t, bin, "photos", "-e", "photos")
	if len(got) != 1 {
		t.Fatalf("%d verdicts", len(got))
	}
	notWrong(t, got[0], "augment.jitter")
	measured(t, run(t, bin, "photos", "-e", "photos_fixed", "--probe", "baseline"))
}

func TestKnownAnswers(t *testing.T) {
	got := run(t, build(t, "../cmd/pipectl"), "known-answers", "-e", "all")
	want := []string{"prepare.third", "prepare.first", "train.step", "train.step", "prepare.only"}
	if len(got) != len(want) {
		t.Fatalf("%d verdicts, want %d", len(got), len(want))
	}
	for i := range want {
		notWrong(t, got[i], want[i])
	}
}

func TestFashion(t *testing.T) {
	bin := build(t, "../cmd/pipectl")
	out, err := exec.Command(bin, "run", "--json", "--db", filepath.Join(t.TempDir(), "results.db"), "--epochs", "2", "fashion").Output()
	if err != nil {
		t.Fatal(err)
	}
	var losses []float64
	for line := range bytes.Lines(out) {
		var e struct {
			Type string
			Loss *float64
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "epoch" && e.Loss != nil {
			losses = append(losses, *e.Loss)
		}
	}
	if len(losses) != 2 || losses[1] >= losses[0] || losses[1] > 1 {
		t.Errorf("losses %v: it doesn't learn", losses)
	}
}

func TestFeedAGPU(t *testing.T) {
	bin := build(t, "../cmd/pipectl")
	measured(t, run(t, bin, "feed-a-gpu", "-e", "resnet50", "--var", "batch=16", "--probe", "baseline"))
	measured(t, run(t, bin, "feed-a-gpu", "-e", "cosmoflow", "--probe", "baseline"))
	measured(t, run(t, bin, "feed-a-gpu", "-e", "unet3d", "--var", "volumes=1", "--probe", "baseline"))
}

func TestCustomOperator(t *testing.T) {
	bin := build(t, "./custom-operator")
	measured(t, run(t, bin, "custom-operator", "--probe", "baseline"))
	out, err := exec.Command(bin, "stages", "posterize").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("How many bits of each colour stay.")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// measured checks that one probe was measured.
func measured(t *testing.T, got []verdict) {
	t.Helper()
	if len(got) != 1 || len(got[0].Probes) != 1 || len(got[0].Probes[0].Rounds) < 4 {
		t.Errorf("measured %+v", got)
	}
}

// TestAllHere keeps the list above complete.
func TestAllHere(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{"photos": true, "known-answers": true, "fashion": true, "feed-a-gpu": true, "custom-operator": true,
		"pytorch": true, "text": true, "audio": true, "ci": true, "storage": true}
	for _, e := range entries {
		if e.IsDir() && !tested[e.Name()] {
			t.Errorf("the example %s has no test", e.Name())
		}
	}
}
