//go:build cgo && amd64

package stages

// #cgo noescape avx2_along_rows
// #cgo nocallback avx2_along_rows
// #cgo noescape avx2_along_columns
// #cgo nocallback avx2_along_columns
// #cgo noescape avx2_mirror
// #cgo nocallback avx2_mirror
// #cgo noescape avx2_normalize
// #cgo nocallback avx2_normalize
// #cgo noescape avx2_standardize
// #cgo nocallback avx2_standardize
// #cgo noescape avx2_mix_grey
// #cgo nocallback avx2_mix_grey
// #cgo noescape avx2_saturate
// #cgo nocallback avx2_saturate
// #cgo noescape avx2_sum_greys
// #cgo nocallback avx2_sum_greys
// #cgo noescape avx2_turn_hues
// #cgo nocallback avx2_turn_hues
// #include "kernels_avx2.h"
import "C"

import "unsafe"

// fastKernels returns the fastest kernels that this machine has.
func fastKernels() kernels {
	if C.avx2_supported() {
		return avx2{}
	}
	return portable{}
}

// avx2 has its kernels in C, with the instructions AVX2 and FMA. What is too small for vectors it leaves to portable.
type avx2 struct{}

func (avx2) alongRows(t *taps, dst, src pixels) {
	const behind = 10 // bytes that are read behind a row: they must not lie behind the end of the memory
	rows := src.h
	if end := (src.h-1)*src.stride + 3*src.w; len(src.pix) < end+behind {
		rows--
	}
	pairs := (t.most + 1) / 2
	if src.w < max(4, 2*pairs) || rows == 0 {
		portable{}.alongRows(t, dst, src)
		return
	}
	packed := t.room((32*pairs + 4) * (t.out + 3))
	C.avx2_along_rows(uint8s(dst.pix), C.ptrdiff_t(dst.stride), uint8s(src.pix), C.ptrdiff_t(src.stride), C.int(src.w), C.int(rows),
		(*C.avx2_run)(unsafe.Pointer(unsafe.SliceData(t.runs))), (*C.int32_t)(unsafe.SliceData(t.weights)), C.int(t.out), C.int(pairs), uint8s(packed))
	if rows < src.h {
		portable{}.alongRows(t, dst.crop(box{rows, 0, 1, dst.w}), src.crop(box{rows, 0, 1, src.w}))
	}
}

func (avx2) alongColumns(t *taps, dst, src pixels) {
	if dst.w < 6 { // a vector holds 16 bytes
		portable{}.alongColumns(t, dst, src)
		return
	}
	packed := t.room(4 * (t.most + 1))
	C.avx2_along_columns(uint8s(dst.pix), C.ptrdiff_t(dst.stride), uint8s(src.pix), C.ptrdiff_t(src.stride), C.int(3*dst.w),
		(*C.avx2_run)(unsafe.Pointer(unsafe.SliceData(t.runs))), (*C.int32_t)(unsafe.SliceData(t.weights)), C.int(t.out), uint8s(packed))
}

func (avx2) mirror(dst, src pixels) {
	C.avx2_mirror(uint8s(dst.pix), C.ptrdiff_t(dst.stride), uint8s(src.pix), C.ptrdiff_t(src.stride), C.int(src.w), C.int(src.h))
}

func (avx2) normalize(n *imageNormalizer, dst []float32, src []byte, uncached bool) {
	px := len(src) / 3
	C.avx2_normalize((*C.float)(unsafe.SliceData(dst)), uint8s(src), C.ptrdiff_t(px), (*C.float)(&n.mean[0]), (*C.float)(&n.std[0]), C.bool(uncached))
	n.table.fill(dst, src, px&^7)
}

func (avx2) standardize(dst, src []float32, mean, std float32) {
	C.avx2_standardize((*C.float)(unsafe.SliceData(dst)), (*C.float)(unsafe.SliceData(src)), C.ptrdiff_t(len(src)), C.float(mean), C.float(std))
}

func (avx2) mixGrey(dst, src []byte, grey int32, factor float32) {
	whole := len(src) &^ 31
	C.avx2_mix_grey(uint8s(dst), uint8s(src), C.ptrdiff_t(whole), C.int(grey), C.float(factor))
	portable{}.mixGrey(dst[whole:], src[whole:], grey, factor)
}

func (avx2) saturate(dst, src []byte, factor float32) {
	whole := len(src) / 24 * 24
	C.avx2_saturate(uint8s(dst), uint8s(src), C.ptrdiff_t(whole), C.float(factor))
	portable{}.saturate(dst[whole:], src[whole:], factor)
}

func (avx2) sumGreys(src []byte) int {
	whole := len(src) / 24 * 24
	return int(C.avx2_sum_greys(uint8s(src), C.ptrdiff_t(whole))) + portable{}.sumGreys(src[whole:])
}

func (avx2) turnHues(t *hueTable, dst, src []byte) {
	whole := len(src) / 24 * 24
	C.avx2_turn_hues(uint8s(dst), uint8s(src), C.ptrdiff_t(whole), (*C.int32_t)(&t.sector[0]), (*C.float)(&t.within[0]))
	portable{}.turnHues(t, dst[whole:], src[whole:])
}

func uint8s(b []byte) *C.uint8_t { return (*C.uint8_t)(unsafe.SliceData(b)) }
