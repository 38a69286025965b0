package cli

import (
	"fmt"
	"slices"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/stages"
)

// plansView is the output of `pipectl plan`.
type plansView struct {
	FormatVersion int        `json:"format_version"`
	Type          string     `json:"type"` // "plans"
	Plans         []planView `json:"plans"`
}

// planView is how an experiment runs.
type planView struct {
	Experiment    string         `json:"experiment"`
	Description   string         `json:"description"`
	Seed          uint64         `json:"seed"`
	Items         int            `json:"items"`   // 0: unknown
	Classes       int            `json:"classes"` // 0: the items have no labels
	BatchSize     int            `json:"batch_size"`
	StepsPerEpoch int            `json:"steps_per_epoch"` // 0: unknown
	Segments      []segmentView  `json:"segments"`
	Boundaries    []boundaryView `json:"boundaries"`
	CacheBatches  int            `json:"cache_batches"`
	Memory        memoryView     `json:"memory"`
}

// segmentView is a run of stages that the same workers execute.
type segmentView struct {
	Stages   []string `json:"stages"`
	Device   []string `json:"device"` // those of the stages that the device does
	Workers  int      `json:"workers"`
	Prefetch *int     `json:"prefetch"` // what the queue behind it holds: items, or batches from the batch block on; null behind train
	Pool     *string  `json:"pool"`     // the pool block, or null
}

// boundaryView is the place after a stage.
type boundaryView struct {
	After      string  `json:"after"`
	Type       string  `json:"type"` // of a sample there
	Checkpoint *string `json:"checkpoint"`
	Probe      bool    `json:"probe"`
	CacheLimit *int64  `json:"cache_limit_bytes"` // null where it is no probe point, or there is no limit
	Store      *string `json:"store"`             // "memory", "disk", "pinned" or "device"; null where the checkpoint, if there is one, doesn't say
	Kept       bool    `json:"kept"`              // the cache stays from run to run, and the stages above it don't run once it is filled
}

// memoryView is what a plan needs, in bytes.
type memoryView struct {
	InFlight  int64  `json:"in_flight_bytes"`
	Caches    int64  `json:"caches_bytes"`
	Assumed   bool   `json:"assumed"` // some elements' sizes aren't known before they exist
	Available *int64 `json:"available_bytes"`
}

func newPlanView(p *engine.Plan, available int64) planView {
	e := p.Experiment
	v := planView{
		Experiment:    e.Name,
		Description:   e.Description,
		Seed:          e.Seed,
		Items:         p.Items,
		Classes:       p.Classes,
		StepsPerEpoch: p.Epoch,
		Segments:      []segmentView{},
		Boundaries:    []boundaryView{},
		CacheBatches:  p.CacheBatches,
		Memory:        memoryView{InFlight: p.Memory.InFlight, Caches: p.Memory.Caches, Assumed: p.Memory.Assumed},
	}
	if available > 0 {
		v.Memory.Available = &available
	}
	last := len(e.Stages) - 1
	for _, g := range p.Segments {
		view := segmentView{Stages: []string{}, Device: []string{}, Workers: g.Workers}
		for _, s := range e.Stages[g.First : g.Last+1] {
			view.Stages = append(view.Stages, s.Address)
			if s.Device {
				view.Device = append(view.Device, s.Address)
			}
		}
		if g.Last < last {
			view.Prefetch = &g.Prefetch
		}
		if g.Pool != "" {
			view.Pool = &g.Pool
		}
		v.Segments = append(v.Segments, view)
	}
	for k := 1; k <= last; k++ {
		s := e.Stages[k-1]
		if spec, ok := s.Spec.(*engine.BatchSpec); ok {
			v.BatchSize = spec.Size
		}
		view := boundaryView{After: s.Address, Type: p.Types[k].String(), Probe: p.Points[k]}
		if s.Checkpoint != nil {
			view.Checkpoint = &s.Checkpoint.Name
			view.Kept = s.Checkpoint.Mode == engine.KeepMode
			if s.Checkpoint.Store != "" {
				view.Store = &s.Checkpoint.Store
			}
		}
		if p.Points[k] && p.CacheLimit[k] < engine.Unlimited {
			view.CacheLimit = &p.CacheLimit[k]
		}
		v.Boundaries = append(v.Boundaries, view)
	}
	return v
}

