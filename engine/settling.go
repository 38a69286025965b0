package engine

import "time"

const (
	settlingSamples = 64 // that the step eats between two looks at what the stages have made
	mostSettling    = 3 * time.Second
	// settled is by how much more than the step eats a stage may make.
	settled = 0.02
	// roomy is the share of busy cores up to which workers don't keep each other from them.
	roomy = 0.7
)

// settling tells when a run that began with empty queues has come into its steady state, in which every stage makes as much as the
// step eats. While the queues fill, workers are busy for samples that the step doesn't eat yet, and where they share cores that keeps
// the samples back that it waits for.
type settling struct {
	run   *run
	cpu   time.Duration // used before the run
	began time.Duration // when the warm-up proper was over; 0 before
	eaten int64         // samples, by the step, at the last look
	made  []int64       // by each segment until then
}

func newSettling(r *run) *settling { return &settling{run: r, cpu: r.p.cpuTime()} }

// over reports whether the queues have stopped filling, or have had time enough. It is asked after each step from the end of the
// warm-up on.
func (s *settling) over() bool {
	r := s.run
	if r.feeder == nil {
		return true // a pool elsewhere keeps as many batches under way as it may, from the start on
	}
	now, eaten := time.Since(r.start), r.samples.Load()
	first := s.began == 0
	late := !first && now-s.began >= mostSettling
	switch {
	case first && s.uncontended(now):
		return true
	case !first && !late && eaten-s.eaten < settlingSamples:
		return false
	}
	made := r.made()
	most := (1 + settled) * float64(eaten-s.eaten)
	over := late || !first && s.balanced(made, most)
	if first {
		s.began = now
	}
	s.eaten, s.made = eaten, made
	return over
}

// balanced reports whether no segment made more than so many items since the last look.
func (s *settling) balanced(made []int64, most float64) bool {
	for i, n := range made {
		if float64(n-s.made[i]) > most {
			return false
		}
	}
	return true
}

// made returns how many items each segment of item stages has made since the start.
func (r *run) made() []int64 {
	var list []int64
	for s, pool := range r.pools {
		last := 1
		if loads := len(r.plan.Experiment.Loads()); r.plan.Segments[s].Last < loads {
			last = loads
		}
		var n int64
		for _, c := range pool {
			n += c.made(last)
		}
		list = append(list, n)
	}
	return list
}

// uncontended reports whether there was a core for everyone since the run began.
func (s *settling) uncontended(now time.Duration) bool {
	cores, cpu := s.run.p.opts.Cores, s.run.p.cpuTime()
	return cores > 0 && s.cpu >= 0 && cpu >= 0 && (cpu-s.cpu).Seconds() < roomy*float64(cores)*now.Seconds()
}
