package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

// part is one of several sources. Its items are tensors that hold their own number, and base.
type part struct {
	countSource
	base    float32
	classes int
	time    time.Duration // that an item takes
	kind    stages.Type   // of its elements; the zero one: that of countSource
	names   []string      // of its classes; nil: they have none
}

func (s *part) Output() stages.Type {
	if s.kind != (stages.Type{}) {
		return s.kind
	}
	return s.countSource.Output()
}

func (s *part) Open(context.Context, uint64) (stages.Source, error) {
	if s.names != nil {
		return namedPart{openPart{s}}, nil
	}
	return openPart{s}, nil
}

type namedPart struct{ openPart }

func (s namedPart) ClassNames() []string { return s.names }

type openPart struct{ *part }

func (s openPart) Len() int          { return s.items }
func (s openPart) Classes() int      { return s.classes }
func (s openPart) Name(i int) string { return fmt.Sprintf("item %d of %g", i, s.base) }
func (s openPart) Close() error      { return nil }
func (s openPart) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	if c.Item.Index != i {
		return 0, fmt.Errorf("item %d is read as item %d", i, c.Item.Index)
	}
	time.Sleep(s.time)
	label, err := openCount{&s.countSource}.Read(c, i, out)
	for k := range out.F32 {
		out.F32[k] += s.base
	}
	return label, err
}

// mixed builds an experiment with several load blocks, named a, b …
func mixed(batch int, step stepFunc, weights []float64, parts []*part, items ...Stage) *Experiment {
	e := chain(&parts[0].countSource, batch, step, items...)
	var loads []Stage
	for i, p := range parts {
		load := e.Stages[0]
		load.Name = string(rune('a' + i))
		load.Address, load.Spec, load.Weight = "load."+load.Name, p, weights[i]
		loads = append(loads, load)
	}
	e.Stages = slices.Concat(loads, e.Stages[1:])
	return e
}

func TestQuotas(t *testing.T) {
	for _, tt := range []struct {
		items   []int
		weights []float64
		want    []int
		err     string
	}{
		{[]int{10, 10}, []float64{1, 1}, []int{10, 10}, ""},
		{[]int{10, 100}, []float64{1, 1}, []int{10, 10}, ""},
		{[]int{100, 10}, []float64{3, 1}, []int{30, 10}, ""},
		{[]int{7000, 5000}, []float64{0.7, 0.3}, []int{7000, 3000}, ""},
		{[]int{10, 100, 1000}, []float64{0.1, 0.1, 0.8}, []int{10, 10, 80}, ""},
		{[]int{3, 100}, []float64{2, 1}, []int{3, 2}, ""},
		{[]int{1, 1}, []float64{1, 1e6}, nil, "load.a: with these weights an epoch, which is over with the items of load.b, has none of its own: make its weight larger"},
		{[]int{math.MaxInt32, math.MaxInt32}, []float64{1, 1}, nil, "load.a: the items of an epoch are too many to mix: their order is kept in memory, for 268435456 at most"},
	} {
		var parts []*part
		for _, n := range tt.items {
			parts = append(parts, &part{countSource: countSource{items: n}})
		}
		e := mixed(1, nothing, tt.weights, parts)
		m, err := openInterleaved(t.Context(), e, e.Loads())
		message := ""
		if err != nil {
			message = err.Error()
		}
		if d := cmp.Diff(tt.want, m.quotas); err == nil && d != "" || message != tt.err {
			t.Errorf("%v by %v: %q, want %q (-want +got):\n%s", tt.items, tt.weights, message, tt.err, d)
		}
	}
}

// TestInterleavedOrder follows two sources, one of them shuffled, through many epochs.
func TestInterleavedOrder(t *testing.T) {
	parts := []*part{{countSource: countSource{items: 30}}, {countSource: countSource{items: 70, shuffle: true}}}
	e := mixed(1, nothing, []float64{1, 1.5}, parts)
	m, err := openInterleaved(t.Context(), e, e.Loads())
	if err != nil {
		t.Fatal(err)
	}
	const epochs = 14 // in which the second source gives all its items nine times
	follow := func(seed uint64) (all []int) {
		o := newInterleavedOrder(m, e.Loads(), seed)
		for epoch := range epochs {
			for pos := range m.epoch() {
				all = append(all, o.index(epoch, pos))
			}
		}
		return all
	}
	all := follow(7)
	if !slices.Equal(all, follow(7)) || slices.Equal(all, follow(8)) {
		t.Error("the order follows from something else than the seed")
	}
	if slices.Equal(all[:75], all[75:150]) {
		t.Error("the second epoch repeats the first")
	}
	var given [2][]int
	for epoch := range epochs {
		var n [2]int
		for _, item := range all[75*epoch : 75*(epoch+1)] {
			i := m.part(item)
			n[i]++
			given[i] = append(given[i], item-m.first[i])
		}
		if n != [2]int{30, 45} {
			t.Errorf("epoch %d has %v items of each", epoch, n)
		}
	}
	for i, n := range []int{30, 70} {
		for pass := range slices.Chunk(given[i], n) {
			if inOrder := slices.IsSorted(pass); inOrder != (i == 0) {
				t.Errorf("a pass of source %d is in order: %v", i, inOrder)
			}
			pass = slices.Sorted(slices.Values(pass))
			if len(slices.Compact(pass)) != n {
				t.Errorf("a pass of source %d lacks items: %v", i, pass)
			}
		}
	}
	if slices.Equal(given[1][:70], given[1][70:140]) {
		t.Error("the second pass of the shuffled source repeats the first")
	}
	// A run may begin anywhere.
	o := newInterleavedOrder(m, e.Loads(), 7)
	for _, at := range []int{5*75 + 74, 6 * 75, 6*75 + 1, 9*75 + 3} {
		if got := o.index(at/75, at%75); got != all[at] {
			t.Errorf("place %d: item %d, want %d", at, got, all[at])
		}
	}
}

