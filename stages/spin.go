package stages

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Spin holds the attributes of `prepare "spin"`.
type Spin struct {
	Time   time.Duration `hcl:"time" min:"0s" doc:"The CPU time that each item takes."`
	Jitter Jitter        `hcl:"jitter,optional" doc:"How far the time varies from item to item, uniformly: a duration (\"2ms\") or a fraction of the time (0.2)."`
}

func spinOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "spin",
		Summary: "Burns one core's CPU for a time, and passes the item on untouched.",
		Doc: `It stands for work that computes. The time is CPU time of the worker's own thread, so that where more workers than cores compete, an item
takes longer by the clock, as real work does. Elements of any type pass through without a copy.

The time of an item is drawn from its index and the epoch, so it is the same in every run. Stages with the same ` + "`time`" + ` and
` + "`jitter`" + ` draw the same times.

Linux alone counts the CPU time of a thread; elsewhere the time is the clock's.`,
		New: func() any { return new(Spin) },
	}
}

// Validate reports a jitter that is longer than the time.
func (s *Spin) Validate() []Problem { return s.Jitter.Problems(s.Time) }

// Output returns in: any element passes.
func (s *Spin) Output(in Type) (Type, error) { return in, nil }

// New makes an instance for one worker.
func (s *Spin) New() (Stage, error) { return &spinner{spec: *s}, nil }

type spinner struct {
	spec Spin
	burn Burner
}

func (s *spinner) Process(c *Call, in, out *Element) error {
	out.Pass(in)
	return s.burn.Burn(c.Context, s.spec.Jitter.Around(s.spec.Time, c.Item.Epoch, c.Item.Index))
}

// Burner burns CPU. It learns how fast this core is, so keep it from call to call. The zero Burner is ready for use by
// one goroutine at a time.
type Burner struct {
	speed float64 // rounds of the inner loop a nanosecond; 0: not known yet
	state uint64
}

// Burn takes d of CPU time on the calling thread, to within microseconds, or less with the context's error once ctx is
// done, which it notices within 10 ms.
func (b *Burner) Burn(ctx context.Context, d time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if b.speed == 0 {
		b.speed = 0.1 // slower than any core, so that the first chunk isn't too long
	}
	clock, err := startCPUClock()
	for elapsed := time.Duration(0); err == nil && elapsed < d; {
		if err := ctx.Err(); err != nil {
			return err
		}
		// Less than what is left, because reading the clock takes time too, and at most what ctx may have to wait for.
		chunk := min(d-elapsed-(d-elapsed)/8, 2*time.Millisecond)
		rounds := 1 + b.speed*float64(chunk)
		b.spin(int(rounds))
		before := elapsed
		elapsed, err = clock.elapsed()
		if took := elapsed - before; took > 20*time.Microsecond { // else most of it is the clock's
			b.speed = rounds / float64(took)
		}
	}
	if err != nil {
		return fmt.Errorf("reading the thread's CPU time: %w", err)
	}
	return ctx.Err()
}

// spin does n rounds of work, each of which needs the one before.
func (b *Burner) spin(n int) {
	x := b.state
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	b.state = x
}
