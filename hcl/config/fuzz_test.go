package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		if !diags.HasErrors() {
			for _, e := range c.Experiments {
				results.Fingerprint(e.Settings)
			}
		}
		config.Format(src, file)
	})
}
