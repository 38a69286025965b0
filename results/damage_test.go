package results

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

const pageSize = 4096

// small returns the bytes of a database of a few runs, and what is stored of them.
func small(t testing.TB) ([]byte, []*Stored) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	start := wholeStart
	start.Part = nil // "latest" finds it
	for range 6 {
		run, err := s.Begin(t.Context(), start)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if err := run.AddInterval(engine.Probe{To: i % 2}, wholeInterval); err != nil {
				t.Fatal(err)
			}
		}
		if err := run.Finish(&wholeReport, Done, nil); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := readAll(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data, runs
}

// readAll reads all that can be read of a database.
func readAll(ctx context.Context, path string) ([]*Stored, error) {
	s, err := Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	list, err := s.List(ctx, Filter{}, 0)
	if err != nil {
		return nil, err
	}
	var runs []*Stored
	for i, summary := range list {
		id, err := s.Resolve(ctx, fmt.Sprintf("latest~%d", i), "")
		if err != nil {
			return nil, err
		}
		run, err := s.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		if run.Report == nil {
			summary.Baseline = nil // it is summed up for lists alone
		}
		if d := cmp.Diff(summary, run.Summary); d != "" {
			return nil, fmt.Errorf("listed and loaded differ: %s", d)
		}
		runs = append(runs, run)
	}
	return runs, nil
}

// advises reports whether an error says what to do about a file that isn't the database that it should be.
func advises(err error) bool {
	for _, advice := range []string{"it is damaged; move it away", "choose another place with --db", "remove it to start a new one"} {
		if strings.Contains(err.Error(), advice) {
			return true
		}
	}
	return false
}

// TestDamagedPages overwrites each page of a database, and cuts it off there. What is read is what was stored, or an error says
// what to do.
func TestDamagedPages(t *testing.T) {
	whole, want := small(t)
	path := filepath.Join(t.TempDir(), "results.db")
	damaged := 0
	try := func(name string, page int, data []byte) {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		switch got, err := readAll(t.Context(), path); {
		case err != nil && !advises(err):
			t.Errorf("page %d, %s: it doesn't say what to do: %v", page, name, err)
		case err != nil:
			damaged++
		default:
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("page %d, %s: what is read isn't what was stored (-want +got):\n%.2000s", page, name, d)
			}
		}
	}
	for at := 0; at < len(whole); at += pageSize {
		for name, fill := range map[string]byte{"zeros": 0, "ones": 0xff, "text": 'x'} {
			data := bytes.Clone(whole)
			copy(data[at:], bytes.Repeat([]byte{fill}, pageSize))
			try(name, at/pageSize, data)
		}
		if at > 0 {
			try("cut off", at/pageSize, whole[:at])
		}
		try("cut off within", at/pageSize, whole[:at+pageSize/2])
	}
	if pages := len(whole) / pageSize; damaged < 4*pages {
		t.Errorf("only %d errors for %d pages", damaged, pages)
	}
}

