package results

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
)

// recorder connects to a database and notes the queries that it is asked, with SQLite's plans for them.
type recorder struct {
	connector
	plans *[]string
}

func (r recorder) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return recordingConn{conn.(*sqlite3.SQLiteConn), r.plans}, nil
}

type recordingConn struct {
	*sqlite3.SQLiteConn
	plans *[]string
}

func (c recordingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.SQLiteConn.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, args)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for row := make([]driver.Value, 4); rows.Next(row) == nil; {
		*c.plans = append(*c.plans, row[3].(string))
	}
	return c.SQLiteConn.QueryContext(ctx, query, args)
}

// TestPlans checks that what is asked of a large database is answered from its indices. Of the plans it has the steps that go
// through a whole table, or sort what they found. A list and latest~N scan the runs in the order of their numbers, which needs
// no sorting, so that they stop with the last run wanted; and the parts of one run are few.
func TestPlans(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	run := writeWhole(t, s)
	begin(t, s, "photos")
	begin(t, s, "fashion")
	plans := []string{}
	db := sql.OpenDB(recorder{connector("file:" + path), &plans})
	db.SetMaxOpenConns(1)
	s.db.Close()
	s.db = db
	if _, err := db.Exec("INSERT INTO tags VALUES ('before', 1)"); err != nil {
		t.Fatal(err)
	}
	resolve := func(ref, experiment string) func() error {
		return func() error { _, err := s.Resolve(t.Context(), ref, experiment); return err }
	}
	list := func(f Filter) func() error {
		return func() error { _, err := s.List(t.Context(), f, 20); return err }
	}
	for _, tt := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"list", list(Filter{}), []string{"SCAN runs USING INDEX runs_in_order"}},
		{"list of an experiment", list(Filter{Experiment: "photos"}), nil},
		{"tag", resolve("before", ""), nil},
		{"id", resolve(run.ID(), ""), nil},
		{"start of an id", resolve(run.ID()[:9], ""), nil},
		{"latest", resolve("latest~1", ""), []string{"SCAN runs USING COVERING INDEX runs_in_order"}},
		{"latest of an experiment", resolve("latest", "photos"), nil},
		{"load", func() error { _, err := s.Load(t.Context(), run.ID()); return err }, slices.Repeat([]string{"USE TEMP B-TREE FOR ORDER BY"}, 7)},
	} {
		plans = plans[:0]
		if err := tt.do(); err != nil {
			t.Fatal(err)
		}
		if len(plans) == 0 {
			t.Errorf("%s: no plan was noted", tt.name)
		}
		got := slices.DeleteFunc(plans, func(step string) bool {
			return !strings.HasPrefix(step, "SCAN") && step != "USE TEMP B-TREE FOR ORDER BY"
		})
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
