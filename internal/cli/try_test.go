package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/engine/improve"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// outcomes are results of tries as they are shown.
func outcomes() map[string]*outcome {
	decode := improve.Change{Address: "prepare.decode", Attribute: "workers", Value: "4", Was: "1"}
	crop := improve.Change{Address: "augment.crop", Attribute: "workers", Value: "2", Was: "1"}
	tries := []improve.Try{
		{Number: 1, Bottleneck: "prepare.decode", Changes: []improve.Change{decode}, Predicted: pointer(estimate(3.7, 2)), Before: pointer(estimate(0.889, 2)),
			After: pointer(estimate(2.4, 1)), Speedup: pointer(estimate(2.7, 2)), Rounds: 6, Outcome: improve.Kept,
			Reason: "It is faster, at confidence 0.95, by at least min_effect = 0.05."},
		{Bottleneck: "augment.crop", Changes: []improve.Change{{Address: "pool.loader", Attribute: "prefetch", Value: "64", Was: `"auto"`}},
			Predicted: pointer(estimate(1.02, 2)), Outcome: improve.Unpromised, Reason: "It is foretold to gain less than min_effect = 0.05."},
		{Number: 2, Bottleneck: "augment.crop", Changes: []improve.Change{{Address: "prepare.to_float", Into: "prepare.normalize"}}, Predicted: pointer(estimate(1.3, 2)),
			Before: pointer(estimate(2.4, 2)), After: pointer(estimate(2.41, 1)), Speedup: pointer(estimate(1.004, 2)), Rounds: 6, Outcome: improve.Slight,
			Reason: "It gains less than min_effect = 0.05, at confidence 0.95."},
		{Number: 3, Bottleneck: "augment.crop", Changes: []improve.Change{{Address: "transfer", Attribute: "pinned", Value: "true", Was: "false"}},
			Outcome: improve.Failed, Reason: "It can't be run: there is no page-locked memory left."},
	}
	ids := map[int][2]string{1: {"d6j2mz0001", "d6j2ne0002"}, 2: {"d6j2nx0003", "d6j2pc0004"}}
	return map[string]*outcome{
		"kept": {confidence: 0.95, runs: ids, Result: &improve.Result{Tries: tries, Changes: []improve.Change{decode, crop}, Ended: improve.NothingHelps,
			First: pointer(estimate(0.889, 2)), Last: pointer(estimate(2.4, 1)), Speedup: pointer(estimate(2.7, 2)), Report: inputBoundReport(),
			Store: &improve.Store{Address: "prepare.decode", Bytes: 3 << 30, Epoch: 90 * time.Second, Stored: 20 * time.Second, Fill: 90 * time.Second,
				BreakEven: 90. / 70, Read: 3 << 30 / 20}},
			diff:  "diff photos.hcl photos.hcl\n--- photos.hcl\n+++ photos.hcl\n@@ -1,2 +1,2 @@\n   prepare \"decode_jpeg\" \"decode\" {\n-    workers = 1\n+    workers = 4\n",
			files: map[string][]byte{"photos.hcl": nil},
		},
		"by_hand": {confidence: 0.95, Result: &improve.Result{Tries: tries[:1], Changes: []improve.Change{decode}, Ended: improve.Interrupted, Report: inputBoundReport()},
			byHand: []byHand{{decode, &hcl.Range{Filename: "photos.hcl", Start: hcl.Pos{Line: 12, Column: 15}}, "is given by var.workers"}}},
		"nothing": {confidence: 0.95, runs: ids, Result: &improve.Result{Tries: tries[1:], Ended: improve.NothingHelps, Report: inputBoundReport()}},
		"none":    {confidence: 0.95, Result: &improve.Result{Ended: improve.StepBound, Report: stepBoundReport()}},
	}
}

func TestWriteTries(t *testing.T) {
	for name, o := range outcomes() {
		t.Run(name, func(t *testing.T) {
			goldenViews(t, "tries_"+name, func(out *bytes.Buffer, term ui.Terminal) { page{out, term}.tries(o, false) })
			v := newTriesEvent("d6j2mz0000", o)
			v.Time = timestamp(began)
			goldenJSON(t, "tries_"+name, v)
		})
	}
}

// TestTryCantOpen has a try that can't be run, for want of another device.
func TestTryCantOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "slow.hcl")
	slow := `experiment "slow" {
  load "synthetic" "items" {
    kind  = "bytes"
    bytes = 1
  }
  prepare "sleep" "slow" { time = "5ms" }
  batch { size = 2 }
  train "emulated" "step" { time = "200us" }
  bisect { steps = 5 }
}
`
	if err := os.WriteFile(path, []byte(slow), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		w, out, errs := world()
		open, opened := w.OpenDevice, 0
		w.OpenDevice = func(want string) (gpu.Device, error) {
			if opened++; opened > 1 {
				return nil, errors.New("the device is in use")
			}
			return open(want)
		}
		code := Run(t.Context(), []string{"run", path, "--try", "--max-tries", "1"}, w)
		if code == 0 && opened == 1 {
			continue // the machine was too busy for a second worker to promise anything
		}
		if code != 0 || !strings.Contains(out.String(), "1. It can't be run: train.step: the device is in use.\n") ||
			!strings.Contains(errs.String(), "Try 1: failed. It can't be run: train.step: the device is in use.\n") {
			t.Errorf("exit code %d\n%s\n%s", code, out, errs)
		}
		return
	}
	t.Error("no session had anything to try")
}

