package results

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrTagged is returned by Tag for a name that stands for other runs.
var ErrTagged = errors.New("the tag names other runs")

// Tag is a name that a user gave to a run, or to several that count as samples of one version.
type Tag struct {
	Name string
	Runs []string // ids, the oldest run first
}

// TagMode says what becomes of a tag that stands for other runs already.
type TagMode int

// The modes.
const (
	NewTag  TagMode = iota // it is an error
	MoveTag                // it no longer stands for them
	AddTag                 // it stands for all of them
)

// tagLength is the longest name that a tag can have, in characters.
const tagLength = 80

// CheckTag returns an error where name can't be a tag's: where it could be taken for an id, "latest", a version of an experiment,
// a list of runs, a flag or a database.
func CheckTag(name string) error {
	odd := strings.IndexFunc(name, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+/-", r)
	})
	first, _ := utf8.DecodeRuneInString(name)
	switch {
	case name == "":
		return errors.New("a tag's name can't be empty")
	case odd >= 0:
		r, _ := utf8.DecodeRuneInString(name[odd:])
		return fmt.Errorf("a tag's name can't have %q in it: take letters, digits and . _ + / -", r)
	case !unicode.IsLetter(first) && !unicode.IsDigit(first):
		return errors.New("a tag's name begins with a letter or a digit")
	case utf8.RuneCountInString(name) > tagLength:
		return fmt.Errorf("a tag's name has %d characters at most", tagLength)
	case strings.EqualFold(name, "latest"):
		return errors.New("latest stands for the latest run")
	case strings.HasSuffix(name, ".db"):
		return errors.New("what ends in .db is taken for a database")
	case len(name) == idLength && normalizeID(name) != "" && strings.ContainsAny(name, "0123456789"):
		return errors.New("it looks like a run's id")
	}
	return nil
}

// Tags returns all tags in the order of their names.
func (s *Store) Tags(ctx context.Context) ([]Tag, error) {
	tags := []Tag{}
	err := s.view(ctx, func(conn *sql.Conn) error {
		return each(ctx, conn, func(rows *sql.Rows) error {
			var name, run string
			err := rows.Scan(&name, &run)
			if n := len(tags); n == 0 || tags[n-1].Name != name {
				tags = append(tags, Tag{Name: name})
			}
			last := &tags[len(tags)-1]
			last.Runs = append(last.Runs, run)
			return err
		}, "SELECT name, id FROM tags JOIN runs ON run = number ORDER BY name, run")
	})
	return tags, s.explain("listing tags", err)
}

// Tag makes each of the names stand for the runs with these ids, or none where one of them can't be. Names are as CheckTag
// wants them. It returns the tags as they are then.
func (s *Store) Tag(ctx context.Context, ids, names []string, mode TagMode) ([]Tag, error) {
	var tags []Tag
	err := s.update(ctx, func(tx *sql.Tx) error {
		for _, name := range names {
			tag, err := setTag(ctx, tx, ids, name, mode)
			if err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			tags = append(tags, tag)
		}
		return nil
	})
	if err != nil {
		tags = nil
	}
	return tags, s.explain("tagging runs", err)
}

func setTag(ctx context.Context, tx *sql.Tx, ids []string, name string, mode TagMode) (Tag, error) {
	if err := CheckTag(name); err != nil {
		return Tag{}, err
	}
	before, err := tagged(ctx, tx, name)
	if err != nil {
		return Tag{}, err
	}
	if len(before) == 0 {
		run, err := startingWith(ctx, tx, name, 1)
		switch {
		case err != nil:
			return Tag{}, err
		case len(run) > 0:
			return Tag{}, fmt.Errorf("it could be taken for run %s, whose id begins so: take another name", run[0])
		}
	}
	others := slices.ContainsFunc(before, func(id string) bool { return !slices.Contains(ids, id) })
	switch {
	case others && mode == NewTag:
		return Tag{}, fmt.Errorf("%w (%s)", ErrTagged, someOf(before))
	case others && mode == MoveTag:
		if _, err := tx.ExecContext(ctx, "DELETE FROM tags WHERE name = ?", name); err != nil {
			return Tag{}, err
		}
	}
	for _, id := range ids {
		done, err := tx.ExecContext(ctx, "INSERT INTO tags SELECT ?, number FROM runs WHERE id = ? ON CONFLICT DO UPDATE SET name = name", name, id)
		if err != nil {
			return Tag{}, err
		}
		if n, err := done.RowsAffected(); n == 0 || err != nil {
			return Tag{}, cmp.Or(err, fmt.Errorf("there is no run %s any more", id))
		}
	}
	after, err := tagged(ctx, tx, name)
	return Tag{name, after}, err
}

// Untag removes tags, or none where there isn't one of them. The runs stay. It returns the tags as they were.
func (s *Store) Untag(ctx context.Context, names []string) ([]Tag, error) {
	var tags []Tag
	err := s.update(ctx, func(tx *sql.Tx) error {
		for _, name := range names {
			runs, err := tagged(ctx, tx, name)
			if err != nil {
				return err
			}
			if len(runs) == 0 {
				known, err := texts(ctx, tx, "SELECT DISTINCT name FROM tags")
				return cmp.Or(err, fmt.Errorf("there is no tag %q%s", name, didYouMean(name, known)))
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM tags WHERE name = ?", name); err != nil {
				return err
			}
			tags = append(tags, Tag{name, runs})
		}
		return nil
	})
	if err != nil {
		tags = nil
	}
	return tags, s.explain("removing tags", err)
}

// tagged returns the ids of the runs that a tag stands for, the oldest first; none where there is no such tag.
func tagged(ctx context.Context, db querier, name string) ([]string, error) {
	return texts(ctx, db, "SELECT id FROM tags JOIN runs ON run = number WHERE name = ? ORDER BY run", name)
}

// someOf returns a list of ids for a message, cut short.
func someOf(ids []string) string {
	if len(ids) > 4 {
		return strings.Join(ids[:3], ", ") + ", …"
	}
	return strings.Join(ids, ", ")
}
