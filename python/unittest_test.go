//go:build linux && !core

package python

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/pipectl/pipectl/internal/testpython"
)

// TestPython runs the helper's own tests.
func TestPython(t *testing.T) {
	files, err := filepath.Glob("tests/test_*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	python := testpython.Interpreter(t, "torch")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			if out, err := exec.Command(python, "-B", file).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