const tried = `# Of all kinds.
variable "n" {
  default = 2
}

experiment "a" {
  load "synthetic" "items" { kind = "image" }
  prepare "to_float" "float" {}
  prepare "normalize" "normalize" { workers = var.n }
  pool "loader" {
    workers = 2
    augment "random_flip" "flip" {}
  }
  prepare "sleep" "nap" {
    time    = "1ms"
    workers = 3
  }
  prepare "sleep" "like" {
    time    = "1ms"
    workers = prepare.nap.workers
  }
  batch { size = 2 }
  transfer { pinned = false }
  train "emulated" "step" { time = "1ms" }
}
`

// TestOutcome checks that the changed file says what was measured, or that it is left to its author.
func TestOutcome(t *testing.T) {
	change := func(address, attribute, value string) improve.Change {
		return improve.Change{Address: address, Attribute: attribute, Value: value}
	}
	for _, tt := range []struct {
		name    string
		changes []improve.Change
		diff    string // its changed lines
		byHand  string
	}{
		{"nothing", nil, "", ""},
		{"of all kinds", []improve.Change{change("load.items", "workers", `"auto"`), {Address: "prepare.float", Into: "prepare.normalize"}, change("pool.loader", "workers", "4"),
			change("pool.loader", "prefetch", "64"), change("batch", "workers", "1"), change("transfer", "pinned", "true")}, `-  load "synthetic" "items" { kind = "image" }
-  prepare "to_float" "float" {}
+  load "synthetic" "items" {
+    kind    = "image"
+    workers = "auto"
+  }
-    workers = 2
+    workers  = 4
+    prefetch = 64
-  batch { size = 2 }
-  transfer { pinned = false }
+  batch {
+    size    = 2
+    workers = 1
+  }
+  transfer { pinned = true }
`, ""},
		{"a variable", []improve.Change{change("prepare.normalize", "workers", "4"), change("transfer", "pinned", "true")},
			"-  transfer { pinned = false }\n+  transfer { pinned = true }\n", "prepare.normalize.workers = 4 at a.hcl:9:47, which is given by var.n.\n"},
		{"others refer to it", []improve.Change{change("prepare.nap", "workers", "4")}, "",
			"prepare.nap.workers = 4 at a.hcl:16:15, which is referred to elsewhere, or given by --var, so that more would change with it.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("a.hcl", []byte(tried), 0o644); err != nil {
				t.Fatal(err)
			}
			w, _, _ := world()
			s := &state{State: w}
			options := &runOptions{selection: selection{path: "a.hcl"}}
			cfg, diags := s.read(t.Context(), &options.selection)
			if diags.HasErrors() {
				t.Fatal(diags)
			}
			store, err := results.Create(t.Context(), "r.db")
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			r := &session{state: s, options: options, config: cfg, experiment: cfg.Experiments[0], store: store}
			o := r.outcome(t.Context(), &improve.Result{Changes: tt.changes}, nil)
			got, hands := "", ""
			for line := range strings.Lines(o.diff) {
				if (line[0] == '+' || line[0] == '-') && !strings.HasPrefix(line, "+++") && !strings.HasPrefix(line, "---") {
					got += line
				}
			}
			for _, h := range o.byHand {
				hands += byHandText(h) + "\n"
			}
			if d := cmp.Diff(tt.diff, got); d != "" {
				t.Errorf("the diff (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.byHand, hands); d != "" {
				t.Errorf("by hand (-want +got):\n%s", d)
			}
		})
	}
}

// TestWriteOutcome writes all files or none.
func TestWriteOutcome(t *testing.T) {
	a := []improve.Change{{Address: "batch", Attribute: "workers", Value: "1"}}
	for _, tt := range []struct {
		name    string
		outcome outcome
		onDisk  string
		want    string // on disk afterwards
		err     string
	}{
		{"unchanged since", outcome{Result: &improve.Result{Changes: a}}, "old", "new", ""},
		{"changed since", outcome{Result: &improve.Result{Changes: a}}, "else", "else", "has changed since it was read, so nothing was written"},
		{"something by hand", outcome{Result: &improve.Result{Changes: a}, byHand: []byHand{{}}}, "old", "old", "can only be changed by hand"},
		{"nothing kept", outcome{Result: &improve.Result{}}, "old", "old", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			read := map[string][]byte{}
			tt.outcome.files = map[string][]byte{}
			for i := range 2 {
				name := filepath.Join(dir, fmt.Sprint(i, ".hcl"))
				read[name], tt.outcome.files[name] = []byte("old"), []byte("new")
				content := "old"
				if i == 1 {
					content = tt.onDisk
				}
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := tt.outcome.write(read)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %s", err, tt.err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "1.hcl")); string(got) != tt.want || err != nil {
				t.Errorf("%q on disk, %v, want %q", got, err, tt.want)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "0.hcl")); (string(got) == "new") != tt.outcome.written || err != nil {
				t.Errorf("%q is the other file, written: %v, %v", got, tt.outcome.written, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
