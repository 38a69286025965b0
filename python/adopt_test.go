package python

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReference(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"src/pkg/sub/data.py", "src/pkg/__init__.py", "src/pkg/sub/__init__.py", "train.py"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		text, reference string
		folders         []string
	}{
		{"train:loader", "train:loader", nil},
		{"a.b:get()[0]", "a.b:get()[0]", nil},
		{"train", "train", nil},
		{"train.py:loader", "train:loader", []string{"."}},
		{"train.py", "train", []string{"."}},
		{"./train.py:x", "train:x", []string{"."}},
		{"src/other.py:loader.dataset", "other:loader.dataset", []string{"src"}},
		{"src/other:loader", "other:loader", []string{"src"}},
		{"src/pkg/sub/data.py:loader", "pkg.sub.data:loader", []string{"src", "src/pkg/sub"}},
		{"/x/y.py:z", "y:z", []string{"/x"}},
	} {
		if reference, folders := Reference(tc.text); reference != tc.reference || !slices.Equal(folders, tc.folders) {
			t.Errorf("%s is %q in %q, want %q in %q", tc.text, reference, folders, tc.reference, tc.folders)
		}
	}
	for reference, want := range map[string]bool{"train:x": true, "src.pkg": true, "src": true, "torch:x": false} {
		if got := InFolder(reference, "."); got != want {
			t.Errorf("%s lies here: %t, want %t", reference, got, want)
		}
	}
}

func TestLacking(t *testing.T) {
	for _, tc := range []struct {
		err    error
		module string
		ok     bool
	}{
		{nil, "", false},
		{errors.New("x"), "", false},
		{&Error{Kind: ImportError, Message: `importing train: there is no module "torch.nn" in /usr/bin/python3 (Python 3.11.2, python = "python3")`}, "torch.nn", true},
		{&Error{Kind: ImportError, Message: `there is no module "train" in pythonpath (.), nor in /usr/bin/python3`}, "", false},
		{&Error{Kind: ExitError, Message: `importing train: there is no module "torch"`}, "", false},
		{&Error{Kind: StartError, Message: "pyenv: python3: command not found"}, "", true},
	} {
		if module, ok := lacking(tc.err); module != tc.module || ok != tc.ok {
			t.Errorf("%v lacks %q, %t, want %q, %t", tc.err, module, ok, tc.module, tc.ok)
		}
	}
}

// Interpreters are those of environments first, each once, and the newest last ones first; what is no interpreter isn't asked.
func TestOtherInterpreters(t *testing.T) {
	dir := t.TempDir()
	program := func(name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// $3 is the module that is asked for.
	program("first/python3", "exit 0")
	venv := program("env/bin/python", `test "$3" = torch`)
	second := program("second/python3", `test "$3" = torch`)
	newer := program("second/python3.12", `test "$3" = torch`)
	older := program("second/python3.8", `test "$3" = torch`)
	program("second/python3.9", "exit 1")
	program("second/python3.7", "exit 0")
	program("second/python3.11-config", "exit 0")
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "env"))
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("PATH", filepath.Join(dir, "first")+":"+filepath.Join(dir, "second")+":/bin")
	got := otherInterpreters(Interpreter{}, "torch.utils")
	want := []string{venv, second, newer, older}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(path string) bool { return !strings.HasPrefix(path, resolved) }) // the machine's own
	for i := range want {
		want[i] = resolved + strings.TrimPrefix(want[i], dir)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
