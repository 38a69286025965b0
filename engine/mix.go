package engine

import "github.com/pipectl/pipectl/stages"

// mixer mixes the samples of batches with each other, for one worker.
type mixer struct {
	mixer *stages.Mixer
	draws draws
}

// mixer returns a worker's, nil where batches stay as they are.
func (p *Plan) mixer() *mixer {
	m := p.mixing()
	if !m.On() {
		return nil
	}
	return &mixer{stages.NewMixer(m), newDraws(p.Experiment.Seed, BatchBlock)}
}

func (p *Plan) mixing() stages.Mixing { return p.Experiment.Stages[p.batch].Spec.(*BatchSpec).Mixing }

// mix mixes a batch that has samples. What it draws depends on (seed, epoch, batch) alone.
func (m *mixer) mix(b *stages.Batch) {
	m.draws.seed(b.Epoch, int(b.Index))
	m.mixer.Mix(b, m.draws.rand)
}

// checkMixing returns why batches of such samples can't be mixed. fused says that a pool of processes makes them.
func checkMixing(b *BatchSpec, sample stages.Type, fused bool) []Problem {
	if !b.Mixing.On() {
		return nil
	}
	if fused || b.Collate != nil && b.Collate.Collates() || sample.Kind == stages.Object {
		return []Problem{unmixed(b.Mixing, "Python makes the batches here, and pipectl can't mix their samples. Mix them where they are collated, or in the training step.")}
	}
	var problems []Problem
	for _, p := range b.Mixing.Problems(sample) {
		problems = append(problems, Problem{Address: BatchBlock, Attribute: p.Attribute, Summary: p.Summary, Detail: p.Detail})
	}
	return problems
}

// unmixed is the problem that Python's side of a pipeline keeps samples from being mixed.
func unmixed(m stages.Mixing, detail string) Problem {
	attribute := "mixup"
	if m.Mixup == 0 {
		attribute = "cutmix"
	}
	return Problem{Address: BatchBlock, Attribute: attribute, Summary: "Batches of Python's", Detail: detail}
}
