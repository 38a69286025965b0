package predict

import "math"

// crowd is some threads that want a core with the same probability at any moment.
type crowd struct {
	threads int
	wants   float64
}

// mostThreads is how many threads are looked at one by one. Among more, their number that wants a core hardly varies.
const mostThreads = 64

// stretch returns how many times as long work takes that a thread does on cores which it shares evenly with others: the
// mean of max(1, runnable/cores), the thread itself being runnable. The others are taken as independent of one another,
// as in mean value analysis (Reiser and Lavenberg, Journal of the ACM 27(2), 1980); they are in a line whose queues
// decouple its stations.
func stretch(others []crowd, cores float64) float64 {
	n, mean := 0, 0.0
	for _, c := range others {
		n += c.threads
		mean += float64(c.threads) * c.wants
	}
	switch {
	case float64(n+1) <= cores:
		return 1
	case n > mostThreads:
		return max(1, (1+mean)/cores)
	}
	p := make([]float64, 1, n+1) // p[k]: k of them are runnable
	p[0] = 1
	for _, c := range others {
		for range c.threads {
			p = append(p, 0)
			for k := len(p) - 1; k > 0; k-- {
				p[k] += (p[k-1] - p[k]) * c.wants
			}
			p[0] *= 1 - c.wants
		}
	}
	sum := 0.0
	for k, v := range p {
		sum += v * max(1, float64(1+k)/cores)
	}
	return sum
}

// crowds returns who shares the cores with one thread of station s, or with something outside the stations where s is
// negative, when a step takes time seconds.
func crowds(line []station, factor []float64, extra, time float64, s int) []crowd {
	var list []crowd
	for i, st := range line {
		c := crowd{st.workers * st.threads, 0}
		c.wants = min(1, factor[i]*st.cpu/(float64(c.threads)*time))
		if i == s {
			c.threads--
		}
		if c.wants > 0 && c.threads > 0 {
			list = append(list, c)
		}
	}
	if extra > 0 {
		n := max(1, int(math.Ceil(extra/time)))
		list = append(list, crowd{n, min(1, extra/time/float64(n))})
	}
	return list
}
