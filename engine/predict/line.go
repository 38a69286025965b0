package predict

import "math"

// station is a segment of a pipeline at work. Its times are seconds a step, summed over its workers.
type station struct {
	first, last int // stages
	workers     int
	threads     int // on which each worker's CPU time is spread
	cpu, wait   float64
	varies      float64 // squared coefficient of variation of the work on one item
	batch       int     // items in a batch; 1 where its items are batches
	room        float64 // what the queue behind it holds, in batches
}

// takes returns the seconds a step that the station needs where CPU work takes factor times as long.
func (s *station) takes(factor float64) float64 {
	return (factor*s.cpu/float64(s.threads) + s.wait) / float64(s.workers)
}

// slots returns the batches that the station's workers hold.
func (s *station) slots() float64 { return float64(s.workers) / float64(s.batch) }

const (
	settled    = 1e-7 // relative change at which an iteration ends
	iterations = 200
)

// throughput returns the batches a second of stations that take times, and that queues of limited size connect.
//
// Where their work varies, a station now and then has nothing to work on or no room for what it has done, and a line is slower
// than its slowest station. Each queue is looked at with what comes before it as one server and what comes behind
// as another, whose rates follow from what its neighbours do: the decomposition of Gershwin (Operations Research 35(2),
// 1987) in its form for servers that never fail (Dallery and Frein, Operations Research 41(2), 1993).
func throughput(line []station, times []float64) float64 {
	n := len(line) - 1 // queues
	rate := func(i int) float64 { return 1 / max(times[i], 1e-12) }
	slowest, varies := math.Inf(1), false
	for i := range line {
		slowest = min(slowest, rate(i))
		varies = varies || line[i].varies > 0
	}
	if n == 0 || !varies {
		return slowest
	}
	up, down, x := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		up[i], down[i] = rate(i), rate(i+1)
		x[i] = pair(up[i], down[i], line[i], line[i+1])
	}
	least := slowest
	for range iterations {
		before := least
		for i := 1; i < n; i++ {
			up[i] = 1 / max(1/x[i-1]+1/rate(i)-1/down[i-1], 1/rate(i))
			x[i] = pair(up[i], down[i], line[i], line[i+1])
		}
		for i := n - 2; i >= 0; i-- {
			down[i] = 1 / max(1/x[i+1]+1/rate(i+1)-1/up[i+1], 1/rate(i+1))
			x[i] = pair(up[i], down[i], line[i], line[i+1])
		}
		least = slowest
		for _, v := range x {
			least = min(least, v)
		}
		if math.Abs(least-before) < settled*before {
			break
		}
	}
	return least
}

// pair returns the throughput of two stations with rates u and d, and a queue between them.
//
// What the queue and the stations hold is taken as a Brownian motion between two walls, b apart (Harrison, Brownian Motion and
// Stochastic Flow Systems, 1985, chapter 5), whose drift is the difference of the rates. One item beyond what they
// hold makes it exact for exponential times: it is Hunt's result then (Operations Research 4(6), 1956).
func pair(u, d float64, a, b station) float64 {
	least, varies := min(u, d), a.varies/float64(a.batch)+b.varies/float64(b.batch)
	if varies <= 0 {
		return least
	}
	grain := 1.0 // an item, in batches
	if a.batch > 1 && b.batch > 1 {
		grain = 1 / float64(a.batch)
	}
	k := 2 * (a.room + a.slots() + b.slots() + grain) / varies
	alternating := 1 / (1/u + 1/d) // no variation is worse than working by turns
	r := u / d
	var x float64
	switch e := k * math.Log(r); {
	case math.Abs(e) < 1e-6:
		x = least * (k - 1) / k
	case e > 300:
		x = d
	case e < -300:
		x = u
	default:
		x = d * (math.Exp(e) - r) / math.Expm1(e)
	}
	return min(max(x, alternating), least)
}
