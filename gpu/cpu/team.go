package cpu

import (
	"sync"
	"sync/atomic"
)

// team is the caller and some goroutines, which share out the rounds of a loop. It allocates nothing per loop.
type team struct {
	members int
	start   chan struct{}  // one value wakes one goroutine
	busy    sync.WaitGroup // goroutines in the loop
	ended   sync.WaitGroup

	rounds int64
	next   atomic.Int64
	do     func(member, round int)
}

func newTeam(members int) *team {
	t := &team{members: members, start: make(chan struct{}, members)}
	for member := 1; member < members; member++ {
		t.ended.Go(func() {
			for range t.start {
				t.share(member)
				t.busy.Done()
			}
		})
	}
	return t
}

// run calls do for each round from 0 to rounds-1 and returns when all have returned. No two calls with the same member
// overlap.
func (t *team) run(rounds int, do func(member, round int)) {
	t.rounds, t.do = int64(rounds), do
	t.next.Store(0)
	helpers := min(t.members, rounds) - 1
	for range helpers {
		t.busy.Add(1)
		t.start <- struct{}{}
	}
	t.share(0)
	t.busy.Wait()
}

func (t *team) share(member int) {
	for round := t.next.Add(1) - 1; round < t.rounds; round = t.next.Add(1) - 1 {
		t.do(member, int(round))
	}
}

// close ends the goroutines.
func (t *team) close() {
	close(t.start)
	t.ended.Wait()
}
