package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zeebo/xxh3"

	"github.com/pipectl/pipectl/stages"
)

// settings returns those of a cache with a key of its own.
func settings(places int, compress bool) Settings {
	return Settings{Key: Key{1, 2, 3}, Places: places, Compress: compress, About: About{Experiment: "photos", Checkpoint: "decoded", After: "prepare.decode"}}
}

// samples returns one element of each kind, and an empty one.
func samples() []*stages.Element {
	image, tensor, tokens := new(stages.Element), new(stages.Element), new(stages.Element)
	for i, b := 0, image.Image(2, 3); i < len(b); i++ {
		b[i] = byte(i)
	}
	for i, f := 0, tensor.Tensor(3, 1, 5); i < len(f); i++ {
		f[i] = float32(i) / 3
	}
	tokens.Type, tokens.I32 = stages.Type{Kind: stages.Tokens}, []int32{-1, 5, 1 << 30}
	encoded := &stages.Element{Type: stages.Type{Kind: stages.Encoded}, U8: bytes.Repeat([]byte("jpeg"), 50)}
	return []*stages.Element{image, tensor, tokens, encoded, {Type: stages.Type{Kind: stages.Encoded}, U8: []byte{}},
		element(7, 9), {Type: stages.Type{Kind: stages.Object}, U8: []byte("pickled")}}
}

