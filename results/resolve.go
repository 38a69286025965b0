package results

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
)

// Resolve returns the id of the run that ref stands for, as Select, where that is a single one.
func (s *Store) Resolve(ctx context.Context, ref, experiment string) (string, error) {
	ids, err := s.Select(ctx, ref, experiment)
	switch {
	case err != nil:
		return "", err
	case len(ids) > 1:
		return "", s.explain(fmt.Sprintf("finding run %q", ref), fmt.Errorf("it stands for %d runs: give one of them (%s)", len(ids), someOf(ids)))
	}
	return ids[0], nil
}

// Select returns the ids of the runs that ref stands for: an id, the start of one that no other run shares, a tag, "latest",
// "latest~N" for the Nth before it, or "@" with a version, as Version takes it. A tag and a version stand for one run or several, the
// oldest first. "latest" counts the runs of one experiment, or of all where experiment is "", without those that are parts of
// others' sessions. An error says what there is instead.
func (s *Store) Select(ctx context.Context, ref, experiment string) (ids []string, err error) {
	if version, ok := strings.CutPrefix(ref, "@"); ok {
		return s.Version(ctx, version)
	}
	err = s.view(ctx, func(conn *sql.Conn) (err error) {
		if back, ok := strings.CutPrefix(ref, "latest"); ok && (back == "" || back[0] == '~') {
			ids, err = latest(ctx, conn, back, experiment)
		} else {
			ids, err = named(ctx, conn, ref)
		}
		return err
	})
	return ids, s.explain(fmt.Sprintf("finding run %q", ref), err)
}

func latest(ctx context.Context, conn *sql.Conn, back, experiment string) ([]string, error) {
	var n uint64
	if back != "" {
		var err error
		if n, err = strconv.ParseUint(back[1:], 10, 31); err != nil {
			return nil, errors.New(`after "latest~" comes a number, as in latest~1`)
		}
	}
	// The numbers are counted in an index, where they lie close together.
	const whole = "NOT EXISTS (SELECT 1 FROM parts WHERE run = number)"
	from, args, of := "runs INDEXED BY runs_in_order WHERE "+whole, []any{}, ""
	if experiment != "" {
		from, args, of = "runs WHERE experiment = ? AND "+whole, []any{experiment}, fmt.Sprintf(" of experiment %q", experiment)
	}
	query := "SELECT id FROM runs WHERE number = (SELECT number FROM " + from + " ORDER BY number DESC LIMIT 1 OFFSET ?)"
	ids, err := texts(ctx, conn, query, append(args, n)...)
	if err != nil || len(ids) == 1 {
		return ids, err
	}
	var count int
	if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM "+from, args...).Scan(&count); err != nil {
		return nil, err
	}
	switch {
	case count == 1:
		return nil, fmt.Errorf("there is only one run%s", of)
	case count > 0:
		return nil, fmt.Errorf("there are only %d runs%s", count, of)
	case experiment == "":
		return nil, cmp.Or(intact(ctx, conn), errors.New("no runs are stored yet"))
	}
	others, err := texts(ctx, conn, "SELECT DISTINCT experiment FROM runs ORDER BY experiment")
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("there are no runs%s%s", of, didYouMean(experiment, others))
}

// named finds the runs of a tag, or a run by its id.
func named(ctx context.Context, conn *sql.Conn, ref string) ([]string, error) {
	ids, err := tagged(ctx, conn, ref)
	if err != nil || len(ids) > 0 {
		return ids, err
	}
	ids, err = startingWith(ctx, conn, ref, 4)
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 1:
		return ids, nil
	case len(ids) > 3:
		ids[3] = "…"
		fallthrough
	case len(ids) > 1:
		return nil, fmt.Errorf("several runs' ids start so: give more of it (%s)", strings.Join(ids, ", "))
	}
	known, err := texts(ctx, conn, `SELECT DISTINCT name FROM tags UNION ALL SELECT 'latest' UNION ALL
		SELECT * FROM (SELECT id FROM runs ORDER BY number DESC LIMIT 100)`)
	if err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("there is no run with this id or tag%s", didYouMean(ref, known))
}

// startingWith returns the ids of the runs whose ids start so, the newest first, most at most.
func startingWith(ctx context.Context, db querier, text string, most int) ([]string, error) {
	start := normalizeID(text)
	if start == "" {
		return nil, nil
	}
	// "~" sorts after every character of an id.
	return texts(ctx, db, "SELECT id FROM runs WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id DESC LIMIT ?2", start, most)
}

// didYouMean returns an ending for a message about a name that isn't among those known.
func didYouMean(name string, known []string) string {
	distance := func(k string) int { return levenshtein.Distance(name, k, nil) }
	if len(known) == 0 {
		return ""
	}
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(distance(a), distance(b)) })
	if distance(best) > (len(name)+1)/3 {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// texts returns the first column of a query.
func texts(ctx context.Context, db querier, query string, args ...any) ([]string, error) {
	var out []string
	err := each(ctx, db, func(rows *sql.Rows) error {
		var v string
		err := rows.Scan(&v)
		out = append(out, v)
		return err
	}, query, args...)
	return out, err
}
