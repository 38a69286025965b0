package cli

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/results"
)

// compareColumns are the columns of a comparison as CSV. What isn't known is empty.
var compareColumns = []string{
	"experiment", "host", // several are parted by spaces
	"column", "name", // the label and the name of what is compared with the reference, A
	"measure",    // baseline, cached, isolated or ceiling: steps/s; stage: ms of work a step; geomean: of the baselines' changes
	"address",    // of the stage, or of the one before the cache
	"checkpoint", // there
	"frees",      // the stages that cost nothing, parted by spaces
	"a_median", "a_low", "a_high", "a_n",
	"median", "low", "high", "n",
	"unit",                                                                  // of n: rounds or runs; of a geomean: groups
	"change", "change_low", "change_high", "p", "significant", "detectable", // as in JSON
}

// writeComparisonCSV writes a comparison as CSV (RFC 4180) with a row for each measure of each pair, regressions first, and the
// geometric means last.
func writeComparisonCSV(w io.Writer, c *results.Comparison) error {
	out := csv.NewWriter(w)
	rows := [][]string{compareColumns}
	for _, change := range c.Changes() {
		measure := string(change.Role)
		if measure == "" {
			measure = "stage"
		}
		row := []string{
			strings.Join(change.Group.Experiments, " "), strings.Join(change.Group.Hosts, " "), change.Pair.B.Label, change.Pair.B.Name,
			measure, change.Address, change.Checkpoint, strings.Join(change.Frees, " "),
		}
		row = append(append(row, csvSample(change.A)...), csvSample(change.B)...)
		v := newChangeView(change.Row)
		row = append(row, string(change.Group.Unit), csvNumber(v.Change), csvNumber(v.ChangeLow), csvNumber(v.ChangeHigh),
			csvNumber(v.P), csvBool(v.Significant), csvBool(v.Detectable))
		rows = append(rows, row)
	}
	for _, m := range c.Geomeans {
		row := make([]string, len(compareColumns))
		name := ""
		for _, column := range c.Columns {
			if column.Label == m.Label {
				name = column.Name
			}
		}
		for i, column := range compareColumns {
			row[i] = map[string]string{
				"column": m.Label, "name": name, "measure": "geomean", "n": strconv.Itoa(m.Groups), "unit": "groups",
				"change": csvNumber(&m.Change), "significant": strconv.FormatBool(m.Significant),
			}[column]
		}
		rows = append(rows, row)
	}
	return out.WriteAll(rows)
}

func csvSample(s *stats.Summary) []string {
	if s == nil {
		return []string{"", "", "", "0"}
	}
	return []string{csvNumber(&s.Median), csvNumber(&s.Low), csvNumber(&s.High), strconv.Itoa(s.N)}
}

func csvNumber(v *float64) string {
	if v == nil || finite(*v) == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

func csvBool(v *bool) string {
	if v == nil {
		return ""
	}
	return strconv.FormatBool(*v)
}
