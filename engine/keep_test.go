package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// kept is an experiment whose second stage's output is kept.
type kept struct {
	*Experiment
	source *countSource
	folder string
	made   atomic.Int64 // items that the stage above the checkpoint made
	eaten  []uint64     // hashes of batches
	warned []string
	mu     sync.Mutex
}

// newKept makes one of 50 items in batches of 8: the last two are left out of an epoch.
func newKept(t *testing.T) *kept {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte("numbers"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kept{folder: filepath.Join(dir, "cache"), source: &countSource{items: 50, shuffle: true, files: []string{file}}}
	count := func(c *stages.Call, in, out *stages.Element) error {
		k.made.Add(1)
		return uneven(c, in, out)
	}
	k.Experiment = chain(k.source, 8, hashStep(&k.eaten), prepare("a", count), augment("b", noise))
	for i := range 3 {
		k.Stages[i].Workers = 3
	}
	k.Stages[1].Checkpoint = &Checkpoint{Name: "decoded", Store: DiskStore, Mode: KeepMode, Path: k.folder}
	return k
}

func openHost(string) (gpu.Device, error) { return new(hostDevice), nil }

func (k *kept) options() Options {
	return Options{OpenDevice: openHost, OnWarning: func(address, text string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.warned = append(k.warned, address+": "+strings.ReplaceAll(text, k.folder, "FOLDER"))
	}}
}

// open opens the experiment until the test ends.
func (k *kept) open(t *testing.T) *Pipeline { return openWith(t, k.Experiment, k.options()) }

// train trains, and returns what the step ate and how many items were made for it.
func (k *kept) train(t *testing.T, epochs int) (batches []uint64, made int64) {
	t.Helper()
	p, problems, err := Open(t.Context(), k.Experiment, k.options())
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	k.eaten = nil
	k.made.Store(0)
	err = p.Train(t.Context(), epochs, nil, nil)
	if err := errors.Join(err, p.Close()); err != nil {
		t.Fatal(err)
	}
	return k.eaten, k.made.Load()
}

// caches lists the folder.
func (k *kept) caches(t *testing.T) []cache.File {
	t.Helper()
	files, err := cache.List(k.folder)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestKeepAlong trains with a checkpoint that is kept, and without: the batches are the same in the run that fills it and in those that
// are served from it, and nothing is made twice.
func TestKeepAlong(t *testing.T) {
	plain := newKept(t)
	plain.Stages[1].Checkpoint = nil
	want, _ := plain.train(t, 3)
	once := [2][2]int64{{50, 99}, {0, 0}} // a second epoch begins while items of the first are under way
	for _, test := range []struct {
		name  string
		edit  func(*kept)
		items int         // kept
		made  [2][2]int64 // how many items are made in a run of three epochs, and in the next
	}{
		{"plain", func(*kept) {}, 50, once},
		{"compressed", func(k *kept) { k.Stages[1].Checkpoint.Compress = true }, 50, once},
		{"read by calls", func(k *kept) { k.Bisect.Cold = true }, 50, once},
		{"one worker", func(k *kept) {
			for i := range 3 {
				k.Stages[i].Workers = 1
			}
		}, 50, once},
		{"fused", func(k *kept) {
			for i := range 3 {
				k.Stages[i].Workers = Auto
			}
		}, 50, once},
		{"limited to 40 records", func(k *kept) { k.Stages[1].Checkpoint.Limit = 40 * 64 }, 40, [2][2]int64{{64, 144}, {24, 30}}},
		{"two checkpoints", func(k *kept) {
			k.Stages[0].Checkpoint = &Checkpoint{Name: "raw", Store: DiskStore, Mode: KeepMode, Path: k.folder}
		}, 50, once},
		{"behind what is loaded", func(k *kept) { k.Stages[0].Checkpoint, k.Stages[1].Checkpoint = k.Stages[1].Checkpoint, nil }, 50, [2][2]int64{{144, 144}, {144, 144}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newKept(t)
			test.edit(k)
			for run, made := range test.made {
				got, n := k.train(t, 3)
				if !slices.Equal(got, want) {
					t.Errorf("run %d: other batches than without a checkpoint", run)
				}
				if n < made[0] || n > made[1] {
					t.Errorf("run %d: %d items made, want %v", run, n, made)
				}
			}
			for _, f := range k.caches(t) {
				if f.Items != test.items || f.State != cache.Whole {
					t.Errorf("there is %+v", f)
				}
			}
			if len(k.warned) > 0 {
				t.Errorf("warned: %q", k.warned)
			}
		})
	}
}

// TestKeepFilling tells the epoch that fills a cache from those that are served from it.
func TestKeepFilling(t *testing.T) {
	k := newKept(t)
	for run, want := range [][2]int{{1, 2}, {0, 3}} {
		var epochs [2]int // that fill, and that don't
		p := k.open(t)
		err := p.Train(t.Context(), 3, nil, func(iv Interval, filling bool) {
			if filling {
				epochs[0] += iv.Steps / p.Plan.Epoch
			} else {
				epochs[1] += iv.Steps / p.Plan.Epoch
			}
		})
		if err != nil || epochs != want {
			t.Errorf("run %d: %v epochs, want %v; %v", run, epochs, want, err)
		}
	}
}

// TestKeepMeasured measures all probes of a pipeline with a checkpoint that is kept: it is filled before, and all of them feed the step the
// baseline's batches.
func TestKeepMeasured(t *testing.T) {
	k := newKept(t)
	k.Bisect.CacheBatches = 6
	p := k.open(t)
	eat := func(probe Probe) []uint64 {
		t.Helper()
		k.eaten = nil
		clear(p.next)
		if _, err := p.Measure(t.Context(), probe, 0, 6); err != nil {
			t.Fatal(err)
		}
		return k.eaten
	}
	want := eat(Probe{})
	for to := 1; to <= 4; to++ {
		for from := range to {
			if got := eat(Probe{From: from, To: to}); !slices.Equal(got, want) {
				t.Errorf("%v feeds other batches than the baseline", Probe{From: from, To: to})
			}
		}
	}
	if n := k.made.Load(); n != 50 {
		t.Errorf("%d items were made, want 50", n)
	}
	if files := k.caches(t); len(files) != 1 || files[0].State != cache.Whole || files[0].Items != 50 {
		t.Errorf("there are %+v", files)
	}
	iv, err := p.Measure(t.Context(), Probe{}, 0, 6)
	if err != nil || iv.Stages[0].Items == 0 || iv.Stages[1].Items != 0 || iv.Stages[2].Items == 0 {
		t.Errorf("accounts %+v, %v", iv.Stages, err)
	}
}

// TestKeepFrozen keeps what was drawn in the first epoch.
func TestKeepFrozen(t *testing.T) {
	k := newKept(t)
	k.source.shuffle = false
	k.Stages[2].Checkpoint, k.Stages[1].Checkpoint = k.Stages[1].Checkpoint, nil
	for run := range 2 {
		got, _ := k.train(t, 2)
		if !slices.Equal(got[:6], got[6:]) {
			t.Errorf("run %d: the second epoch isn't the first", run)
		}
	}
}

// scaled is a stage with an attribute.
type scaled struct {
	stageFunc
	Factor int         `hcl:"factor" doc:"A number."`
	Table  stages.Path `hcl:"table,optional" doc:"A file."`
}

// TestKeepNowhere goes on without a cache that can't be written.
func TestKeepNowhere(t *testing.T) {
	k := newKept(t)
	if err := os.WriteFile(k.folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, made := k.train(t, 2)
	if made != 96 || len(k.warned) != 1 || !strings.Contains(k.warned[0], "Its cache can't be written: mkdir FOLDER: not a directory. The run goes on without it.") {
		t.Errorf("%d items made, warned %q", made, k.warned)
	}
}

// TestKeepBusy lets another fill the cache: a run that trains goes on without it, one that measures waits.
func TestKeepBusy(t *testing.T) {
	k := newKept(t)
	other := k.open(t)
	if err := other.keepers[0].create(); err != nil {
		t.Fatal(err)
	}
	if _, made := k.train(t, 2); made != 96 || len(k.warned) != 1 {
		t.Errorf("%d items made, warned %q", made, k.warned)
	}
	p := openWith(t, k.Experiment, Options{OnWarning: func(_, text string) {
		if text != "Another process is filling its cache. This one waits for it." {
			t.Error(text)
		}
		if err := other.pass(context.Background(), 0); err != nil {
			t.Error(err)
		}
		other.keepers[0].seal()
	}})
	k.made.Store(0)
	if _, err := p.Measure(t.Context(), Probe{}, 0, 1); err != nil || k.made.Load() != 50 {
		t.Errorf("%v, %d items made", err, k.made.Load())
	}
}

// TestKeepSkips keeps nothing of items that a stage fails on: they are skipped in every epoch, as without a checkpoint.
func TestKeepSkips(t *testing.T) {
	k := newKept(t)
	k.source.bad = func(i int) error {
		if i == 7 {
			return errors.New("torn")
		}
		return nil
	}
	k.Stages[0].OnError = Skip
	for run, made := range []int64{49, 0} {
		p := k.open(t)
		k.made.Store(0)
		iv, err := trainAll(t, p, 3)
		if err != nil || iv.Skipped < 2 || k.made.Load() < made || k.made.Load() > 2*made {
			t.Errorf("run %d: %v, %d skipped, %d made", run, err, iv.Skipped, k.made.Load())
		}
	}
	if files := k.caches(t); len(files) != 1 || files[0].Items != 49 {
		t.Errorf("there are %+v", files)
	}
}

// TestKeepInterrupted leaves nothing behind where a run is interrupted that fills a cache.
func TestKeepInterrupted(t *testing.T) {
	k := newKept(t)
	ctx, cancel := context.WithCancel(t.Context())
	k.source.bad = func(i int) error {
		if i == 30 {
			cancel()
		}
		return nil
	}
	p, problems, err := Open(ctx, k.Experiment, Options{OpenDevice: openHost})
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	if _, err := p.Measure(ctx, Probe{}, 0, 1); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if files := k.caches(t); len(files) > 0 {
		t.Errorf("there are %+v", files)
	}
}

// TestProbesOnDisk measures with caches on the disk: the probes feed the baseline's batches, and no file is left.
func TestProbesOnDisk(t *testing.T) {
	var got []uint64
	e := chain(&countSource{items: 64, shuffle: true, ragged: true}, 8, hashStep(&got), prepare("a", pass), prepare("b", pass))
	e.Bisect.CacheBatches = 8
	folder := filepath.Join(t.TempDir(), "cache")
	for i := range 3 {
		e.Stages[i].Checkpoint = &Checkpoint{Name: e.Stages[i].Name, Store: DiskStore, Mode: ProbeMode, Path: folder}
	}
	p := openTest(t, e)
	if p.Plan.Memory.Caches != 8*8*assumedElement { // the one behind batch
		t.Errorf("caches take %d bytes of memory", p.Plan.Memory.Caches)
	}
	var want []uint64
	for k := range 4 {
		got = nil
		clear(p.next)
		if _, err := p.Measure(t.Context(), Probe{To: k}, 0, 8); err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("the cache at %d feeds other batches than the baseline", k)
		}
	}
	if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}
