package predict

import (
	"math"
	"math/rand/v2"
	"testing"
)

// stationsOf returns stations of one worker with exponential times, and room between them.
func stationsOf(times []float64, room int, varies float64) []station {
	var line []station
	for range times {
		line = append(line, station{workers: 1, threads: 1, batch: 1, varies: varies, room: float64(room)})
	}
	return line
}

// TestExponentialPairs compares two stations with Hunt's exact result: with room for z items between them they are a
// birth and death process of z + 2 items at most.
func TestExponentialPairs(t *testing.T) {
	for _, u := range []float64{0.3, 0.9, 1, 1.2, 5} {
		for _, room := range []int{0, 1, 5, 30} {
			idle, sum := 1.0, 0.0
			for k := 0; k <= room+2; k++ {
				sum += math.Pow(u, float64(k))
			}
			want := 1 - idle/sum
			times := []float64{1 / u, 1}
			if got := throughput(stationsOf(times, room, 1), times); math.Abs(got-want) > 1e-6 {
				t.Errorf("rates %g and 1, room %d: %g, want %g", u, room, got, want)
			}
		}
	}
}

// simulate returns the throughput of a line of single workers whose times are drawn, as the departures of each item from each
// station follow from those before it: blocking after service.
func simulate(times []float64, room, items int, draw func() float64) float64 {
	n := len(times)
	history := make([][]float64, 0, items) // when each item left each station
	for i := range items {
		left := make([]float64, n)
		ready := 0.0
		for s := range n {
			start := ready
			if i > 0 {
				start = max(start, history[i-1][s])
			}
			left[s] = start + times[s]*draw()
			if s+1 < n && i > room { // its place is free once the item so many before it has left the next station
				left[s] = max(left[s], history[i-room-1][s+1])
			}
			ready = left[s]
		}
		history = append(history, left)
	}
	from := items / 10
	return float64(items-from-1) / (history[items-1][n-1] - history[from][n-1])
}

// TestLines compares lines of up to six stations with simulations of them.
func TestLines(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, tt := range []struct {
		name   string
		varies float64
		draw   func() float64
		limit  float64
	}{
		{"steady", 0, func() float64 { return 1 }, 1e-3},
		{"uniform", 1. / 12, func() float64 { return 0.5 + rng.Float64() }, 0.05},
		{"exponential", 1, rng.ExpFloat64, 0.08},
	} {
		for _, room := range []int{1, 4, 16} {
			for n := 2; n <= 6; n++ {
				times := make([]float64, n)
				for i := range times {
					times[i] = 0.5 + 0.5*rng.Float64()
				}
				want := simulate(times, room, 40_000, tt.draw)
				got := throughput(stationsOf(times, room, tt.varies), times)
				if math.Abs(got/want-1) > tt.limit {
					t.Errorf("%s, room %d, times %.2g: %.4g, simulated %.4g", tt.name, room, times, got, want)
				}
			}
		}
	}
}

func TestStretch(t *testing.T) {
	for _, tt := range []struct {
		others []crowd
		cores  float64
		want   float64
	}{
		{nil, 2, 1},
		{nil, 0.5, 2},
		{[]crowd{{1, 1}}, 2, 1},
		{[]crowd{{1, 1}}, 1, 2},
		{[]crowd{{3, 1}}, 2, 2},
		{[]crowd{{2, 0.5}}, 2, 1.125},        // one time in four there are three
		{[]crowd{{1, 0.5}, {1, 1}}, 1, 2.5},  // two or three
		{[]crowd{{200, 0.5}}, 10, 101. / 10}, // about half of them
	} {
		if got := stretch(tt.others, tt.cores); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%v on %g cores: %g, want %g", tt.others, tt.cores, got, tt.want)
		}
	}
}
