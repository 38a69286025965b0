package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pipectl/pipectl/engine/cache"
)

// fillTime is how long the caches may take to be filled, where their size is left to the engine.
const fillTime = 3 * time.Second

// fill fills the caches of all probe points in one pass through the pipeline, at the pipeline's full speed: the first
// batches of the first epoch. It does nothing where they are full. It is the end of the pipeline in that pass: it keeps
// the batches.
func (p *Pipeline) fill(ctx context.Context) error {
	if p.filled {
		return nil
	}
	plan := p.Plan
	items := plan.layout.first(int64(plan.CacheBatches))
	r := p.newRun(ctx, Probe{}, 0, items)
	r.filling = true
	if p.pool == nil {
		r.taps = make([]tap, plan.batch+1)
		p.caches = make([]*cache.Memory, plan.batch+1)
		for k := 1; k <= plan.batch; k++ {
			if plan.Points[k] {
				p.caches[k] = p.newCache(k, int(items))
				r.taps[k].cache = p.caches[k]
			}
		}
	}
	defer p.begin(ctx, r)()
	hosts, copies := plan.kept()
	var kept int64
	auto := plan.Experiment.Bisect.CacheBatches == 0
	batches := r.fillBatches()
	for n := 0; p.pool == nil || n < batches; n++ {
		d, ok := r.hostBatch(r.train)
		if !ok {
			break
		}
		if auto && p.pool == nil && n >= fewestCached && time.Since(r.start) > p.fillTime {
			r.finish(d)
			break
		}
		if d.host.pooled { // only now is it known how large a batch is
			if kept += d.host.bytes; n > 0 && kept > plan.hostLimit() {
				hosts = len(p.hosts)
			}
		}
		r.samples.Add(int64(d.host.Len))
		r.steps.Add(1)
		if len(p.hosts) >= hosts {
			r.finish(d)
			continue
		}
		p.hosts = append(p.hosts, d.host)
		d.hostKept = true
		if len(p.copies) < copies {
			if _, ok := r.ship(&d, nil); !ok {
				r.finish(d)
				break
			}
			p.copies, d.copyKept = append(p.copies, d.copy), true
		}
		r.finish(d)
	}
	err := errors.Join(r.end(), ctx.Err())
	for _, c := range p.caches {
		if err == nil && c != nil {
			err = c.Map()
		}
	}
	if err != nil {
		p.forget()
		return err
	}
	p.filled = true
	return nil
}

// newCache makes the cache for a boundary up to the batch stage's, where its checkpoint wants it.
func (p *Pipeline) newCache(k, items int) *cache.Memory {
	c := p.Plan.Experiment.Stages[k-1].Checkpoint
	if c == nil || c.Store != DiskStore || c.Mode == KeepMode {
		return cache.NewMemory(items, p.Plan.CacheLimit[k])
	}
	m, err := cache.NewScratch(c.Path, items, p.Plan.CacheLimit[k])
	if err != nil {
		p.warn(c.Address(), fmt.Sprintf("The probes' cache can't be written to the disk: %v. It is kept in memory.", err))
		return cache.NewMemory(items, p.Plan.CacheLimit[k])
	}
	return m
}

// kept returns how many batches the caches behind batch keep on the host, and behind the transfer. A copy may lie in the memory of its
// host batch, which is kept with it.
func (p *Plan) kept() (hosts, copies int) {
	if p.Fused && !p.Types[p.batch].Fixed() { // fill sees how large batches are
		hosts, copies = p.CacheBatches, p.CacheBatches
		if p.transfer < 0 {
			copies = 0
		}
		return hosts, copies
	}
	limit := p.hostLimit()
	hosts = min(p.CacheBatches, int(limit/p.batchSize(p.batch)))
	if p.transfer >= 0 {
		if l := p.CacheLimit[p.train]; l > 0 {
			limit = l
		}
		copies = min(hosts, int(limit/p.batchSize(p.train)))
	}
	return hosts, copies
}

// hostLimit returns how many bytes the caches behind batch may take.
func (p *Plan) hostLimit() (limit int64) {
	for _, l := range p.CacheLimit[p.batch+1:] {
		limit = max(limit, l)
	}
	return limit
}

// usable returns how many items the cache at a boundary up to the batch stage replays: whole batches.
func (p *Pipeline) usable(k int) int {
	l := p.Plan.layout
	n := p.caches[k].Kept()
	if int64(n) == l.first(int64(p.Plan.CacheBatches)) {
		return n
	}
	return n - n%l.size
}

// measurable returns a *LimitError where the cache at boundary k holds not even one batch.
func (p *Pipeline) measurable(k int) error {
	switch {
	case p.pool != nil && k <= p.Plan.batch && p.pool.Kept(k) > 0:
		return nil
	case p.pool == nil && k <= p.Plan.batch && p.usable(k) > 0, k == p.Plan.batch+1 && len(p.hosts) > 0, k > p.Plan.batch+1 && len(p.copies) > 0:
		return nil
	}
	return &LimitError{Address: p.Plan.Experiment.Stages[k-1].Address, Limit: p.Plan.CacheLimit[k]}
}

// forget drops the caches.
func (p *Pipeline) forget() {
	for _, c := range p.caches {
		if c != nil {
			c.Close()
		}
	}
	for _, c := range p.copies {
		if c.Free != nil {
			c.Free()
		}
	}
	for _, h := range p.hosts {
		p.giveBack(h)
	}
	p.caches, p.hosts, p.copies = nil, nil, nil
}