// showPlan writes a plan for people, after an empty line if it isn't the first.
func (s *state) showPlan(v *planView, further bool) {
	if further {
		fmt.Fprintln(s.stdout)
	}
	title := "Experiment " + v.Experiment
	if v.Description != "" {
		title += ": " + v.Description
	}
	fmt.Fprintln(s.stdout, s.outTerm.Paint(ui.Strong, ui.Clean(title)))
	classes := ""
	if v.Classes > 0 {
		classes = fmt.Sprintf(" in %s", counted(v.Classes, "class", "classes"))
	}
	items, steps := count(v.Items, "item"), count(v.StepsPerEpoch, "step")
	if v.Items == 0 {
		items = "An unknown number of items"
	}
	if v.StepsPerEpoch == 0 {
		steps = "an unknown number of steps"
	}
	fmt.Fprintf(s.stdout, "%s%s: %s of %s an epoch\n\n", items, classes, steps, count(v.BatchSize, "sample"))

	t := ui.Table{Columns: []ui.Column{{Head: "segment"}, {Head: "stage"}, {Head: "workers", Right: true}, {Head: "queue"},
		{Head: "gives"}, {Head: "probe point"}}}
	row, batches := 0, false
	for i, g := range v.Segments {
		for j, address := range g.Stages {
			cells := make([]ui.Cell, len(t.Columns))
			if j == 0 {
				cells[0].Text = fmt.Sprint(i + 1)
				if g.Pool != nil {
					cells[0].Text += " " + *g.Pool
				}
				cells[2].Text = fmt.Sprint(g.Workers)
			}
			if slices.Contains(g.Device, address) {
				cells[2].Text = "device"
			}
			cells[1] = ui.Cell{Text: address, Style: ui.Strong}
			batches = batches || address == engine.BatchBlock
			if row < len(v.Boundaries) {
				b := v.Boundaries[row]
				unit := "item"
				cells[4].Text = b.Type
				if batches {
					unit = "batch"
					cells[4].Text = fmt.Sprintf("%d × %s", v.BatchSize, b.Type)
				}
				if j == len(g.Stages)-1 && g.Prefetch != nil {
					cells[3].Text = counted(*g.Prefetch, unit, map[string]string{"item": "items", "batch": "batches"}[unit])
				}
				cells[5].Text = b.probe()
			}
			t.Row(cells...)
			row++
		}
	}
	fmt.Fprint(s.stdout, t.Render(s.outTerm))

	m := v.Memory
	text := fmt.Sprintf("Memory: about %s in flight; a session's caches hold %s each, %s in all at most.",
		stages.Bytes(m.InFlight), counted(v.CacheBatches, "batch", "batches"), stages.Bytes(m.Caches))
	if m.Available != nil {
		text += fmt.Sprintf(" %s are available.", stages.Bytes(*m.Available))
	}
	if m.Assumed {
		text += " Sizes that aren't known before the elements exist are assumed: 128 KiB for an encoded file, 1 MiB for a picture."
	}
	fmt.Fprintln(s.stdout)
	fmt.Fprint(s.stdout, ui.Wrap(text, "", s.outTerm.Width))
}

// probe words whether and by which name the pipeline can be probed at a boundary.
func (b *boundaryView) probe() string {
	switch {
	case !b.Probe:
		return "off"
	case b.Kept:
		return *b.Checkpoint + ", kept"
	case b.Checkpoint != nil:
		return *b.Checkpoint
	}
	return "yes"
}

// counted words a number of things whose plural isn't formed with an s alone.
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// count words a number of things: "1 experiment", "2 experiments".
func count(n int, what string) string { return counted(n, what, what+"s") }
