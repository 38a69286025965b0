package stages

import (
	"slices"
	"syscall"
	"testing"
)

// Kernels read nothing beyond their source: here no memory follows it.
func TestKernelsStayWithin(t *testing.T) {
	const pages = 16 << 10
	memory, err := syscall.Mmap(-1, 0, 2*pages, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	if err := syscall.Mprotect(memory[pages:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	kernels, n := fastKernels(), imageNet().imageNormalizer()
	for _, size := range [][2]int{{1, 1}, {1, 4}, {2, 5}, {3, 7}, {1, 16}, {5, 33}, {64, 64}} {
		h, w := size[0], size[1]
		image := testImage(h, w)
		src := memory[pages-len(image.U8) : pages : pages]
		copy(src, image.U8)
		in := pixels{src, 3 * w, h, w}
		var got, want Element
		for _, to := range []int{1, 3, 8, 29} {
			for _, k := range []kernel{{1, triangle}, {2, cubic}} {
				across, down := new(taps), new(taps)
				across.set(w, to, span{0, float64(w)}, k)
				down.set(h, to, span{0, float64(h)}, k)
				got.Image(h, to)
				want.Image(h, to)
				kernels.alongRows(across, pixelsOf(&got), in)
				portable{}.alongRows(across, pixelsOf(&want), pixelsOf(image))
				if !slices.Equal(got.U8, want.U8) {
					t.Errorf("rows of %v to %d: %v, want %v", size, to, got.U8, want.U8)
				}
				got.Image(to, w)
				kernels.alongColumns(down, pixelsOf(&got), in)
			}
		}
		got.Image(h, w)
		kernels.mirror(pixelsOf(&got), in)
		kernels.normalize(n, got.Tensor(3, h, w), src, false)
		kernels.mixGrey(got.U8, src, 0, 1)
		kernels.saturate(got.U8, src, 1)
		kernels.sumGreys(src)
		kernels.turnHues(new(hueTable), got.U8, src)
	}
}
