package cli

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// TestWriteComparisons looks at comparisons of many runs in every format.
func TestWriteComparisons(t *testing.T) {
	number := 0
	run := func(experiment, host string, baseline, ceiling float64) *results.Stored {
		number++
		r := stored(fmt.Sprintf("6a3f9k2m%02d", number), 6, baseline, ceiling)
		r.Experiment, r.Hostname, r.HostKey, r.Host.Hostname = experiment, host, host, host
		r.Started = began.Add(time.Duration(number) * time.Minute)
		return r
	}
	four := func(experiment, host string, baseline, ceiling float64) (list []*results.Stored) {
		for i := range 4 {
			factor := 1 + 0.01*float64(i)
			list = append(list, run(experiment, host, factor*baseline, factor*ceiling))
		}
		return list
	}
	with := func(r *results.Stored, attribute, value string) *results.Stored {
		r.Settings = append(r.Settings, engine.Setting{Address: "prepare.decode", Attribute: attribute, Value: value})
		r.Fingerprint += attribute + value
		return r
	}
	worse := with(run("photos", "box", 0.7, 3.5), "prefetch", "8")
	worse.Probes = worse.Probes[:3]
	worse.Settings[2].Value = "4"
	better := with(with(run("photos", "bigger-box", 3.1, 3.6), "prefetch", "32"), "on_error", `"skip"`)
	better.Settings[2].Value = "8"
	better.Tags = []string{"more-workers"}
	fewer := run("photos", "box", 0.89, 3.5)
	fewer.Settings = fewer.Settings[:3]

	main := append(append(four("photos", "box", 0.889, 3.49), four("photos", "attic", 0.5, 3.1)...), four("words", "box", 20, 21)...)
	change := append(append(append(four("photos", "box", 0.7, 3.49), four("photos", "attic", 0.53, 3.1)...), four("words", "box", 20, 21)...), run("new", "box", 1, 2))
	for _, tt := range []struct {
		name    string
		columns []results.Column
	}{
		{"single_runs", []results.Column{
			{Name: "latest~3", Runs: []*results.Stored{run("photos", "box", 0.889, 3.49)}},
			{Name: "latest~2", Runs: []*results.Stored{worse}},
			{Name: "more-workers", Runs: []*results.Stored{better}},
			{Name: "latest", Runs: []*results.Stored{fewer}},
		}},
		{"databases", []results.Column{{Name: "main.db", Runs: main}, {Name: "a-longer-name-of-a-database.db", Runs: change}}},
		{"one_against_four", []results.Column{
			{Name: "@photos~1", Runs: four("photos", "box", 0.889, 3.49)}, {Name: "@photos", Runs: []*results.Stored{worse}},
		}},
		{"nothing_in_common", []results.Column{
			{Name: "main.db", Runs: main},
			{Name: "@", Runs: []*results.Stored{run("photos", "box", 0.7, 3.5), stored("6a3f9k2mzz", 0, 0, 0)}},
			{Name: "latest", Runs: []*results.Stored{run("sounds", "box", 2, 3)}},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			name := "comparisons_" + tt.name
			c := results.Compare(tt.columns, 0.95)
			now := began.Add(2 * time.Hour)
			goldenViews(t, name, func(out *bytes.Buffer, term ui.Terminal) { writeComparisons(out, term, c, now) })
			goldenJSON(t, name, newComparisonsView(c))
			var markdown, csv bytes.Buffer
			writeComparisonMarkdown(&markdown, c, now)
			golden(t, name+".md.golden", markdown.Bytes())
			if err := writeComparisonCSV(&csv, c); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".csv.golden", csv.Bytes())
		})
	}
}

// TestCompareDocument checks that docs/compare.md has the columns of the CSV and the formats.
func TestCompareDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/compare.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(slices.Clone(compareColumns), compareFormats...) {
		if !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("%s isn't documented", name)
		}
	}
}

func TestConfidence(t *testing.T) {
	run := func(confidence float64) *results.Stored {
		r := &results.Stored{}
		if confidence > 0 {
			r.Report = &bisect.Report{Confidence: confidence}
		}
		return r
	}
	for _, tt := range []struct{ a, b, want float64 }{{0, 0, 0.95}, {0.9, 0, 0.9}, {0.95, 0.99, 0.99}} {
		columns := []results.Column{{Runs: []*results.Stored{run(0), run(tt.a)}}, {Runs: []*results.Stored{run(tt.b)}}}
		if got := confidence(columns); got != tt.want {
			t.Errorf("of %g and %g: %g, want %g", tt.a, tt.b, got, tt.want)
		}
	}
}
