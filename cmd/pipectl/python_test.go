//go:build linux && !core

package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/pipectl/pipectl/internal/testpython"
)

// TestPythonScripts runs the scripts about users' own Python code.
func TestPythonScripts(t *testing.T) {
	python := testpython.Interpreter(t, "torch", "torchvision")
	runScripts(t, "testdata/python", func(e *testscript.Env) error {
		e.Setenv("PIPECTL_TEST_PYTHON", python)
		return nil
	})
}
