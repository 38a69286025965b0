package storage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestCache(t *testing.T) {
	const size, piece = 9 << 20, 1000
	data := random(size)
	for _, tt := range []struct {
		name     string
		within   int // pieces that are read in any order
		requests int // for chunks
	}{
		{"in order", 1, 3},
		{"in windows", 5000, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				site := &site{data: data}
				c := serve(t, site.ServeHTTP)
				raw, err := c.Open(t.Context(), url1)
				if err != nil {
					t.Fatal(err)
				}
				cache := NewCache(0)
				f := cache.File(raw)
				pieces := make([]int, size/piece+1)
				for i := range pieces {
					pieces[i] = i
				}
				r := rand.New(rand.NewPCG(1, 2))
				for w := range slices.Chunk(pieces, tt.within) {
					r.Shuffle(len(w), func(i, j int) { w[i], w[j] = w[j], w[i] })
				}
				var workers sync.WaitGroup
				for w := range 4 {
					workers.Go(func() {
						p := make([]byte, piece)
						for i := w; i < len(pieces); i += 4 {
							off := pieces[i] * piece
							want := data[off:min(off+piece, size)]
							n, err := f.ReadAtContext(t.Context(), p, int64(off))
							if !bytes.Equal(p[:n], want) || n < piece && err != io.EOF || n == piece && err != nil {
								t.Errorf("%d bytes at %d, error %v", n, off, err)
							}
						}
					})
				}
				workers.Wait()
				f.Close()
				cache.Wait()
				site.mu.Lock()
				defer site.mu.Unlock()
				if got := len(site.requests) - 1; got != tt.requests {
					t.Errorf("%d requests, %q", got, site.requests)
				}
			})
		})
	}
}

// counted is a file of zeros that counts what is read of it.
type counted struct {
	File
	mu     sync.Mutex
	chunks []int64
}

func (f *counted) Size() int64 { return 20 * cacheChunk }

func (f *counted) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chunks = append(f.chunks, off/cacheChunk)
	return len(p), nil
}

// TestCacheKeeps checks that what was read longest ago goes first.
func TestCacheKeeps(t *testing.T) {
	raw := new(counted)
	cache := NewCache(0) // 8 chunks
	f := cache.File(raw)
	for _, chunk := range []int64{0, 16, 0, 10, 0, 16} {
		if _, err := f.ReadAt(make([]byte, 1), chunk*cacheChunk); err != nil {
			t.Error(err)
		}
	}
	cache.Wait()
	slices.Sort(raw.chunks)
	if diff := cmp.Diff([]int64{0, 1, 2, 3, 10, 11, 12, 13, 16, 16, 17, 17, 18, 18, 19, 19}, raw.chunks); diff != "" {
		t.Error(diff)
	}
}

func TestCacheErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		site := &site{data: random(1000), faults: []fault{{}, {status: 404}, {stall: true}}}
		c := serve(t, site.ServeHTTP)
		raw, err := c.Open(t.Context(), url1)
		if err != nil {
			t.Fatal(err)
		}
		cache := NewCache(0)
		f := cache.File(raw)
		p := make([]byte, 10)
		if _, err := f.ReadAt(p, 0); message(err) != "read http://user:xxxxx@host/dir/a%20b.tar?…: 404 Not Found" {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := f.ReadAtContext(ctx, p, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if n, err := f.ReadAt(p, 990); n != 10 || err != nil || !bytes.Equal(p, site.data[990:]) {
			t.Errorf("read %d bytes, error %v", n, err)
		}
		for _, off := range []int64{1000, -1} {
			if n, err := f.ReadAt(p, off); n != 0 || err != io.EOF {
				t.Errorf("read %d bytes at %d, error %v", n, off, err)
			}
		}
		f.Close()
		cache.Wait()
	})
}
