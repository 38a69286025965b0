package predict

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/suggest"
)

// The attributes that a Change can be about.
const (
	Workers  = "workers"  // of a stage, or of a pool block
	Prefetch = "prefetch" // what the queue behind them holds
	Cost     = "cost"     // the stage's work on an item, or on a batch behind the batch block: no attribute of the language
)

// Change is a difference of a pipeline to ask about. It is written ADDRESS.ATTRIBUTE=VALUE, such as prepare.decode.workers=8 or
// train.step.cost=0.5x.
type Change struct {
	Address   string // of a stage, or "pool." and the name of a pool block
	Attribute string
	Number    int // of Workers and Prefetch
	cost      cost
	text      string
}

// String returns the change as it was written.
func (c Change) String() string { return c.text }

// Value returns what stands behind the equals sign.
func (c Change) Value() string {
	_, value, _ := strings.Cut(c.text, "=")
	return strings.TrimSpace(value)
}

// mostWorkers is more than anybody wants of workers or of places in a queue, and few enough to reckon with.
const mostWorkers = 1 << 16

// ParseChange reads a change. Its error says what could be asked instead.
func ParseChange(text string) (Change, error) {
	c := Change{text: text, cost: cost{factor: 1, each: -1}}
	name, value, ok := strings.Cut(text, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	dot := strings.LastIndexByte(name, '.')
	if !ok || dot <= 0 {
		return c, fmt.Errorf("%q: want a stage's address, an attribute and a value, such as prepare.decode.workers=8 or train.step.cost=0.5x", text)
	}
	c.Address, c.Attribute = name[:dot], name[dot+1:]
	switch c.Attribute {
	case Workers, Prefetch:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > mostWorkers {
			return c, fmt.Errorf("%q: want a whole number from 1 to %d for %s", text, mostWorkers, c.Attribute)
		}
		c.Number = n
		return c, nil
	case Cost:
		return c, c.parseCost(value)
	case "size":
		return c, fmt.Errorf("%q: what a step costs with batches of another size can't be foretold; measure it with another size", text)
	}
	return c, fmt.Errorf("%q: what %s does to the cost of a stage can't be foretold.%s What can be is workers, prefetch and cost: how long an item takes, such as cost=0.5x or cost=12ms",
		text, c.Attribute, suggest.Sentence(c.Attribute, []string{Workers, Prefetch, Cost}))
}

// parseCost reads a factor, such as 0.5x, or a duration.
func (c *Change) parseCost(value string) error {
	if number, ok := strings.CutSuffix(value, "x"); ok {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || !(f >= 0) || f > 1e6 {
			return fmt.Errorf("%q: want a factor from 0x to 1000000x", c.text)
		}
		c.cost.factor = f
		return nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > 24*time.Hour {
		return fmt.Errorf("%q: want a factor such as 0.5x, or how long an item takes, such as 12ms", c.text)
	}
	c.cost.each = d.Seconds()
	return nil
}

// With predicts the rate of the pipeline with changes made to it, all at a time. The error is one that names a change which can't be
// made, and says what can.
func (m *Model) With(changes ...Change) (Prediction, error) {
	v := variant{segments: slices.Clone(m.segments), cost: make([]cost, m.train()+1)}
	for i := range v.cost {
		v.cost[i] = cost{factor: 1, each: -1}
	}
	seen := map[string]bool{}
	for _, c := range changes {
		if key := c.Address + "." + c.Attribute; seen[key] {
			return Prediction{}, fmt.Errorf("%q: %s is changed twice", c.text, key)
		} else {
			seen[key] = true
		}
		if err := m.apply(c, &v); err != nil {
			return Prediction{}, fmt.Errorf("%q: %w", c.text, err)
		}
	}
	return m.predict(v), nil
}

// apply makes a change to a variant.
func (m *Model) apply(c Change, v *variant) error {
	list := m.plan.Experiment.Stages
	if pool, ok := strings.CutPrefix(c.Address, "pool."); ok {
		return m.applyToPool(c, pool, v)
	}
	at := slices.IndexFunc(list, func(s engine.Stage) bool { return s.Address == c.Address })
	if at < 0 {
		var known []string
		for _, s := range list {
			known = append(known, s.Address)
		}
		return fmt.Errorf("there is no stage %s.%s The stages are %s", c.Address, suggest.Sentence(c.Address, known), strings.Join(known, ", "))
	}
	if c.Attribute == Cost {
		v.cost[at] = c.cost
		return nil
	}
	s := slices.IndexFunc(v.segments, func(g engine.Segment) bool { return g.First <= at && at <= g.Last })
	g := v.segments[s]
	crew := m.plan.Experiment.Crew(at)
	switch {
	case at == m.train():
		return fmt.Errorf("a training step has no %s", c.Attribute)
	case g.Pool != "":
		return fmt.Errorf("%s shares the workers of pool %s: ask for pool.%s.%s", c.Address, g.Pool, g.Pool, c.Attribute)
	case crew != at:
		return fmt.Errorf("%s shares the workers of %s: ask for %[2]s.%s", c.Address, list[crew].Address, c.Attribute)
	case c.Attribute == Workers && at > m.batch:
		return fmt.Errorf("one worker does the transfer, and what the device does has none")
	case c.Attribute == Prefetch && m.together(at) < g.Last:
		return fmt.Errorf("no queue is behind %s, whose workers go on to %s: ask for %[2]s.prefetch", c.Address, list[g.Last].Address)
	case c.Attribute == Prefetch:
		v.segments[s].Prefetch = c.Number
	default:
		v.segments = slices.Replace(v.segments, s, s+1, m.part(g, at, c.Number)...)
	}
	return nil
}

// together returns the last of the stages that always share the workers of one: the load blocks.
func (m *Model) together(stage int) int {
	e := m.plan.Experiment
	last := stage
	for last < m.train() && e.Crew(last+1) == e.Crew(stage) {
		last++
	}
	return last
}

// usualPrefetch is what a queue holds where its author doesn't say.
const usualPrefetch = 16

// part returns the segments that g falls into when its stage at has workers of its own, as the planner would make them: what shared
// workers with it before is then done by as many on either side. A batch block stays with the workers of the stage before.
func (m *Model) part(g engine.Segment, at, workers int) []engine.Segment {
	own := engine.Segment{First: at, Last: m.together(at), Workers: workers, Prefetch: usualPrefetch}
	if at+1 == m.batch && m.batch <= g.Last {
		own.Last = m.batch
	}
	var parts []engine.Segment
	if g.First < own.First {
		parts = append(parts, engine.Segment{First: g.First, Last: own.First - 1, Workers: g.Workers, Prefetch: usualPrefetch})
	}
	parts = append(parts, own)
	if own.Last < g.Last {
		parts = append(parts, engine.Segment{First: own.Last + 1, Last: g.Last, Workers: g.Workers})
	}
	parts[len(parts)-1].Prefetch = g.Prefetch
	return parts
}

// applyToPool makes a change to a pool block.
func (m *Model) applyToPool(c Change, name string, v *variant) error {
	at := slices.IndexFunc(v.segments, func(g engine.Segment) bool { return g.Pool != "" && g.Pool == name })
	switch {
	case at < 0:
		return fmt.Errorf("there is no pool %s", name)
	case c.Attribute == Workers:
		v.segments[at].Workers = c.Number
	case c.Attribute == Prefetch:
		v.segments[at].Prefetch = c.Number
	default:
		return fmt.Errorf("a pool has workers and prefetch; a cost is a stage's")
	}
	return nil
}

// Now returns how many workers or places a change is about now, or how long an item takes in seconds, the median of the rounds. It is
// NaN where the change can't be made.
func (m *Model) Now(c Change) float64 {
	for _, g := range m.segments {
		for i := g.First; i <= g.Last; i++ {
			if address := m.plan.Experiment.Stages[i].Address; address != c.Address && "pool."+g.Pool != c.Address {
				continue
			}
			switch c.Attribute {
			case Workers:
				return float64(g.Workers)
			case Prefetch:
				return float64(g.Prefetch)
			}
			d := m.rounds[byCPU][middle(m.rates)]
			seconds := d.cpu[i]/float64(max(d.threads, 1)) + d.wait[i]
			if i < m.train() {
				seconds = d.cpu[i] + d.wait[i]
			}
			if i <= m.batch {
				seconds /= float64(m.size) * m.shares[i]
			}
			return seconds
		}
	}
	return math.NaN()
}
