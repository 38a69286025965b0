package bisect_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/stages"
)

// reader is a load spec whose items take a while.
type reader struct {
	blanks
	time time.Duration
}

func (r reader) Open(context.Context, uint64) (stages.Source, error) { return r, nil }
func (r reader) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	time.Sleep(r.time)
	return r.blanks.Read(c, i, out)
}

// TestSeveralLoads finds which of several load blocks is slow, or that another stage is.
func TestSeveralLoads(t *testing.T) {
	type load struct {
		time   time.Duration
		weight float64
	}
	for _, tt := range []struct {
		name    string
		loads   []load
		workers int
		stages  []sleeper
		want    string // "": undecided
		note    string
	}{
		{"the second", []load{{ms, 1}, {40 * ms, 1}}, 1, []sleeper{{5 * ms, 1}}, "load.b", bisect.LoadBlocks},
		{"one that is rarely read", []load{{2 * ms, 9}, {200 * ms, 1}}, 1, nil, "load.b", bisect.LoadBlocks},
		{"one that is fast but often read", []load{{20 * ms, 9}, {50 * ms, 1}}, 2, nil, "load.a", bisect.LoadBlocks},
		{"the first of three", []load{{100 * ms, 1}, {5 * ms, 2}, {ms, 1}}, 2, nil, "load.a", bisect.LoadBlocks},
		{"alike", []load{{20 * ms, 1}, {20 * ms, 1}}, 1, nil, "", bisect.MergedStages},
		{"a stage below", []load{{ms, 1}, {10 * ms, 1}}, 1, []sleeper{{40 * ms, 1}}, "prepare.s1", ""},
		{"the step", []load{{ms, 1}, {5 * ms, 1}}, 1, []sleeper{{2 * ms, 1}}, "train.step", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := line{tt.stages, 4, 20 * ms}
				e := l.experiment(bisect.Bisection)
				var list []engine.Stage
				for i, s := range tt.loads {
					load := e.Stages[0]
					load.Address, load.Spec, load.Weight, load.Workers = "load."+string(rune('a'+i)), reader{time: s.time}, s.weight, tt.workers
					list = append(list, load)
				}
				e.Stages = slices.Concat(list, e.Stages[1:])
				r := searchFor(t, e)
				want := bisect.InputBound
				switch tt.want {
				case "":
					want = bisect.Undecided
				case "train.step":
					want = bisect.StepBound
				}
				if r.Bottleneck != tt.want || r.Verdict != want {
					t.Errorf("%s %q, want %s %q; notes %v", r.Verdict, r.Bottleneck, want, tt.want, r.Notes)
				}
				if named := r.Verdict == bisect.InputBound; named && (r.SpeedupIfFixed == nil) != strings.HasPrefix(r.Bottleneck, "load.") {
					t.Errorf("the speed-up of %s is %v", r.Bottleneck, r.SpeedupIfFixed)
				}
				for _, n := range r.Notes {
					if merged := n.Code == bisect.LoadBlocks || n.Code == bisect.MergedStages; merged && n.Code != tt.note {
						t.Errorf("it notes %q", n.Text)
					}
				}
				if tt.note != "" && !slices.ContainsFunc(r.Notes, func(n bisect.Note) bool { return n.Code == tt.note && strings.Contains(n.Text, "load.a") }) {
					t.Errorf("notes %v, want %s", r.Notes, tt.note)
				}
			})
		})
	}
}
