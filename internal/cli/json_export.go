package cli

import (
	"encoding/json"
	"io"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/results"
)

// exportView is a line of `pipectl export`: what `pipectl show` gives of a run, and more.
type exportView struct {
	runView
	File   string            `json:"file"` // its text
	Stages []exportStageView `json:"stages"`
	Probes []exportProbeView `json:"probes"` // in the order in which they were first measured
	Notes  []noteView        `json:"notes"`
}

type exportStageView struct {
	Address    string  `json:"address"`
	Checkpoint *string `json:"checkpoint"` // that stands after it
}

type exportProbeView struct {
	Role results.Role `json:"role"`
	probeTarget
	Intervals []exportIntervalView `json:"intervals"`
}

type exportIntervalView struct {
	roundView
	Others    *float64      `json:"others"`            // cores that other processes kept busy
	Throttled *float64      `json:"throttled_seconds"` // without CPU because the quota was used up
	Swapped   *int64        `json:"swapped_bytes"`
	Frequency *float64      `json:"frequency_hz"` // of the CPU's clock
	Overheats *int64        `json:"overheats"`    // times that the CPU was slowed down for its heat
	Stages    []accountView `json:"stages"`
}

func newExportView(run *results.Stored) exportView {
	v := exportView{newRunView(run), run.File, []exportStageView{}, []exportProbeView{}, newNoteViews(run.Notes)}
	v.Type = "export"
	for _, s := range run.Stages {
		v.Stages = append(v.Stages, exportStageView{s.Address, orNull(s.Checkpoint)})
	}
	for _, p := range run.Probes {
		probe := exportProbeView{
			p.Role, probeTarget{orNull(p.After), orNull(p.Checkpoint), append([]string{}, p.Frees...), 1e3 * p.Burn.Seconds()}, []exportIntervalView{},
		}
		for _, iv := range p.Rounds {
			probe.Intervals = append(probe.Intervals, newExportIntervalView(iv))
		}
		v.Probes = append(v.Probes, probe)
	}
	return v
}

func newExportIntervalView(iv engine.Interval) exportIntervalView {
	return exportIntervalView{
		newRoundView(iv), measured(iv.Others), measured(iv.Throttled.Seconds()), measured(iv.Swapped), measured(iv.Frequency),
		measured(iv.Overheats), newAccountViews(iv),
	}
}

// measured returns nil, which JSON has as null, for a negative number, which stands for what isn't known.
func measured[T float64 | int64](v T) *T {
	if v < 0 {
		return nil
	}
	return &v
}

// jsonExporter writes an object a line.
type jsonExporter struct{ *json.Encoder }

func newJSONExporter(w io.Writer) jsonExporter {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return jsonExporter{enc}
}

func (e jsonExporter) write(run *results.Stored) error { return e.Encode(newExportView(run)) }

func (jsonExporter) flush() error { return nil }
