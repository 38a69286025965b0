package cache

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/pipectl/pipectl/internal/pagecache"
	"github.com/pipectl/pipectl/stages"
)

// BenchmarkCold reads the same records, all of them each time, from a disk: the file is dropped from the page cache before. Records are read in a
// shuffled order through a mapping and by calls, with those to come fetched ahead and without; beside them there is the file read from its start to its end.
func BenchmarkCold(b *testing.B) {
	const places, size = 256, 224 * 224 * 3
	r := rand.New(rand.NewPCG(1, 2))
	folder, s := b.TempDir(), settings(places, false)
	d := create(b, folder, s)
	for i := range places {
		image := new(stages.Element)
		for j, p := 0, image.Image(224, 224); j < len(p); j++ {
			p[j] = byte(r.Uint32())
		}
		if err := d.Put(i, 0, image); err != nil {
			b.Fatal(err)
		}
	}
	if err := d.Seal(); err != nil {
		b.Fatal(err)
	}
	path := d.Path()
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
	order := r.Perm(places)
	cold := func(b *testing.B) {
		b.StopTimer()
		if err := (pagecache.Kernel{}).Drop(path); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	for _, way := range []struct {
		unmapped bool
		ahead    int
	}{{false, 0}, {false, 32}, {true, 0}, {true, 32}} {
		b.Run(fmt.Sprintf("unmapped=%v/ahead=%d", way.unmapped, way.ahead), func(b *testing.B) {
			s.Unmapped = way.unmapped
			var el stages.Element
			b.SetBytes(places * size)
			for b.Loop() {
				cold(b)
				d, err := Open(folder, s)
				if err != nil {
					b.Fatal(err)
				}
				for n, i := range order {
					if way.ahead > 0 && n+way.ahead < places {
						d.Fetch(order[n+way.ahead])
					}
					if _, ok, err := d.Get(i, &el); !ok || err != nil {
						b.Fatal(ok, err)
					}
				}
				if err := d.Close(); err != nil {
					b.Fatal(err)
				}
				el = stages.Element{}
			}
		})
	}
	b.Run("read", func(b *testing.B) {
		buf := make([]byte, 1<<20)
		b.SetBytes(places * size)
		for b.Loop() {
			cold(b)
			f, err := os.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			for err == nil {
				_, err = f.Read(buf)
			}
			if err != io.EOF || f.Close() != nil {
				b.Fatal(err)
			}
		}
	})
}
