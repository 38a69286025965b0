package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
)

// epoch sums up the steps of an epoch.
type epoch struct {
	steps           int
	samples         int64
	elapsed, waited time.Duration
	loss            float64 // summed over the samples
	hasLoss         bool
}

func (e *epoch) add(s engine.Step) {
	e.steps++
	e.samples += int64(s.Samples)
	e.elapsed += s.Waited + s.Elapsed
	e.waited += s.Waited
	e.loss += s.Loss * float64(s.Samples)
	e.hasLoss = s.HasLoss
}

// train trains for the epochs asked for and stores them as intervals of the baseline, but for one that filled caches.
func (r *session) train(ctx context.Context) error {
	steps := r.options.epochs * r.pipeline.Plan.Epoch
	var current epoch
	number := 0
	var storing error
	store := func(iv engine.Interval) {
		if storing == nil && iv.Elapsed > 0 {
			storing = r.stored.AddInterval(engine.Probe{}, iv)
		}
	}
	var filled *engine.Interval // by the first epoch: what counts if there is no other
	err := r.pipeline.Train(ctx, r.options.epochs, func(s engine.Step) {
		current.add(s)
		r.progress.step(number+1, r.options.epochs, int(s.Number)+1, steps)
		if s.LastStep {
			number++
			r.storeSkips()
			r.epochDone(number, current)
			current = epoch{}
		}
	}, func(iv engine.Interval, filling bool) {
		if filling {
			filled = &iv
			return
		}
		if filled != nil {
			filled = nil
			r.observe(bisect.Noted{Note: bisect.Note{Code: "filling", Text: "Epoch 1 filled caches, and is left out of the rates and times."}})
		}
		store(iv)
	})
	if filled != nil {
		store(*filled)
	}
	if storing != nil {
		r.stop(storing)
	}
	for _, n := range r.pipeline.Kept() {
		r.observe(bisect.Noted{Note: bisect.Note{Code: n.Code, Text: n.Text}})
	}
	return err
}

// epochDone tells of an epoch that has ended.
func (r *session) epochDone(number int, e epoch) {
	event := epochEvent{header: newHeader("epoch"), Run: r.stored.ID(), Epoch: number, Epochs: r.options.epochs, Steps: e.steps,
		Samples: e.samples, Seconds: e.elapsed.Seconds(),
		SamplesPerSecond: finite(float64(e.samples) / e.elapsed.Seconds()),
		Starvation:       finite(e.waited.Seconds() / e.elapsed.Seconds()),
	}
	text := fmt.Sprintf("epoch %d of %d: %s samples/s, waited for data %s of the time", number, r.options.epochs,
		ui.Number(float64(e.samples)/e.elapsed.Seconds()), ui.Percent(e.waited.Seconds()/e.elapsed.Seconds()))
	if e.hasLoss {
		loss := e.loss / float64(e.samples)
		event.Loss = finite(loss)
		text += fmt.Sprintf(", loss %.4f", loss)
	}
	if r.json {
		r.emit(event)
		return
	}
	r.progress.print(r.stdout, text)
}
