package results

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/mattn/go-sqlite3"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// Start is what is known of a run when it begins.
type Start struct {
	Experiment *engine.Experiment
	Kind       Kind
	Args       []string // the command line, the program's name left out
	Version    string   // of pipectl
	Path       string   // of the experiment's file or folder
	File       string   // its text
	Host       Host
	Part       *Part // nil where it isn't part of another run's session
}

// Run is a run that is being stored. Its methods may be called from several goroutines. They take no context, because
// what was measured is to be kept when the session is cancelled; none waits for longer than a hanging process holds the
// database, and then returns an error.
type Run struct {
	store    *Store
	id       string
	number   int64
	pipeline []Stage
	lock     *os.File
}

// ID returns the run's id.
func (r *Run) ID() string { return r.id }

// Begin stores a new run, which counts as running until Finish is called or the process ends.
func (s *Store) Begin(ctx context.Context, start Start) (*Run, error) {
	r := &Run{store: s}
	for _, st := range start.Experiment.Stages {
		stage := Stage{Address: st.Address}
		if st.Checkpoint != nil {
			stage.Checkpoint = st.Checkpoint.Name
		}
		r.pipeline = append(r.pipeline, stage)
	}
	err := s.update(ctx, func(tx *sql.Tx) error { return r.begin(tx, start) })
	if err != nil {
		r.unlock()
		return nil, s.explain("storing a new run", err)
	}
	return r, nil
}

