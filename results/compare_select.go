package results

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// versionRuns is how many runs stand for a version at most, the newest. More say hardly more, and older ones speak of a machine
// as it was.
const versionRuns = 50

// Version returns the ids of the runs of a version, the oldest first. A version of an experiment is made of its runs that have the
// same settings, pipectl and kind of host; those are counted that are done and have measured something. ref is "" for the
// newest version of every experiment, "photos" for that of one, and "photos~1" for the one before that. An error says what there
// is instead.
func (s *Store) Version(ctx context.Context, ref string) ([]string, error) {
	var ids []string
	err := s.view(ctx, func(conn *sql.Conn) error {
		experiment, back, counted := strings.Cut(ref, "~")
		n := uint64(0)
		if counted {
			var err error
			if n, err = strconv.ParseUint(back, 10, 31); err != nil {
				return errors.New(`after "~" comes a number, as in @photos~1`)
			}
		}
		known, err := texts(ctx, conn, "SELECT DISTINCT experiment FROM runs WHERE "+measured+" ORDER BY experiment")
		switch {
		case err != nil:
			return err
		case len(known) == 0:
			return errors.New("no runs that are done are stored yet")
		case experiment != "" && !slices.Contains(known, experiment):
			return fmt.Errorf("there are no runs of experiment %q that are done%s", experiment, didYouMean(experiment, known))
		case experiment != "":
			known = []string{experiment}
		}
		ids = nil
		for _, name := range known {
			runs, err := version(ctx, conn, name, n)
			if err != nil {
				return err
			}
			ids = append(ids, runs...)
		}
		if len(ids) == 0 {
			return errors.New("no experiment has so many versions")
		}
		return nil
	})
	return ids, s.explain(fmt.Sprintf("finding the runs of %q", "@"+ref), err)
}

// measured is the condition for runs that stand for their version.
const measured = "status = 'done' AND kind <> 'epochs'"

// version returns the ids of the runs of the nth version of an experiment before its newest; none where there are fewer.
func version(ctx context.Context, conn *sql.Conn, experiment string, n uint64) ([]string, error) {
	newest, err := texts(ctx, conn, `SELECT max(number) FROM runs WHERE experiment = ? AND `+measured+`
		GROUP BY fingerprint, version, host_key ORDER BY 1 DESC LIMIT 1 OFFSET ?`, experiment, n)
	if err != nil || len(newest) == 0 {
		return nil, err
	}
	ids, err := texts(ctx, conn, `SELECT id FROM runs WHERE experiment = ?1 AND `+measured+`
		AND (fingerprint, version, host_key) = (SELECT fingerprint, version, host_key FROM runs WHERE number = ?2)
		ORDER BY number DESC LIMIT ?3`, experiment, newest[0], versionRuns)
	slices.Reverse(ids)
	return ids, err
}
