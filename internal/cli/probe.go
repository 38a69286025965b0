package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/suggest"
)

// The probes that --probe calls by a name of their own.
const (
	baselineProbe = "baseline" // the pipeline as it is
	ceilingProbe  = "ceiling"  // the training step alone
)

// findProbe returns the probe that --probe NAME stands for. Stages' addresses go before checkpoints' names.
func findProbe(plan *engine.Plan, name string) (engine.Probe, error) {
	list := plan.Experiment.Stages
	train := len(list) - 1
	known := []string{baselineProbe, ceilingProbe}
	address, checkpoint := 0, 0
	for k := 1; k <= train; k++ {
		s := list[k-1]
		known = append(known, s.Address)
		if s.Address == name {
			address = k
		}
		if s.Checkpoint != nil {
			known = append(known, s.Checkpoint.Name)
			if s.Checkpoint.Name == name {
				checkpoint = k
			}
		}
	}
	at := cmp.Or(address, checkpoint)
	switch {
	case name == baselineProbe:
		return engine.Probe{}, nil
	case name == ceilingProbe:
		return engine.Probe{To: train}, nil
	case name == list[train].Address:
		return engine.Probe{}, usagef("--probe %s: the training step makes nothing to cache; %q measures it alone", name, ceilingProbe)
	case at == 0:
		return engine.Probe{}, usagef("--probe %s: there is no such probe.%s The probes are %s", name, suggest.Sentence(name, known), strings.Join(known, ", "))
	case list[at].Device:
		return engine.Probe{}, usagef("--probe %s: the device goes on from there without a stop, so there is nothing to cache", name)
	case at < train && !plan.Points[at]:
		return engine.Probe{}, usagef("--probe %s: the checkpoint there has mode = \"off\"", name)
	}
	return engine.Probe{To: at}, nil
}

// measureProbe measures one probe alone, with as many rounds as the experiment's bisect block says.
func (r *session) measureProbe(ctx context.Context, p engine.Probe) error {
	b := r.experiment.Bisect
	target := r.target(p)
	started := bisect.ProbeStarted{Probe: p, Number: 1, Expected: 1}
	if target.After != nil {
		started.After = *target.After
	}
	if target.Checkpoint != nil {
		started.Checkpoint = *target.Checkpoint
	}
	r.observe(started)
	steps, err := b.Steps, error(nil)
	if steps == 0 {
		steps, err = bisect.Calibrate(0, r.pipeline.Plan.Quantum(), bisect.Target, func(n int) (engine.Interval, error) { return r.pipeline.Measure(ctx, p, b.Warmup, n) })
	}
	for n := 1; err == nil && n <= b.Rounds; n++ {
		var iv engine.Interval
		if iv, err = r.pipeline.Measure(ctx, p, b.Warmup, steps); err == nil {
			r.observe(bisect.RoundDone{Probe: p, Round: n, Interval: iv, Done: n, Expected: b.Rounds})
		}
	}
	return err
}