func (r *Run) begin(tx *sql.Tx, start Start) error {
	args, err := json.Marshal(slices.Concat([]string{}, start.Args))
	if err != nil {
		return err
	}
	host, err := json.Marshal(start.Host)
	if err != nil {
		return err
	}
	now := r.store.now()
	insert := func(id string) (sql.Result, error) {
		return tx.Exec(`INSERT INTO runs (id, experiment, kind, args, status, started, version, seed, path, file, fingerprint,
			hostname, host_key, host) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			id, start.Experiment.Name, start.Kind, string(args), Running, formatTime(now), start.Version,
			strconv.FormatUint(start.Experiment.Seed, 10), start.Path, start.File, Fingerprint(start.Experiment.Settings),
			start.Host.Hostname, start.Host.Key(), string(host))
	}
	r.id = newID(now, r.store.random())
	res, err := insert(r.id)
	for tries := 0; isUnique(err) && tries < 100; tries++ {
		r.id = newID(now, r.store.random())
		res, err = insert(r.id)
	}
	if err != nil {
		return err
	}
	if r.number, err = res.LastInsertId(); err != nil {
		return err
	}
	for i, st := range r.pipeline {
		_, err := tx.Exec("INSERT INTO stages (run, position, address, checkpoint) VALUES (?, ?, ?, ?)", r.number, i, st.Address, st.Checkpoint)
		if err != nil {
			return err
		}
	}
	for i, st := range start.Experiment.Settings {
		_, err := tx.Exec("INSERT INTO settings (run, position, address, attribute, value) VALUES (?, ?, ?, ?, ?)",
			r.number, i, st.Address, st.Attribute, st.Value)
		if err != nil {
			return err
		}
	}
	if p := start.Part; p != nil {
		if _, err := tx.Exec("INSERT INTO parts (run, session, change) VALUES (?, ?, ?)", r.number, p.Session, p.Change); err != nil {
			return err
		}
	}
	r.store.sweep()
	// Before the row can be seen: who sees it must find the lock taken.
	r.lock, err = r.store.lock(r.id)
	return err
}

func (r *Run) unlock() {
	if r.lock == nil {
		return
	}
	os.Remove(r.lock.Name())
	r.lock.Close()
	r.lock = nil
}

// SetHost stores what is known of the host by now in place of what was known when the run began.
func (r *Run) SetHost(h Host) error {
	host, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encoding the host of run %s: %w", r.id, err)
	}
	return r.store.explain("storing the host of run "+r.id, r.store.update(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec("UPDATE runs SET hostname = ?, host_key = ?, host = ? WHERE number = ?", h.Hostname, h.Key(), string(host), r.number)
		return err
	}))
}

// AddInterval stores a measured interval of a probe of the run's pipeline.
func (r *Run) AddInterval(p engine.Probe, iv engine.Interval) error {
	doing := fmt.Sprintf("storing an interval of run %s (%v)", r.id, p)
	if p.From < 0 || p.From > p.To || p.To >= len(r.pipeline) || p.Burn < 0 {
		return fmt.Errorf("%s: the pipeline has no such probe", doing)
	}
	return r.store.explain(doing, r.store.update(context.Background(), func(tx *sql.Tx) error {
		if _, err := tx.Exec("INSERT INTO probes (run, cache_from, cache_to) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", r.number, p.From, p.To); err != nil {
			return err
		}
		res, err := tx.Exec(`INSERT INTO rounds (probe, started, steps, samples, elapsed, first_batch, starved, skipped, cpu, others, throttled, swapped,
			resident, frequency, overheats, burn)
			SELECT probe, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM probes WHERE run = ? AND cache_from = ? AND cache_to = ?`,
			formatTime(iv.Start), iv.Steps, iv.Samples, iv.Elapsed, iv.FirstBatch, iv.Starved, iv.Skipped, known(iv.CPU), known(iv.Others), known(iv.Throttled), known(iv.Swapped),
			known(iv.Resident), known(iv.Frequency), known(iv.Overheats), p.Burn, r.number, p.From, p.To)
		if err != nil {
			return err
		}
		round, err := res.LastInsertId()
		if err != nil {
			return err
		}
		for i, a := range iv.Stages {
			_, err := tx.Exec(`INSERT INTO accounts (round, position, address, workers, items, busy, wait_in, wait_out, queue)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, round, i, a.Address, a.Workers, a.Items, a.Busy, a.WaitIn, a.WaitOut, known(a.Queue))
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// DropIntervals takes out the intervals that were stored so far, since they are measured again.
func (r *Run) DropIntervals() error {
	return r.store.explain("taking out intervals of run "+r.id, r.store.update(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.Exec("DELETE FROM probes WHERE run = ?", r.number)
		return err
	}))
}

// AddSkipped stores items that were left out. Of an item that a stage fails on again, the first failure is kept.
func (r *Run) AddSkipped(items ...engine.SkippedItem) error {
	return r.store.explain("storing skipped items of run "+r.id, r.store.update(context.Background(), func(tx *sql.Tx) error {
		for _, it := range items {
			_, err := tx.Exec("INSERT INTO skipped (run, address, item, name, reason) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", r.number, it.Address, it.Index, it.Item, it.Reason)
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// AddNote stores a note. Of notes that are the same, one is kept.
func (r *Run) AddNote(n bisect.Note) error {
	return r.store.explain("storing a note of run "+r.id, r.store.update(context.Background(), func(tx *sql.Tx) error {
		return r.addNote(tx, n)
	}))
}

func (r *Run) addNote(tx *sql.Tx, n bisect.Note) error {
	_, err := tx.Exec("INSERT INTO notes (run, code, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", r.number, n.Code, n.Text)
	return err
}

// Finish seals the run, to which nothing is added any more, and stores how it ended: its report, nil if it has none, and the error that ended it, nil if it has none. The
// report's rounds are those that were added. A report that can't be encoded is an error, but the rest is stored.
func (r *Run) Finish(report *bisect.Report, status Status, failure error) error {
	encoded, reportErr := encodeReport(report)
	err := r.store.update(context.Background(), func(tx *sql.Tx) error {
		var message string
		if failure != nil {
			message = failure.Error()
		}
		_, err := tx.Exec("UPDATE runs SET status = ?, finished = ?, error = ?, report = ? WHERE number = ?",
			status, formatTime(r.store.now()), message, encoded, r.number)
		if err == nil && report != nil {
			err = r.conclude(tx, report)
		}
		if err != nil {
			return err
		}
		sum, err := seal(context.Background(), tx, r.number)
		if err != nil {
			return err
		}
		_, err = tx.Exec("UPDATE runs SET seal = ? WHERE number = ?", sum, r.number)
		return err
	})
	if err == nil {
		r.unlock()
	}
	return r.store.explain("storing the end of run "+r.id, errors.Join(reportErr, err))
}

// conclude stores what of a report has columns and tables of its own.
func (r *Run) conclude(tx *sql.Tx, report *bisect.Report) error {
	base := estimateColumns(report.Baseline)
	_, err := tx.Exec("UPDATE runs SET verdict = ?, bottleneck = ?, baseline_median = ?, baseline_low = ?, baseline_high = ? WHERE number = ?",
		report.Verdict, report.Bottleneck, base[0], base[1], base[2], r.number)
	if err != nil {
		return err
	}
	for _, n := range report.Notes {
		if err := r.addNote(tx, n); err != nil {
			return err
		}
	}
	return nil
}

// encodeReport leaves out the rounds, which have tables of their own.
func encodeReport(report *bisect.Report) (*string, error) {
	if report == nil {
		return nil, nil
	}
	lean := *report
	lean.Probes, lean.Isolated = slices.Clone(report.Probes), slices.Clone(report.Isolated)
	for _, list := range [][]bisect.ProbeResult{lean.Probes, lean.Isolated} {
		for i := range list {
			list[i].Rounds = nil
		}
	}
	if report.Control != nil {
		control := *report.Control
		control.Rounds, lean.Control = nil, &control
	}
	data, err := json.Marshal(lean)
	if err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	text := string(data)
	return &text, nil
}

// Fingerprint identifies settings: it is the same for files that say the same in other words.
func Fingerprint(settings []engine.Setting) string {
	h := sha256.New()
	for _, s := range settings {
		fmt.Fprintf(h, "%q %q %q\n", s.Address, s.Attribute, s.Value)
	}
	return hex.EncodeToString(h.Sum(nil))
}

const timeFormat = "2006-01-02T15:04:05.000000000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeFormat) }

// known returns NULL for a negative number, which stands for unknown where only 0 and more have a meaning.
func known[T float64 | int64 | time.Duration](v T) sql.Null[T] {
	return sql.Null[T]{V: v, Valid: v >= 0}
}

// estimateColumns returns NULL for what is infinite or not a number: an interval's end that isn't known.
func estimateColumns(e *bisect.Estimate) [3]sql.NullFloat64 {
	if e == nil {
		return [3]sql.NullFloat64{}
	}
	var columns [3]sql.NullFloat64
	for i, v := range []float64{e.Median, e.Low, e.High} {
		columns[i] = sql.NullFloat64{Float64: v, Valid: !math.IsInf(v, 0) && !math.IsNaN(v)}
	}
	return columns
}

func isUnique(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.ExtendedCode == sqlite3.ErrConstraintUnique
}
