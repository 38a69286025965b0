package results

import (
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// TestPageCachesDiffer warns of runs that read their files from a cold page cache beside others from a warm one, and leaves controls out.
func TestPageCachesDiffer(t *testing.T) {
	rates := []float64{5, 5.1, 4.9, 5.2, 4.8, 5.05}
	run := func(id, setting string, report *bisect.Report) *Stored {
		r := stored(id, pipelineA[3:], map[engine.Probe][]float64{{}: rates, {To: 1, Burn: time.Millisecond}: rates})
		r.Settings = append(r.Settings, engine.Setting{Address: "bisect", Attribute: "cold", Value: setting})
		r.Report = report
		return r
	}
	label := func(c bisect.PageCache) *bisect.Report { return &bisect.Report{Confidence: 0.95, PageCache: c} }
	for _, tt := range []struct {
		name string
		a, b *Stored
		want string
	}{
		{"warm beside cold", run("a", "false", label(bisect.Warm)), run("b", "true", label(bisect.Cold)), "warm and cold"},
		{"both cold", run("a", "true", label(bisect.Cold)), run("b", "true", label(bisect.Cold)), ""},
		{"cold as far as possible", run("a", "false", label(bisect.Warm)), run("b", "true", label("")), ""},
		{"no files", run("a", "false", label("")), run("b", "false", label("")), ""},
		{"warm beside a cold one without a report", run("a", "false", label(bisect.Warm)), run("b", "true", nil), "warm and cold"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Compare([]Column{{Runs: []*Stored{tt.a}}, {Runs: []*Stored{tt.b}}}, 0.95)
			got := ""
			for _, w := range c.Warnings {
				if w.Code == "page_caches_differ" {
					got = w.Text
				}
			}
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("warning %q, want one of %s", got, tt.want)
			}
			for _, row := range c.Groups[0].Pairs[0].Probes {
				if row.Role != Baseline {
					t.Errorf("a probe in the role %s is compared", row.Role)
				}
			}
		})
	}
}
