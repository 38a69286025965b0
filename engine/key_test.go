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
	"testing"
	"time"

	"github.com/pipectl/pipectl/stages"
)

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
