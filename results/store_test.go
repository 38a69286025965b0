package results

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// create makes a database whose runs begin a minute apart and whose ids are drawn in order.
func create(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	now, drawn := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), uint32(0)
	s.now = func() time.Time { now = now.Add(time.Minute); return now }
	s.random = func() uint32 { drawn += 1 << 14; return drawn }
	return s
}

// experiment returns a pipeline of four stages.
func experiment(name string) *engine.Experiment {
	return &engine.Experiment{
		Name: name,
		Seed: 1<<63 + 5, // more than SQLite's integers hold
		Stages: []engine.Stage{
			{Address: "load.photos", Checkpoint: &engine.Checkpoint{Name: "raw"}},
			{Address: "prepare.decode"},
			{Address: "batch"},
			{Address: "train.step"},
		},
		Settings: []engine.Setting{
			{Attribute: "seed", Value: "9223372036854775813"},
			{Address: "load.photos", Attribute: "path", Value: `"./photos"`},
			{Address: "batch", Attribute: "size", Value: "64"},
		},
	}
}

func begin(t testing.TB, s *Store, name string) *Run {
	t.Helper()
	r, err := s.Begin(t.Context(), Start{Experiment: experiment(name), Kind: Session, Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { runtime.KeepAlive(r) }) // a lock that nothing refers to any more may be dropped
	return r
}

// interval returns an interval of 20 steps with this rate, in steps/s.
func interval(rate float64) engine.Interval {
	elapsed := time.Duration(20 / rate * float64(time.Second))
	return engine.Interval{
		Start: time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC), Steps: 20, Samples: 1280, Elapsed: elapsed,
		Stages: []engine.Account{
			{Address: "load.photos", Workers: 2, Items: 1280, Busy: elapsed / 2},
			{Address: "prepare.decode", Workers: 4, Items: 1280, Busy: 4 * elapsed},
			{Address: "batch", Workers: 1, Items: 1280, Busy: elapsed / 10},
			{Address: "train.step", Workers: 1, Items: 20, Busy: elapsed / 4},
		},
	}
}

func TestOpenMissing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sub", "results.db")
	_, err := Open(t.Context(), path)
	if want := "no results database at " + path + ": nothing has been stored there yet"; !errors.Is(err, ErrNoDatabase) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("opening left %v", entries)
	}
}

// TestNames stores in folders and files whose names mean something in a URI.
func TestNames(t *testing.T) {
	for _, name := range []string{"plain", "a b", "a?b", "a?mode=ro", "a#b", "a%20b", "a%", "100%25", "ä/ü", "a&b=c", "日本 語", "a\nb", "a'b\"c", "file:x", "a\xffb"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name, name+".db")
			s := create(t, path)
			id := begin(t, s, "photos").ID()
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("the file isn't there: %v", err)
			}
			r, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if run, err := r.Load(t.Context(), id); err != nil || run.Status != Running {
				t.Errorf("got %+v, %v", run, err)
			}
		})
	}
}

// TestOtherPaths reads a run that goes on through a symbolic link and through a relative path.
func TestOtherPaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "results.db")
	id := begin(t, create(t, path), "photos").ID()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, path := range []string{link, "results.db", "./results.db"} {
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir("/") // what was opened stays what it was
		if run, err := s.Load(t.Context(), id); err != nil || run.Status != Running {
			t.Errorf("%s: got %+v, %v", path, run, err)
		}
		s.Close()
		t.Chdir(dir)
	}
}

