package config_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/results"
)

var update = flag.Bool("update", false, "write the golden files")

// load loads a path that must be free of errors and warnings.
func load(t *testing.T, o config.Options) *config.Config {
	t.Helper()
	o.Registry = registry()
	c, diags := config.Load(o)
	if len(diags) > 0 {
		var s strings.Builder
		if err := diag.Text(&s, diags, c.Files, 100, false); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("loading %s:\n%s", o.Path, s.String())
	}
	return c
}

// TestValid compares the experiments of every path in testdata/valid, field by field and rendered, with a golden file.
func TestValid(t *testing.T) {
	for _, path := range []string{"photos.hcl", "folder", "device.hcl", "loads.hcl"} {
		t.Run(path, func(t *testing.T) {
			path := filepath.Join("testdata/valid", path)
			c := load(t, config.Options{Path: path})
			var got strings.Builder
			for _, e := range c.Experiments {
				fmt.Fprintf(&got, "%s\n%s\n", config.Render(e), dump(e))
			}
			golden := strings.TrimSuffix(path, ".hcl") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// dump writes an experiment's fields, the Settings left out: Render shows those.
func dump(e *engine.Experiment) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# %s: seed %d, %q\n", e.Name, e.Seed, e.Description)
	for _, st := range e.Stages {
		spec := fmt.Sprintf("%+v", st.Spec)
		checkpoint := "none"
		if st.Checkpoint != nil {
			checkpoint = fmt.Sprintf("%+v", *st.Checkpoint)
		}
		st.Spec, st.Checkpoint = nil, nil
		fmt.Fprintf(&s, "# %+v\n#   spec %s\n#   checkpoint %s\n", st, spec, checkpoint)
	}
	fmt.Fprintf(&s, "# pools %+v\n# bisect %+v\n", e.Pools, e.Bisect)
	fmt.Fprintf(&s, "# expect %s %s %q\n", number(e.Expect.StepsPerSecond), number(e.Expect.MaxStarvation), e.Expect.Bottleneck)
	return s.String()
}

func number(f *float64) string {
	if f == nil {
		return "none"
	}
	return fmt.Sprint(*f)
}

// TestRenderLoads loads what Render writes: the settings and so the fingerprint must be the same.
func TestRenderLoads(t *testing.T) {
	for _, path := range []string{"testdata/valid/photos.hcl", "testdata/valid/folder", "testdata/valid/device.hcl", "testdata/valid/loads.hcl"} {
		for _, e := range load(t, config.Options{Path: path}).Experiments {
			file := filepath.Join(t.TempDir(), "rendered.hcl")
			if err := os.WriteFile(file, []byte(config.Render(e)), 0o644); err != nil {
				t.Fatal(err)
			}
			again := load(t, config.Options{Path: file}).Experiments[0]
			if diff := cmp.Diff(e.Settings, again.Settings); diff != "" {
				t.Errorf("%s: settings (-first +again):\n%s", e.Name, diff)
			}
			if results.Fingerprint(e.Settings) != results.Fingerprint(again.Settings) {
				t.Errorf("%s: another fingerprint", e.Name)
			}
		}
	}
}

// minimal is an experiment with the given lines in it and above it.
func minimal(top, inside string) string {
	return top + `
experiment "x" {
  load "folder" "items" { path = "items" }
  ` + inside + `
  batch { size = 4 }
  train "step" "step" {}
}
`
}

func write(t *testing.T, files map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range files {
		name = filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// setting returns the effective value of an attribute.
func setting(t *testing.T, e *engine.Experiment, address, attribute string) string {
	t.Helper()
	for _, s := range e.Settings {
		if s.Address == address && s.Attribute == attribute {
			return s.Value
		}
	}
	t.Fatalf("no setting %s.%s", address, attribute)
	return ""
}

// TestPrecedence gives one variable a value from more and more places, each of which must win over all before it.
func TestPrecedence(t *testing.T) {
	files := map[string]string{"x.hcl": minimal(`variable "v" { default = "default" }`, "description = var.v")}
	o := config.Options{}
	check := func(want string) {
		t.Helper()
		o.Path = write(t, files)
		if got := setting(t, load(t, o).Experiments[0], "", "description"); got != fmt.Sprintf("%q", want) {
			t.Errorf("got %s, want %q", got, want)
		}
	}
	check("default")
	o.Environ = []string{"PIPECTL_VAR_v=old", "PIPECTL_VAR_v=environment", "PIPECTL_VAR_other=1", "v=2"}
	check("environment")
	files["pipectl.vars.hcl"] = `v = "pipectl.vars.hcl"`
	check("pipectl.vars.hcl")
	files["b.auto.vars.hcl"] = `v = "b.auto.vars.hcl"`
	check("b.auto.vars.hcl")
	files["a.auto.vars.hcl"] = `v = "a.auto.vars.hcl"`
	check("b.auto.vars.hcl")
	asked := filepath.Join(write(t, map[string]string{"asked.vars.hcl": `v = "asked"`}), "asked.vars.hcl")
	o.Assignments = append(o.Assignments, config.Assignment{File: asked})
	check("asked")
	o.Assignments = append(o.Assignments, config.Assignment{Var: "v=first"})
	check("first")
	o.Assignments = append(o.Assignments, config.Assignment{Var: "v=a=b"})
	check("a=b")
	o.Assignments = append(o.Assignments, config.Assignment{File: asked})
	check("asked")
}

// TestText covers how values on the command line are read, by the variable's type.
func TestText(t *testing.T) {
	for _, c := range []struct{ declaration, text, want string }{
		{`type = string`, `[1]`, `"[1]"`},
		{`type = string`, ``, `""`},
		{`type = number`, `1e3`, `1000`},
		{`type = bool`, `true`, `true`},
		{`type = list(number)`, `[1, 1 + 1]`, `[1,2]`},
		{`type = map(string)`, `{ a = 1 }`, `{"a":"1"}`},
		{`type = any`, `text`, `"text"`},
		{`type = any`, ` [1]`, `[1]`},
		{``, `4`, `"4"`},
		{``, `{ a = 1 }`, `{"a":1}`},
		{`default = 3`, `4`, `4`},
		{`default = 3`, `auto`, `"auto"`},
		{`default = true`, `false`, `false`},
		{`default = [1]`, `x`, `"x"`},
	} {
		folder := write(t, map[string]string{"x.hcl": minimal("variable \"v\" {\n"+c.declaration+"\n}", "description = jsonencode(var.v)")})
		e := load(t, config.Options{Path: folder, Assignments: []config.Assignment{{Var: "v=" + c.text}}}).Experiments[0]
		if e.Description != c.want {
			t.Errorf("%s: %q is %s, want %s", c.declaration, c.text, e.Description, c.want)
		}
	}
}

// TestFunctions covers pipectl's own functions; those of the standard library have their tests there.
func TestFunctions(t *testing.T) {
	for _, c := range []struct{ expr, want string }{
		{`env("HOME")`, "/home/x"},
		{`coalesce(env("UNSET"), "unset")`, "unset"},
		{`basename("a/b.jpg")`, "b.jpg"},
		{`fileexists("x.hcl")`, "true"},
		{`fileexists("y.hcl")`, "false"},
		{`fileexists(".")`, "true"},
		{`abspath("a/../b")`, "FOLDER/b"},
		{`abspath("/a/../b")`, "/b"},
		{`length("äö")`, "2"},
		{`length([1, 2, 3])`, "3"},
		{`cpus() >= 1 && floor(cpus()) == cpus()`, "true"},
		{`memory() > 1024 * 1024`, "true"},
		{`try(tonumber("x"), "y")`, "y"},
	} {
		folder := write(t, map[string]string{"x.hcl": minimal("", "description = "+c.expr)})
		e := load(t, config.Options{Path: folder, Environ: []string{"HOME=/home/x"}}).Experiments[0]
		if want := strings.Replace(c.want, "FOLDER", folder, 1); e.Description != want {
			t.Errorf("%s = %q, want %q", c.expr, e.Description, want)
		}
	}
}

// TestPaths checks that relative paths start at the file's folder, and that Settings and the fingerprint don't know it.
func TestPaths(t *testing.T) {
	text := minimal("", `prepare "wait" "w" { time = length(load.items.path) == 5 ? "1s" : "2s" }`)
	one, two := write(t, map[string]string{"x.hcl": text}), write(t, map[string]string{"x.hcl": text})
	a := load(t, config.Options{Path: filepath.Join(one, "x.hcl")}).Experiments[0]
	b := load(t, config.Options{Path: two}).Experiments[0]
	if got, want := string(a.Stages[0].Spec.(*folder).Path), filepath.Join(one, "items"); got != want {
		t.Errorf("path %s, want %s", got, want)
	}
	if got := setting(t, a, "load.items", "path"); got != `"items"` {
		t.Errorf("setting %s", got)
	}
	if got := setting(t, a, "prepare.w", "time"); got != `"1s"` {
		t.Errorf("a reference to the path doesn't give it as it is written: %s", got)
	}
	if results.Fingerprint(a.Settings) != results.Fingerprint(b.Settings) {
		t.Error("the fingerprint depends on the folder")
	}
	c := load(t, config.Options{Path: write(t, map[string]string{"x.hcl": strings.Replace(text, `path = "items"`, `path = "s3://bucket/items/../x y"`, 1)})}).Experiments[0]
	if got := c.Stages[0].Spec.(*folder).Path; got != "s3://bucket/items/../x y" {
		t.Errorf("the URL has become %s", got)
	}
	const secret = "https://user:secret@host/a?sig=secret"
	d := load(t, config.Options{Path: write(t, map[string]string{"x.hcl": strings.Replace(text, `path = "items"`, `path = "`+secret+`"`, 1)})}).Experiments[0]
	if got := d.Stages[0].Spec.(*folder).Path; got != secret || strings.Contains(config.Render(d), "secret") {
		t.Errorf("the path is %s in\n%s", got, config.Render(d))
	}
}

// TestReferences checks what a reference to an attribute gives.
func TestReferences(t *testing.T) {
	inside := `
  pool "p" {
    workers = "auto"
    prepare "scale" "one" {
      size = 3
      mean = 0.25
    }
  }
  prepare "scale" "list" {
    size = 3
    mean = [0.25]
  }
  prepare "scale" "default" { size = 3 }
  prepare "wait" "w" { time = "90s" }
  checkpoint "c" { limit = 2048 }
  description = `
	for _, c := range []struct{ expr, want string }{
		{`prepare.one.mean * 2`, "0.5"},
		{`prepare.list.mean[0] * 2`, "0.5"},
		{`prepare.default.mean * 2`, "1"},
		{`jsonencode(prepare.default.names)`, "[]"},
		{`prepare.one.workers`, "auto"}, // the pool's
		{`prepare["one"]["size"]`, "3"},
		{`prepare.default.workers + batch.size`, "5"},
		{`batch.workers`, "auto"},
		{`prepare.w.time`, "1m30s"},
		{`checkpoint.c.limit`, "2KiB"},
		{`checkpoint.c.path == null`, "true"},
		{`bisect.rounds`, "6"},
		{`load.items.on_error`, "fail"},
		{`join(",", [for b in [1, 2] : b + batch.size])`, "5,6"},
	} {
		folder := write(t, map[string]string{"x.hcl": minimal("", inside+c.expr)})
		if e := load(t, config.Options{Path: folder}).Experiments[0]; e.Description != c.want {
			t.Errorf("%s = %q, want %q", c.expr, e.Description, c.want)
		}
	}
}

// TestFingerprint checks what changes the fingerprint and what doesn't.
func TestFingerprint(t *testing.T) {
	fingerprint := func(text string) string {
		return results.Fingerprint(load(t, config.Options{Path: write(t, map[string]string{"x.hcl": text})}).Experiments[0].Settings)
	}
	base := fingerprint(minimal("", `prepare "decode" "p" {}`))
	for text, same := range map[string]bool{
		minimal("# A comment.\n\n", `prepare "decode" "p" { workers = 3 - 2 }`):        true, // the default, written out
		minimal("", `prepare "decode" "p" { workers = 2 }`):                            false,
		minimal("", `prepare "decode" "q" {}`):                                         false,
		minimal("", `augment "flip" "p" {}`):                                           false,
		minimal("", "prepare \"decode\" \"p\" {}\ncheckpoint \"c\" {}"):                false,
		minimal("", "pool \"p\" {\nprepare \"decode\" \"p\" {}\n}"):                    false,
		minimal("", "seed = 1\nprepare \"decode\" \"p\" {}"):                           false,
		minimal("", "prepare \"decode\" \"p\" {}\nbisect {\nstrategy = \"ladder\"\n}"): false,
	} {
		if got := fingerprint(text) == base; got != same {
			t.Errorf("same fingerprint: %v, want %v:\n%s", got, same, text)
		}
	}
}