// TestInterleavedDeterministic hashes batches of two sources under settings that may not change a byte.
func TestInterleavedDeterministic(t *testing.T) {
	var want []uint64
	for _, s := range []struct {
		load, a, prefetch int
		pool              bool
	}{{1, 1, 0, false}, {4, 1, 0, false}, {1, 4, 1, false}, {8, 8, 2, false}, {Auto, 1, 0, false}, {Auto, Auto, 0, false}, {3, 3, 0, true}} {
		var got []uint64
		parts := []*part{
			{countSource: countSource{items: 30, shuffle: true}, time: 20 * time.Microsecond},
			{countSource: countSource{items: 100, shuffle: true}, base: 1000},
		}
		e := mixed(16, hashStep(&got), []float64{1, 2}, parts, prepare("a", uneven), augment("b", noise))
		e.Stages[4].Spec.(*BatchSpec).DropLast = false
		e.Stages[0].Workers, e.Stages[0].Prefetch, e.Stages[2].Workers, e.Stages[3].Workers = s.load, s.prefetch, s.a, s.a
		if s.pool {
			e.Pools = []Pool{{Name: "pool", Workers: 3}}
			for i := range 5 {
				e.Stages[i].Pool, e.Stages[i].Workers = "pool", Auto
			}
		}
		p := openTest(t, e)
		if err := p.Train(t.Context(), 3, nil, nil); err != nil {
			t.Fatal(err)
		}
		if len(got) != 18 {
			t.Fatalf("%+v: %d batches, want 18: 6 an epoch", s, len(got))
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: batches %x\nwant %x", s, got, want)
		}
	}
}

// TestInterleavedProbes compares what the step eats from a cache behind the load blocks with the baseline.
func TestInterleavedProbes(t *testing.T) {
	var got []uint64
	parts := []*part{{countSource: countSource{items: 30, shuffle: true}}, {countSource: countSource{items: 100}, base: 1000}}
	e := mixed(10, hashStep(&got), []float64{1, 2}, parts, prepare("a", double))
	e.Stages[0].Workers = 3
	e.Bisect.CacheBatches = 9
	p := openTest(t, e)
	if want := []bool{false, false, true, true, true}; !slices.Equal(p.Plan.Points, want) {
		t.Errorf("probe points %v, want %v", p.Plan.Points, want)
	}
	eat := func(probe Probe) []uint64 {
		got = nil
		clear(p.next)
		if _, err := p.Measure(t.Context(), probe, 1, 8); err != nil {
			t.Fatal(err)
		}
		return got[:9]
	}
	want := eat(Probe{})
	for _, probe := range []Probe{{To: 2}, {To: 3}, {To: 4}, {From: 2, To: 3}} {
		if !slices.Equal(eat(probe), want) {
			t.Errorf("%v gives other batches than the baseline", probe)
		}
	}
}

// TestInterleavedAccounts tells which of two load blocks is slow, in virtual time.
func TestInterleavedAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := []*part{{countSource: countSource{items: 1000}, time: ms}, {countSource: countSource{items: 1000}, time: 20 * ms}}
		e := mixed(4, napStep(ms), []float64{3, 1}, parts)
		e.Stages[0].Workers, e.Stages[2].Workers = 2, 1
		p := openTest(t, e)
		const steps = 250 // an epoch has 1333 items
		iv, err := p.Measure(t.Context(), Probe{}, 20, steps)
		if err != nil {
			t.Fatal(err)
		}
		a, b := iv.Stages[0], iv.Stages[1]
		if a.Address != "load.a" || b.Address != "load.b" || a.Workers != 2 || b.Workers != 2 {
			t.Fatalf("accounts %+v, %+v", a, b)
		}
		if share := float64(a.Items) / float64(a.Items+b.Items); math.Abs(share-0.75) > 0.03 {
			t.Errorf("%.2f of the items are of load.a, want 0.75", share)
		}
		for _, account := range []struct {
			Account
			each time.Duration
		}{{a, ms}, {b, 20 * ms}} {
			if each := account.Busy.Seconds() / float64(account.Items) / account.each.Seconds(); math.Abs(each-1) > 0.05 {
				t.Errorf("%s: %.2f times as long an item as it takes", account.Address, each)
			}
		}
		if got := iv.Passed(0); got != a.Items+b.Items || iv.Passed(1) != got || iv.Passed(2) != iv.Stages[2].Items {
			t.Errorf("%d and %d items passed the load blocks, which read %d and %d", got, iv.Passed(1), a.Items, b.Items)
		}
		if rate, want := iv.Rate(), 2/(4*(0.75*0.001+0.25*0.020)); math.Abs(rate/want-1) > 0.05 {
			t.Errorf("%.1f steps/s, want %.1f", rate, want)
		}
	})
}

