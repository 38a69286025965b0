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

const (
	// versionRuns is how many runs stand for a version at most, the newest. More say hardly more, and older ones speak of a machine
	// as it was.
	versionRuns = 50
	// recentRuns is among how many of an experiment's runs, the latest, its versions are looked for: each takes a page to read.
	recentRuns = 500
)

// Version returns the ids of the runs of a version, the oldest first. A version of an experiment is made of its runs that have the
// same settings, pipectl and kind of host; those are counted that are done and have measured something, among the latest runs. ref is "" for the
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
		names, err := texts(ctx, conn, "SELECT DISTINCT experiment FROM runs ORDER BY experiment")
		switch {
		case err != nil:
			return err
		case len(names) == 0:
			return errors.New("no runs are stored yet")
		case experiment != "" && !slices.Contains(names, experiment):
			return fmt.Errorf("there are no runs of experiment %q%s", experiment, didYouMean(experiment, names))
		case experiment != "":
			names = []string{experiment}
		}
		ids = nil
		found := uint64(0)
		for _, name := range names {
			list, err := versions(ctx, conn, name)
			if err != nil {
				return err
			}
			if n < uint64(len(list)) {
				ids = append(ids, list[n]...)
			}
			found = max(found, uint64(len(list)))
		}
		switch {
		case len(ids) > 0:
		case found == 0:
			return errors.New("no runs that are done and measured something are among the latest")
		case found == 1:
			return errors.New("there is only one version")
		default:
			return fmt.Errorf("there are only %d versions", found)
		}
		return nil
	})
	return ids, s.explain(fmt.Sprintf("finding the runs of %q", "@"+ref), err)
}

// versions returns the ids of the runs of each version of an experiment: the newest version first, its oldest run first.
func versions(ctx context.Context, conn *sql.Conn, experiment string) ([][]string, error) {
	type version struct{ fingerprint, pipectl, host string }
	var order []version
	runs := map[version][]string{}
	err := each(ctx, conn, func(rows *sql.Rows) error {
		var id string
		var v version
		if err := rows.Scan(&id, &v.fingerprint, &v.pipectl, &v.host); err != nil {
			return err
		}
		if runs[v] == nil {
			order = append(order, v)
		}
		if len(runs[v]) < versionRuns {
			runs[v] = append(runs[v], id)
		}
		return nil
	}, `SELECT id, fingerprint, version, host_key FROM (SELECT * FROM runs WHERE experiment = ? ORDER BY number DESC LIMIT ?)
		WHERE status = 'done' AND kind <> 'epochs' AND number NOT IN (SELECT run FROM parts) ORDER BY number DESC`, experiment, recentRuns)
	var list [][]string
	for _, v := range order {
		slices.Reverse(runs[v])
		list = append(list, runs[v])
	}
	return list, err
}
