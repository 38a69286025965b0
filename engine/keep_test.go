package engine

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestKeepKey changes what a checkpoint's content follows from, and what it doesn't: only the former makes it be filled again.
func TestKeepKey(t *testing.T) {
	touch := func(t *testing.T, path string) {
		t.Helper()
		at := time.Unix(1700000000, 0)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	replace := func(t *testing.T, path string) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		other := bytes.Repeat([]byte{'x'}, int(info.Size()))
		if err := errors.Join(os.WriteFile(path+".new", other, 0o600), os.Chtimes(path+".new", info.ModTime(), info.ModTime()), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	table := func(k *kept) string { return filepath.Join(filepath.Dir(k.folder), "table") }
	for _, test := range []struct {
		name  string
		edit  func(t *testing.T, k *kept)
		stale bool
	}{
		{"nothing", func(*testing.T, *kept) {}, false},
		{"seed", func(_ *testing.T, k *kept) { k.Seed++ }, false},
		{"workers", func(_ *testing.T, k *kept) { k.Stages[1].Workers = 7 }, false},
		{"a stage below", func(_ *testing.T, k *kept) { k.Stages = slices.Delete(k.Stages, 2, 3) }, false},
		{"the name", func(_ *testing.T, k *kept) { k.Stages[1].Address, k.Name = "prepare.other", "other" }, false},
		{"an attribute", func(_ *testing.T, k *kept) { k.Stages[1].Spec.(*scaled).Factor = 3 }, true},
		{"the type", func(_ *testing.T, k *kept) { k.Stages[1].Type = "other" }, true},
		{"the number of items", func(_ *testing.T, k *kept) { k.source.items = 49 }, true},
		{"a file's time", func(t *testing.T, k *kept) { touch(t, k.source.files[0]) }, true},
		{"a file's size", func(t *testing.T, k *kept) {
			if err := os.WriteFile(k.source.files[0], nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
		{"a file's name", func(t *testing.T, k *kept) {
			if err := os.Rename(k.source.files[0], k.source.files[0]+"2"); err != nil {
				t.Fatal(err)
			}
			k.source.files[0] += "2"
		}, true},
		{"a file of the same size and time", func(t *testing.T, k *kept) { replace(t, k.source.files[0]) }, true},
		{"a file that an attribute names", func(t *testing.T, k *kept) { touch(t, table(k)) }, true},
		{"one of the same size and time", func(t *testing.T, k *kept) { replace(t, table(k)) }, true},
		{"the limit", func(_ *testing.T, k *kept) { k.Stages[1].Checkpoint.Limit = 1 << 30 }, true},
		{"the compression", func(_ *testing.T, k *kept) { k.Stages[1].Checkpoint.Compress = true }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newKept(t)
			if err := os.WriteFile(table(k), []byte("table"), 0o600); err != nil {
				t.Fatal(err)
			}
			k.Stages[1].Spec = &scaled{stageFunc{k.Stages[1].Spec.(*stageFunc).f}, 2, stages.Path(table(k))}
			k.train(t, 1)
			test.edit(t, k)
			if _, made := k.train(t, 1); (made > 0) != test.stale {
				t.Errorf("%d items made", made)
			}
		})
	}
	k := newKept(t)
	k.Stages[2].Checkpoint, k.Stages[1].Checkpoint = k.Stages[1].Checkpoint, nil
	k.train(t, 1)
	k.Seed++
	k.train(t, 1)
	if n := len(k.caches(t)); n != 2 {
		t.Errorf("with another seed above an augment stage there are %d caches", n)
	}
	k.source.files = nil
	if _, _, err := Open(t.Context(), k.Experiment, Options{OpenDevice: openHost}); err == nil || !strings.Contains(err.Error(), "no version is known") {
		t.Errorf("without a list of files: %v", err)
	}
}

// served is a load spec whose items are files on a server.
type served struct {
	countSource
	Files []stages.Path `hcl:"files" doc:"URLs."`
	tag   string        // of all of them; "" where the server tells none
}

func (s *served) Open(context.Context, uint64) (stages.Source, error) {
	return &openServed{openCount{&s.countSource}, s}, nil
}

type openServed struct {
	openCount
	spec *served
}

func (s *openServed) Versions() iter.Seq2[string, string] {
	if s.spec.tag == "" {
		return nil
	}
	return maps.All(map[string]string{"https://example.com/a-0.tar": s.spec.tag})
}

// TestKeepServed takes the versions of files on a server for what identifies them.
func TestKeepServed(t *testing.T) {
	k := newKept(t)
	src := &served{countSource: *k.source, Files: []stages.Path{"https://example.com/a-{0..1}.tar"}, tag: "one"}
	src.files = nil
	k.Stages[0].Spec = src
	for i, want := range []bool{true, false, true} {
		if i == 2 {
			src.tag = "two"
		}
		if _, made := k.train(t, 1); made > 0 != want {
			t.Errorf("run %d: %d items made", i, made)
		}
	}
	header := http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), header)
		http.ServeContent(w, r, "labels.npy", time.Time{}, strings.NewReader("labels"))
	}))
	defer server.Close()
	src.Files = append(src.Files, stages.Path(server.URL+"/labels.npy"))
	for i, want := range []bool{true, false, true} {
		header.Set("ETag", []string{`"1"`, `"1"`, `"2"`}[i])
		if _, made := k.train(t, 1); made > 0 != want {
			t.Errorf("a file that an attribute names, run %d: %d items made", i, made)
		}
	}
	header.Set("ETag", `W/"2"`)
	_, _, err := Open(t.Context(), k.Experiment, k.options())
	if want := server.URL + "/labels.npy no version is known, so that a change would go unnoticed: "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	src.tag = ""
	_, _, err = Open(t.Context(), k.Experiment, k.options())
	if want := "of some files that load.items reads its items from no version is known"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestCovered finds paths among those of listed files.
