package results

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/stats"
)

// Filter chooses runs.
type Filter struct {
	Experiment string   // "": all
	Sessions   []string // nil: all; else the runs with these ids, and those that are parts of their sessions
}

// clauses returns a query's, with what stands for each of their parameters; none where all runs are chosen.
func (f Filter) clauses() (where string, args []any) {
	var all []string
	if f.Experiment != "" {
		all, args = append(all, "experiment = ?"), append(args, f.Experiment)
	}
	if f.Sessions != nil {
		list, _ := json.Marshal(f.Sessions) // of texts, which always can be
		const among = " IN (SELECT value FROM json_each(?))"
		all, args = append(all, "(id"+among+" OR number IN (SELECT run FROM parts WHERE session"+among+"))"), append(args, string(list), string(list))
	}
	if len(all) > 0 {
		where = "WHERE " + strings.Join(all, " AND ")
	}
	return where, args
}

// unreportedConfidence is that of intervals where no report says which was asked for.
const unreportedConfidence = 0.95

// List returns the newest runs first, limit of them or fewer; all where limit is 0.
func (s *Store) List(ctx context.Context, f Filter, limit int) ([]Summary, error) {
	where, args := f.clauses()
	if limit == 0 {
		limit = -1
	}
	args = append(args, limit)
	var runs []Summary
	query := func() error {
		return s.explain("listing runs", s.view(ctx, func(conn *sql.Conn) (err error) {
			runs, err = summaries(ctx, conn, where+" ORDER BY number DESC LIMIT ?", args...)
			if err == nil && len(runs) == 0 && where == "" {
				err = intact(ctx, conn)
			}
			for i := range runs {
				if err == nil && runs[i].Baseline == nil {
					runs[i].Baseline, err = measuredBaseline(ctx, conn, runs[i].ID)
				}
			}
			return err
		}))
	}
	if err := query(); err != nil {
		return nil, err
	}
	dead := map[string]bool{}
	for i := range runs {
		if s.dead(&runs[i]) {
			dead[runs[i].ID] = true
		}
	}
	if len(dead) == 0 {
		return runs, nil
	}
	// They may have ended well after they were read: only those that are still stored as running were interrupted.
	if err := query(); err != nil {
		return nil, err
	}
	for i := range runs {
		if runs[i].Status == Running && dead[runs[i].ID] {
			runs[i].Status = Interrupted
		}
	}
	return runs, nil
}

// IDs returns the ids of the runs that are chosen, the oldest first.
func (s *Store) IDs(ctx context.Context, f Filter) ([]string, error) {
	var ids []string
	where, args := f.clauses()
	err := s.view(ctx, func(conn *sql.Conn) (err error) {
		ids, err = texts(ctx, conn, "SELECT id FROM runs "+where+" ORDER BY number", args...)
		if err == nil && len(ids) == 0 && where == "" {
			err = intact(ctx, conn)
		}
		return err
	})
	return ids, s.explain("listing runs", err)
}

// Load returns all that is stored of the run with this id, which Resolve finds.
func (s *Store) Load(ctx context.Context, id string) (*Stored, error) {
	var run *Stored
	load := func() error {
		run = new(Stored)
		return s.explain("reading run "+id, s.view(ctx, func(conn *sql.Conn) error { return run.load(ctx, conn, id) }))
	}
	if err := load(); err != nil {
		return nil, err
	}
	if s.dead(&run.Summary) {
		// As in List.
		if err := load(); err != nil {
			return nil, err
		}
		if run.Status == Running {
			run.Status = Interrupted
		}
	}
	return run, nil
}

// dead reports whether a run is stored as running, but nothing keeps it going.
func (s *Store) dead(r *Summary) bool { return r.Status == Running && !s.alive(r.ID) }