func TestInterleavedSkips(t *testing.T) {
	broken := errors.New("broken")
	parts := []*part{{countSource: countSource{items: 20}}, {countSource: countSource{items: 20, bad: func(i int) error {
		if i == 3 {
			return broken
		}
		return nil
	}}, base: 1000}}
	e := mixed(5, nothing, []float64{1, 1}, parts)
	e.Stages[1].OnError = Skip
	var skipped []SkippedItem
	p := openWith(t, e, Options{OnSkip: func(s SkippedItem) { skipped = append(skipped, s) }})
	iv, err := trainAll(t, p, 2)
	want := []SkippedItem{{Address: "load.b", Index: 23, Item: "item 3 of 1000", Reason: "broken"}}
	if d := cmp.Diff(want, skipped); d != "" || err != nil || iv.Samples != 78 {
		t.Errorf("%d samples, %v (-want +got):\n%s", iv.Samples, err, d)
	}
	e.Stages[1].OnError = Fail
	if err := openTest(t, e).Train(t.Context(), 1, nil, nil); err == nil || err.Error() != "load.b: item 3 of 1000: broken" {
		t.Errorf("%v", err)
	}
}

func TestInterleavedFaults(t *testing.T) {
	image := stages.ImageType(0, 0)
	for _, tt := range []struct {
		name  string
		parts []*part
		edit  func(e *Experiment)
		want  string // of the error, or the first problem
	}{
		{"other classes", []*part{{classes: 10}, {classes: 12}}, nil, "load.b: its labels count 12 classes, and those of load.a 10: the same label must mean the same in all"},
		{"classes that mean something else", []*part{{classes: 2, names: []string{"cat", "dog"}}, {classes: 2, names: []string{"cat", "eel"}}}, nil,
			`load.b: its label 1 stands for "eel", and that of load.a for "dog": the same label must mean the same in all`},
		{"the same classes", []*part{{classes: 2, names: []string{"cat", "dog"}}, {classes: 2, names: []string{"cat", "dog"}}, {classes: 2}}, nil, ""},
		{"another kind", []*part{{}, {kind: image}}, nil, "load.b: load.b gives something else than load.a: It gives uint8 image ?×?×3, and the load blocks above float32 1×2×2."},
		{"nothing", []*part{{}, {countSource: countSource{items: -1}}}, nil, "load.b: the data set has no items"},
		{"a kept cache", []*part{{}, {}}, func(e *Experiment) {
			e.Stages[1].Checkpoint = &Checkpoint{Name: "raw", Store: DiskStore, Mode: KeepMode, Path: filepath.Join(t.TempDir(), "raw")}
		}, "checkpoint.raw: Nothing to keep of several load blocks: A kept cache is filled in the first epoch,"},
	} {
		for _, p := range tt.parts {
			p.items = max(p.items+20, 0) / 20 * 20
		}
		e := mixed(5, nothing, []float64{1, 1, 1}, tt.parts)
		if tt.edit != nil {
			tt.edit(e)
		}
		_, problems, err := Describe(t.Context(), e, Options{})
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case len(problems) > 0:
			got = fmt.Sprintf("%s: %s: %s", problems[0].Address, problems[0].Summary, problems[0].Detail)
		}
		if !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// Of elements that differ in shape alone, what differs isn't known beforehand.
func TestInterleavedType(t *testing.T) {
	for _, tt := range []struct{ a, b, want stages.Type }{
		{stages.ImageType(32, 32), stages.ImageType(32, 32), stages.ImageType(32, 32)},
		{stages.ImageType(32, 32), stages.ImageType(64, 32), stages.ImageType(0, 32)},
		{stages.ImageType(0, 0), stages.ImageType(64, 32), stages.ImageType(0, 0)},
		{stages.Type{Kind: stages.Encoded}, stages.Type{Kind: stages.Encoded}, stages.Type{Kind: stages.Encoded}},
		{stages.ImageType(1, 1), stages.TensorType(3, 1, 1), stages.Type{}},
	} {
		if got := interleavedType(tt.a, tt.b); got != tt.want {
			t.Errorf("%v and %v: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func BenchmarkInterleavedOrder(b *testing.B) {
	parts := []*part{{countSource: countSource{items: 1 << 20, shuffle: true}}, {countSource: countSource{items: 1 << 20, shuffle: true}}}
	e := mixed(1, nothing, []float64{1, 1}, parts)
	m, err := openInterleaved(b.Context(), e, e.Loads())
	if err != nil {
		b.Fatal(err)
	}
	o := newInterleavedOrder(m, e.Loads(), 7)
	seq := 0
	for b.Loop() {
		o.index(seq/m.epoch(), seq%m.epoch())
		seq++
	}
}
