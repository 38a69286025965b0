package results

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/pipectl/pipectl/engine"
)

// filled returns a database of n runs of 10 experiments, with 60 settings each.
func filled(b *testing.B, n int) *Store {
	s := create(b, filepath.Join(b.TempDir(), "results.db"))
	if _, err := s.db.Exec("PRAGMA synchronous = OFF"); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		exp := experiment(fmt.Sprintf("experiment %d", i%10))
		for j := range 60 {
			exp.Settings = append(exp.Settings, engine.Setting{Address: "prepare.decode", Attribute: fmt.Sprint(j), Value: "1"})
		}
		run, err := s.Begin(b.Context(), Start{Experiment: exp, Kind: Session, Host: wholeStart.Host, File: wholeStart.File})
		if err != nil {
			b.Fatal(err)
		}
		if err := run.Finish(&wholeReport, Done, nil); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

func BenchmarkTenThousandRuns(b *testing.B) {
	s := filled(b, 10_000)
	b.Run("List all", func(b *testing.B) {
		for b.Loop() {
			if runs, err := s.List(b.Context(), Filter{}, 0); err != nil || len(runs) != 10_000 {
				b.Fatal(len(runs), err)
			}
		}
	})
	b.Run("List 20 of an experiment", func(b *testing.B) {
		for b.Loop() {
			if runs, err := s.List(b.Context(), Filter{Experiment: "experiment 3"}, 20); err != nil || len(runs) != 20 {
				b.Fatal(len(runs), err)
			}
		}
	})
	b.Run("Resolve", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Resolve(b.Context(), "latest~9", "experiment 3"); err != nil {
				b.Fatal(err)
			}
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
