package cpu

import (
	"context"
	"errors"
	"slices"
	"testing"
	"unsafe"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

func TestAlloc(t *testing.T) {
	d := New("")
	for _, n := range []int{0, 1, 63, 64, 100, 4097} {
		for _, pinned := range []bool{false, true} {
			mem, free, err := d.Alloc(n, pinned)
			if err != nil {
				t.Fatal(err)
			}
			if addr := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); len(mem) != n || cap(mem) != n || addr%64 != 0 {
				t.Errorf("%d bytes: got %d, room for %d, at %#x", n, len(mem), cap(mem), addr)
			}
			if slices.ContainsFunc(mem, func(b byte) bool { return b != 0 }) {
				t.Errorf("%d bytes aren't zeroed", n)
			}
			free()
		}
	}
	if _, _, err := d.Alloc(-1, false); err == nil {
		t.Error("-1 bytes are no error")
	}
}

func TestUpload(t *testing.T) {
	d := New("Because.")
	host := &stages.Batch{Len: 3}
	b, err := d.Upload(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	if b.Batch != host {
		t.Error("the batch was copied")
	}
	if err := b.Ready.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	b.Free()

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Upload(ctx, host); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestInfo(t *testing.T) {
	info := New("Because.").Info()
	want := gpu.Info{Kind: "cpu", Name: info.Name, Memory: info.Memory, Why: "Because. Its BLAS is " + BLAS + "."}
	if info != want || info.Name == "" {
		t.Errorf("got %+v, want %+v", info, want)
	}
}
