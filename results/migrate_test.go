package results

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// old makes a database as version n of the schema was written: testdata/vn.sql holds what that version stored.
func old(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.db")
	s, err := open(t.Context(), path, url.Values{"mode": {"rwc"}}, migrations()[:n])
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	data, err := os.ReadFile(fmt.Sprintf("testdata/v%d.sql", n))
	if err != nil {
		t.Fatal(err)
	}
	// The tables come in the order of their names, not of their references.
	if _, err := s.db.Exec("PRAGMA foreign_keys = OFF;" + string(data)); err != nil {
		t.Fatal(err)
	}
	return path
}

// asOf returns what is read of a run that version n of the schema stored, which lacks what came later.
func (run Stored) asOf(n int) Stored {
	rounds := func(list []engine.Interval) []engine.Interval {
		list = slices.Clone(list)
		for i := range list {
			if n < 2 {
				list[i].Others, list[i].Throttled, list[i].Swapped = -1, -1, -1
			}
			if n < 3 {
				list[i].Resident, list[i].Frequency, list[i].Overheats = -1, -1, -1
			}
		}
		return list
	}
	run.Report = ptr(*run.Report)
	for _, list := range []*[]bisect.ProbeResult{&run.Report.Probes, &run.Report.Isolated} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Rounds = rounds((*list)[i].Rounds)
		}
	}
	run.Probes = slices.Clone(run.Probes)
	for i := range run.Probes {
		run.Probes[i].Rounds = rounds(run.Probes[i].Rounds)
	}
	if n < 2 {
		run.Host.GPU, run.Host.GPUEnd = nil, nil
	}
	if n < 4 {
		run.Part = nil
	}
	if n < 3 {
		run.Report.PageCache, run.Report.Control = "", nil
		run.Host.NUMANodes, run.Host.Affinity, run.Host.CPUCache = 0, "", 0
		run.Probes = slices.DeleteFunc(run.Probes, func(p Probe) bool { return p.Role == Control })
	}
	return run
}

func TestMigrateFromEveryVersion(t *testing.T) {
	if len(migrations()) == 0 {
		t.Fatal("no migrations are embedded")
	}
	for n := 1; n <= len(migrations()); n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			path := old(t, n)
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			id, err := s.Resolve(t.Context(), "before", "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			want := wholeStored.asOf(n)
			want.Tags = []string{"before"}
			if d := cmp.Diff(&want, got); d != "" {
				t.Errorf("read from version %d (-want +got):\n%s", n, d)
			}
			var version int
			if err := s.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version != len(migrations()) {
				t.Errorf("version %d, %v", version, err)
			}
			if _, err := s.Begin(t.Context(), wholeStart); err != nil {
				t.Errorf("writing to it: %v", err)
			}
		})
	}
}

// TestMigrateSteps takes a database through a later version, and then through one that fails.
func TestMigrateSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	begin(t, s, "photos")
	next := append(migrations(), "CREATE TABLE extra (a TEXT); INSERT INTO extra SELECT id FROM runs")
	if err := s.migrate(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	bad := append(next, "DROP TABLE extra; CREATE TABLE runs (a TEXT)")
	err := s.migrate(t.Context(), bad)
	if want := fmt.Sprintf("taking its schema to version %d: table runs already exists", len(bad)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// A migration that fails leaves all as it was.
	var n, version int
	err = errors.Join(s.db.QueryRow("SELECT count(*) FROM extra").Scan(&n), s.db.QueryRow("PRAGMA user_version").Scan(&version))
	if n != 1 || version != len(next) || err != nil {
		t.Errorf("%d rows, version %d, %v", n, version, err)
	}
	if _, err := Create(t.Context(), path); err == nil || !strings.Contains(err.Error(), "newer pipectl") {
		t.Errorf("a newer database was opened: %v", err)
	}
}

// TestSettings checks what durability and consistency rest on.
func TestSettings(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "10000", "application_id": "1886413684",
	} {
		var got string
		if err := s.db.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s = %s, want %s (%v)", pragma, got, want, err)
		}
	}
}
