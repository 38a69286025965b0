package bisect

import (
	"slices"

	"github.com/pipectl/pipectl/engine"
)

// fits is the share of the threshold that a range is cut to where its gain is foreseen.
const fits = 0.8

// next returns the probes that the search needs most: none once every unit but the suspect is covered by a range that
// gains less than it.
//
// The accounting of the baseline only chooses where to look first, never whom to name: the unit that it says is the
// busiest is isolated at once, and with it the ranges on both sides of it, which is all that the certificate needs if
// it is right. If not, these probes have halved the search as any others would.
func (s *session) next() []engine.Probe {
	suspect := s.suspect()
	if s.dominates(suspect) {
		return nil
	}
	if u := s.guess(); u >= 0 && suspect == nil && s.find(s.unit(u)) == nil {
		limit := s.foreseen(u)
		list := append([]engine.Probe{s.unit(u)}, s.pieces(0, u, limit)...)
		list = append(list, s.pieces(u+1, s.units(), limit)...)
		return slices.DeleteFunc(list, func(p engine.Probe) bool { return s.find(p) != nil })
	}
	var best *stretch
	var unknown []engine.Probe
	for _, r := range s.stretches(suspect) {
		switch {
		case !r.known:
			unknown = append(unknown, s.pieces(r.from, r.to, s.threshold(suspect))...)
		case best == nil || r.gain > best.gain:
			best = &r
		}
	}
	if best == nil {
		return unknown
	}
	return []engine.Probe{s.split(*best, s.threshold(suspect))}
}

// stretch is a range of units, from … to-1, that no probe has excluded nor told apart yet.
type stretch struct {
	from, to int
	known    bool    // a probe tells what the stretch gains, because all else that it makes free is excluded
	gain     float64 // at most, if known
	rest     float64 // of gain, without what the excluded parts gain by themselves
}

// stretches returns what is open, in the pipeline's order.
func (s *session) stretches(suspect *series) []stretch {
	open := make([]bool, s.units())
	for u := range open {
		open[u] = s.find(s.unit(u)) == nil && s.cover(u, suspect) == nil
	}
	var list []stretch
	for u := 0; u < len(open); u++ {
		if !open[u] {
			continue
		}
		r := stretch{from: u}
		for u+1 < len(open) && open[u+1] && s.alike(u, u+1, suspect) {
			u++
		}
		r.to = u + 1
		s.weigh(&r, open, suspect)
		list = append(list, r)
	}
	return list
}

// usable reports whether a series tells something about what is beside the suspect.
func (s *session) usable(x *series, suspect *series) bool {
	return len(x.intervals) > 0 && !(suspect != nil && contains(x.probe, suspect.probe))
}

// alike reports whether the same probes make units u and v free, so that nothing has told them apart.
func (s *session) alike(u, v int, suspect *series) bool {
	return !slices.ContainsFunc(s.series, func(x *series) bool {
		return s.usable(x, suspect) && contains(x.probe, s.unit(u)) != contains(x.probe, s.unit(v))
	})
}

// weigh looks for the probe that tells most about a stretch's gain: one that makes it free and apart from it only what
// is excluded. Where no unit is worth naming yet, single units don't count as excluded: two that hold the pipeline up
// together gain nothing each, and the rest must be asked by itself.
func (s *session) weigh(r *stretch, open []bool, suspect *series) {
	whole := engine.Probe{From: s.bounds[r.from], To: s.bounds[r.to]}
	for _, x := range s.series {
		if !s.usable(x, suspect) || !contains(x.probe, whole) {
			continue
		}
		var parts []*series
		only := true
		for u := range open {
			if !contains(x.probe, s.unit(u)) || r.from <= u && u < r.to {
				continue
			}
			if open[u] || suspect == nil && s.bounds[u] > 0 && s.find(s.unit(u)) != nil {
				only = false
				break
			}
			if c := s.cover(u, suspect); c != nil && contains(x.probe, c.probe) && !slices.Contains(parts, c) {
				parts = append(parts, c)
			}
		}
		if !only {
			continue
		}
		gain := max(s.gain(x), s.threshold(suspect)) // where it is less, it is coarse or not trusted
		rest := gain
		for _, c := range parts {
			rest -= max(s.gain(c), 0)
		}
		if !r.known || gain < r.gain {
			r.known, r.gain, r.rest = true, gain, rest
		}
	}
}

// split returns the probe that takes a known stretch apart. Where it gains more than its units would if none were worth
// more than the threshold, one of them is likely to be: that is hunted for by halving. Otherwise they are excluded in as
// few pieces as will do.
func (s *session) split(r stretch, threshold float64) engine.Probe {
	n := r.to - r.from
	if n == 1 {
		return s.unit(r.from)
	}
	whole := engine.Probe{From: s.bounds[r.from], To: s.bounds[r.to]}
	if r.rest < fits*threshold && s.find(whole) == nil {
		return whole
	}
	w := s.weights(r.from, r.to)
	limit := fits * threshold / r.rest
	if r.rest > threshold*float64(n) {
		limit = 0.5
	}
	sum, k := w[0], 1
	for k < n-1 && sum+w[k] <= limit {
		sum += w[k]
		k++
	}
	return s.through(stretch{from: r.from, to: r.from + k})
}

// pieces returns probes that make the units from … to-1 free: all at once, unless the accounting foresees that this gains
// about limit or more.
func (s *session) pieces(from, to int, limit float64) []engine.Probe {
	var list []engine.Probe
	for from < to {
		k := from + 1
		for sum := s.foreseen(from); k < to && sum+s.foreseen(k) <= fits*limit; k++ {
			sum += s.foreseen(k)
		}
		list = append(list, s.through(stretch{from: from, to: k}))
		from = k
	}
	return list
}

// foreseen returns what the accounting lets expect of unit u's gain, in seconds a step: the times of the stages that the
// busiest workers execute add up, and others matter only where these are faster.
func (s *session) foreseen(u int) float64 {
	load := s.first()
	busiest := s.segmentOf(max(s.busiest(load, s.train()), 0))
	sum := 0.0
	for i := max(s.bounds[u], busiest.First); i < min(s.bounds[u+1], busiest.Last+1); i++ {
		sum += load[i] * s.baseTime()
	}
	return sum
}

// through returns the probe that makes a stretch free: the checkpoint behind it where what lies above is known to gain
// nothing, since that adds to the table of checkpoints, or else the stretch alone.
func (s *session) through(r stretch) engine.Probe {
	p := engine.Probe{From: s.bounds[r.from], To: s.bounds[r.to]}
	above := s.find(engine.Probe{To: p.From})
	checkpoint := engine.Probe{To: p.To}
	if above != nil && s.gain(above) < s.least() && s.find(checkpoint) == nil && !p.Suffix() {
		return checkpoint
	}
	return p
}

// weights foresees how a range's gain falls to its units, from the baseline's accounting; the weights add up to 1. A
// share is even, so that an accounting that is wrong can't make a halving degenerate.
func (s *session) weights(from, to int) []float64 {
	load := s.first()
	w := make([]float64, to-from)
	sum := 0.0
	for i := range w {
		for k := s.bounds[from+i]; k < s.bounds[from+i+1]; k++ {
			w[i] += load[k]
		}
		sum += w[i]
	}
	for i := range w {
		even := 1 / float64(len(w))
		if sum > 0 {
			w[i] = (w[i]/sum + even) / 2
		} else {
			w[i] = even
		}
	}
	return w
}
