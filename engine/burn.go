package engine

import (
	"sync"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// burners burn CPU time beside the steps of a run, in place of the stages that its probe makes free. Each step calls for as much as
// these stages take for one. A burner that is slower than the step falls behind, as workers do that the step then waits for; here
// nothing waits for it.
type burners struct {
	mu     sync.Mutex
	called *sync.Cond
	steps  int64 // that have called
	over   bool
}

// startBurners starts the burners of a run, if its probe has some. They end with the run.
func (r *run) startBurners() {
	threads := r.plan.freed(r.probe)
	if r.probe.Burn <= 0 || threads == 0 {
		return
	}
	b := new(burners)
	b.called = sync.NewCond(&b.mu)
	r.burners = b
	each := r.probe.Burn / time.Duration(threads)
	for range threads {
		r.wg.Go(func() { r.burn(each) })
	}
}

// burn burns so much CPU time for each step.
func (r *run) burn(each time.Duration) {
	var burner stages.Burner
	for n := int64(0); r.burners.wait(n); n++ {
		if err := burner.Burn(r.ctx, each); err != nil {
			r.fail(&StageError{Address: r.address(r.plan.train), Err: err})
			return
		}
	}
}

// wait returns once more than n steps have called. It reports false where the run is over.
func (b *burners) wait(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.steps <= n && !b.over {
		b.called.Wait()
	}
	return !b.over
}

// step calls for what goes with one step. There may be no burners.
func (b *burners) step() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.steps++
	b.mu.Unlock()
	b.called.Broadcast()
}

// stop ends the burners.
func (b *burners) stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.called.Broadcast()
}

// freed returns how many workers the segments have of which a probe makes stages free.
func (p *Plan) freed(probe Probe) int {
	n := 0
	for _, g := range p.Segments {
		if g.First < probe.To && g.Last >= probe.From {
			n += g.Workers
		}
	}
	return n
}