// create begins a cache, which is closed at the end.
func create(t testing.TB, folder string, s Settings) *Disk {
	t.Helper()
	d, err := Create(folder, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func reopen(t testing.TB, folder string, s Settings) *Disk {
	t.Helper()
	d, err := Open(folder, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// fill puts elements, each labelled with its place, and seals.
func fill(t testing.TB, d *Disk, els []*stages.Element) {
	t.Helper()
	for i, el := range els {
		if err := d.Put(i, int32(i), el); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Seal(); err != nil {
		t.Fatal(err)
	}
}

// held returns all that a cache holds, nil for items that it doesn't.
func held(t testing.TB, d *Disk) []*stages.Element {
	t.Helper()
	var list []*stages.Element
	for i := range d.set.Places {
		el := new(stages.Element)
		label, ok, err := d.Get(i, el)
		switch {
		case err != nil:
			t.Fatal(err)
		case !ok:
			el = nil
		case label != int32(i):
			t.Errorf("item %d has label %d", i, label)
		}
		list = append(list, el)
	}
	return list
}

var sameElement = cmp.Options{cmpopts.IgnoreUnexported(stages.Element{}), cmpopts.EquateEmpty()}

// same is what sameElement compares, fast.
func same(a, b *stages.Element) bool { return a.Type == b.Type && bytes.Equal(view(a), view(b)) }

// TestDisk reads elements of all kinds back while the cache is filled, once it is sealed, and by another that opens it.
func TestDisk(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprint("compress=", compress), func(t *testing.T) {
			folder, s := t.TempDir(), settings(9, compress)
			s.Limit = 1 << 20
			d := create(t, folder, s)
			want := append(samples(), nil, nil)
			for i, el := range samples() {
				if err := d.Put(i, int32(i), el); err != nil {
					t.Fatal(err)
				}
			}
			check := func(when string, d *Disk) {
				t.Helper()
				if diff := cmp.Diff(want, held(t, d), sameElement); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
			}
			check("while it is filled", d)
			if d.Full() || d.Sealed() {
				t.Error("it is full")
			}
			if _, err := Open(folder, s); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("opened before it is sealed: %v", err)
			}
			if err := d.Seal(); err != nil {
				t.Fatal(err)
			}
			check("sealed", d)
			if err := d.Put(7, 7, element(1, 1)); err != nil {
				t.Error(err)
			}
			check("sealed, and put to", d)
			again := reopen(t, folder, s)
			check("opened again", again)
			unmapped := s
			unmapped.Unmapped = true
			check("read by calls", reopen(t, folder, unmapped))
			items, size, _ := again.Size()
			if items != 7 || size != 18+60+12+200+0+9+7 {
				t.Errorf("it has %d items of %d bytes", items, size)
			}
			names, err := List(folder)
			if err != nil || len(names) != 1 || names[0].Path != d.Path() {
				t.Errorf("the folder holds %v, %v", names, err)
			}
		})
	}
}

// TestLimit puts records of random sizes in a random order, from several goroutines: those that are kept are as many of the first as fit.
func TestLimit(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		const places = 200
		var els []*stages.Element
		var total int64
		for i := range places {
			els = append(els, element(byte(i), 1+r.IntN(500)))
			total += aligned(int64(els[i].Size()))
		}
		s := settings(places, false)
		s.Limit = total * int64(seed) / 19
		want, used := 0, int64(0)
		for ; want < places && (s.Limit == 0 || used+aligned(int64(els[want].Size())) <= s.Limit); want++ {
			used += aligned(int64(els[want].Size()))
		}
		folder := t.TempDir()
		d := create(t, folder, s)
		order := r.Perm(places)
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for n := w; n < places; n += 4 {
					if err := d.Put(order[n], int32(order[n]), els[order[n]]); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if !d.Full() {
			t.Errorf("seed %d: not full", seed)
		}
		if err := d.Seal(); err != nil {
			t.Fatal(err)
		}
		if _, _, stored := d.Size(); stored != used {
			t.Errorf("seed %d: %d bytes are taken, want %d", seed, stored, used)
		}
		for i, el := range held(t, reopen(t, folder, s)) {
			if kept := el != nil; kept != (i < want) || kept && !same(els[i], el) {
				t.Fatalf("seed %d: item %d is %v; %d of %d fit into %d bytes", seed, i, el, want, places, s.Limit)
			}
		}
	}
}

// TestRoom gives and takes room back.
func TestRoom(t *testing.T) {
	r := room{limit: 1000, end: 128}
	var got []int64
	for _, n := range []int64{100, 1, 64, 200} {
		got = append(got, r.take(n))
	}
	r.give(256, 1)
	r.give(384, 200)
	r.give(128, 100)
	got = append(got, r.take(65), r.take(65), r.take(64))
	if diff := cmp.Diff([]int64{128, 256, 320, 384, 128, 384, 256}, got); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	want := room{limit: 1000, used: 64 + 128 + 128 + 64, end: 512}
	if diff := cmp.Diff(want, r, cmp.AllowUnexported(room{}, span{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("room (-want +got):\n%s", diff)
	}
}

// whole returns the bytes of a sealed cache of all samples.
func whole(t testing.TB, compress bool) (Settings, []byte) {
	t.Helper()
	folder, s := t.TempDir(), settings(len(samples()), compress)
	d := create(t, folder, s)
	fill(t, d, samples())
	b, err := os.ReadFile(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	return s, b
}

// plant writes the bytes of a cache, and returns its folder.
func plant(t testing.TB, s Settings, b []byte) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, s.Key.ID()+wholeSuffix), b, 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestTruncated finds a file out that ends at any place before its end.
func TestTruncated(t *testing.T) {
	s, b := whole(t, false)
	folder := plant(t, s, b)
	path := filepath.Join(folder, s.Key.ID()+wholeSuffix)
	for n := len(b) - 1; n >= 0; n-- {
		if err := os.Truncate(path, int64(n)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(folder, s)
		damage := (*DamageError)(nil)
		if !errors.As(err, &damage) {
			t.Fatalf("with %d of %d bytes: %v", n, len(b), err)
		}
	}
}

// TestFlipped flips each bit of a file: what is read is what was written, or damage.
func TestFlipped(t *testing.T) {
	for _, compress := range []bool{false, true} {
		s, b := whole(t, compress)
		folder := plant(t, s, b)
		path := filepath.Join(folder, s.Key.ID()+wholeSuffix)
		h, err := decodeHeader(b, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		want := samples()
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		write := func(i int, b byte) {
			if _, err := file.WriteAt([]byte{b}, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range b {
			write(i, b[i]^1<<(i%8))
			found := 0
			damage := (*DamageError)(nil)
			d, err := Open(folder, s)
			if errors.As(err, &damage) {
				found++
			} else if err != nil {
				t.Fatal(err)
			}
			for item := 0; d != nil && item < s.Places; item++ {
				var el stages.Element
				_, ok, err := d.Get(item, &el)
				switch {
				case errors.As(err, &damage):
					found++
				case err != nil || !ok:
					t.Fatalf("byte %d: item %d: %v %v", i, item, ok, err)
				case !same(want[item], &el):
					t.Fatalf("byte %d: item %d is another", i, item)
				}
			}
			if d != nil {
				d.Close()
			}
			write(i, b[i])
			if need := i < headerSize || i >= int(h.index); found == 0 && need || found > 1 {
				t.Errorf("byte %d of %d: damage was found %d times", i, len(b), found)
			}
		}
	}
}

// TestForeign refuses what isn't a cache, or is one of something else.
func TestForeign(t *testing.T) {
	s, b := whole(t, false)
	newer := bytes.Clone(b)
	newer[8] = 9
	other := s
	other.Key[31] = 1 // its name is the same
	tests := []struct {
		name string
		set  Settings
		b    []byte
		want string
	}{
		{"empty", s, nil, "it doesn't begin as a cache does"},
		{"text", s, bytes.Repeat([]byte("all work and no play "), 20), "it doesn't begin as a cache does"},
		{"newer", s, newer, "its format is version 9, and this pipectl reads version 1"},
		{"half written", s, make([]byte, len(b)), "it doesn't begin as a cache does"},
		{"longer", s, append(bytes.Clone(b), 0), fmt.Sprintf("it has %d bytes, and was written with %d", len(b)+1, len(b))},
		{"other key", other, b, "it was written for something else"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Open(plant(t, test.set, test.b), test.set)
			damage := (*DamageError)(nil)
			if !errors.As(err, &damage) || damage.What != test.want {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// TestFolder lists, verifies and removes caches in all states.
func TestFolder(t *testing.T) {
	folder := t.TempDir()
	if files, err := List(filepath.Join(folder, "missing")); len(files) > 0 || err != nil {
		t.Errorf("a folder that isn't there: %v, %v", files, err)
	}
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, b := whole(t, true)
	write(s.Key.ID()+wholeSuffix, b)
	bad := bytes.Clone(b)
	bad[firstByte] ^= 1
	write(s.Key.ID()+wholeSuffix+".txt", b)
	write("0000000000000000.cache", b)
	write("1111111111111111.partial", []byte("some records"))
	busy := settings(3, false)
	busy.Key[0] = 9
	d := create(t, folder, busy)
	if _, err := Create(folder, busy); !errors.Is(err, ErrBusy) {
		t.Errorf("created twice: %v", err)
	}

	files, err := List(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files {
		got = append(got, fmt.Sprintf("%s %s %d/%d %d %q", f.ID, f.State, f.Items, f.Places, f.Bytes, f.Reason))
	}
	want := []string{
		`0000000000000000 damaged 7/7 306 "its name isn't that of its key"`,
		`0102030000000000 whole 7/7 306 ""`,
		`0902030000000000 filling 0/0 0 ""`,
		`1111111111111111 left over 0/0 0 ""`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	path := filepath.Join(folder, s.Key.ID()+wholeSuffix)
	if f, err := Verify(t.Context(), path); err != nil || f.State != Whole || f.About.Checkpoint != "decoded" {
		t.Errorf("verified: %+v, %v", f, err)
	}
	for name, want := range map[string]State{"0000000000000000.cache": Whole, s.Key.ID() + ".cache.txt": Whole, "1111111111111111.partial": Partial, "0902030000000000.partial": Filling} {
		if f, err := Verify(t.Context(), filepath.Join(folder, name)); err != nil || f.State != want {
			t.Errorf("verified %s: %+v, %v", name, f, err)
		}
	}
	if _, err := Verify(t.Context(), folder); !errors.Is(err, errNoFile) {
		t.Errorf("verified a folder: %v", err)
	}
	write(s.Key.ID()+wholeSuffix, bad)
	if f, err := Verify(t.Context(), path); err != nil || f.State != Damaged || f.Reason != "the record of item 0, at byte 128: it has another checksum than when it was written" {
		t.Errorf("verified with a flipped bit: %+v, %v", f, err)
	}
	if err := Remove(d.partial()); !errors.Is(err, ErrBusy) {
		t.Errorf("removing one that is being filled: %v", err)
	}
	if err := Sweep(folder); err != nil {
		t.Error(err)
	}
	if err := Remove(path); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"0000000000000000.cache", "0102030000000000.cache.txt", "0902030000000000.partial"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.partial()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what wasn't sealed is there still: %v", err)
	}
}

// FuzzOpen reads whatever is in a file, with checksums of header, index and records made right, so that what they guard is reached.
func FuzzOpen(f *testing.F) {
	for _, compress := range []bool{false, true} {
		_, b := whole(f, compress)
		f.Add(b, compress)
	}
	f.Add([]byte(magic), false)
	f.Fuzz(func(t *testing.T, b []byte, mend bool) {
		if len(b) > 8<<10 {
			return // each of very many records could be the whole of it
		}
		if len(b) >= headerSize && mend {
			index := binary.LittleEndian.Uint64(b[56:])
			about := binary.LittleEndian.Uint64(b[64:])
			if size := uint64(len(b)); index <= size && about <= size-index {
				mid := size - about
				for at, i := index, 0; mid-at >= entrySize && at < mid; at, i = at+entrySize, i+1 {
					e := decodeEntry(b[at:])
					if e.offset <= index && e.stored <= index-e.offset {
						e.checksum = sum(b[e.offset:e.offset+e.stored], i)
						e.encode(b[at:])
					}
				}
				binary.LittleEndian.PutUint64(b[80:], xxh3.Hash(b[index:mid]))
				binary.LittleEndian.PutUint64(b[88:], xxh3.Hash(b[mid:]))
			}
			binary.LittleEndian.PutUint64(b[96:], xxh3.Hash(b[:96]))
		}
		path := filepath.Join(t.TempDir(), strings.Repeat("0", 16)+wholeSuffix)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Verify(t.Context(), path); err != nil {
			t.Errorf("neither whole nor damaged: %v", err)
		}
		d, err := openFile(path)
		if err != nil {
			return
		}
		defer d.Close()
		var el stages.Element
		for i := range d.set.Places {
			if _, ok, err := d.Get(i, &el); ok && err == nil && el.Type.Size() > 0 && el.Size() != el.Type.Size() {
				t.Errorf("item %d: %d bytes of %v", i, el.Size(), el.Type)
			}
		}
	})
}

// TestFetch fetches as many records ahead as a slow one is a reason for, and none of a cache that isn't sealed.
func TestFetch(t *testing.T) {
	folder, s := t.TempDir(), settings(len(samples())+1, false)
	d := create(t, folder, s)
	d.fetches.Store(2)
	d.Fetch(0)
	fill(t, d, samples())
	for i := range s.Places { // the last isn't kept
		d.Fetch(i)
	}
	if n := d.fetches.Load(); n != 0 {
		t.Errorf("%d fetches are left", n)
	}
	if want := d.patience(&entry{raw: 1 << 20}); want < 100*time.Microsecond || want > time.Millisecond {
		t.Errorf("a record of 1 MiB that takes up to %v is taken for one in memory", want)
	}
}
