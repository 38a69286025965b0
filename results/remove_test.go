package results

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

// rows returns how many rows each table has.
func rows(t *testing.T, s *Store) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, table := range []string{"runs", "tags", "settings", "stages", "probes", "rounds", "accounts", "skipped", "notes", "parts"} {
		var n int
		if err := s.db.QueryRow("SELECT count(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		counts[table] = n
	}
	return counts
}

func TestRemove(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	kept := writeWhole(t, s)
	if _, err := s.Tag(t.Context(), []string{kept.ID()}, []string{"base", "both"}, NewTag); err != nil {
		t.Fatal(err)
	}
	before := rows(t, s)
	whole, other := writeWhole(t, s), writeWhole(t, s)
	if _, err := s.Tag(t.Context(), []string{whole.ID()}, []string{"gone", "both"}, AddTag); err != nil {
		t.Fatal(err)
	}
	running := begin(t, s, "photos")

	// One that goes on keeps all from being removed.
	removed, err := s.Remove(t.Context(), []string{whole.ID(), running.ID(), other.ID()})
	want := "results database " + path + ": removing runs: run " + running.ID() + ": it is still being measured: end it first"
	if removed != 0 || !errors.Is(err, ErrRunning) || err.Error() != want {
		t.Errorf("%d removed, %v\nwant %s", removed, err, want)
	}
	if n := rows(t, s)["runs"]; n != 4 {
		t.Errorf("%d runs are left, want 4", n)
	}

	running.unlock() // as a kill does
	if removed, err := s.Remove(t.Context(), []string{whole.ID(), running.ID(), other.ID()}); removed != 3 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
	if d := cmp.Diff(before, rows(t, s)); d != "" {
		t.Errorf("rows that are left (-want +got):\n%s", d)
	}
	if run, err := s.Load(t.Context(), kept.ID()); err != nil || !cmp.Equal(run.Tags, []string{"base", "both"}) {
		t.Errorf("the other run: %+v, %v", run, err)
	}
	if err := running.AddInterval(engine.Probe{}, interval(1)); err == nil || !strings.Contains(err.Error(), "the run was removed while it was written") {
		t.Errorf("adding to a run that was removed: %v", err)
	}
	// What was removed by another meanwhile is no error.
	if removed, err := s.Remove(t.Context(), []string{whole.ID()}); removed != 1 || err != nil {
		t.Errorf("%d removed, %v", removed, err)
	}
}

