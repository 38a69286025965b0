package engine

import (
	"context"
	"sync"
	"testing"
)

// TestLive looks at runs from outside all the while, from their first moment to their last: a race, if there is one, is
// the race detector's to find. What it sees must be possible.
func TestLive(t *testing.T) {
	p := openTest(t, chain(&countSource{items: 64}, 4, nothing, prepare("a", double), prepare("b", pass)))
	done := make(chan struct{})
	var watchers sync.WaitGroup
	seen := 0
	watchers.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			l, ok := p.Live()
			if !ok {
				continue
			}
			seen++
			if len(l.Stages) != 5 || l.Steps < 0 || l.Interval.Elapsed < 0 {
				t.Errorf("a run shows %+v", l)
				return
			}
		}
	})
	for range 50 {
		for _, probe := range []Probe{{}, {To: 2}, {From: 1, To: 2}, {To: 4}} {
			if _, err := p.Measure(context.Background(), probe, 1, 20); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	watchers.Wait()
	if seen == 0 {
		t.Error("no run was seen")
	}
}
