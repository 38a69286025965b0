package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Change is a row with the columns that it compares.
type Change struct {
	*Row
	Group *Group
	Pair  *Pair
}

// Changes returns every row of a comparison: the regressions first, the baselines' at their head and then by size, the improvements
// in the same order, then what doesn't differ significantly, and last what isn't known of both sides.
func (c *Comparison) Changes() []Change {
	var list []Change
	for i := range c.Groups {
		g := &c.Groups[i]
		for j := range g.Pairs {
			p := &g.Pairs[j]
			for k := range p.Probes {
				list = append(list, Change{&p.Probes[k], g, p})
			}
			for k := range p.Stages {
				list = append(list, Change{&p.Stages[k], g, p})
			}
		}
	}
	slices.SortStableFunc(list, func(x, y Change) int {
		return cmp.Or(cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.ratio(), x.ratio()))
	})
	return list
}

func (c Change) rank() int {
	switch {
	case c.Row.Change == nil:
		return 5
	case c.Effect() < 0 && c.Role == Baseline:
		return 0
	case c.Effect() < 0:
		return 1
	case c.Effect() > 0 && c.Role == Baseline:
		return 2
	case c.Effect() > 0:
		return 3
	}
	return 4
}

// ratio returns how many times the larger median of a significant change is the smaller; 1 for other rows, which keep their
// order.
func (c Change) ratio() float64 {
	if c.Row.Change == nil || c.Effect() == 0 {
		return 1
	}
	r := 1 + *c.Row.Change
	return math.Round(max(r, 1/r)*1e6) / 1e6 // what differs by rounding alone is alike
}

// Regressions returns the baselines that are slower than the reference's by more than threshold, a share of its step rate from 0
// to 1, and significantly so; the worst first. It returns an error where there is none but one of them can't tell, and where
// there is nothing to judge. Groups that only one side has runs of don't count.
func (c *Comparison) Regressions(threshold float64) ([]Change, error) {
	var found []Change
	var doubts []string
	judged := 0
	for i := range c.Groups {
		g := &c.Groups[i]
		for j := range g.Pairs {
			p := &g.Pairs[j]
			judged++
			switch r := p.Baseline(); {
			case r == nil:
				doubts = append(doubts, fmt.Sprintf("the baseline was not measured in both %s and %s%s: run both again",
					p.A.Label, p.B.Label, c.of(g)))
			case !r.Difference.Detectable:
				doubts = append(doubts, fmt.Sprintf("%d and %d %s of the baseline%s are too few to judge a regression at confidence %g: %s",
					r.Difference.N1, r.Difference.N2, g.Unit, c.of(g), c.Confidence, g.Unit.remedy()))
			case r.Effect() < 0 && -*r.Change > threshold:
				found = append(found, Change{r, g, p})
			}
		}
	}
	slices.SortStableFunc(found, func(x, y Change) int { return cmp.Compare(y.ratio(), x.ratio()) })
	switch {
	case len(found) > 0:
		return found, nil
	case len(doubts) > 0:
		return nil, fmt.Errorf("%s", strings.Join(doubts, "; "))
	case judged == 0:
		return nil, fmt.Errorf("the reference, %s, has no runs of an experiment that others have, so a regression can't be judged", c.Columns[0].Name)
	}
	return nil, nil
}

// remedy says what makes a sample larger.
func (u Unit) remedy() string {
	if u == Rounds {
		return "run with more rounds"
	}
	return "measure each more often"
}

// of names a group in a message: " of photos"; "" where there is only one.
func (c *Comparison) of(g *Group) string {
	if len(c.Groups) < 2 {
		return ""
	}
	return " of " + g.Name(c)
}

// Name names a group among those of a comparison: by its experiment, and by its host where another group has the same experiment.
func (g *Group) Name(c *Comparison) string {
	name := strings.Join(g.Experiments, ", ")
	for i := range c.Groups {
		if other := &c.Groups[i]; other != g && slices.Equal(other.Experiments, g.Experiments) && len(g.Hosts) > 0 {
			return name + " on " + several(g.Hosts)
		}
	}
	return name
}

// several joins names, of many the first alone.
func several(names []string) string {
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
	}
	return strings.Join(names, ", ")
}