// More runs are removed than one transaction does.
func TestRemoveMany(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	begin(t, s, "photos").unlock()
	_, err := s.db.Exec(`WITH RECURSIVE copies (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM copies WHERE k < ?)
		INSERT INTO runs (id, experiment, kind, args, status, started, version, seed, path, file, fingerprint, hostname, host_key, host)
		SELECT printf('%010d', k), experiment, kind, args, status, started, version, seed, path, printf('%10000s', k), fingerprint,
			hostname, host_key, host FROM copies CROSS JOIN runs`, 2*removedAtOnce)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.IDs(t.Context(), Filter{})
	if err != nil || len(ids) != 2*removedAtOnce+1 {
		t.Fatal(len(ids), err)
	}
	if removed, err := s.Remove(t.Context(), ids[:2*removedAtOnce]); removed != 2*removedAtOnce || err != nil {
		t.Fatal(removed, err)
	}
	size := func() int64 {
		info, err := os.Stat(s.file)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()

	// While a run goes on, the file is left as it is.
	running := begin(t, s, "photos")
	if err := s.Compact(t.Context()); err != nil || size() < before {
		t.Errorf("%d bytes became %d, %v", before, size(), err)
	}
	running.unlock()
	if err := s.Compact(t.Context()); err != nil || size() > before/10 {
		t.Errorf("%d bytes became %d, %v", before, size(), err)
	}
	left, err := s.IDs(t.Context(), Filter{})
	if d := cmp.Diff([]string{ids[2*removedAtOnce], running.ID()}, left); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

func TestListSessions(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	a, b := begin(t, s, "photos"), begin(t, s, "fashion")
	start := wholeStart
	start.Experiment, start.Part = experiment("photos"), &Part{Session: a.ID(), Change: "batch.size = 8"}
	part, err := s.Begin(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		filter Filter
		want   []string
	}{
		{Filter{}, []string{part.ID(), b.ID(), a.ID()}},
		{Filter{Sessions: []string{}}, nil},
		{Filter{Sessions: []string{a.ID()}}, []string{part.ID(), a.ID()}},
		{Filter{Sessions: []string{part.ID(), b.ID(), "zzz"}}, []string{part.ID(), b.ID()}},
		{Filter{Experiment: "fashion", Sessions: []string{a.ID(), b.ID()}}, []string{b.ID()}},
	} {
		runs, err := s.List(t.Context(), tt.filter, 0)
		var got []string
		for _, r := range runs {
			got = append(got, r.ID)
		}
		if d := cmp.Diff(tt.want, got); d != "" || err != nil {
			t.Errorf("List %+v: %v (-want +got):\n%s", tt.filter, err, d)
		}
		ids, err := s.IDs(t.Context(), tt.filter)
		for i := range ids {
			if ids[i] != got[len(got)-1-i] {
				t.Errorf("IDs %+v: %q, want %q reversed", tt.filter, ids, got)
			}
		}
		if err != nil || len(ids) != len(got) {
			t.Errorf("IDs %+v: %q, %v", tt.filter, ids, err)
		}
	}
}

func TestExpired(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 12, 0, 0, 0, time.UTC) }
	runs := []Summary{ // the newest first
		{ID: "p9", Experiment: "photos", Started: day(9), Status: Running},
		{ID: "p8x", Experiment: "photos", Started: day(8), Part: &Part{Session: "p7"}},
		{ID: "p7", Experiment: "photos", Started: day(7)},
		{ID: "f6", Experiment: "fashion", Started: day(6)},
		{ID: "p5x", Experiment: "photos", Started: day(5), Part: &Part{Session: "p4"}},
		{ID: "p4", Experiment: "photos", Started: day(4)},
		{ID: "p3", Experiment: "photos", Started: day(3), Tags: []string{"base"}},
		{ID: "f2x", Experiment: "fashion", Started: day(2), Tags: []string{"best"}, Part: &Part{Session: "f2"}},
		{ID: "f2", Experiment: "fashion", Started: day(2)},
		{ID: "p1", Experiment: "photos", Started: day(1), Status: Interrupted},
	}
	for _, tt := range []struct {
		expired Expired
		want    string
	}{
		{Expired{}, "p8x p7 f6 p5x p4 p1"},
		{Expired{Experiment: "photos"}, "p8x p7 p5x p4 p1"},
		{Expired{Before: day(5)}, "p5x p4 p1"},
		{Expired{Before: day(1)}, ""},
		{Expired{Keep: 1}, "p8x p7 p5x p4 p1"},
		{Expired{Keep: 2}, "p5x p4 p1"},
		{Expired{Keep: 4}, "p1"},
		{Expired{Keep: 9}, ""},
		{Expired{Keep: 1, Before: day(2)}, "p1"},
		{Expired{Experiment: "fashion", Keep: 0, Before: day(7)}, "f6"},
	} {
		var got []string
		for _, r := range tt.expired.Of(runs) {
			got = append(got, r.ID)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.expired, got, tt.want)
		}
	}
}

func BenchmarkRemove(b *testing.B) {
	s := filled(b, 10_000)
	for n := 0; b.Loop(); n++ {
		if removed, err := s.Remove(b.Context(), []string{fmt.Sprintf("%010d", 9999-n)}); removed != 1 || err != nil {
			b.Fatal(removed, err)
		}
	}
}
