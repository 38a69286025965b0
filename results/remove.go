package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrRunning is returned by Remove for a run that goes on.
var ErrRunning = errors.New("it is still being measured")

// removedAtOnce is how many runs a transaction removes at most, so that a run that goes on needn't wait long to store what it
// measured.
const removedAtOnce = 200

// Remove removes the runs with these ids, with all that is stored of them. Each is removed as a whole or not at all, and all of
// them where they are few; on an error, it returns how many were. It doesn't remove what goes on.
func (s *Store) Remove(ctx context.Context, ids []string) (removed int, err error) {
	for chunk := range slices.Chunk(ids, removedAtOnce) {
		err := s.update(ctx, func(tx *sql.Tx) error {
			for _, id := range chunk {
				status, err := texts(ctx, tx, "SELECT status FROM runs WHERE id = ?", id)
				if err != nil {
					return err
				}
				// No other process is between storing a run and locking it while this one writes.
				if slices.Contains(status, string(Running)) && s.alive(id) {
					return fmt.Errorf("run %s: %w: end it first", id, ErrRunning)
				}
				if _, err := tx.ExecContext(ctx, "DELETE FROM runs WHERE id = ?", id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return removed, s.explain("removing runs", err)
		}
		removed += len(chunk)
	}
	return removed, nil
}

// A database's file is made smaller where that much of it is free, and it is worth while.
const (
	freeShare = 4 // one part in so many
	freeBytes = 1 << 20
)

// Compact gives the space that removed runs have left in the file back to the file system, where it is much. That takes as much
// space as what is left, for as long as it lasts, and no run can be stored meanwhile: while one goes on, nothing is done.
func (s *Store) Compact(ctx context.Context) error {
	return s.explain("making the file smaller", func() error {
		running, err := texts(ctx, s.db, "SELECT id FROM runs WHERE status = 'running'")
		if err != nil || slices.ContainsFunc(running, s.alive) {
			return err
		}
		var free, pages, size int64
		err = s.db.QueryRowContext(ctx, "SELECT * FROM pragma_freelist_count, pragma_page_count, pragma_page_size").Scan(&free, &pages, &size)
		if err != nil || free*freeShare < pages || free*size < freeBytes {
			return err
		}
		_, err = s.db.ExecContext(ctx, "VACUUM")
		return err
	}())
}

// Expired says which runs aren't wanted any more: those that began before a time, and those with so many newer ones of the same
// experiment. Where both are given, both must hold.
type Expired struct {
	Experiment string    // "": all
	Before     time.Time // zero: any time
	Keep       int       // the newest of each experiment are kept; parts of sessions aren't counted
}

// Of returns those of runs, the newest first, that are expired, with the parts of their sessions. Runs with tags are wanted, as are
// runs that go on, and sessions with such parts.
func (e Expired) Of(runs []Summary) []Summary {
	newer := map[string]int{} // runs of each experiment that were seen already
	expired, wanted := map[string]bool{}, map[string]bool{}
	for i := range runs {
		r := &runs[i]
		if r.Status == Running || len(r.Tags) > 0 {
			wanted[r.session()] = true
		}
		if r.Part == nil {
			newer[r.Experiment]++
			expired[r.ID] = newer[r.Experiment] > e.Keep && (e.Before.IsZero() || r.Started.Before(e.Before)) &&
				(e.Experiment == "" || e.Experiment == r.Experiment)
		}
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r Summary) bool { return !expired[r.session()] || wanted[r.session()] })
}

// session returns the id of the run whose session it belongs to, which may be its own.
func (s *Summary) session() string {
	if s.Part != nil {
		return s.Part.Session
	}
	return s.ID
}
