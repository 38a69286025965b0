package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// tagsView is the output of `pipectl tag`.
type tagsView struct {
	FormatVersion int       `json:"format_version"`
	Type          string    `json:"type"` // "tags"
	Tags          []tagView `json:"tags"` // all, or those that were set or removed
}

type tagView struct {
	Name string   `json:"name"`
	Runs []string `json:"runs"` // the oldest first
}

func newTagsView(tags []results.Tag) tagsView {
	v := tagsView{formatVersion, "tags", []tagView{}}
	for _, t := range tags {
		v.Tags = append(v.Tags, tagView(t))
	}
	return v
}

// tagOptions are what the flags of `pipectl tag` say.
type tagOptions struct {
	experiment         string
	remove, move, join bool
}

func newTagCommand(s *state) *cobra.Command {
	var o tagOptions
	cmd := &cobra.Command{
		Use:   "tag [RUN NAME…]",
		Short: "Name stored runs, or list the names",
		Long: `Give stored runs names, which stand for them wherever a run is named. Without arguments, list the names.

RUN is an id, the start of one, a tag, "latest", "latest~N" for the Nth before it, "@NAME" for the newest version of an experiment, or
several of these with commas between. A tag that names several runs is a column of ` + "`pipectl compare`" + `, which takes them for samples
of one version.

A name has letters, digits and . _ + / - in it.`,
		Example: `  pipectl tag latest before
  pipectl tag @photos main
  pipectl tag --add latest main
  pipectl compare main latest
  pipectl tag -d before`,
		ValidArgsFunction: s.completeRuns(math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.openStored(cmd.Context())
			if len(args) == 0 && !o.remove && errors.Is(err, results.ErrNoDatabase) {
				return s.showTags(cmd.Context(), nil)
			}
			if err != nil {
				return err
			}
			defer store.Close()
			switch {
			case o.remove && len(args) == 0:
				return usagef("-d: name the tags to remove")
			case o.remove:
				tags, err := store.Untag(cmd.Context(), args)
				return s.tagged(tags, err, func(t results.Tag) string {
					return fmt.Sprintf("Removed tag %s (was %s).\n", t.Name, someRuns(t.Runs))
				})
			case len(args) == 0 && (o.move || o.join):
				return usagef("name a run and its tags")
			case len(args) == 0:
				return s.showTags(cmd.Context(), store)
			case len(args) == 1:
				return usagef("%s: name the tags that it gets, as in `pipectl tag latest before`", args[0])
			}
			return s.tag(cmd.Context(), store, args[0], args[1:], o)
		},
	}
	cmd.Flags().BoolVarP(&o.remove, "delete", "d", false, "remove the named tags; the runs stay")
	cmd.Flags().BoolVarP(&o.move, "force", "f", false, "move tags that name other runs")
	cmd.Flags().BoolVarP(&o.join, "add", "a", false, "let tags name RUN beside the runs that they name already")
	cmd.Flags().StringVarP(&o.experiment, "experiment", "e", "", "count \"latest\" among the runs of one experiment")
	cmd.MarkFlagsMutuallyExclusive("delete", "force", "add")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// tag gives the runs that a reference stands for names.
func (s *state) tag(ctx context.Context, store *results.Store, run string, names []string, o tagOptions) error {
	for _, name := range names {
		if err := results.CheckTag(name); err != nil {
			return usagef("tag %q: %w", name, err)
		}
	}
	ids, err := selectIDs(ctx, store, o.experiment, run)
	if err != nil {
		return err
	}
	mode := results.NewTag
	switch {
	case o.move:
		mode = results.MoveTag
	case o.join:
		mode = results.AddTag
	}
	tags, err := store.Tag(ctx, ids, names, mode)
	if errors.Is(err, results.ErrTagged) {
		err = fmt.Errorf("%w; --force moves it, --add lets it name all of them", err)
	}
	return s.tagged(tags, err, func(t results.Tag) string { return fmt.Sprintf("Tag %s names %s.\n", t.Name, someRuns(t.Runs)) })
}

// tagged tells what became of tags.
func (s *state) tagged(tags []results.Tag, err error, text func(results.Tag) string) error {
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(newTagsView(tags))
	}
	for _, t := range tags {
		fmt.Fprint(s.stdout, text(t))
	}
	return nil
}

// someRuns words which runs a tag names.
func someRuns(ids []string) string {
	const most = 5
	if len(ids) > most {
		return fmt.Sprintf("%d runs", len(ids))
	}
	return strings.Join(ids, ", ")
}

// showTags lists all tags of a store, which is nil where there is none.
func (s *state) showTags(ctx context.Context, store *results.Store) error {
	var tags []results.Tag
	var runs []results.Summary
	if store != nil {
		var err error
		if tags, err = store.Tags(ctx); err != nil {
			return err
		}
		newest := []string{}
		for _, t := range tags {
			newest = append(newest, t.Runs[len(t.Runs)-1])
		}
		if runs, err = store.List(ctx, results.Filter{Sessions: newest}, 0); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		return s.writeJSON(newTagsView(tags))
	case len(tags) == 0:
		fmt.Fprintln(s.Err, "There are no tags. `pipectl tag RUN NAME` names a run.")
	default:
		writeTags(s.stdout, s.outTerm, tags, runs, time.Now())
	}
	return nil
}

// writeTags shows tags as a table, with their newest runs, which are among those given. now is the time that the reader sees it at.
func writeTags(w io.Writer, term ui.Terminal, tags []results.Tag, runs []results.Summary, now time.Time) {
	t := ui.Table{Columns: []ui.Column{
		{Head: "tag", Min: 10}, {Head: "runs", Right: true}, {Head: "newest"}, {Head: "started"}, {Head: "experiment", Min: 10}, {Head: "result"},
		{Head: "steps/s", Right: true},
	}}
	for _, tag := range tags {
		id := tag.Runs[len(tag.Runs)-1]
		cells := []ui.Cell{{Text: tag.Name, Style: ui.Strong}, {Text: fmt.Sprint(len(tag.Runs))}, {Text: id}}
		if i := slices.IndexFunc(runs, func(r results.Summary) bool { return r.ID == id }); i >= 0 {
			result, style := resultText(&runs[i])
			cells = append(cells, ui.Cell{Text: ui.Ago(runs[i].Started, now)}, ui.Cell{Text: runs[i].Experiment},
				ui.Cell{Text: result, Style: style}, ui.Cell{Text: baselineText(&runs[i])})
		}
		t.Row(cells...)
	}
	fmt.Fprint(w, t.Render(term))
}

// selectIDs returns the ids of the runs that references stand for, each once. A reference may be several with commas between.
func selectIDs(ctx context.Context, store *results.Store, experiment string, refs ...string) ([]string, error) {
	var ids []string
	for _, ref := range refs {
		for part := range strings.SplitSeq(ref, ",") {
			found, err := store.Select(ctx, part, experiment)
			if err != nil {
				return nil, err
			}
			for _, id := range found {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids, nil
}