// TestSeal changes a value, or removes a row, in each table that has a part of a run that is finished.
func TestSeal(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	run := writeWhole(t, s)
	for _, change := range []string{
		"UPDATE runs SET baseline_median = baseline_median + 1e-9", "UPDATE runs SET baseline_low = 0", "UPDATE runs SET verdict = 'step_bound'",
		"UPDATE runs SET report = replace(report, '19', '18')", "UPDATE runs SET status = 'failed'",
		"UPDATE settings SET value = '65' WHERE attribute = 'size'", "DELETE FROM settings WHERE position = 2", "UPDATE stages SET checkpoint = 'rax' WHERE position = 0",
		"UPDATE rounds SET elapsed = elapsed + 1 WHERE round = 1", "UPDATE rounds SET cpu = NULL", "UPDATE probes SET cache_to = 2 WHERE cache_to = 1",
		"DELETE FROM rounds WHERE round = 5", "UPDATE accounts SET busy = busy + 1 WHERE position = 3", "DELETE FROM accounts WHERE round = 1",
		"UPDATE skipped SET name = 'x'", "DELETE FROM notes WHERE note = 1", "UPDATE runs SET seal = 'f' || substr(seal, 2)",
	} {
		if _, err := s.db.Exec("SAVEPOINT whole; " + change); err != nil {
			t.Fatal(err)
		}
		conn, err := s.db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		err = new(Stored).load(t.Context(), conn, run.ID())
		conn.Close()
		want := "what can be read of it isn't what was stored"
		if err == nil || err.Error() != want || !errors.As(err, new(malformed)) {
			t.Errorf("%s: error %v, want %s", change, err, want)
		}
		if _, err := s.db.Exec("ROLLBACK TO whole; RELEASE whole"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(t.Context(), run.ID()); err != nil {
			t.Errorf("after %s is undone: %v", change, err)
		}
	}
}

// TestEmptied has a file that is empty, with and without a sign that there were runs in it.
func TestEmptied(t *testing.T) {
	setup := func(t *testing.T) string {
		path := filepath.Join(t.TempDir(), "results.db")
		s := create(t, path)
		if err := begin(t, s, "photos").Finish(nil, Done, nil); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 0); err != nil {
			t.Fatal(err)
		}
		return path
	}
	expect := func(t *testing.T, path string) {
		t.Helper()
		want := "results database " + path + ": opening it: it is empty, though runs have been stored in it: restore it from a copy, or remove it to start a new one"
		for name, open := range map[string]func(context.Context, string) (*Store, error){"Create": Create, "Open": Open} {
			if _, err := open(t.Context(), path); err == nil || err.Error() != want {
				t.Errorf("%s: %v\nwant %s", name, err, want)
			}
		}
	}
	t.Run("runs", func(t *testing.T) { expect(t, setup(t)) })
	t.Run("log", func(t *testing.T) {
		path := setup(t)
		os.RemoveAll(path + "-running")
		if err := os.WriteFile(path+"-wal", []byte("the log of transactions that aren't in the file"), 0o644); err != nil {
			t.Fatal(err)
		}
		expect(t, path)
		if log, err := os.ReadFile(path + "-wal"); err != nil || len(log) == 0 {
			t.Errorf("the log is gone: %v", err)
		}
	})
	t.Run("removed", func(t *testing.T) {
		path := setup(t)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		begin(t, create(t, path), "photos")
		if runs, err := create(t, path).List(t.Context(), Filter{}, 0); err != nil || len(runs) != 1 {
			t.Errorf("%d runs in the new one, %v", len(runs), err)
		}
	})
	t.Run("never used", func(t *testing.T) {
		path := setup(t)
		os.RemoveAll(path + "-running")
		if _, err := Open(t.Context(), path); !errors.Is(err, ErrNoDatabase) {
			t.Errorf("Open: %v", err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() > 0 {
			t.Errorf("reading wrote to it: %v", err)
		}
		begin(t, create(t, path), "photos")
	})
}

// TestCopiedAlone copies the database's file without the log beside it, as a kill leaves them, after each thing stored.
func TestCopiedAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	run := begin(t, s, "photos")
	for stored := range 5 {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		alone := filepath.Join(t.TempDir(), "copy.db")
		if err := os.WriteFile(alone, data, 0o644); err != nil {
			t.Fatal(err)
		}
		runs, err := readAll(t.Context(), alone)
		if err != nil {
			t.Fatal(err)
		}
		rounds := 0
		for _, p := range runs[0].Probes {
			rounds += len(p.Rounds)
		}
		if rounds != stored || runs[0].Status != Interrupted {
			t.Errorf("%d intervals are stored, %d copied; status %s", stored, rounds, runs[0].Status)
		}
		if err := run.AddInterval(engine.Probe{}, interval(5)); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzDamaged changes a database in two places and cuts it off. Reading it never panics, an error says what to do, there is
// never an empty list without one, and what is read of a run is what was stored; nor does writing to it panic.
func FuzzDamaged(f *testing.F) {
	whole, stored := small(f)
	for _, at := range []uint32{18, 28, 40, 60, 63, 68, 100, 103, 105, 108, 1500, pageSize, 2*pageSize + 3, 5*pageSize + 8, 9*pageSize + 100} {
		f.Add(at, byte(1), at+1, byte(0x80), uint32(len(whole)))
		f.Add(at, byte(0x84), at, byte(0), uint32(len(whole))) // a negative number, where it is one
	}
	folder := f.TempDir()
	f.Fuzz(func(t *testing.T, at1 uint32, flip1 byte, at2 uint32, flip2 byte, size uint32) {
		data := bytes.Clone(whole)
		data[int(at1)%len(data)] ^= flip1
		data[int(at2)%len(data)] ^= flip2
		data = data[:min(int(size), len(data))]
		path := filepath.Join(folder, fmt.Sprintf("%d.db", os.Getpid())) // fuzzing runs several processes
		for _, suffix := range []string{"-wal", "-shm", "-running"} {
			os.RemoveAll(path + suffix)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		runs, err := readAll(t.Context(), path)
		for _, run := range runs {
			run.Tags = nil // which no seal covers, as they change
			if !slices.ContainsFunc(stored, func(s *Stored) bool { return cmp.Equal(s, run) }) {
				t.Errorf("a run that was not stored: %+v", run)
			}
		}
		switch {
		case err == nil && len(runs) == 0:
			t.Error("no runs, and no error")
		case err != nil && !errors.Is(err, ErrNoDatabase) && !advises(err) &&
			!strings.Contains(err.Error(), "there is no such run") && !strings.Contains(err.Error(), "listed and loaded differ"):
			t.Errorf("it doesn't say what to do: %v", err)
		}
		s, err := Create(t.Context(), path)
		if err != nil {
			return
		}
		defer s.Close()
		for range 2 {
			if run, err := s.Begin(t.Context(), wholeStart); err == nil {
				run.AddInterval(engine.Probe{}, wholeInterval)
				run.Finish(&wholeReport, Done, nil)
			}
		}
	})
}
