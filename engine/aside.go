package engine

import (
	"context"
	"slices"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// Apart returns the experiment with processes of its own for what other processes do: those of experiments that are given another name,
// or none, are others. Two pipelines that are open at a time share none then.
func (e *Experiment) Apart(name string) *Experiment {
	out := *e
	out.Stages = slices.Clone(e.Stages)
	for i := range out.Stages {
		s := &out.Stages[i]
		switch spec := s.Spec.(type) {
		case *BatchSpec:
			if collate, ok := spec.Collate.(stages.Separable); ok {
				own := *spec
				own.Collate = collate.Apart(name).(stages.CollateSpec)
				s.Spec = &own
			}
		case stages.Separable:
			s.Spec = spec.Apart(name)
		}
	}
	return &out
}

// Rest stops what would otherwise go on between two intervals, in the workers of a fused pool, until the next one begins. A pipeline
// without such a pool does nothing in between anyway.
func (p *Pipeline) Rest(ctx context.Context) error {
	if r, ok := p.pool.(stages.Rester); ok {
		return r.Rest(ctx)
	}
	return nil
}

// SampleSizes returns the mean bytes of a sample at each boundary, as the caches hold them; 0 where that isn't known.
func (p *Pipeline) SampleSizes() []float64 {
	sizes := make([]float64, p.Plan.train+1)
	for k, c := range p.caches {
		if c != nil && c.Kept() > 0 {
			sizes[k] = float64(c.Used()) / float64(c.Kept())
		}
	}
	return sizes
}

// Enlarge frees the caches of the probes, and lets them hold so many times as much of the data set when they are filled again, where
// the experiment leaves that to the engine.
func (p *Pipeline) Enlarge(times int) {
	if p.Plan.Experiment.Bisect.CacheBatches > 0 || p.pool != nil {
		return
	}
	p.DropCaches()
	p.fillTime *= time.Duration(times)
	p.Plan.CacheBatches *= times
	if p.Plan.Epoch > 0 {
		p.Plan.CacheBatches = min(p.Plan.CacheBatches, p.Plan.Epoch)
	}
}

// DropCaches frees the caches of the probes. The next probe that needs one fills them again.
func (p *Pipeline) DropCaches() {
	if p.filled {
		p.forget()
		p.filled = false
	}
}
