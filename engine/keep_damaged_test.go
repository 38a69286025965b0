package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine/cache"
	"github.com/pipectl/pipectl/gpu"
)

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