func TestCovered(t *testing.T) {
	listed := []string{"/data/a/1.jpg", "s3://bucket/x-0.tar"}
	for path, want := range map[string]bool{
		"/data/a": true, "/data/a/": true, "/data/a/1.jpg": true, "/data/a/*.jpg": true, "/data/a/1": false, "/data/b": false, "": false,
		"s3://bucket": true, "s3://bucket/x-*.tar": true, "s3://bucket/x": false,
	} {
		if covered(path, listed) != want {
			t.Errorf("%q: not %v", path, want)
		}
	}
}

// TestKeepDamaged damages a cache: what is damaged is never served, and it is made anew.
func TestKeepDamaged(t *testing.T) {
	for _, test := range []struct {
		name string
		at   int64
		want []string // warnings of the next run
		made int64    // by it
	}{
		{"the header", 20, []string{"checkpoint.decoded: FOLDER/ID.cache is damaged: its header has another checksum than when it was written. It is removed. The cache is made anew."}, 50},
		{"a record", 130, []string{"checkpoint.decoded: FOLDER/ID.cache is damaged: the record of item N, at byte 128: it has another checksum than when it was written. " +
			"It is removed. The stages above make its items, and a session's next interval or the next run fills it again."}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			k := newKept(t)
			want, _ := k.train(t, 2)
			files := k.caches(t)
			f, err := os.OpenFile(files[0].Path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt([]byte{0xff}, test.at); err != nil {
				t.Fatal(err)
			}
			f.Close()
			got, made := k.train(t, 2)
			if !slices.Equal(got, want) || made < test.made || made > 96 {
				t.Errorf("the right batches: %v, %d items made", slices.Equal(got, want), made)
			}
			for i := range k.warned {
				k.warned[i] = strings.ReplaceAll(k.warned[i], files[0].ID, "ID")
				if before, after, ok := strings.Cut(k.warned[i], "of item "); ok {
					_, after, _ = strings.Cut(after, ",")
					k.warned[i] = before + "of item N," + after
				}
			}
			if diff := cmp.Diff(test.want, k.warned); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
			k.train(t, 1)
			if f, err := cache.Verify(t.Context(), files[0].Path); err != nil || f.State != cache.Whole {
				t.Errorf("afterwards it is %+v, %v", f, err)
			}
		})
	}
}

// TestKeepDamagedMeanwhile damages a cache while it is served, in an epoch and between two intervals: the step eats the right batches,
// and only sessions fill it again at once.
func TestKeepDamagedMeanwhile(t *testing.T) {
	plain := newKept(t)
	plain.Stages[1].Checkpoint = nil
	want, _ := plain.train(t, 9)
	for name, damage := range map[string]func(path string) error{
		"emptied":   func(path string) error { return os.Truncate(path, 0) },
		"shortened": func(path string) error { return os.Truncate(path, 1000) },
		"written over": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, int(info.Size())), 0)
			return errors.Join(err, f.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKept(t)
			k.train(t, 1)
			path := k.caches(t)[0].Path
			hash, training := k.Stages[len(k.Stages)-1].Spec.(stepFunc), true
			k.Stages[len(k.Stages)-1].Spec = stepFunc(func(ctx context.Context, b *gpu.Batch) error {
				if training && len(k.eaten) == 1 {
					if err := damage(path); err != nil {
						return err
					}
				}
				return hash(ctx, b)
			})
			got, made := k.train(t, 9)
			if !slices.Equal(got, want) || made == 0 {
				t.Errorf("the right batches: %v, %d items made", slices.Equal(got, want), made)
			}
			if len(k.warned) != 1 || !strings.Contains(k.warned[0], " is damaged: the record of item ") || len(k.caches(t)) > 0 {
				t.Errorf("warned %q, and there is %+v", k.warned, k.caches(t))
			}

			training = false
			p := k.open(t)
			for i := range 3 {
				k.made.Store(0)
				k.eaten = nil
				if _, err := p.Measure(t.Context(), Probe{}, 0, 5); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					if err := damage(path); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := k.made.Load(); n != 50 || len(k.warned) != 2 {
				t.Errorf("the interval after the damaged one makes %d items; warned %q", n, k.warned)
			}
			if f, err := cache.Verify(t.Context(), path); err != nil || f.State != cache.Whole || f.Items != 50 {
				t.Errorf("afterwards there is %+v, %v", f, err)
			}
		})
	}
}

// TestKeepChanged keeps nothing of a data set that changed while the cache was filled.
func TestKeepChanged(t *testing.T) {
	k := newKept(t)
	k.source.bad = func(i int) error {
		if i == 30 {
			return os.WriteFile(k.source.files[0], []byte("other numbers"), 0o600)
		}
		return nil
	}
	k.train(t, 1)
	want := []string{"checkpoint.decoded: Its cache isn't kept: the data set has changed while it was filled. The run goes on without it, and nothing is left of it."}
	if diff := cmp.Diff(want, k.warned); diff != "" || len(k.caches(t)) > 0 {
		t.Errorf("there is %+v; warnings (-want +got):\n%s", k.caches(t), diff)
	}
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
