package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/config"
)

const canonical = `# Comments stay.
experiment "a" {
  load "synthetic" "items" { kind = "bytes" } # this one too
  checkpoint "raw" {}

  pool "loader" {
    # As a DataLoader's.
    workers = 2 # two

    prepare "sleep" "first" {
      time     = "1ms"
      on_error = "skip"
    }
  }
  prepare "sleep" "second" {}
  prepare "sleep" "third" {
    # nothing is set
  }
  batch { size = 2 }
  transfer { pinned = false }
  train "emulated" "step" { time = "1ms" }
}

experiment "b" {
  batch { size = 2 }
}
`

func TestRewrite(t *testing.T) {
	loose := "experiment \"a\"   {\n\tprepare \"sleep\" \"x\" {\n\t\ttime=\"1ms\"   # fast\n\t\tworkers   = var.n + 1\n\t}\n\tprepare \"sleep\" \"y\" { time=\"1ms\" }\n}\n"
	for _, tt := range []struct {
		name, src string
		edits     []config.Edit
		want      string // "": unchanged
		obstacles string
	}{
		{"a value that stands there", canonical, []config.Edit{{"pool.loader", "workers", "3"}, {"transfer", "pinned", "true"}},
			replaced(canonical, "workers = 2 #", "workers = 3 #", "pinned = false", "pinned = true"), ""},
		{"behind the last attribute", canonical, []config.Edit{{"pool.loader", "prefetch", "64"}, {"prepare.third", "workers", "2"}},
			replaced(canonical, "    workers = 2 # two\n", "    workers  = 2 # two\n    prefetch = 64\n", "\"third\" {\n", "\"third\" {\n    workers = 2\n"), ""},
		{"blocks on one line", canonical, []config.Edit{{"prepare.second", "workers", `"auto"`}, {"load.items", "workers", "2"}, {"load.items", "prefetch", "64"}, {"batch", "workers", "1"}},
			replaced(canonical, `"second" {}`, "\"second\" {\n    workers = \"auto\"\n  }", `{ kind = "bytes" }`, "{\n    kind     = \"bytes\"\n    workers  = 2\n    prefetch = 64\n  }",
				"batch { size = 2 }\n  transfer", "batch {\n    size    = 2\n    workers = 1\n  }\n  transfer"), ""},
		{"a new value and a new attribute", canonical, []config.Edit{{"transfer", "prefetch", "4"}, {"transfer", "pinned", "true"}},
			replaced(canonical, "{ pinned = false }", "{\n    pinned   = true\n    prefetch = 4\n  }"), ""},
		{"a block taken out", canonical, []config.Edit{{"prepare.second", "", ""}, {"load.items", "", ""}},
			replaced(canonical, "  prepare \"sleep\" \"second\" {}\n", "", `load "synthetic" "items" { kind = "bytes" } #`, "#"), ""},
		{"the layout isn't touched", loose, []config.Edit{{"prepare.x", "prefetch", "64"}, {"prepare.y", "workers", "2"}},
			replaced(loose, "+ 1\n", "+ 1\n\t\tprefetch = 64\n", `{ time="1ms" }`, "{\n\t  time    = \"1ms\"\n\t  workers = 2\n\t}"), ""},
		{"an expression", loose, []config.Edit{{"prepare.x", "workers", "2"}}, "", "prepare.x.workers at a.hcl:4,15-24 is given by var.n + 1\n"},
		{"no such block", canonical, []config.Edit{{"prepare.nothing", "workers", "2"}}, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &config.Config{Files: map[string][]byte{"a.hcl": []byte(tt.src), "pipectl.vars.hcl": []byte("n = 1\n")}}
			files, obstacles := c.Rewrite("a", tt.edits)
			want := map[string][]byte{}
			if tt.want != "" {
				want["a.hcl"] = []byte(tt.want)
			}
			if d := cmp.Diff(want, files); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			told := ""
			for _, o := range obstacles {
				told += fmt.Sprintf("%s.%s at %s %s\n", o.Address, o.Attribute, o.Range, o.Why)
			}
			if told != tt.obstacles {
				t.Errorf("obstacles %q, want %q", told, tt.obstacles)
			}
		})
	}
}

// replaced returns s with each old text, of which there must be one, replaced by the new one behind it.
func replaced(s string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		before, after, ok := cut(s, pairs[i])
		if !ok {
			panic("not found once: " + pairs[i])
		}
		s = before + pairs[i+1] + after
	}
	return s
}

func cut(s, old string) (before, after string, once bool) {
	before, after, ok := strings.Cut(s, old)
	return before, after, ok && !strings.Contains(after, old)
}

// FuzzRewrite gives each block of an experiment without mistakes that has workers another number of them: the file then says so, or it
// is said why it can't.
func FuzzRewrite(f *testing.F) {
	for _, file := range []string{"testdata/valid/photos.hcl", "testdata/valid/device.hcl"} {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Add([]byte(canonical))
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, src []byte) {
		file := filepath.Join(folder, fmt.Sprintf("%d.hcl", os.Getpid()))
		if err := os.WriteFile(file, src, 0o644); err != nil {
			t.Fatal(err)
		}
		o := config.Options{Path: file, Registry: registry()}
		c, diags := config.Load(o)
		if diags.HasErrors() {
			return
		}
		for i, e := range c.Experiments {
			for _, s := range e.Settings {
				if s.Attribute != "workers" {
					continue
				}
				files, obstacles := c.Rewrite(e.Name, []config.Edit{{s.Address, s.Attribute, "7"}})
				if len(obstacles) > 0 && len(files) == 0 {
					continue
				}
				o.Contents = files
				got, diags := config.Load(o)
				if diags.HasErrors() || i >= len(got.Experiments) {
					t.Fatalf("%v in\n%s", diags, files[file])
				}
				want := engine.Setting{Address: s.Address, Attribute: s.Attribute, Value: "7"}
				if !slices.Contains(got.Experiments[i].Settings, want) {
					t.Errorf("%s has no 7 workers in\n%s", s.Address, files[file])
				}
			}
		}
	})
}
