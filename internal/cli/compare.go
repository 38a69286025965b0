package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

func newCompareCommand(s *state) *cobra.Command {
	var experiment, threshold string
	cmd := &cobra.Command{
		Use:   "compare [A [B]]",
		Short: "Compare two stored runs, the latest with the one before by default",
		Long: `Compare two stored runs: their step rates and stages with the difference and its significance, and what differs in
the files. A is the reference, latest~1 by default; B is latest by default.

A and B are ids, starts of ids, tags, "latest", or "latest~N" for the Nth before it.`,
		Args:              atMost(2),
		ValidArgsFunction: s.completeRuns(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			allowed := math.Inf(1)
			if cmd.Flags().Changed("fail-on-regression") {
				var err error
				if allowed, err = parsePercent(threshold); err != nil {
					return usagef("--fail-on-regression %q: %w", threshold, err)
				}
			}
			refs := []string{"latest~1", "latest"}
			copy(refs, args)
			runs, err := s.loadRuns(cmd.Context(), experiment, refs...)
			if err != nil {
				return err
			}
			confidence := defaultConfidence
			if r := runs[1].Report; r != nil {
				confidence = r.Confidence
			}
			c := results.Compare(runs[0], runs[1], confidence)
			if !s.json {
				writeComparison(s.stdout, s.outTerm, c, time.Now())
			} else if err := s.writeJSON(newComparisonView(c)); err != nil {
				return err
			}
			if math.IsInf(allowed, 1) {
				return nil
			}
			return judgeRegression(c, allowed)
		},
	}
	cmd.Flags().StringVarP(&experiment, "experiment", "e", "", "count \"latest\" among the runs of one experiment")
	cmd.Flags().StringVar(&threshold, "fail-on-regression", "", "exit with 4 if B's baseline is significantly slower, by more than `PERCENT`")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// parsePercent reads "5%" or "5" as the share 0.05.
func parsePercent(text string) (float64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "%")), 64)
	if err != nil || !(v >= 0 && v < 100) {
		return 0, fmt.Errorf("want a percentage of at least 0 and less than 100, such as 5%%")
	}
	return v / 100, nil
}

// judgeRegression returns an error where B's baseline is slower than A's by more than is allowed, or where that can't be
// told.
func judgeRegression(c *results.Comparison, allowed float64) error {
	regressed, err := c.Regressed(allowed)
	if err != nil {
		return err
	}
	if regressed {
		return &expectError{fmt.Errorf("%s is slower than %s by more than the %s allowed: %s", c.B.ID, c.A.ID, ui.Percent(allowed), changeText(c))}
	}
	return nil
}
