package engine

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// stream returns the items first to last of a stream.
func stream(first, last int64) (items []item) {
	for seq := first; seq <= last; seq++ {
		items = append(items, item{Item: stages.Item{Seq: seq}})
	}
	return items
}

// pops returns the places of the next n items.
func pops(q *queue[item], n int) (places []int64) {
	buf := make([]item, 1)
	for range n {
		synctest.Wait()
		q.pop(buf, newClock(time.Now(), 1))
		places = append(places, buf[0].place())
	}
	return places
}

// TestQueueOrder hands over items of late workers: those that are still in the queue come after them, and those that wait for room too.
func TestQueueOrder(t *testing.T) {
	for _, tt := range []struct {
		name     string
		capacity int
		pushes   [][]item
		want     []int64
	}{
		{"in order", 8, [][]item{stream(0, 2), stream(3, 3), stream(4, 5)}, []int64{0, 1, 2, 3, 4, 5}},
		{"one is late", 8, [][]item{stream(1, 4), stream(0, 0), stream(5, 5)}, []int64{0, 1, 2, 3, 4, 5}},
		{"several are late", 8, [][]item{stream(0, 0), stream(6, 7), stream(3, 5), stream(1, 2)}, []int64{0, 1, 2, 3, 4, 5, 6, 7}},
		{"all wait", 1, [][]item{stream(0, 0), stream(4, 6), stream(1, 3)}, []int64{0, 1, 2, 3, 4, 5, 6}},
		{"the rest of a chunk waits", 2, [][]item{stream(3, 6), stream(1, 2), stream(0, 0)}, []int64{3, 0, 1, 2, 4, 5, 6}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue[item](tt.capacity, len(tt.pushes))
				total := 0
				for _, values := range tt.pushes {
					total += len(values)
					go func() {
						if n := q.push(values, newClock(time.Now(), 1)); n != len(values) {
							t.Errorf("handed over %d of %d", n, len(values))
						}
					}()
					synctest.Wait()
				}
				if got := pops(q, total); !slices.Equal(got, tt.want) {
					t.Errorf("came in order %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestQueueClose ends the waits of producers, who keep what they couldn't hand over.
func TestQueueClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue[item](2, 2)
		var over [2]int
		for i := range over {
			go func() { over[i] = q.push(stream(int64(i)*3, int64(i)*3+2), newClock(time.Now(), 1)) }()
			synctest.Wait()
		}
		q.close()
		synctest.Wait()
		if want := [2]int{2, 0}; over != want {
			t.Errorf("handed over %v, want %v", over, want)
		}
		var left []int64
		q.drain(func(it item) { left = append(left, it.place()) })
		if want := []int64{0, 1}; !slices.Equal(left, want) {
			t.Errorf("left %v, want %v", left, want)
		}
	})
}
