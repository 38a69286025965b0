package bisect_test

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/gpu/devices"
	"github.com/pipectl/pipectl/stages"
)

// disk is a load spec whose items come from files: slowly from the disk, and fast once they are in the page cache. It is the page
// cache too.
type disk struct {
	blanks
	items int
	mu    sync.Mutex
	warm  map[string]bool
}

func (d *disk) Len() int                                            { return d.items }
func (d *disk) Open(context.Context, uint64) (stages.Source, error) { return d, nil }

func (d *disk) Files() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range d.items {
			if !yield(d.Name(i)) {
				return
			}
		}
	}
}

func (d *disk) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	d.mu.Lock()
	warm := d.warm[d.Name(i)]
	d.warm[d.Name(i)] = true
	d.mu.Unlock()
	if !warm {
		time.Sleep(20 * ms)
	}
	return d.blanks.Read(c, i, out)
}

func (d *disk) Drop(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.warm, path)
	return nil
}

func (d *disk) Resident(path string) (resident, pages int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.warm[path] {
		return 1, 1, nil
	}
	return 0, 1, nil
}

// TestPageCacheOfADisk searches one pipeline with its data on a disk, in virtual time: with the page cache warming up, warm, and cold.
// Reading is the bottleneck of a cold run alone.
func TestPageCacheOfADisk(t *testing.T) {
	for _, tt := range []struct {
		name       string
		warm, cold bool
		bottleneck string
		label      bisect.PageCache
		codes      []string
	}{
		{"warming up", false, false, "prepare.decode", bisect.Warm, []string{bisect.CacheWarming}},
		{"warm", true, false, "prepare.decode", bisect.Warm, nil},
		{"cold", false, true, "load.files", bisect.Cold, []string{bisect.ColdCache}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &disk{items: 150, warm: map[string]bool{}}
				if tt.warm {
					for path := range d.Files() {
						d.warm[path] = true
					}
				}
				e := line{[]sleeper{{10 * ms, 1}}, 2, 6 * ms}.experiment(bisect.Bisection)
				e.Stages[0].Address, e.Stages[0].Spec, e.Stages[1].Address = "load.files", d, "prepare.decode"
				e.Bisect.Cold = tt.cold
				p, problems, err := engine.Open(t.Context(), e, engine.Options{OpenDevice: devices.Open, Cores: 2, PageCache: d})
				if err != nil || len(problems) > 0 {
					t.Fatal(err, problems)
				}
				defer p.Close()
				r, err := bisect.Search(t.Context(), p.Plan, p, bisect.Options{Cores: 2})
				if err != nil {
					t.Fatal(err)
				}
				var codes []string
				for _, n := range r.Notes {
					codes = append(codes, n.Code)
				}
				if r.Bottleneck != tt.bottleneck || r.PageCache != tt.label || !slices.Equal(codes, tt.codes) {
					t.Errorf("%s %q, page cache %q, notes %v; want %s, %q, %v", r.Verdict, r.Bottleneck, r.PageCache, r.Notes, tt.bottleneck, tt.label, tt.codes)
				}
			})
		})
	}
}
