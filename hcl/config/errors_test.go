package config_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/hcl/config"
)

var expectation = regexp.MustCompile(`# (error|warning): ([^#\n]+)`)

// TestErrors loads every file of testdata/errors and compares the diagnostics with the comments beside the mistakes.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, diags := config.Load(config.Options{Path: file, Registry: registry()})
			var want []string
			for i, line := range bytes.Split(c.Files[file], []byte("\n")) {
				for _, m := range expectation.FindAllSubmatch(line, -1) {
					want = append(want, fmt.Sprintf("%s:%d: %s: %s", file, i+1, m[1], bytes.TrimSpace(m[2])))
				}
			}
			var got []string
			for _, d := range diags {
				severity := map[hcl.DiagnosticSeverity]string{hcl.DiagError: "error", hcl.DiagWarning: "warning"}[d.Severity]
				got = append(got, fmt.Sprintf("%s: %s: %s", line(d), severity, d.Summary))
				if d.Detail == "" || !strings.ContainsAny(d.Detail[len(d.Detail)-1:], ".?)}\"") {
					t.Errorf("%s: %q: the detail isn't a sentence: %q", line(d), d.Summary, d.Detail)
				}
			}
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("diagnostics (-want +got):\n%s", diff)
			}
		})
	}
}

func line(d *hcl.Diagnostic) string {
	if d.Subject == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d", d.Subject.Filename, d.Subject.Start.Line)
}
