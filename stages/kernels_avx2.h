// The kernels in C: loops over RGB pixels of 8 bits a channel, for processors with AVX2 and FMA. Strides are in bytes. They
// write nothing beyond what they are to fill, and read nothing beyond their source, but where it is said.

#ifndef PIPECTL_KERNELS_AVX2_H
#define PIPECTL_KERNELS_AVX2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// avx2_run is a run of an input axis that a pixel of the output axis is made of.
typedef struct {
	ptrdiff_t first, n;
} avx2_run;

// avx2_supported reports whether this processor can run the others.
bool avx2_supported(void);

// avx2_along_rows makes rows of out pixels of rows of width ones, with as many weights for each as its run is long, in units of
// 2^-22. pairs is half the number of the longest run's weights, rounded up, and not more than half of width. It may read 10 bytes
// behind a row. packed has room for pairs*32 + 4 bytes for each pixel of out, rounded up to 4 pixels.
void avx2_along_rows(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int width, int rows,
	const avx2_run *runs, const int32_t *weights, int out, int pairs, uint8_t *packed);

// avx2_along_columns makes out rows of n bytes, at least 16, of others. packed has room for 8 bytes for two weights of the
// longest run.
void avx2_along_columns(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int n, const avx2_run *runs,
	const int32_t *weights, int out, uint8_t *packed);

// avx2_mirror fills dst with rows of width pixels of src, left and right exchanged.
void avx2_mirror(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int width, int rows);

// avx2_normalize fills the three planes of dst, of n values each, with (v/255 - mean) / std of n pixels, those beyond the last
// multiple of 8 left out. Where uncached is set, and the planes lie at multiples of 32 bytes, it writes past the caches.
void avx2_normalize(float *dst, const uint8_t *src, ptrdiff_t n, const float *mean, const float *std, bool uncached);

// avx2_standardize fills dst with (v - mean) / std of n values.
void avx2_standardize(float *dst, const float *src, ptrdiff_t n, float mean, float std);

// avx2_mix_grey mixes n bytes, a multiple of 32, with one grey.
void avx2_mix_grey(uint8_t *dst, const uint8_t *src, ptrdiff_t n, int grey, float factor);

// avx2_saturate mixes the pixels in n bytes, a multiple of 24, with their greys.
void avx2_saturate(uint8_t *dst, const uint8_t *src, ptrdiff_t n, float factor);

// avx2_sum_greys returns the sum of the greys of the pixels in n bytes, a multiple of 24.
int64_t avx2_sum_greys(const uint8_t *src, ptrdiff_t n);

// avx2_turn_hues turns the hues of the pixels in n bytes, a multiple of 24. For each of 256 hues it is given the sector of the colour
// wheel that it is turned to, from 0 to 5, and how far into that, from 0 to 1.
void avx2_turn_hues(uint8_t *dst, const uint8_t *src, ptrdiff_t n, const int32_t *sector, const float *within);

#endif
