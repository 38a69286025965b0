// The kernels in C, for processors with AVX2. A row is the values of 8 lanes.

#ifndef PIPECTL_AUDIO_KERNELS_AVX2_H
#define PIPECTL_AUDIO_KERNELS_AVX2_H

#include <stdbool.h>
#include <stddef.h>

// audio_band is the part of a spectrum that a filter lets through.
typedef struct {
	ptrdiff_t first, n;
} audio_band;

// audio_supported reports whether this processor can run the others.
bool audio_supported(void);

// audio_cut multiplies 8 runs of n samples by the window. Rows with even places go to even, the others to odd, stride from each other.
void audio_cut(float *even, float *odd, ptrdiff_t stride, const float *samples, const ptrdiff_t *starts, const float *window, ptrdiff_t n);

// The passes of a transform, with as many values to each of left transforms as the name says. s is a multiple of 8.
void audio_two(float *to_r, float *to_i, const float *from_r, const float *from_i, ptrdiff_t s, ptrdiff_t left, const float *tw_r, const float *tw_i);
void audio_four(float *to_r, float *to_i, const float *from_r, const float *from_i, ptrdiff_t s, ptrdiff_t left, const float *tw_r, const float *tw_i);
void audio_five(float *to_r, float *to_i, const float *from_r, const float *from_i, ptrdiff_t s, ptrdiff_t left, const float *tw_r, const float *tw_i,
	const float *root_r, const float *root_i);

// audio_untangle makes h + 1 rows of power spectra of real numbers of transforms of h rows.
void audio_untangle(float *dst, const float *re, const float *im, const float *root_r, const float *root_i, ptrdiff_t h);

// audio_filter makes the first n lanes of a row for each band, stride from each other, of the values' rows.
void audio_filter(float *dst, ptrdiff_t stride, ptrdiff_t n, const float *values, const audio_band *bands, ptrdiff_t count, const float *weights);

// audio_resample makes n samples in turns of phases. Each is the product of a kernel of taps weights, a multiple of 8, and what
// stands from its place in first on in src, which advances by step after each turn.
void audio_resample(float *dst, ptrdiff_t n, const float *src, const ptrdiff_t *first, ptrdiff_t phases, ptrdiff_t step, const float *kernel, ptrdiff_t taps);

// audio_logarithms fills dst with factor times the decimal logarithms of n values, a multiple of 8, of least at least. series has
// the 8 coefficients by which they are computed.
void audio_logarithms(float *dst, const float *src, ptrdiff_t n, float factor, float least, const double *series);

#endif
