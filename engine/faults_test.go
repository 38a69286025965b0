package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// inspectedSource is a load spec that knows which of its items are faulty.
type inspectedSource struct {
	countSource
	faults []int
}

func (s *inspectedSource) Open(context.Context, uint64) (stages.Source, error) {
	return openInspected{openCount{&s.countSource}, s.faults}, nil
}

type openInspected struct {
	openCount
	faults []int
}

func (s openInspected) Warning() string { return "Its end may be missing." }

func (s openInspected) Faults() iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for _, i := range s.faults {
			if !yield(i, errors.New("it is damaged")) {
				return
			}
		}
	}
}

// TestKnownFaults checks that what a source knows of its faults is told of when it is opened, whatever is read of it.
func TestKnownFaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		onError OnError
		most    int
		told    []string
		err     string
	}{
		{"fail", Fail, -1, nil, "load.items: item 3: it is damaged; so it is with 2 more items"},
		{"skip", Skip, -1, []string{"item 3: it is damaged", "item 7: it is damaged", "item 9: it is damaged"}, ""},
		{"too many", Skip, 2, []string{"item 3: it is damaged", "item 7: it is damaged", "item 9: it is damaged"},
			"load.items: item 9: more than max_skips = 2 items would be skipped: it is damaged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := chain(nil, 4, func(context.Context, *gpu.Batch) error { return nil })
			load := &e.Stages[0]
			load.Spec, load.OnError, load.MaxSkips = &inspectedSource{countSource{items: 10}, []int{3, 7, 9}}, tt.onError, tt.most
			var told, warned []string
			p, problems, err := Open(t.Context(), e, Options{
				OpenDevice: openHost,
				OnSkip:     func(it SkippedItem) { told = append(told, it.Item+": "+it.Reason) },
				OnWarning:  func(address, text string) { warned = append(warned, address+": "+text) },
			})
			if p != nil {
				defer p.Close()
			}
			if fmt.Sprint(err) != tt.err && (err != nil || tt.err != "") || len(problems) > 0 {
				t.Errorf("error %v, want %s, problems %v", err, tt.err, problems)
			}
			if diff := cmp.Diff(tt.told, told); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]string{"load.items: Its end may be missing."}, warned); diff != "" {
				t.Error(diff)
			}
		})
	}
}
