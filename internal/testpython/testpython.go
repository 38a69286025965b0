// Package testpython finds the Python interpreters that tests run.
package testpython

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// found are the interpreters by the modules that they have.
var found sync.Map

// Interpreter returns an interpreter that has modules: that of PIPECTL_TEST_PYTHON, or the first of PATH's and the system's. The test
// fails where there is none.
func Interpreter(t testing.TB, modules ...string) string {
	t.Helper()
	list := strings.Join(modules, ", ")
	if name, ok := found.Load(list); ok {
		return name.(string)
	}
	for _, name := range []string{os.Getenv("PIPECTL_TEST_PYTHON"), "python3", "/usr/bin/python3"} {
		if name != "" && exec.Command(name, "-c", "import "+list).Run() == nil {
			found.Store(list, name)
			return name
		}
	}
	t.Fatalf("no Python has %s: make deps-python installs what is missing, or set PIPECTL_TEST_PYTHON to an interpreter that has it", list)
	return ""
}
