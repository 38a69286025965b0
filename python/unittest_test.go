//go:build linux && !core

package python

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// TestPython runs the helper's own tests.
func TestPython(t *testing.T) {
	files, err := filepath.Glob("tests/test_*.py")
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests: %v", err)
	}
	python := interpreterFor(t, "torch")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			if out, err := exec.Command(python, "-B", file).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
