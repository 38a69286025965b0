package cli

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// tiny is an experiment that is measured within milliseconds.
const tiny = `experiment "tiny" {
  load "synthetic" "items" { kind = "bytes" }
  batch { size = 1 }
  train "emulated" "step" { time = "100us" }
  bisect { steps = 3 }
  expect {
    bottleneck       = "train.step"
    steps_per_second = 0.001
  }
}
`

// writeTiny writes the experiment to a folder of its own, and returns its path and that of its database.
func writeTiny(t *testing.T) (path, db string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "tiny.hcl")
	if err := os.WriteFile(path, []byte(tiny), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, filepath.Join(dir, ".pipectl", "results.db")
}

// trigger does something at the first write: when the progress says that the run is stored.
type trigger struct {
	bytes.Buffer
	once sync.Once
	do   func()
}

func (w *trigger) Write(p []byte) (int, error) {
	w.once.Do(w.do)
	return w.Buffer.Write(p)
}

// What can't be stored is an error, and what is said of the run is true.
func TestRunNotStored(t *testing.T) {
	execute := func(statement string) func(*testing.T, string) {
		return func(t *testing.T, db string) {
			c, err := sql.Open("sqlite3", db)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := c.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name           string
		sabotage       func(*testing.T, string)
		stdout, stderr string // in them
	}{
		{"the database is removed", func(t *testing.T, db string) {
			if err := os.Remove(db); err != nil {
				t.Fatal(err)
			}
		}, " is not stored: the file of the results database is gone.\n", "its file was removed while it was in use"},
		{"no measurement can be stored", execute("CREATE TRIGGER t BEFORE INSERT ON rounds BEGIN SELECT RAISE(FAIL, 'no room'); END"),
			" is stored, but not all that was measured.\n", "no room"},
		{"the end can't be stored", execute("CREATE TRIGGER t BEFORE UPDATE OF status ON runs BEGIN SELECT RAISE(FAIL, 'no room'); END"),
			" is stored without its end, so that it counts as interrupted.\n", "storing the end of run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path, db := writeTiny(t)
			w, out, _ := world()
			errs := &trigger{do: func() { tc.sabotage(t, db) }}
			w.Err = errs
			code := Run(context.Background(), []string{"run", path, "--probe", "baseline"}, w)
			if code != exitError || !strings.Contains(out.String(), tc.stdout) || !strings.Contains(errs.String(), tc.stderr) ||
				strings.Contains(out.String(), "Compare it") {
				t.Errorf("exit code %d with\n%s\n%s", code, out, errs)
			}
		})
	}
}
