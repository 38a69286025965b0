package engine

import (
	"errors"
	"fmt"
	"io"

	"github.com/pipectl/pipectl/stages"
)

// fused returns the pool block that a stages.PoolSource runs as a whole, from load to batch, nil where there is none. A problem says
// why one that looks so can't be.
func fused(e *Experiment) (*Pool, *Problem) {
	source, ok := e.Stages[0].Spec.(stages.PoolSource)
	pool := e.pool(e.Stages[0].Pool)
	fuses := pool != nil && ok && e.inPool(BatchBlock, pool.Name)
	for _, p := range e.Pools {
		if p.Workers == None && !(fuses && p.Name == pool.Name) {
			return nil, &Problem{Address: "pool." + p.Name, Attribute: "workers", Summary: "No workers",
				Detail: "Only a pool around all stages from a load block of Python's to batch can do without workers: the main process does their work then."}
		}
	}
	if !fuses {
		return nil, nil
	}
	if loads := e.Loads(); len(loads) > 1 {
		return nil, &Problem{Address: loads[1].Address, Summary: "Second load block in a Python pool",
			Detail: fmt.Sprintf("Pool %s is run as PyTorch's DataLoader, which has one dataset. Let it be a ConcatDataset of Python's, or move the batch block out of the pool.", pool.Name)}
	}
	if err := source.Fuses(e.poolStages(pool.Name)); err != nil {
		return nil, &Problem{Address: "pool." + pool.Name, Summary: "Stages that can't share this pool", Detail: err.Error()}
	}
	return pool, nil
}

// pool returns the pool block of a name, nil where there is none.
func (e *Experiment) pool(name string) *Pool {
	for i := range e.Pools {
		if name != "" && e.Pools[i].Name == name {
			return &e.Pools[i]
		}
	}
	return nil
}

// inPool reports whether the stage at an address stands in a pool block.
func (e *Experiment) inPool(address, pool string) bool {
	for _, s := range e.Stages {
		if s.Address == address {
			return s.Pool == pool
		}
	}
	return false
}

// poolStages describes the stages in a pool block.
func (e *Experiment) poolStages(pool string) []stages.PoolStage {
	var list []stages.PoolStage
	for _, s := range e.Stages {
		if s.Pool != pool {
			continue
		}
		p := stages.PoolStage{Address: s.Address, Block: s.Block, Spec: s.Spec, Skip: s.OnError == Skip}
		if b, ok := s.Spec.(*BatchSpec); ok {
			p.Spec = nil
			if b.Collate != nil {
				p.Spec = b.Collate
			}
		}
		list = append(list, p)
	}
	return list
}

// poolSetup describes the fused pool of an experiment.
func (e *Experiment) poolSetup(pool *Pool) stages.PoolSetup {
	setup := stages.PoolSetup{Stages: e.poolStages(pool.Name), Workers: max(pool.Workers, 0), Prefetch: pool.Prefetch, Seed: e.Seed}
	if pool.Workers == Auto {
		setup.Workers = autoWorkers()
	}
	for _, s := range e.Stages {
		if b, ok := s.Spec.(*BatchSpec); ok {
			setup.Batch, setup.DropLast = b.Size, b.DropLast
		}
	}
	return setup
}

// startPool makes the fused pool do what the run is for.
func (r *run) startPool() error {
	mode := stages.PoolMode{Epochs: r.epochs}
	switch {
	case r.filling:
		mode.Fill, mode.Limits = r.fillBatches(), r.plan.CacheLimit[:r.plan.batch+1]
	case !r.probe.Baseline():
		mode.From, mode.To = r.probe.From, min(r.probe.To, r.plan.batch+1)
	}
	return r.poolError(r.p.pool.Start(r.ctx, mode))
}

// fillBatches returns how many batches fill the pool's caches: each worker keeps its own. Where that is left to the engine, they are no
// more than the pool makes in fillTime, as far as the pace of the baseline is known.
func (r *run) fillBatches() int {
	plan := r.plan
	n := plan.CacheBatches
	if plan.Experiment.Bisect.CacheBatches == 0 {
		n = min(n, max(fewestCached, int(r.p.fillTime.Seconds()*r.p.pace)))
	}
	return max(n, plan.Segments[0].Workers)
}

// poolBatch returns the next batch of the fused pool.
func (r *run) poolBatch(c *clock) (delivery, bool) {
	exchanged := r.probe.From > 0 && r.probe.To > r.plan.batch
	for empty := 0; ; empty++ {
		if empty > mostEmpty {
			r.fail(&StageError{Address: BatchBlock, Err: errAllSkipped})
			return delivery{}, false
		}
		c.enter(waitIn)
		b, err := r.p.pool.Next(r.ctx)
		c.enter(busy)
		if errors.Is(err, io.EOF) {
			return delivery{}, false
		}
		if err != nil {
			r.fail(r.poolError(err))
			return delivery{}, false
		}
		if !r.account(b) {
			b.Release()
			return delivery{}, false
		}
		d := delivery{batch: b.Number, epoch: b.Epoch, last: b.Last}
		switch {
		case exchanged:
			b.Release()
			r.exchange(&d)
		case b.Len == 0:
			b.Release()
			continue
		default:
			if d.host, err = r.p.adopt(b); err != nil {
				b.Release()
				r.fail(&StageError{Address: BatchBlock, Err: err})
				return delivery{}, false
			}
		}
		return d, true
	}
}

// mostEmpty is how many batches in a row may have lost all their samples to skipping.
const mostEmpty = 1000

// account adds what a worker did for a batch to the accounts, and the items it left out to those skipped. It reports false where that ends
// the run.
func (r *run) account(b *stages.PoolBatch) bool {
	ledger := r.pools[0]
	c := ledger[min(b.Work.Worker, len(ledger)-1)]
	c.book(b.Work)
	for i := range b.Skipped {
		e := &b.Skipped[i]
		if err := r.p.skip(e.Stage, e.Item, e.Err); err != nil {
			r.fail(err)
			return false
		}
		r.skips.Add(1)
	}
	return true
}

// adopt makes a batch of the pool one of the engine's. Its samples stay where they are, unless the step is of another kind than the
// pool and looks at them.
func (p *Pipeline) adopt(b *stages.PoolBatch) (*hostBatch, error) {
	_, remote := p.Plan.Experiment.Stages[p.Plan.train].Spec.(stages.Remote)
	if b.Copy == nil || remote {
		h := &hostBatch{free: b.Release, bytes: b.Bytes, pooled: true}
		h.Index, h.Epoch, h.Len, h.Sample, h.Handle = b.Number, b.Epoch, b.Len, p.Plan.Types[p.Plan.batch], b.Handle
		return h, nil
	}
	h, err := p.batches.get()
	if err != nil {
		return nil, err
	}
	h.Index, h.Epoch, h.Len = b.Number, b.Epoch, b.Len
	if err := b.Copy(&h.Batch); err != nil {
		p.batches.put(h)
		return nil, err
	}
	h.bytes = b.Bytes
	b.Release()
	return h, nil
}

// poolError returns a pool's error as one of the stage at fault.
func (r *run) poolError(err error) error {
	if r.ctx.Err() != nil {
		return err
	}
	return r.p.Plan.poolError(err, r.p.itemName)
}

func (p *Plan) poolError(err error, name func(int) string) error {
	var failure *stages.PoolError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &failure):
		return &StageError{Address: p.Experiment.Stages[0].Address, Err: err}
	}
	e := &StageError{Address: p.Experiment.Stages[failure.Stage].Address, Err: failure.Err}
	if failure.Item >= 0 {
		e.Item = name(failure.Item)
	}
	return e
}
