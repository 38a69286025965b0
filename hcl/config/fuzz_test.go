package config_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/results"
)

// FuzzLoad checks that no file makes Load panic, that every diagnostic can be shown, and that an experiment without
// mistakes can be rendered.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/errors/*.hcl", "testdata/valid/*.hcl", "testdata/valid/folder/*.hcl"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src, "size=3")
		}
	}
	for _, expr := range []string{"pow(-1, 0.5)", "1e300 % 1e-300", "pow(10, 400) % 3", `format("%*d", 1e9, 1)`, `jsondecode("[[[[")`} {
		f.Add([]byte("locals {\n  a = "+expr+"\n}\n"), "size="+expr)
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, src []byte, assignment string) {
		file := filepath.Join(folder, fmt.Sprintf("%d.hcl", os.Getpid())) // fuzzing runs several processes
		if err := os.WriteFile(file, src, 0o644); err != nil {
			t.Fatal(err)
		}
		c, diags := config.Load(config.Options{Path: file, Registry: registry(), Assignments: []config.Assignment{{Var: assignment}}})
		var s strings.Builder
		if err := diag.Text(&s, diags, c.Files, 40, true); err != nil {
			t.Fatal(err)
		}
		diag.JSON(diags, c.Files)
		for _, d := range diags {
			if strings.Contains(d.Detail, "runtime/debug.Stack") {
				t.Errorf("a panic is shown: %s", d.Detail)
			}
		}
		if !diags.HasErrors() {
			for _, e := range c.Experiments {
				results.Fingerprint(e.Settings)
			}
		}
		config.Format(src, file)
	})
}

// FuzzValue checks that no text, given as the value of attributes of every kind and as a variable's in a file of values,
// makes Load panic, and that what is accepted keeps its meaning when the experiment is rendered and read again.
func FuzzValue(f *testing.F) {
	for _, text := range []string{"", "0", "-1", "1e999", "1.5GiB", "8EiB", "10ms", "-0s", "2562048h", "9223372036854775807ns", "auto", "memory",
		"\x00\xff", "${", "%{ if", "ä日本", "../../x", "true", "null"} {
		f.Add(text)
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		quoted := string(hclwrite.TokensForValue(cty.StringVal(text)).Bytes())
		dir := filepath.Join(folder, strconv.Itoa(os.Getpid())) // fuzzing runs several processes
		load := func(assignments []config.Assignment, files map[string]string) *config.Config {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			for name, src := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c, diags := config.Load(config.Options{Path: filepath.Join(dir, "a.hcl"), Registry: registry(), Assignments: assignments})
			if err := diag.Text(io.Discard, diags, c.Files, 80, false); err != nil {
				t.Fatal(err)
			}
			if diags.HasErrors() {
				return nil
			}
			return c
		}
		for _, attribute := range []string{
			"description = %s", "prepare \"wait\" \"w\" { time = %s }", "prepare \"wait\" \"w\" {\n time = \"1s\"\n jitter = %s\n}",
			"bisect { budget = %s }", "bisect { rounds = %s }", "checkpoint \"c\" { limit = %s }", "checkpoint \"c\" { store = %s }",
			"transfer { pinned = %s }", "expect { bottleneck = %s }",
		} {
			stages := "load \"folder\" \"f\" { path = \".\" }\n%s\nbatch { size = 2 }\ntrain \"step\" \"s\" {}\n"
			if strings.HasPrefix(attribute, "description") || strings.HasPrefix(attribute, "bisect") || strings.HasPrefix(attribute, "expect") {
				stages = strings.Replace(stages, "%s", "", 1) + "%s\n"
			}
			src := fmt.Sprintf("experiment \"e\" {\n"+stages+"}\n", fmt.Sprintf(attribute, quoted))
			c := load(nil, map[string]string{"a.hcl": src})
			if c == nil {
				if strings.HasPrefix(attribute, "description") && utf8.ValidString(text) {
					t.Errorf("no description can be %q", text)
				}
				continue
			}
			want := results.Fingerprint(c.Experiments[0].Settings)
			again := load(nil, map[string]string{"a.hcl": config.Render(c.Experiments[0])})
			if again == nil || results.Fingerprint(again.Experiments[0].Settings) != want {
				t.Errorf("%s reads otherwise when it is rendered:\n%s", src, config.Render(c.Experiments[0]))
			}
		}
		load([]config.Assignment{{File: filepath.Join(dir, "values.hcl")}, {Var: text}},
			map[string]string{"a.hcl": "variable \"v\" {}\n", "values.hcl": "v = " + text + "\n"})
	})
}
