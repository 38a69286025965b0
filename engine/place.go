package engine

import (
	"fmt"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// placeCaches checks that the device can keep caches where checkpoints say, and limits the one behind the transfer to what is free
// there. memory is what the host has to spare, 0 if unknown.
func (p *Plan) placeCaches(d gpu.Device, memory int64) ([]Problem, error) {
	var problems []Problem
	report := func(c *Checkpoint, attribute, summary, format string, args ...any) {
		problems = append(problems, Problem{Address: c.Address(), Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, args...)})
	}
	info := d.Info()
	for k := p.batch + 1; k <= p.train; k++ {
		c := p.Experiment.Stages[k-1].Checkpoint
		switch {
		case c == nil || c.Mode == "off":
		case (c.Store == PinnedStore || c.Store == DeviceStore) && info.Kind != "cuda":
			report(c, "store", "No CUDA device", "Caches in store = %q need a CUDA device, and the experiment runs on %s: %s Leave store out.", c.Store, info.Name, info.Why)
		case c.Store == PinnedStore && memory > 0 && int64(c.Limit) > memory:
			report(c, "limit", "Not enough memory", "The cache may take %s of page-locked memory, and the machine has %s to spare. Set a lower limit.",
				c.Limit, stages.Bytes(memory))
		}
	}
	available, err := d.FreeMemory()
	free := int64(available)
	if p.transfer < 0 || free == 0 || err != nil {
		return problems, err
	}
	// Under way are the batches of the queue, and one each that is being copied, waits for the step before it, and is in the step.
	underWay := int64(p.Segments[len(p.Segments)-2].Prefetch+3) * p.batchSize(p.train)
	left := max(free-underWay, 0)
	if c := p.Experiment.Stages[p.train-1].Checkpoint; c != nil && c.Mode != "off" && c.Limit > 0 {
		if int64(c.Limit) > left {
			report(c, "limit", "Not enough device memory", "The cache may take %s, and of the %s that are free on %s the batches under way need %s. Set a limit of "+
				"%s or less, or leave it out.", c.Limit, stages.Bytes(free), info.Name, stages.Bytes(underWay), stages.Bytes(left))
		}
		return problems, nil
	}
	if limit := &p.CacheLimit[p.train]; *limit == 0 || *limit > left/2 {
		*limit = max(left/2, 1) // what the step takes beside its parameters isn't known
	}
	return problems, nil
}
