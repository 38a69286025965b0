package results

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/engine"
)

// filled returns a database of n runs of 10 experiments, each with 20 settings, two probes of 6 rounds, a report and, one of a
// hundred, a tag. All are copies of the first, which was stored as any other.
func filled(b *testing.B, n int) *Store {
	b.Helper()
	s := create(b, filepath.Join(b.TempDir(), "results.db"))
	start := wholeStart
	start.Experiment = experiment("experiment 0")
	for i := range 20 {
		start.Experiment.Settings = append(start.Experiment.Settings, engine.Setting{Address: "prepare.decode", Attribute: fmt.Sprint(i), Value: "1"})
	}
	start.File = strings.Repeat(start.File, 50)
	run, err := s.Begin(b.Context(), start)
	for i := range 12 {
		if err == nil {
			err = run.AddInterval(engine.Probe{To: i % 2 * 3}, wholeInterval)
		}
	}
	if err == nil {
		err = run.Finish(&wholeReport, Done, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	copies := func(table, columns, values string) string {
		return fmt.Sprintf(`WITH RECURSIVE copies (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM copies WHERE k < %d)
			INSERT INTO %s (%s) SELECT %s FROM copies CROSS JOIN %[2]s;`, n-1, table, columns, values)
	}
	const all = ", kind, args, status, started, finished, version, seed, path, file, fingerprint, hostname, host_key, host, verdict, " +
		"bottleneck, baseline_median, report"
	_, err = s.db.Exec("PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 1000; PRAGMA foreign_keys = OFF;" +
		copies("runs", "id, experiment"+all, "printf('%010d', k), 'experiment ' || (k % 10)"+all) +
		copies("settings", "run, position, address, attribute, value", "run + k, position, address, attribute, value") +
		copies("stages", "run, position, address, checkpoint", "run + k, position, address, checkpoint") +
		copies("probes", "probe, run, cache_from, cache_to", "probe + 2 * k, run + k, cache_from, cache_to") +
		copies("rounds", "round, probe, started, steps, samples, elapsed, first_batch, starved, skipped",
			"round + 12 * k, probe + 2 * k, started, steps, samples, elapsed, first_batch, starved, skipped") +
		copies("accounts", "round, position, address, workers, items, busy, wait_in, wait_out",
			"round + 12 * k, position, address, workers, items, busy, wait_in, wait_out") +
		"INSERT INTO tags SELECT 'tag ' || number, number FROM runs WHERE number % 100 = 0")
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkHundredThousandRuns(b *testing.B) {
	const n = 100_000
	s := filled(b, n)
	list := func(f Filter, limit, want int) func(*testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				if runs, err := s.List(b.Context(), f, limit); err != nil || len(runs) != want {
					b.Fatal(len(runs), err)
				}
			}
		}
	}
	b.Run("List 20", list(Filter{}, 20, 20))
	b.Run("List 20 of an experiment", list(Filter{Experiment: "experiment 3"}, 20, 20))
	b.Run("List all", list(Filter{}, 0, n))
	for _, ref := range []struct{ name, experiment string }{
		{"0000054321", ""}, {"000005432", "experiment 3"}, {"tag 54300", ""}, {"latest", ""}, {"latest~9", "experiment 3"}, {"latest~9999", "experiment 3"},
		{"latest~99998", ""}, {"laetst", ""},
	} {
		b.Run("Resolve "+ref.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Resolve(b.Context(), ref.name, ref.experiment); err != nil && ref.name != "laetst" && ref.name != "000005432" {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("Compare", func(b *testing.B) {
		for b.Loop() {
			var columns []Column
			for _, ref := range []string{"latest~1", "latest"} {
				id, err := s.Resolve(b.Context(), ref, "experiment 3")
				if err != nil {
					b.Fatal(err)
				}
				run, err := s.Load(b.Context(), id)
				if err != nil {
					b.Fatal(err)
				}
				columns = append(columns, Column{Runs: []*Stored{run}})
			}
			Compare(columns, 0.95)
		}
	})
}

func BenchmarkAddInterval(b *testing.B) {
	s := create(b, filepath.Join(b.TempDir(), "results.db"))
	run := begin(b, s, "photos")
	for b.Loop() {
		if err := run.AddInterval(engine.Probe{}, wholeInterval); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	s := create(b, filepath.Join(b.TempDir(), "results.db"))
	run := begin(b, s, "photos")
	for i := range 60 {
		if err := run.AddInterval(engine.Probe{To: i % 4 % 3}, wholeInterval); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Load(b.Context(), run.ID()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	a := stored("a", pipelineA, map[engine.Probe][]float64{{}: {5, 5.1, 4.9, 5.2, 4.8, 5.05}, {To: 4}: {20, 21, 19, 20, 20.5, 20.2}})
	c := stored("b", pipelineB, map[engine.Probe][]float64{{}: {8, 8.2, 7.9, 8.1, 8.3, 7.8}, {To: 4}: {22, 23, 21.5, 22.2, 22.3, 22.1}})
	for b.Loop() {
		Compare([]Column{{Runs: []*Stored{a}}, {Runs: []*Stored{c}}}, 0.95)
	}
}
