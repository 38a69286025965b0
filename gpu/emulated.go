package gpu

import (
	"context"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// Emulated holds the attributes of `train "emulated"`: a step that takes a given time and learns nothing.
type Emulated struct {
	Time   time.Duration `hcl:"time" min:"0s" doc:"How long each step takes."`
	Jitter stages.Jitter `hcl:"jitter,optional" doc:"How far the time varies from step to step, uniformly: a duration (\"2ms\") or a fraction of the time (0.2)."`
	Mode   string        `hcl:"mode,optional" enum:"sleep,spin" doc:"\"sleep\": the step takes no CPU, as on an accelerator. \"spin\": it burns one core for the time, as on the CPU."`
}

func emulatedOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Train,
		Type:    "emulated",
		Summary: "Takes as long as a training step would, and learns nothing.",
		Doc: `It answers whether a machine's input pipeline keeps up with an accelerator that isn't there. Batches of any samples are accepted and not
looked at.

With ` + "`mode = \"sleep\"`" + ` the emulated accelerator works beside the host, one step after the other. A step is about a
tenth of a millisecond longer than asked for on Linux, up to a millisecond elsewhere, unless the next one is submitted meanwhile. With ` + "`mode = \"spin\"`" + ` the time is CPU time of the
step's thread. The time of a step is drawn from the experiment's seed and the step's number, so it is the same in every run.`,
		New: func() any { return &Emulated{Mode: "sleep"} },
	}
}

// Validate reports a jitter that is longer than the time.
func (e *Emulated) Validate() []stages.Problem { return e.Jitter.Problems(e.Time) }

// Accepts returns nil: the samples aren't looked at.
func (e *Emulated) Accepts(stages.Type) error { return nil }

// Want returns "cpu": batches stay on the host.
func (e *Emulated) Want() string { return "cpu" }

// NewStep makes the step. It needs no device.
func (e *Emulated) NewStep(_ Device, in Input) (Step, error) {
	return &emulated{spec: *e, seed: in.Seed}, nil
}

type emulated struct {
	spec  Emulated
	seed  uint64
	steps int
	idle  time.Time // when the accelerator has done all that was submitted
	wait  stages.Waiter
	burn  stages.Burner
}

func (e *emulated) Submit(ctx context.Context, b *Batch) (Event, error) {
	if err := b.Ready.Wait(ctx); err != nil {
		return nil, err
	}
	d := e.spec.Jitter.Around(e.spec.Time, int(e.seed), e.steps)
	e.steps++
	if e.spec.Mode == "spin" {
		if err := e.burn.Burn(ctx, d); err != nil {
			return nil, err
		}
		return &deadline{end: time.Now(), took: d, wait: &e.wait}, nil
	}
	start := time.Now()
	if start.Before(e.idle) {
		start = e.idle
	}
	e.idle = start.Add(d)
	return &deadline{end: e.idle, took: d, wait: &e.wait}, nil
}

func (e *emulated) Close() error { return e.wait.Close() }

// deadline is the end of an emulated step.
type deadline struct {
	end  time.Time
	took time.Duration
	wait *stages.Waiter // the step's: one goroutine waits for its events
}

func (d *deadline) Wait(ctx context.Context) error { return d.wait.Wait(ctx, time.Until(d.end)) }

func (d *deadline) Elapsed() (time.Duration, bool) {
	if time.Now().Before(d.end) {
		return 0, false
	}
	return d.took, true
}
