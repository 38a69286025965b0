package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/audio"
	"github.com/pipectl/pipectl/stages/sources"
	"github.com/pipectl/pipectl/stages/text"
)

func TestTerraformFlags(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"run -var x=1 -var-file f -json", "run --var x=1 --var-file f --json"},
		{"run -var=x=1 -var-file=f -json=false", "run --var=x=1 --var-file=f --json=false"},
		{"run --var x=1 -e a -q", "run --var x=1 -e a -q"},
		{"run -variable x -jsonl -v", "run -variable x -jsonl -v"},
		{"run -- -json", "run -- -json"},
	} {
		if got := strings.Join(terraformFlags(strings.Fields(tc.args)), " "); got != tc.want {
			t.Errorf("%s becomes %s, want %s", tc.args, got, tc.want)
		}
	}
}

func TestAssignments(t *testing.T) {
	var a assignments
	cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	a.add(cmd)
	cmd.SetArgs([]string{"--var", "a=1", "--var-file", "f", "--var=b=x=y", "--var-file=g"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(assignments{{Var: "a=1"}, {File: "f"}, {Var: "b=x=y"}, {File: "g"}}, a); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, arg := range []string{"--var=", "--var==1", "--var=x", "--var-file="} {
		if err := cmd.ParseFlags([]string{arg}); err == nil {
			t.Errorf("%s is taken", arg)
		}
	}
}

func TestExitCode(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{usagef("x"), 2},
		{fmt.Errorf("x: %w", &diagnosticsError{code: exitInvalid}), 3},
		{&diagnosticsError{code: exitError}, 1},
		{&expectError{errors.New("x")}, 4},
		{&toldError{exitExpect}, 4},
		{errors.Join(errInterrupted, errors.New("x")), 130},
	} {
		if got := exitCode(tc.err); got != tc.want {
			t.Errorf("exit code %d for %v, want %d", got, tc.err, tc.want)
		}
	}
}

// world returns a State with all built-in operators, and what is written to it.
func world() (State, *bytes.Buffer, *bytes.Buffer) {
	registry := stages.Builtin()
	gpu.Add(registry)
	audio.Add(registry)
	sources.Add(registry)
	text.Add(registry)
	var out, err bytes.Buffer
	return State{In: strings.NewReader(""), Out: &out, Err: &err, Registry: registry, OpenDevice: devices.Open, ReadGPU: nvml.Read}, &out, &err
}

// full is a stream that nothing can be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestRunReportsLostOutput(t *testing.T) {
	for _, args := range []string{"version", "stages", "stages --json", "help"} {
		w, _, errs := world()
		w.Out = full{}
		code := Run(context.Background(), strings.Fields(args), w)
		if want := "Error: writing to the standard output: no space left on device\n"; code != 1 || errs.String() != want {
			t.Errorf("%s: exit code %d with %q, want 1 with %q", args, code, errs, want)
		}
	}
}

// Diagnostics stand apart from what follows them, and of very many the first are shown: errors rather than warnings.
func TestShowDiagnostics(t *testing.T) {
	warning := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "w"}
	failure := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "e"}
	for _, tc := range []struct {
		name  string
		diags hcl.Diagnostics
		want  string
	}{
		{"none", nil, "next\n"},
		{"two", hcl.Diagnostics{warning, failure}, "Warning: w\n\nError: e\n\nnext\n"},
		{"many", append(slices.Repeat(hcl.Diagnostics{warning}, 50), failure, failure),
			strings.Repeat("Error: e\n\n", 2) + strings.Repeat("Warning: w\n\n", 48) + "… and 2 more\n\nnext\n"},
	} {
		var out bytes.Buffer
		stderr := &spaced{w: &out}
		s := &state{State: State{Err: stderr}, stderr: stderr}
		s.showDiagnostics(tc.diags, nil)
		s.Err.Write(nil)
		fmt.Fprintln(s.Err, "next")
		if d := cmp.Diff(tc.want, out.String()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

// Errors take one line, with the place where there is one.
func TestDiagnosticsErrorText(t *testing.T) {
	nowhere := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "No files", Detail: "Write one:\n\n  pipectl init\n"}
	there := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Bad value", Subject: &hcl.Range{Filename: "a.hcl", Start: hcl.Pos{Line: 2, Column: 3}}}
	warning := &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "Odd"}
	for _, tc := range []struct {
		diags hcl.Diagnostics
		want  string
	}{
		{hcl.Diagnostics{nowhere}, "No files; Write one:; pipectl init"},
		{hcl.Diagnostics{warning, there}, "a.hcl:2:3: Bad value (and 1 other diagnostic)"},
	} {
		if got := (&diagnosticsError{diags: tc.diags}).Error(); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// A run whose context has ended is interrupted, whatever it was about to do, and its error is the last line of JSON.
func TestRunInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	dir := t.TempDir()
	w, out, errs := world()
	if code := Run(ctx, []string{"init", dir}, w); code != 0 {
		t.Fatalf("init: exit code %d: %s", code, errs)
	}
	out.Reset()
	code := Run(ctx, []string{"run", filepath.Join(dir, starterName), "--json"}, w)
	if code != 130 || !strings.HasSuffix(out.String(), `"error":"interrupted","diagnostics":[]}`+"\n") {
		t.Errorf("exit code %d, want 130, with\n%s%s", code, out, errs)
	}
}

// A command whose context ends while it works out a file's values ends too, with the code of an interrupt.
func TestReadingInterrupted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endless.hcl")
	// Not really endless: it goes on for as long as it likes after the command has ended.
	const endless = `variable "n" { default = length([for a in range(1000) : [for b in range(1000) : b * a]]) }`
	if err := os.WriteFile(path, []byte(endless), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"validate", "plan", "run"} {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(10*time.Millisecond, cancel)
		w, out, errs := world()
		code := Run(ctx, []string{command, path}, w)
		if want := "Error: interrupted\n"; code != ExitInterrupted || out.String() != "" || errs.String() != want {
			t.Errorf("%s: exit code %d with %q, want %d with %q", command, code, errs, ExitInterrupted, want)
		}
	}
}

// The starter file is in the canonical layout and has no mistake.
func TestStarter(t *testing.T) {
	formatted, diags := config.Format(starter, starterName)
	if diags.HasErrors() || !bytes.Equal(starter, formatted) {
		t.Errorf("%v; in the canonical layout:\n%s", diags, formatted)
	}
}
