package cache

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

// BenchmarkGet reads records of 147 KiB, which are images of 224×224, back from the page cache, and decompressed; beside them a copy in
// memory, and the same file read by the operating system's call, without a checksum.
func BenchmarkGet(b *testing.B) {
	const places, size = 256, 224 * 224 * 3
	image := new(stages.Element)
	for i, p := 0, image.Image(224, 224); i < len(p); i++ {
		p[i] = byte(i >> 6)
	}
	for _, compress := range []bool{false, true} {
		folder, s := b.TempDir(), settings(places, compress)
		d := create(b, folder, s)
		var all []*stages.Element
		for range places {
			all = append(all, image)
		}
		fill(b, d, all)
		b.Run(fmt.Sprintf("compress=%v", compress), func(b *testing.B) {
			d := reopen(b, folder, s)
			var el stages.Element
			b.SetBytes(size)
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if _, ok, err := d.Get(n%places, &el); !ok || err != nil {
					b.Fatal(ok, err)
				}
				n++
			}
		})
		if compress {
			continue
		}
		out := make([]byte, size)
		b.Run("memcpy", func(b *testing.B) {
			src := bytes.Repeat(image.U8, places)
			b.SetBytes(size)
			n := 0
			for b.Loop() {
				copy(out, src[n%places*size:])
				n++
			}
		})
		b.Run("read", func(b *testing.B) {
			f, err := os.Open(d.Path())
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			b.SetBytes(size)
			n := 0
			for b.Loop() {
				if _, err := f.ReadAt(out, int64(firstByte+n%places*size)); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}

// BenchmarkPut writes the same records.
func BenchmarkPut(b *testing.B) {
	const size = 224 * 224 * 3
	image := new(stages.Element)
	image.Image(224, 224)
	for _, compress := range []bool{false, true} {
		b.Run(fmt.Sprintf("compress=%v", compress), func(b *testing.B) {
			const places = 1024
			folder := b.TempDir()
			d := create(b, folder, settings(places, compress))
			b.SetBytes(size)
			n := 0
			for b.Loop() {
				if n == places {
					if err := d.Close(); err != nil {
						b.Fatal(err)
					}
					d, n = create(b, folder, settings(places, compress)), 0
				}
				if err := d.Put(n, 0, image); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}
