package stages

import "time"

// Sleep holds the attributes of `prepare "sleep"`.
type Sleep struct {
	Time   time.Duration `hcl:"time" min:"0s" doc:"How long each item waits."`
	Jitter Jitter        `hcl:"jitter,optional" doc:"How far the time varies from item to item, uniformly: a duration (\"2ms\") or a fraction of the time (0.2)."`
}

func sleepOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "sleep",
		Summary: "Waits, as input and output do, and passes the item on untouched.",
		Doc: `Waiting takes no CPU: it stands for a slow disk, a network, another machine. Elements of any type pass through without a copy.

The time of an item is drawn from its index and the epoch, so it is the same in every run. Stages with the same ` + "`time`" + ` and
` + "`jitter`" + ` draw the same times.

A sleep is never shorter than asked for, and on Linux about a tenth of a millisecond longer; on other systems up to about a millisecond longer.
For an exact load of microseconds use ` + "`spin`" + `.`,
		New: func() any { return new(Sleep) },
	}
}

// Validate reports a jitter that is longer than the time.
func (s *Sleep) Validate() []Problem { return s.Jitter.Problems(s.Time) }

// Output returns in: any element passes.
func (s *Sleep) Output(in Type) (Type, error) { return in, nil }

// New makes an instance for one worker.
func (s *Sleep) New() (Stage, error) { return &sleeper{spec: *s}, nil }

type sleeper struct {
	spec Sleep
	wait Waiter
}

func (s *sleeper) Process(c *Call, in, out *Element) error {
	out.Pass(in)
	return s.wait.Wait(c.Context, s.spec.Jitter.Around(s.spec.Time, c.Item.Epoch, c.Item.Index))
}

// Close frees the timer.
func (s *sleeper) Close() error { return s.wait.Close() }