func summaries(ctx context.Context, conn *sql.Conn, clauses string, args ...any) ([]Summary, error) {
	runs := []Summary{}
	err := each(ctx, conn, func(rows *sql.Rows) error {
		var r Summary
		var started string
		var finished, tags sql.NullString
		var session, change sql.NullString
		var median, low, high sql.Null[float64]
		err := rows.Scan(&r.ID, &tags, &r.Experiment, &r.Kind, &r.Status, &started, &finished, &r.Error, &r.Verdict, &r.Bottleneck,
			&median, &low, &high, &r.Hostname, &r.HostKey, &r.Version, &session, &change)
		if err != nil {
			return err
		}
		if r.Started, err = time.Parse(timeFormat, started); err != nil {
			return err
		}
		if finished.Valid {
			if r.Finished, err = time.Parse(timeFormat, finished.String); err != nil {
				return err
			}
		}
		if session.Valid {
			r.Part = &Part{Session: session.String, Change: change.String}
		}
		if tags.Valid {
			r.Tags = strings.Split(tags.String, "\n")
		}
		if median.Valid {
			r.Baseline = &bisect.Estimate{Median: median.V, Low: or(low, math.Inf(-1)), High: or(high, math.Inf(1))}
		}
		runs = append(runs, r)
		return nil
	}, `SELECT id, (SELECT group_concat(name, char(10) ORDER BY name) FROM tags WHERE run = number), experiment, kind, status,
		started, finished, error, verdict, bottleneck, baseline_median, baseline_low, baseline_high, hostname, host_key, version,
		session, change FROM runs LEFT JOIN parts ON run = number `+clauses, args...)
	return runs, err
}

// measuredBaseline sums up the rounds of the baseline that are stored of a run, which has no report. It returns nil where
// there are none.
func measuredBaseline(ctx context.Context, conn *sql.Conn, id string) (*bisect.Estimate, error) {
	var rates []float64
	err := each(ctx, conn, func(rows *sql.Rows) error {
		var iv engine.Interval
		err := rows.Scan(&iv.Steps, &iv.Elapsed)
		rates = append(rates, iv.Rate())
		return err
	}, `SELECT steps, elapsed FROM rounds JOIN probes USING (probe)
		WHERE run = (SELECT number FROM runs WHERE id = ?) AND cache_from = 0 AND cache_to = 0`, id)
	s := stats.Summarize(rates, unreportedConfidence)
	if s.N == 0 {
		return nil, err
	}
	return &bisect.Estimate{Median: s.Median, Low: s.Low, High: s.High}, err
}

func (run *Stored) load(ctx context.Context, conn *sql.Conn, id string) error {
	runs, err := summaries(ctx, conn, "WHERE id = ?", id)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		return errors.New("there is no such run")
	}
	run.Summary = runs[0]
	var number int64
	var args, seed, host string
	var report sql.NullString
	err = each(ctx, conn, func(rows *sql.Rows) (err error) {
		if err = rows.Scan(&number, &args, &seed, &run.Path, &run.File, &run.Fingerprint, &host, &report); err != nil {
			return err
		}
		if run.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
			return fmt.Errorf("its seed: %w", err)
		}
		if err := json.Unmarshal([]byte(args), &run.Args); err != nil {
			return fmt.Errorf("its command line: %w", err)
		}
		if err := json.Unmarshal([]byte(host), &run.Host); err != nil {
			return fmt.Errorf("its host: %w", err)
		}
		return nil
	}, "SELECT number, args, seed, path, file, fingerprint, host, report FROM runs WHERE id = ?", id)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		query string
		scan  func(*sql.Rows) error
	}{
		{"SELECT address, attribute, value FROM settings WHERE run = ? ORDER BY position", func(rows *sql.Rows) error {
			var v engine.Setting
			err := rows.Scan(&v.Address, &v.Attribute, &v.Value)
			run.Settings = append(run.Settings, v)
			return err
		}},
		{"SELECT address, checkpoint FROM stages WHERE run = ? ORDER BY position", func(rows *sql.Rows) error {
			var v Stage
			err := rows.Scan(&v.Address, &v.Checkpoint)
			run.Stages = append(run.Stages, v)
			return err
		}},
		{"SELECT address, item, name, reason FROM skipped WHERE run = ? ORDER BY item, address", func(rows *sql.Rows) error {
			var v engine.SkippedItem
			err := rows.Scan(&v.Address, &v.Index, &v.Item, &v.Reason)
			run.Skipped = append(run.Skipped, v)
			return err
		}},
		{"SELECT code, text FROM notes WHERE run = ? ORDER BY note", func(rows *sql.Rows) error {
			var v bisect.Note
			err := rows.Scan(&v.Code, &v.Text)
			run.Notes = append(run.Notes, v)
			return err
		}},
	} {
		if err := each(ctx, conn, part.scan, part.query, number); err != nil {
			return err
		}
	}
	if err := checkSeal(ctx, conn, number); err != nil {
		return err
	}
	if Fingerprint(run.Settings) != run.Fingerprint {
		return malformed{errors.New("its settings aren't those that were stored")}
	}
	if err := run.loadProbes(ctx, conn, number); err != nil {
		return err
	}
	if !report.Valid {
		return nil
	}
	run.Report = new(bisect.Report)
	if err := json.Unmarshal([]byte(report.String), run.Report); err != nil {
		return malformed{fmt.Errorf("its report: %w", err)}
	}
	for _, list := range [][]bisect.ProbeResult{run.Report.Probes, run.Report.Isolated} {
		for i := range list {
			if p := run.probe(list[i].Probe); p != nil {
				list[i].Rounds = p.Rounds
			}
		}
	}
	if c := run.Report.Control; c != nil {
		if p := run.probe(c.Probe); p != nil {
			c.Rounds = p.Rounds
		}
	}
	return nil
}

