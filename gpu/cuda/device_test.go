//go:build cuda

package cuda

import (
	"bytes"
	_ "embed"
	"os"
	"testing"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/emulator/control"
)

//go:embed emulator/testdata/selftest.ptx
var selftest string

// emulator returns the emulated driver as new. Where no driver is named the test is skipped, unless one is asked for.
func emulator(tb testing.TB) *control.Emulator {
	tb.Helper()
	file := os.Getenv(driver.Variable)
	if file == "" && os.Getenv("PIPECTL_REQUIRE_CUDA") != "1" {
		tb.Skip("the emulated driver isn't named: run make test-cuda")
	}
	if err := driver.Open(); err != nil {
		tb.Fatal(err)
	}
	e, err := control.Open(file)
	if err != nil {
		tb.Fatal(err)
	}
	e.Reset()
	return e
}

// openSelftest opens the emulated GPU with the kernels of selftest.cu alone. At the end nothing of it may be left.
func openSelftest(tb testing.TB) (*Device, *control.Emulator) {
	tb.Helper()
	e := emulator(tb)
	d, err := open("Test.", []string{selftest})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
		if s := e.State(); s.Held != (control.Held{}) || s.Left != (control.Held{}) {
			tb.Errorf("after Close the driver holds %+v, and freed %+v itself", s.Held, s.Left)
		}
	})
	return d, e
}

// download returns n bytes of device memory.
func download(tb testing.TB, d *Device, from cu.DevicePtr, n int) []byte {
	tb.Helper()
	to := make([]byte, n)
	if n == 0 {
		return to
	}
	err := d.do(func() error {
		if err := cu.Synchronize(); err != nil {
			return failed(err, "waiting")
		}
		return failed(cu.MemcpyDtoH(unsafe.Pointer(&to[0]), from, int64(n)), "copying")
	})
	if err != nil {
		tb.Fatal(err)
	}
	return to
}

func TestInfo(t *testing.T) {
	d, _ := openSelftest(t)
	want := gpu.Info{Kind: "cuda", Name: "emulated GPU", Memory: 1 << 30, PCI: "0000:65:00.0",
		Why: "Test. Its driver is " + os.Getenv(driver.Variable) + ", which PIPECTL_LIBCUDA names."}
	if got := d.Info(); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestAlloc(t *testing.T) {
	d, e := openSelftest(t)
	for _, pinned := range []bool{false, true} {
		before := e.State().Held
		mem, free, err := d.Alloc(1000, pinned)
		if err != nil {
			t.Fatal(err)
		}
		if len(mem) != 1000 || uintptr(unsafe.Pointer(&mem[0]))%64 != 0 || !bytes.Equal(mem, make([]byte, 1000)) {
			t.Errorf("pinned %v: %d bytes at %p, zeroed %v", pinned, len(mem), mem, bytes.Equal(mem, make([]byte, 1000)))
		}
		if got := e.State().Held.PinnedMemory - before.PinnedMemory; got != map[bool]int64{true: 1}[pinned] {
			t.Errorf("pinned %v: took %d pieces of pinned memory", pinned, got)
		}
		free()
		free()
		if got := e.State().Held; got != before {
			t.Errorf("pinned %v: after free %+v, want %+v", pinned, got, before)
		}
	}
	if mem, free, err := d.Alloc(0, true); len(mem) != 0 || err != nil {
		t.Errorf("no bytes: %d, %v", len(mem), err)
	} else {
		free()
	}
	if _, _, err := d.Alloc(-1, true); err == nil || err.Error() != "can't allocate -1 bytes" {
		t.Error(err)
	}
	// Close frees what isn't given back, and free does nothing after it.
	for _, pinned := range []bool{false, true} {
		_, free, err := d.Alloc(1000, pinned)
		if err != nil {
			t.Fatal(err)
		}
		defer free()
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
