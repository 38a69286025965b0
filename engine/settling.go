package engine

import "time"

const (
	settlingSamples = 64                     // that the step eats between two looks at how many are under way
	settlingTime    = 100 * time.Millisecond // between two looks at the most
	mostSettling    = time.Second
	// settled is how many samples more than before may be under way, for each that the step ate.
	settled = 0.02
	// roomy is the share of busy cores up to which workers don't keep each other from them.
	roomy = 0.7
)

// settling tells when a run that began with empty queues has come into its steady state. While the queues fill, workers are busy for
// samples that the step doesn't eat yet, and where they share cores that keeps the samples back that it waits for.
type settling struct {
	run   *run
	cpu   time.Duration // used before the run
	began time.Duration // when the warm-up proper was over; 0 before
	at    time.Duration // of the last look
	under int64         // samples under way then
	eaten int64         // by the step until then
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
	switch {
	case first && s.uncontended(now):
		return true
	case !first && eaten-s.eaten < settlingSamples && now-s.at < settlingTime:
		return false
	}
	under := r.feeder.dealt() - eaten
	over := !first && (now-s.began > mostSettling || float64(under-s.under) <= settled*float64(eaten-s.eaten))
	if first {
		s.began = now
	}
	s.at, s.under, s.eaten = now, under, eaten
	return over
}

// uncontended reports whether there was a core for everyone since the run began.
func (s *settling) uncontended(now time.Duration) bool {
	cores, cpu := s.run.p.opts.Cores, s.run.p.cpuTime()
	return cores > 0 && s.cpu >= 0 && cpu >= 0 && (cpu-s.cpu).Seconds() < roomy*float64(cores)*now.Seconds()
}
