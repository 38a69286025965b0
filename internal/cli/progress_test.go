package cli

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
)

// playProgress shows a session of two probes, each with an interval every 4 s, and returns what was written.
func playProgress(term ui.Terminal, interval time.Duration) string {
	var out bytes.Buffer
	probes := []engine.Probe{{}, {To: 2}}
	current := probes[0]
	p := &progress{w: &out, term: term, began: time.Now(), addresses: []string{"load.a", "prepare.b", "train.c"}, quit: make(chan struct{})}
	p.live = func() (engine.Live, bool) {
		iv := engine.Interval{Steps: 20, Elapsed: 10 * time.Second}
		for _, a := range p.addresses {
			iv.Stages = append(iv.Stages, engine.Account{Address: a, Workers: 2, Busy: 5 * time.Second})
		}
		return engine.Live{Probe: current, Elapsed: 10 * time.Second, Interval: iv}, true
	}
	p.wg.Go(func() { p.loop(interval) })
	for i, probe := range probes {
		p.probe(bisect.ProbeStarted{Probe: probe, Number: i + 1, Expected: 2})
		for round := range 3 {
			time.Sleep(4 * time.Second)
			p.mu.Lock() // is held while live is called
			current = probe
			p.mu.Unlock()
			p.round(bisect.RoundDone{Probe: probe, Round: round + 1, Done: 3*i + round + 1, Expected: 6})
		}
	}
	p.close()
	return out.String()
}

func TestProgressLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := `probe 1 of about 2, the pipeline as it is: 2 of about 6 intervals, 2.00 steps/s, about 0:18 min left
probe 2 of about 2, from a cache: load.a … prepare.b: 4 of about 6 intervals, 2.00 steps/s, about 0:09 min left
`
		if got := playProgress(ui.Terminal{Width: 80}, 9*time.Second); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}

func TestProgressOnTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const erase = "\x1b[5A\x1b[J"
		want := `probe 1 of about 2, the pipeline as it is
########                 2 of about 6 intervals, 2.00 steps/s, about 0:18 min left
load.a     ##########                                25 %
prepare.b  ##########                                25 %
train.c    ##########                                25 %
` + erase + `probe 2 of about 2, from a cache: load.a … prepare.b
################         4 of about 6 intervals, 2.00 steps/s, about 0:09 min left
load.a     ##########                                25 %
prepare.b  ##########                                25 %
train.c    ##########                                25 %
` + erase
		if got := playProgress(ui.Terminal{Width: 100, Interactive: true, ASCII: true}, 9*time.Second); got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	})
}
