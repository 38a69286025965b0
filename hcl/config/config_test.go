package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/hcl/diag"
)

// TestFaultyStage checks that an experiment with a mistake in one stage's attributes still gives all that is known: a
// missing folder doesn't keep the elements' types from being followed, a bad size does.
func TestFaultyStage(t *testing.T) {
	folder := write(t, map[string]string{"x.hcl": strings.Replace(minimal("", "prepare \"scale\" \"s\" { size = 0 }\n  prepare \"decode\" \"d\" {}"), `"items" }`, `"missing" }`, 1)})
	c, diags := config.Load(config.Options{Path: folder, Registry: registry()})
	if len(diags) != 2 || len(c.Experiments) != 1 {
		t.Fatalf("%v, %d experiments", diags, len(c.Experiments))
	}
	var got []string
	for _, s := range c.Experiments[0].Stages {
		got = append(got, fmt.Sprintf("%s %v", s.Address, s.Spec != nil))
	}
	want := []string{"load.items true", "prepare.s false", "prepare.d true", "batch true", "train.step true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRange(t *testing.T) {
	folder := write(t, map[string]string{"x.hcl": minimal("", "checkpoint \"raw\" { mode = \"off\" }\n  pool \"p\" {\n    prepare \"scale\" \"s\" { size = 3 }\n  }")})
	file := filepath.Join(folder, "x.hcl")
	c := load(t, config.Options{Path: file})
	for _, p := range []struct{ experiment, address, attribute, want string }{
		{"x", "prepare.s", "size", "6:34-35"},
		{"x", "prepare.s", "", "6:5-24"},
		{"x", "prepare.s", "mean", "6:5-24"}, // not written
		{"x", "checkpoint.raw", "mode", "4:29-34"},
		{"x", "pool.p", "workers", "5:3-11"},
		{"x", "batch", "size", "8:18-19"},
		{"x", "", "seed", "2:1-15"},
		{"x", "bisect", "rounds", "2:1-15"},
		{"x", "prepare.none", "size", "2:1-15"},
		{"y", "prepare.s", "size", "none"},
	} {
		got := "none"
		if r := c.Range(p.experiment, p.address, p.attribute); r != nil {
			got = fmt.Sprintf("%d:%d-%d", r.Start.Line, r.Start.Column, r.End.Column)
		}
		if got != p.want {
			t.Errorf("Range(%q, %q, %q) = %s, want %s", p.experiment, p.address, p.attribute, got, p.want)
		}
	}

	var got strings.Builder
	d := c.Diagnostic("x", "prepare.s", "size", "Stage failed", "It did.", hcl.DiagError)
	if err := diag.Text(&got, hcl.Diagnostics{d}, c.Files, 80, false); err != nil {
		t.Fatal(err)
	}
	want := `Error: Stage failed

  FILE:6:34 (prepare.s)
  6 |     prepare "scale" "s" { size = 3 }
    |                                  ^

It did.
`
	if diff := cmp.Diff(want, strings.ReplaceAll(got.String(), file, "FILE")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFormat(t *testing.T) {
	for _, c := range []struct{ in, want, mistake string }{
		{"a=1\nbb =  2 # two\n", "a  = 1\nbb = 2 # two\n", ""},
		{"batch {\nsize=64\n}\n", "batch {\n  size = 64\n}\n", ""},
		{"", "", ""},
		{"a = [\n", "a = [\n", "Missing expression"},
		{"a = 1e999\n", "a = 1e999\n", "Number out of range"},
	} {
		got, diags := config.Format([]byte(c.in), "x.hcl")
		mistake := ""
		if len(diags) > 0 {
			mistake = diags[0].Summary
		}
		if string(got) != c.want || mistake != c.mistake {
			t.Errorf("Format(%q) = %q, %q; want %q, %q", c.in, got, mistake, c.want, c.mistake)
		}
	}
}

func TestLiteral(t *testing.T) {
	for _, c := range []struct {
		value any
		want  string
	}{
		{nil, ""},
		{"a \"b\" ${c}", `"a \"b\" $${c}"`},
		{0.1, "0.1"},
		{1e21, "1000000000000000000000"},
		{[]int{1, 2}, "[1, 2]"},
		{[]string(nil), "[]"},
		{true, "true"},
	} {
		if got := config.Literal(c.value); got != c.want {
			t.Errorf("Literal(%v) = %s, want %s", c.value, got, c.want)
		}
	}
}
