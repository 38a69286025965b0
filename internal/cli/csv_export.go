package cli

import (
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/results"
)

// exportColumns are the columns of exported runs as CSV, in three groups: of the run, of an interval, of a stage in it. What isn't
// known is empty. Lists are parted by spaces.
var exportColumns = [...][]string{
	{"run", "experiment", "kind", "status", "tags", "session", "change", "started", "version", "seed", "fingerprint", "hostname", "host_key",
		"device", "verdict", "bottleneck"},
	{"role", "after", "checkpoint", "frees", "burn_ms", "interval", "start", "steps", "samples", "seconds", "steps_per_second", "starvation",
		"first_batch_ms", "skipped", "cpu", "others", "throttled_seconds", "swapped_bytes", "resident", "frequency_hz", "overheats"},
	{"position", "stage", "workers", "items", "busy_seconds", "wait_in_seconds", "wait_out_seconds", "queue"},
}

// csvExporter writes runs as one table (RFC 4180) with a row for each stage of each interval. A run without intervals has one row.
type csvExporter struct {
	*csv.Writer
	headed bool
}

func newCSVExporter(w io.Writer) *csvExporter { return &csvExporter{Writer: csv.NewWriter(w)} }

func (e *csvExporter) write(run *results.Stored) error {
	if err := e.head(); err != nil {
		return err
	}
	of := csvRun(run)
	if len(run.Probes) == 0 {
		return e.Write(slices.Concat(of, make([]string, len(exportColumns[1])+len(exportColumns[2]))))
	}
	for _, p := range run.Probes {
		for i, iv := range p.Rounds {
			interval := csvInterval(&p, i+1, iv)
			for position, a := range iv.Stages {
				if err := e.Write(slices.Concat(of, interval, csvAccount(position, a))); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// head writes the names of the columns, once.
func (e *csvExporter) head() error {
	if e.headed {
		return nil
	}
	e.headed = true
	var names []string
	for _, group := range exportColumns {
		names = append(names, group...)
	}
	return e.Write(names)
}

func (e *csvExporter) flush() error {
	err := e.head()
	e.Flush()
	if err == nil {
		err = e.Error()
	}
	return err
}

func csvRun(run *results.Stored) []string {
	var session, change string
	if run.Part != nil {
		session, change = run.Part.Session, run.Part.Change
	}
	return []string{
		run.ID, run.Experiment, string(run.Kind), string(run.Status), strings.Join(run.Tags, " "), session, change, timestamp(run.Started),
		run.Version, strconv.FormatUint(run.Seed, 10), run.Fingerprint, run.Hostname, run.HostKey, run.Host.Device, string(run.Verdict), run.Bottleneck,
	}
}

func csvInterval(p *results.Probe, number int, iv engine.Interval) []string {
	v := newExportIntervalView(iv)
	burn := 1e3 * p.Burn.Seconds()
	return []string{
		string(p.Role), p.After, p.Checkpoint, strings.Join(p.Frees, " "), csvNumber(&burn), strconv.Itoa(number), v.Start, strconv.Itoa(v.Steps),
		csvInteger(&v.Samples), csvNumber(&v.Seconds), csvNumber(v.StepsPerSecond), csvNumber(v.Starvation), csvNumber(&v.FirstBatchMS),
		csvInteger(&v.Skipped), csvNumber(v.CPU), csvNumber(v.Others), csvNumber(v.Throttled), csvInteger(v.Swapped), csvNumber(v.Resident),
		csvNumber(v.Frequency), csvInteger(v.Overheats),
	}
}

func csvAccount(position int, a engine.Account) []string {
	row := []string{strconv.Itoa(position), a.Address, strconv.Itoa(a.Workers), csvInteger(&a.Items)}
	for _, d := range []time.Duration{a.Busy, a.WaitIn, a.WaitOut} {
		seconds := d.Seconds()
		row = append(row, csvNumber(&seconds))
	}
	return append(row, csvNumber(measured(a.Queue)))
}

func csvInteger(v *int64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatInt(*v, 10)
}
