package cli

import (
	"bytes"
	"testing"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

func TestWriteReport(t *testing.T) {
	done := about{Kind: results.Session, Status: results.Done, Run: "6a3f9k2m0x", Stored: "is stored.", Compare: "pipectl compare latest~1 latest"}
	skipped := done
	for i := range 12 {
		skipped.Skipped = append(skipped.Skipped, engine.SkippedItem{
			Address: "prepare.decode", Index: i, Item: "photos/cat/cat_\x1b[31m0" + string(rune('0'+i%10)) + ".jpg",
			Reason: "decoding a JPEG: it ends after 1024 bytes, in the middle of the scan",
		})
	}
	for _, tt := range []struct {
		name   string
		report *bisect.Report
		about  about
	}{
		{"input_bound", inputBoundReport(), done},
		{"step_bound", stepBoundReport(), done},
		{"undecided", undecidedReport(), done},
		{"skipped", stepBoundReport(), skipped},
		{"long_names", longNamesReport(), done},
		{"interrupted", &bisect.Report{Experiment: "photos", Verdict: bisect.Undecided, Probes: undecidedReport().Probes[:1], Baseline: undecidedReport().Baseline},
			about{Kind: results.Session, Status: results.Interrupted, Run: "6a3f9k2m0x", Stored: "is stored."}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			goldenViews(t, "report_"+tt.name, func(out *bytes.Buffer, term ui.Terminal) { writeReport(out, term, tt.report, tt.about) })
			goldenJSON(t, "report_"+tt.name, newVerdictEvent(tt.report, tt.about.Run, began))
		})
	}
}
