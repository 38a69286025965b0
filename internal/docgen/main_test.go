package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/audio"
	"github.com/pipectl/pipectl/stages/sources"
	"github.com/pipectl/pipectl/stages/text"
)

func TestRun(t *testing.T) {
	folder := t.TempDir()
	if err := run(folder, true); err == nil || !strings.Contains(err.Error(), "language.md and ") {
		t.Errorf("checking files that don't exist: %v", err)
	}
	if err := run(folder, false); err != nil {
		t.Fatal(err)
	}
	if err := run(folder, true); err != nil {
		t.Errorf("checking what was just written: %v", err)
	}
	file := filepath.Join(folder, "stages.md")
	if err := os.WriteFile(file, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(folder, true); err == nil || strings.Contains(err.Error(), "language.md") || !strings.Contains(err.Error(), file) {
		t.Errorf("checking a stale file: %v", err)
	}
}

// TestEveryOperatorIsDescribed looks for each operator's heading and attributes.
func TestEveryOperatorIsDescribed(t *testing.T) {
	document, err := generate("stages.md")
	if err != nil {
		t.Fatal(err)
	}
	r := stages.Builtin()
	gpu.Add(r)
	audio.Add(r)
	sources.Add(r)
	text.Add(r)
	for _, op := range r.Operators() {
		_, section, found := strings.Cut(string(document), "\n### "+op.Block+" \""+op.Type+"\"\n")
		section, _, _ = strings.Cut(section, "\n#")
		if !found || !strings.Contains(section, op.Summary) {
			t.Errorf("no section on %s %q", op.Block, op.Type)
		}
		for _, a := range stages.Attributes(op.New()) {
			if !strings.Contains(section, "| `"+a.Name+"` | ") {
				t.Errorf("%s %q: nothing on %s", op.Block, op.Type, a.Name)
			}
		}
	}
}

// TestExample loads the example of language.md with the operators of this version.
func TestExample(t *testing.T) {
	document, err := generate("language.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(document), "```hcl\n")
	example, _, found := strings.Cut(example, "```\n")
	if !found {
		t.Fatal("language.md has no example")
	}
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "photos", "cats"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"photos/cats/a.jpg": "", "x.hcl": example} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := stages.Builtin()
	gpu.Add(r)
	audio.Add(r)
	sources.Add(r)
	text.Add(r)
	if _, diags := config.Load(config.Options{Path: folder, Registry: r}); len(diags) > 0 {
		t.Error(diags)
	}
	if formatted, _ := config.Format([]byte(example), "x.hcl"); string(formatted) != example {
		t.Errorf("the example isn't formatted (-want +got):\n%s", cmp.Diff(string(formatted), example))
	}
}

func TestTable(t *testing.T) {
	spec := &struct {
		Size []int  `hcl:"size" min:"1" doc:"One | two."`
		Mode string `hcl:"mode,optional" enum:"a,b" doc:"How."`
		Rate *int   `hcl:"rate,optional" doc:"Rate."`
	}{Mode: "a"}
	want := "| attribute | type | default | |\n|---|---|---|---|\n" +
		"| `size` | whole number, or a list of them, at least 1 | required | One \\| two. |\n" +
		"| `mode` | string, one of \"a\", \"b\" | `\"a\"` | How. |\n" +
		"| `rate` | whole number | – | Rate. |\n"
	if diff := cmp.Diff(want, table(stages.Attributes(spec))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