func (run *Stored) loadProbes(ctx context.Context, conn *sql.Conn, number int64) error {
	accounts := map[int64][]engine.Account{}
	err := each(ctx, conn, func(rows *sql.Rows) error {
		var a engine.Account
		var round int64
		var position int
		var queue sql.Null[float64]
		err := rows.Scan(&round, &position, &a.Address, &a.Workers, &a.Items, &a.Busy, &a.WaitIn, &a.WaitOut, &queue)
		if err == nil && position != len(accounts[round]) {
			err = fmt.Errorf("a round of it has no account at %d", len(accounts[round]))
		}
		a.Queue = or(queue, -1)
		accounts[round] = append(accounts[round], a)
		return err
	}, `SELECT round, position, address, workers, items, busy, wait_in, wait_out, queue
		FROM accounts JOIN rounds USING (round) JOIN probes USING (probe) WHERE run = ? ORDER BY round, position`, number)
	if err != nil {
		return err
	}
	return each(ctx, conn, func(rows *sql.Rows) error {
		var p engine.Probe
		var iv engine.Interval
		var round int64
		var started string
		var cpu, others, resident, frequency sql.Null[float64]
		var throttled sql.Null[time.Duration]
		var swapped, overheats sql.Null[int64]
		err := rows.Scan(&p.From, &p.To, &round, &started, &iv.Steps, &iv.Samples, &iv.Elapsed, &iv.FirstBatch, &iv.Starved, &iv.Skipped,
			&cpu, &others, &throttled, &swapped, &resident, &frequency, &overheats, &p.Burn)
		if err != nil {
			return err
		}
		if iv.Start, err = time.Parse(timeFormat, started); err != nil {
			return err
		}
		iv.CPU, iv.Others, iv.Throttled, iv.Swapped = or(cpu, -1), or(others, -1), or(throttled, -1), or(swapped, -1)
		iv.Resident, iv.Frequency, iv.Overheats = or(resident, -1), or(frequency, -1), or(overheats, -1)
		iv.Stages = accounts[round]
		probe := run.probe(p)
		if probe == nil {
			if p.From < 0 || p.From > p.To || p.To >= len(run.Stages) || p.Burn < 0 {
				return fmt.Errorf("its pipeline has no probe %v", p)
			}
			run.Probes = append(run.Probes, describe(p, run.Stages))
			probe = &run.Probes[len(run.Probes)-1]
		}
		probe.Rounds = append(probe.Rounds, iv)
		return nil
	}, `SELECT cache_from, cache_to, round, started, steps, samples, elapsed, first_batch, starved, skipped, cpu,
		others, throttled, swapped, resident, frequency, overheats, burn FROM rounds JOIN probes USING (probe) WHERE run = ? ORDER BY round`, number)
}

// probe returns the run's measurements of p, or nil.
func (run *Stored) probe(p engine.Probe) *Probe {
	i := slices.IndexFunc(run.Probes, func(q Probe) bool { return q.Probe == p })
	if i < 0 {
		return nil
	}
	return &run.Probes[i]
}

// querier is a transaction, or a connection in one.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// each calls f for each row of a query. f returns an error where the row can't be made sense of.
func each(ctx context.Context, db querier, f func(*sql.Rows) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows); err != nil {
			return malformed{err}
		}
	}
	return rows.Err()
}

// intact returns an error where the database is damaged. It reads all of it.
func intact(ctx context.Context, conn *sql.Conn) error {
	found, err := texts(ctx, conn, "PRAGMA integrity_check(1)")
	if err == nil && !slices.Equal(found, []string{"ok"}) {
		err = malformed{errors.New(strings.Join(found, "; "))}
	}
	return err
}

// or returns v, or what stands for NULL.
func or[T any](v sql.Null[T], unknown T) T {
	if !v.Valid {
		return unknown
	}
	return v.V
}