func TestOpenErrors(t *testing.T) {
	ctx := context.Background()
	raw := func(t *testing.T, path, statements string) {
		db, err := sql.Open("sqlite3", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(statements); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name  string
		setup func(t *testing.T, path string)
		want  string // after "results database PATH: "
	}{
		{"text", func(t *testing.T, path string) {
			os.WriteFile(path, []byte(strings.Repeat("this is no database\n", 200)), 0o644)
		}, "opening it: file is not a database: it is another kind of file; choose another place with --db"},
		{"damaged", func(t *testing.T, path string) {
			s, err := Create(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			data, _ := os.ReadFile(path)
			copy(data[100:], strings.Repeat("\xff", 4000)) // the schema's page, after the file's header
			os.WriteFile(path, data, 0o644)
		}, "opening it: database disk image is malformed: it is damaged; move it away to start a new one, or read what is left with sqlite3's .recover"},
		{"another program's", func(t *testing.T, path string) { raw(t, path, "CREATE TABLE songs (title TEXT)") },
			"opening it: it belongs to another program: choose another place with --db"},
		{"another program's, marked", func(t *testing.T, path string) { raw(t, path, "PRAGMA application_id = 7; PRAGMA user_version = 1") },
			"opening it: it belongs to another program: choose another place with --db"},
		{"newer", func(t *testing.T, path string) {
			s, err := Create(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			raw(t, path, "PRAGMA user_version = 99")
		}, "opening it: it was written by a newer pipectl (schema 99, this one knows 5): update pipectl, or choose another place with --db"},
		{"older than old", func(t *testing.T, path string) {
			s, err := Create(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			raw(t, path, "PRAGMA user_version = -1")
		}, "opening it: its schema has the version -1: it is damaged; move it away to start a new one, or read what is left with sqlite3's .recover"},
		{"folder", func(t *testing.T, path string) { os.Mkdir(path, 0o755) },
			"it is not a file: choose another place with --db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "results.db")
			tt.setup(t, path)
			before, _ := os.ReadFile(path)
			for name, open := range map[string]func(context.Context, string) (*Store, error){"Create": Create, "Open": Open} {
				if _, err := open(ctx, path); err == nil || err.Error() != "results database "+path+": "+tt.want {
					t.Errorf("%s: %v\nwant %s", name, err, tt.want)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("opening changed the file")
			}
		})
	}
}

func TestCreateBelowFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	path := filepath.Join(file, "results.db")
	_, err := Create(t.Context(), path)
	want := "results database " + path + ": making its folder: mkdir " + file + ": not a directory: choose another place with --db"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

// TestFull limits the database's size as a full disk would.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	run := begin(t, s, "photos")
	if _, err := s.db.Exec("PRAGMA max_page_count = 40"); err != nil {
		t.Fatal(err)
	}
	stored := 0
	var err error
	for stored < 1000 {
		if err = run.AddInterval(engine.Probe{}, interval(5)); err != nil {
			break
		}
		stored++
	}
	want := "results database " + path + ": storing an interval of run " + run.ID() +
		" (baseline): database or disk is full: free some disk space, or choose another place with --db"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	got, err := s.Load(t.Context(), run.ID())
	if err != nil || len(got.Probes) != 1 || len(got.Probes[0].Rounds) != stored || stored == 0 {
		t.Errorf("%d rounds were stored, read %+v, %v", stored, got, err)
	}
}

// TestBusy has another connection hold the database for longer than a write waits.
func TestBusy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s, other := create(t, path), create(t, path)
	run := begin(t, s, "photos")
	if _, err := s.db.Exec("PRAGMA busy_timeout = 1"); err != nil {
		t.Fatal(err)
	}
	tx, err := other.db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	err = run.AddNote(bisect.Note{Code: "a", Text: "b"})
	want := "results database " + path + ": storing a note of run " + run.ID() +
		": database is locked: another process has held it for 10s; wait for that process or end it"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	// Readers don't wait.
	if runs, err := s.List(t.Context(), Filter{}, 0); err != nil || len(runs) != 1 {
		t.Errorf("got %+v, %v", runs, err)
	}
}

func TestGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.db")
	s := create(t, path)
	expect := func(want string) {
		t.Helper()
		if err := s.Gone(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	expect("")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	expect("its file was removed")
	create(t, path)
	expect("its file was replaced")
}
