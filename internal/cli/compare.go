package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// compareFormats are the forms that a comparison can be written in.
var compareFormats = []string{"text", "csv", "md", "json"}

func newCompareCommand(s *state) *cobra.Command {
	var experiment, reference, threshold, format string
	cmd := &cobra.Command{
		Use:   "compare [A [B …]]",
		Short: "Compare stored runs, the latest with the one before by default",
		Long: `Compare stored runs: their step rates and stages with the differences and their significance, and what differs in
the files. A is the reference that the others are compared with, latest~1 by default; B is latest by default.

Each argument is a column:
  RUN         an id, the start of one, "latest", or "latest~N" for the Nth before it
  TAG         the runs that a tag names
  @           the newest version of each experiment: its runs with the same settings, pipectl and kind of host
  @NAME       the newest version of one experiment; "@NAME~1" is the version before
  FILE.db     the newest version of each experiment in another database
  X,Y,Z       all of these

The runs of a column count as samples of one version. Where a column has several, each run counts once, with the median of its
rounds, and it takes four on each side to show a difference at 95 %. Each experiment and kind of host is compared by itself; the
geometric mean sums them up. docs/compare.md tells more.`,
		Example: `  pipectl compare
  pipectl compare latest~2 latest~1 latest
  pipectl compare @photos~1 @photos
  pipectl compare main.db change.db --format md --fail-on-regression 5%`,
		ValidArgsFunction: s.completeRuns(math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			allowed := math.Inf(1)
			if cmd.Flags().Changed("fail-on-regression") {
				var err error
				if allowed, err = parsePercent(threshold); err != nil {
					return usagef("--fail-on-regression %q: %w", threshold, err)
				}
			}
			switch {
			case !slices.Contains(compareFormats, format):
				return usagef("--format %q: want %s", format, strings.Join(compareFormats, ", "))
			case s.json && cmd.Flags().Changed("format") && format != "json":
				return usagef("--json and --format %s exclude each other", format)
			}
			s.json = s.json || format == "json"
			columns, err := s.columns(cmd.Context(), experiment, reference, args)
			if err != nil {
				return err
			}
			c := results.Compare(columns, confidence(columns))
			if err := s.showComparison(c, format); err != nil {
				return err
			}
			if math.IsInf(allowed, 1) {
				return nil
			}
			return judgeRegression(c, allowed)
		},
	}
	cmd.Flags().StringVarP(&experiment, "experiment", "e", "", "count \"latest\" among the runs of one experiment")
	cmd.Flags().StringVar(&reference, "baseline", "", "compare the others with `COLUMN`, which is the first by default")
	cmd.Flags().StringVar(&format, "format", "text", "write `FORMAT`: text, csv, md (Markdown) or json")
	cmd.Flags().StringVar(&threshold, "fail-on-regression", "", "exit with 4 if a baseline is significantly slower, by more than `PERCENT`")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object, as --format json does")
	// That there is such a flag is known.
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(compareFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("baseline", s.completeRuns(math.MaxInt))
	return cmd
}

// columns returns the columns that a command line selects, the reference first: that is the one named by --baseline, "" for the
// first. Where that leaves fewer than two, the latest run is compared, and without any, the one before it is the reference.
func (s *state) columns(ctx context.Context, experiment, reference string, args []string) ([]results.Column, error) {
	args = slices.Clone(args)
	if reference == "" && len(args) == 0 {
		args = []string{"latest~1"}
	}
	if reference == "" && len(args) == 1 || len(args) == 0 {
		args = append(args, "latest")
	}
	var columns []results.Column
	for _, name := range args {
		column, err := s.column(ctx, experiment, name)
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
	}
	if reference == "" {
		return columns, nil
	}
	first, err := s.column(ctx, experiment, reference)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(columns, func(c results.Column) bool { return slices.Equal(ids(c), ids(first)) })
	if len(others) == 0 {
		return nil, usagef("--baseline %s: there is nothing else to compare with it", reference)
	}
	return append([]results.Column{first}, others...), nil
}

func ids(c results.Column) []string {
	var list []string
	for _, run := range c.Runs {
		list = append(list, run.ID)
	}
	slices.Sort(list)
	return list
}

// column returns the runs that an argument selects, each once.
func (s *state) column(ctx context.Context, experiment, name string) (results.Column, error) {
	column := results.Column{Name: name}
	for part := range strings.SplitSeq(name, ",") {
		runs, err := s.selectRuns(ctx, experiment, part)
		if err != nil {
			return column, err
		}
		for _, run := range runs {
			if !slices.ContainsFunc(column.Runs, func(r *results.Stored) bool { return r.ID == run.ID }) {
				column.Runs = append(column.Runs, run)
			}
		}
	}
	return column, nil
}

// selectRuns returns the runs that a part of an argument stands for.
func (s *state) selectRuns(ctx context.Context, experiment, part string) ([]*results.Stored, error) {
	from := *s
	if strings.HasSuffix(part, ".db") {
		from.db, part = part, "@"
	}
	store, err := from.openStored(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	ids, err := store.Select(ctx, part, experiment)
	var runs []*results.Stored
	for _, id := range ids {
		run, err := store.Load(ctx, id)
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	return runs, err
}

// confidence returns that of the intervals: the highest that one of the runs was asked for.
func confidence(columns []results.Column) float64 {
	highest := 0.0
	for _, column := range columns {
		for _, run := range column.Runs {
			if run.Report != nil {
				highest = max(highest, run.Report.Confidence)
			}
		}
	}
	if highest == 0 {
		return defaultConfidence
	}
	return highest
}

// showComparison writes a comparison in a format. Two single runs have a text and a JSON object of their own.
func (s *state) showComparison(c *results.Comparison, format string) error {
	single := len(c.Columns) == 2 && len(c.Columns[0].Runs) == 1 && len(c.Columns[1].Runs) == 1
	switch {
	case s.json && single:
		return s.writeJSON(newComparisonView(c))
	case s.json:
		return s.writeJSON(newComparisonsView(c))
	case format == "csv":
		return writeComparisonCSV(s.stdout, c)
	case format == "md":
		writeComparisonMarkdown(s.stdout, c, time.Now())
	case single:
		writeComparison(s.stdout, s.outTerm, c, time.Now())
	default:
		writeComparisons(s.stdout, s.outTerm, c, time.Now())
	}
	return nil
}

// parsePercent reads "5%" or "5" as the share 0.05.
func parsePercent(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || !(v >= 0 && v < 100) {
		return 0, fmt.Errorf("want a percentage of at least 0 and less than 100, such as 5%%")
	}
	return v / 100, nil
}

// judgeRegression returns an error where a baseline is slower than the reference's by more than is allowed, or where that can't
// be told.
func judgeRegression(c *results.Comparison, allowed float64) error {
	found, err := c.Regressions(allowed)
	if err != nil || len(found) == 0 {
		return err
	}
	var list []string
	for _, f := range found {
		in := ""
		if len(c.Groups) > 1 {
			in = " in " + f.Group.Name(c)
		}
		list = append(list, fmt.Sprintf("%s is slower than %s by more than the %s allowed%s: %s",
			columnName(f.Pair.B), columnName(f.Pair.A), ui.Percent(allowed), in, changeText(f.Pair, f.Group.Unit, c.Confidence)))
	}
	return &expectError{fmt.Errorf("%s", strings.Join(list, "\n"))}
}

// columnName names a column by its run, or as it was selected where it has several.
func columnName(c results.Column) string {
	if len(c.Runs) == 1 {
		return c.Runs[0].ID
	}
	return c.Name
}
