package bisect

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
)

// TestControl parts waiting for data from fighting for the CPU.
func TestControl(t *testing.T) {
	same := func(v float64) *Estimate { return &Estimate{v, v, v} }
	for _, tt := range []struct {
		name            string
		m               sim
		want            string // bottleneck
		waiting, fights *Estimate
		note            string
	}{
		{"the step burns CPU, and never waits", sim{cost: []float64{5, 9}, step: 20, drag: 3, used: 1.5}, "train.step", same(0), same(3),
			"Beside a burner of as much CPU time as the stages take, 4.5 ms a step, the step alone takes 23 ms instead of 20: that is all that the pipeline takes longer. The step fights for the CPU with the stages and doesn't wait for data: it gets faster where they compute less, and not by more workers."},
		{"waiting alone", sim{cost: []float64{1, 30}, step: 20, used: 1}, "prepare.s1", same(10), same(0),
			"Beside a burner of as much CPU time as the stages take, 10 ms a step (of which it got to burn 0), the step alone is no slower: what the pipeline takes longer, 10 ms a step, is waiting for data."},
		{"both", sim{cost: []float64{1, 30}, step: 20, drag: 4, used: 1}, "prepare.s1", same(6), same(4),
			"Beside a burner of as much CPU time as the stages take, 10 ms a step (of which it got to burn 4), the step alone takes 24 ms instead of 20. Of the 10 ms a step that the pipeline takes longer, 40 % is fighting for the CPU, and the rest waiting for data."},
		{"noise", sim{cost: []float64{5, 9}, step: 20, drag: 3, used: 1.5, noise: 0.3, rng: rand.New(rand.NewPCG(1, 1))}, "train.step", nil, nil,
			"Beside a burner of as much CPU time as the stages take, 3.76 ms a step, the step alone takes 24.6 ms instead of 20.9, but the rounds differ too much to tell whether it is slower (-13.6 to 17.1 ms). More rounds may tell."},
		{"stages that wait themselves", sim{cost: []float64{1, 30}, step: 20, drag: 4, used: 0.001}, "prepare.s1", nil, nil,
			"There is no need of a control: the stages take 0.01 ms of CPU time a step, too little to slow the step down."},
		{"unknown", sim{cost: []float64{1, 30}, step: 20}, "prepare.s1", nil, nil, "There is no control: how much CPU time the stages take is unknown."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.m.cores = 4
			r := tt.m.search(t, func(p *engine.Plan) { p.Experiment.Bisect.Control = true })
			if r.Bottleneck != tt.want {
				t.Errorf("%s %q, want %q", r.Verdict, r.Bottleneck, tt.want)
			}
			got := ""
			for _, n := range r.Notes {
				if n.Code == Controlled {
					got += n.Text
				}
			}
			if d := cmp.Diff(tt.note, got); d != "" {
				t.Errorf("note (-want +got):\n%s", d)
			}
			if (r.Control == nil) != strings.HasPrefix(tt.note, "There is no") {
				t.Fatalf("control %+v", r.Control)
			}
			if tt.waiting == nil {
				return
			}
			round := cmp.Transformer("round", func(v float64) int { return int(v*1e3 + 0.5) })
			if d := cmp.Diff([]*Estimate{tt.waiting, tt.fights}, []*Estimate{r.Control.WaitingMS, r.Control.InterferenceMS}, round); d != "" {
				t.Errorf("waiting and interference in ms (-want +got):\n%s", d)
			}
			if len(r.Control.Rounds) < 6 || r.Control.Probe != (engine.Probe{To: len(tt.m.cost), Burn: r.Control.Probe.Burn}) || r.Control.Probe.Burn <= 0 {
				t.Errorf("%d rounds of %v", len(r.Control.Rounds), r.Control.Probe)
			}
		})
	}
}

// TestNoControl measures none where none is asked for.
func TestNoControl(t *testing.T) {
	m := &sim{cost: []float64{5, 9}, step: 20, drag: 3, used: 1.5, cores: 4}
	if r := m.search(t, nil); r.Control != nil {
		t.Errorf("%+v", r.Control)
	}
	for p := range m.probes {
		if p.Burn > 0 {
			t.Errorf("%v was measured", p)
		}
	}
}
