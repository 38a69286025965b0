package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// listView is the output of `pipectl list`.
type listView struct {
	FormatVersion int           `json:"format_version"`
	Type          string        `json:"type"` // "list"
	Runs          []summaryView `json:"runs"` // the newest first
}

func newListView(runs []results.Summary) listView {
	v := listView{formatVersion, "list", []summaryView{}}
	for i := range runs {
		v.Runs = append(v.Runs, newSummaryView(&runs[i]))
	}
	return v
}

func newListCommand(s *state) *cobra.Command {
	var filter results.Filter
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the stored runs, the newest first",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("-n %d: want a number of runs, or 0 for all", limit)
			}
			runs, err := s.listRuns(cmd.Context(), filter, limit)
			if err != nil {
				return err
			}
			if s.json {
				return s.writeJSON(newListView(runs))
			}
			if len(runs) > 0 {
				writeList(s.stdout, s.outTerm, runs, time.Now())
			}
			return nil
		},
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "list so many runs at most; 0: all")
	cmd.Flags().StringVarP(&filter.Experiment, "experiment", "e", "", "list the runs of one experiment")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// listRuns returns the newest runs. Where there are none it says so on the standard error stream: that is no error.
func (s *state) listRuns(ctx context.Context, filter results.Filter, limit int) ([]results.Summary, error) {
	store, err := s.openStore(ctx)
	if errors.Is(err, results.ErrNoDatabase) {
		fmt.Fprintf(s.Err, "No runs are stored in %s yet. `pipectl run` measures a pipeline and stores the first; --db names another database.\n", s.databasePath("."))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer store.Close()
	runs, err := store.List(ctx, filter, limit)
	switch {
	case err != nil || len(runs) > 0:
	case filter.Experiment != "":
		fmt.Fprintf(s.Err, "No runs of experiment %q are stored in %s.\n", filter.Experiment, store.Path())
	default:
		fmt.Fprintf(s.Err, "No runs are stored in %s yet. `pipectl run` measures a pipeline and stores the first.\n", store.Path())
	}
	return runs, err
}

// writeList shows runs as a table. now is the time that the reader sees it at.
func writeList(w io.Writer, term ui.Terminal, runs []results.Summary, now time.Time) {
	tagged := slices.ContainsFunc(runs, func(r results.Summary) bool { return len(r.Tags) > 0 })
	t := ui.Table{Columns: []ui.Column{
		{Head: "run"}, {Head: "started"}, {Head: "experiment", Min: 10}, {Head: "result"}, {Head: "bottleneck", Min: 10},
		{Head: "steps/s", Right: true},
	}}
	timed := !tagged || term.Width >= wideWidth // else there is no room
	if timed {
		t.Columns = append(t.Columns, ui.Column{Head: "took", Right: true})
	}
	if tagged {
		t.Columns = append(t.Columns, ui.Column{Head: "tags", Min: 6})
	}
	for i := range runs {
		r := &runs[i]
		result, style := resultText(r)
		bottleneck, took := ui.Unknown, ui.Unknown
		if r.Bottleneck != "" {
			bottleneck = r.Bottleneck
		}
		if d, ok := r.Duration(); ok {
			took = ui.Duration(d)
		}
		cells := []ui.Cell{{Text: r.ID, Style: ui.Strong}, {Text: ui.Ago(r.Started, now)}, {Text: r.Experiment},
			{Text: result, Style: style}, {Text: bottleneck}, {Text: baselineText(r)}}
		if timed {
			cells = append(cells, ui.Cell{Text: took})
		}
		if tagged {
			cells = append(cells, ui.Cell{Text: strings.Join(r.Tags, " ")})
		}
		t.Row(cells...)
	}
	fmt.Fprint(w, t.Render(term))
}

// baselineText words the step rate of a run's baseline.
func baselineText(r *results.Summary) string {
	if r.Baseline == nil {
		return ui.Unknown
	}
	return ui.Number(r.Baseline.Median)
}

// resultText words what came of a run: its verdict if it is finished.
func resultText(r *results.Summary) (string, ui.Style) {
	switch {
	case r.Status == results.Failed:
		return string(r.Status), ui.Bad
	case r.Status != results.Done:
		return string(r.Status), ui.Caution
	case r.Part != nil && r.Kind == results.OneProbe:
		return "done (try)", ui.Plain
	case r.Kind != results.Session:
		return "done (" + string(r.Kind) + ")", ui.Plain
	case r.Verdict == bisect.InputBound:
		return "input-bound", ui.Bad
	case r.Verdict == bisect.StepBound:
		return "step-bound", ui.Good
	case r.Verdict == bisect.Undecided:
		return "undecided", ui.Caution
	}
	return string(r.Status), ui.Plain
}
