//go:build cgo && amd64

package audio

// #cgo noescape audio_cut
// #cgo nocallback audio_cut
// #cgo noescape audio_two
// #cgo nocallback audio_two
// #cgo noescape audio_four
// #cgo nocallback audio_four
// #cgo noescape audio_five
// #cgo nocallback audio_five
// #cgo noescape audio_untangle
// #cgo nocallback audio_untangle
// #cgo noescape audio_filter
// #cgo nocallback audio_filter
// #cgo noescape audio_resample
// #cgo nocallback audio_resample
// #cgo noescape audio_logarithms
// #cgo nocallback audio_logarithms
// #include "kernels_avx2.h"
import "C"

import "unsafe"

// fastKernels returns the fastest kernels that this machine has.
func fastKernels() kernels {
	if C.audio_supported() {
		return avx2{}
	}
	return portable{}
}

// avx2 has its kernels in C, with the instructions AVX2.
type avx2 struct{}

func (avx2) cut(even, odd []float32, stride int, samples []float32, starts *[lanes]int, window []float32) {
	C.audio_cut(floats(even), floats(odd), C.ptrdiff_t(stride), floats(samples), (*C.ptrdiff_t)(unsafe.Pointer(&starts[0])), floats(window), C.ptrdiff_t(len(window)))
}

func (avx2) two(p *pass, toR, toI, fromR, fromI []float32) {
	C.audio_two(floats(toR), floats(toI), floats(fromR), floats(fromI), C.ptrdiff_t(p.stride), C.ptrdiff_t(p.left), floats(p.twR), floats(p.twI))
}

func (avx2) four(p *pass, toR, toI, fromR, fromI []float32) {
	C.audio_four(floats(toR), floats(toI), floats(fromR), floats(fromI), C.ptrdiff_t(p.stride), C.ptrdiff_t(p.left), floats(p.twR), floats(p.twI))
}

func (avx2) five(p *pass, toR, toI, fromR, fromI []float32) {
	C.audio_five(floats(toR), floats(toI), floats(fromR), floats(fromI), C.ptrdiff_t(p.stride), C.ptrdiff_t(p.left), floats(p.twR), floats(p.twI),
		floats(p.rootR), floats(p.rootI))
}

func (avx2) untangle(dst, re, im, rootR, rootI []float32) {
	C.audio_untangle(floats(dst), floats(re), floats(im), floats(rootR), floats(rootI), C.ptrdiff_t(len(rootR)-1))
}

func (avx2) filter(dst []float32, stride, n int, values []float32, f *melFilters) {
	C.audio_filter(floats(dst), C.ptrdiff_t(stride), C.ptrdiff_t(n), floats(values), (*C.audio_band)(unsafe.Pointer(unsafe.SliceData(f.bands))),
		C.ptrdiff_t(len(f.bands)), floats(f.weights))
}

func (avx2) resample(dst, src []float32, r *resampler) {
	C.audio_resample(floats(dst), C.ptrdiff_t(len(dst)), floats(src), (*C.ptrdiff_t)(unsafe.Pointer(unsafe.SliceData(r.first))), C.ptrdiff_t(r.new),
		C.ptrdiff_t(r.orig), floats(r.kernel), C.ptrdiff_t(r.taps))
}

func (avx2) logarithms(dst, src []float32, factor float32) {
	whole := len(src) &^ 7
	C.audio_logarithms(floats(dst), floats(src), C.ptrdiff_t(whole), C.float(factor), C.float(leastAmplitude), (*C.double)(&logSeries[0]))
	portable{}.logarithms(dst[whole:], src[whole:], factor)
}

func floats(f []float32) *C.float { return (*C.float)(unsafe.SliceData(f)) }
