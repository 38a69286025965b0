package config_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/hcl/diag"
)

// TestDiagnostics compares whole outputs for mistakes that one fixture file can't show: those of several files, of
// the command line and of paths. FOLDER stands for the folder of the files.
func TestDiagnostics(t *testing.T) {
	good := minimal("", "")
	for _, c := range []struct {
		name  string
		files map[string]string
		path  string
		set   []config.Assignment
		env   []string
		want  string
	}{
		{
			name: "no such path",
			path: "nowhere.hcl",
			want: `
Error: Unreadable file

FOLDER/nowhere.hcl can't be read: no such file or directory. Check the path and its permissions.
`,
		},
		{
			name:  "no experiment file",
			files: map[string]string{"a.txt": "", ".hidden.hcl": "?", "x.vars.hcl": "", "sub.hcl/a.hcl": "?"},
			want: "\nError: No experiment file\n\n" +
				"The folder FOLDER has no file that ends in .hcl. Give the path of an experiment file, or write one with `pipectl init`.\n",
		},
		{
			name:  "no experiment",
			files: map[string]string{"a.hcl": "locals { a = 1 }"},
			want: "\nError: No experiment\n\n" +
				"FOLDER has no experiment block. Write one with `pipectl init`, or give another path.\n",
		},
		{
			name:  "a misspelt experiment is one all the same",
			files: map[string]string{"a.hcl": "experimnt \"a\" {}"},
			want: `
Error: Unknown block

  FOLDER/a.hcl:1:1
  1 | experimnt "a" {}
    | ^^^^^^^^^^^^^

A file holds variable, locals and experiment blocks, not "experimnt". Did you mean "experiment"?
`,
		},
		{
			name:  "numbers too large",
			files: map[string]string{"a.hcl": minimal("locals { third = [1, -1 / 0] }", "seed = 99999999999999999999\n  bisect { budget = \"9999999h\" }")},
			want: `
Error: Infinite number

  FOLDER/a.hcl:1:18
  1 | locals { third = [1, -1 / 0] }
    |                  ^^^^^^^^^^^

This isn't a finite number, as what comes of a division by 0.

Error: Value out of range

  FOLDER/a.hcl:4:10
  4 |   seed = 99999999999999999999
    |          ^^^^^^^^^^^^^^^^^^^^

seed must be a whole number from 0 to 18446744073709551615, not 99999999999999999999.

Error: Value out of range

  FOLDER/a.hcl:5:21 (bisect)
  5 |   bisect { budget = "9999999h" }
    |                     ^^^^^^^^^^

budget must be at most 2562047h, which is 292 years, not "9999999h".
`,
		},
		{
			name:  "a file of values",
			files: map[string]string{"a.vars.hcl": ""},
			path:  "a.vars.hcl",
			want: `
Error: Not an experiment file

Files that end in .vars.hcl hold values for variables. Pass FOLDER/a.vars.hcl with --var-file.
`,
		},
		{
			name:  "the same names in two files",
			files: map[string]string{"b.hcl": good + "variable \"v\" { default = 1 }\n", "a.hcl": good + "variable \"v\" { default = 2 }\n"},
			want: `
Error: Duplicate name

  FOLDER/b.hcl:2:1
  2 | experiment "x" {
    | ^^^^^^^^^^^^^^

An experiment "x" stands at FOLDER/a.hcl:2:1 already. Give one of them another name.

Error: Duplicate name

  FOLDER/b.hcl:8:1
  8 | variable "v" { default = 1 }
    | ^^^^^^^^^^^^

A variable "v" stands at FOLDER/a.hcl:8:1 already. Give one of them another name.
`,
		},
		{
			name:  "several files, in the order of their names, and parse beside decode mistakes",
			files: map[string]string{"b.hcl": "locals {\n  a = [\n}\n", "a.hcl": minimal("", "seed = local.unseen\n  perpare \"x\" \"y\" {}")},
			want: `
Error: Unknown block

  FOLDER/a.hcl:5:3
  5 |   perpare "x" "y" {}
    |   ^^^^^^^^^^^^^^^

An experiment has no "perpare" blocks. Did you mean "prepare"?

Error: Invalid expression

  FOLDER/b.hcl:3:1
  3 | }
    | ^

Expected the start of an expression, but found an invalid expression token.
`,
		},
		{
			name: "values",
			files: map[string]string{
				"a.hcl":             minimal("variable \"size\" { type = number }\nvariable \"list\" { type = list(number) }\nvariable \"rest\" {}\n", ""),
				"pipectl.vars.hcl":  "siez = 3\nblock {}\n",
				"x.auto.vars.hcl":   "size = \"four\"\nlist = var.size\n",
				"asked.hcl.example": "list = [1, \"x\"]\n",
			},
			set: []config.Assignment{{File: "FOLDER/asked.hcl.example"}, {File: "FOLDER/missing"}, {Var: "lits=[1]"}, {Var: "size"}},
			want: `
Error: Unreadable file

FOLDER/missing can't be read: no such file or directory. Check the path and its permissions.

Error: Malformed --var

  --var:1:1
  1 | size
    | ^^^^

Write it as --var 'name=value'.

Error: Undeclared variable

  --var lits:1:1
  1 | lits=[1]
    | ^^^^

The experiment files declare no variable "lits". Did you mean "list"?

Error: Wrong type

  FOLDER/asked.hcl.example:1:8
  1 | list = [1, "x"]
    |        ^^^^^^^^

The variable "list" is a list(number), which this value doesn't fit: a number is required.

Warning: Undeclared variable

  FOLDER/pipectl.vars.hcl:1:1
  1 | siez = 3
    | ^^^^

The experiment files declare no variable "siez". Did you mean "size"?

Error: Block in a file of values

  FOLDER/pipectl.vars.hcl:2:1
  2 | block {}
    | ^^^^^

A file of values holds no blocks. Write the values of variables as name = value.

Error: Wrong type

  FOLDER/x.auto.vars.hcl:1:8
  1 | size = "four"
    |        ^^^^^^

The variable "size" is a number, which this value doesn't fit: a number is required.
`,
		},
		{
			name:  "values as text",
			files: map[string]string{"a.hcl": minimal("variable \"size\" { type = number }\nvariable \"list\" { type = list(number) }\nvariable \"map\" { type = map(string) }\n", "")},
			set:   []config.Assignment{{Var: "list=[1,"}, {Var: "map={ a = local.x }"}},
			env:   []string{"PIPECTL_VAR_size=four"},
			want: `
Error: Missing expression

  --var list:1:9
  1 | list=[1,
    |         ^

Expected the start of an expression, but found the end of the file.

Error: Reference in a constant

  --var map:1:11
  1 | map={ a = local.x }
    |           ^^^^^^^

A value can't refer to others here. What is worked out from variables goes into a locals block.

Error: Wrong type

  PIPECTL_VAR_size:1:1
  1 | four
    | ^^^^

The variable "size" is a number, which this value doesn't fit: a number is required.
`,
		},
		{
			name: "a rule, at the place of the value that breaks it",
			files: map[string]string{"a.hcl": minimal(`variable "size" {
  default = 4
  validation {
    condition     = var.size < local.most
    error_message = "size must be below ${local.most}."
  }
}
locals { most = 8 }`, "")},
			set: []config.Assignment{{Var: "size=9"}},
			want: `
Error: Invalid value for variable

  --var size:1:6
  1 | size=9
    |      ^

size must be below 8. (The rule at FOLDER/a.hcl:3:3.)
`,
		},
		{
			name:  "no value",
			files: map[string]string{"a.hcl": minimal(`variable "size" {}`, "")},
			want: `
Error: No value for variable

  FOLDER/a.hcl:1:1
  1 | variable "size" {}
    | ^^^^^^^^^^^^^^^

Give "size" a default, or a value with --var 'size=…', in a file of values (--var-file, pipectl.vars.hcl or *.auto.vars.hcl), or in the environment as PIPECTL_VAR_size.
`,
		},
		{
			name:  "deep nesting",
			files: map[string]string{"a.hcl": "locals {\n  a = " + strings.Repeat("(\n", 200) + "1" + strings.Repeat(")", 200) + "\n}\n"},
			want: `
Error: Nested too deeply

  FOLDER/a.hcl:101:1
  101 | (
      | ^

Brackets can be nested 100 levels deep. Move inner parts to locals.
`,
		},
		{
			name:  "more than a file can hold",
			files: map[string]string{"a.hcl": strings.Repeat("#", 300<<10), "b.hcl": "locals {\n" + strings.Repeat("a = -1\n", 10001) + "}"},
			want: `
Error: Unreadable file

FOLDER/a.hcl can't be read: it is larger than 256 KiB. Check that it is the right one, or split it into several.

Error: Too many operators

  FOLDER/b.hcl:10002:5
  10002 | a = -1
        |     ^

A file can have 10000 operators.
`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := write(t, c.files)
			for i := range c.set {
				c.set[i].File = strings.Replace(c.set[i].File, "FOLDER", folder, 1)
			}
			conf, diags := config.Load(config.Options{
				Path: filepath.Join(folder, c.path), Registry: registry(), Assignments: c.set, Environ: c.env,
			})
			var got strings.Builder
			if err := diag.Text(&got, diags, conf.Files, 0, false); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, "\n"+strings.ReplaceAll(got.String(), folder, "FOLDER")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrderDoesNotDependOnMaps loads many mistakes again and again: the diagnostics must come in one order.
func TestOrderDoesNotDependOnMaps(t *testing.T) {
	files := map[string]string{}
	for i := range 10 {
		files[fmt.Sprintf("f%d.hcl", i)] = fmt.Sprintf("locals {\n  a%d = b\n  c%[1]d = d\n}\nvariable \"v%[1]d\" {}\nfoo%[1]d = 1\n", i)
	}
	folder := write(t, files)
	first := ""
	for range 20 {
		c, diags := config.Load(config.Options{Path: folder, Registry: registry()})
		var s strings.Builder
		if err := diag.Text(&s, diags, c.Files, 80, false); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = s.String()
		}
		if diff := cmp.Diff(first, s.String()); diff != "" {
			t.Fatalf("another order (-first +now):\n%s", diff)
		}
	}
}
