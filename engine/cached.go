package engine

// Cached returns how many bytes of the host's memory the cache at a boundary holds, and what share of the data set they are; 0 where
// that isn't known, as it is before the caches are filled.
func (p *Pipeline) Cached(boundary int) (bytes int64, share float64) {
	plan := p.Plan
	if !p.filled || !plan.Points[boundary] {
		return 0, 0
	}
	if boundary <= plan.batch && p.pool == nil {
		return p.caches[boundary].Used(), float64(p.caches[boundary].Kept()) / float64(plan.Items)
	}
	batches := 0
	switch {
	case boundary <= plan.batch:
		batches, bytes = plan.CacheBatches, p.pool.Kept(boundary)
	case boundary == plan.batch+1:
		batches = len(p.hosts)
	case p.device.Info().Kind == "cpu":
		batches = len(p.copies)
	}
	if boundary > plan.batch && p.pool == nil {
		bytes = int64(batches) * plan.batchSize(boundary)
	} else if boundary > plan.batch {
		for _, h := range p.hosts[:batches] {
			bytes += h.bytes
		}
	}
	if plan.Epoch > 0 {
		share = float64(batches) / float64(plan.Epoch)
	}
	return bytes, share
}
