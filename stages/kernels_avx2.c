//go:build cgo && amd64

#include "kernels_avx2.h"

#include <immintrin.h>
#include <string.h>

// Without FMA in the target the compiler can't fuse a product and a sum, which would round differently.
#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))

bool avx2_supported(void) { return __builtin_cpu_supports("avx2"); }

// Weights have 22 bits after the point: too many for the instruction that multiplies 16-bit numbers and adds the products in
// pairs. It is done twice, for the weights' upper part and for their lowest 8 bits, and is exact so.
enum { precision = 22, low_bits = 8 };

INLINE __m256i rounded(__m256i high, __m256i low) {
	__m256i half = _mm256_set1_epi32(1 << (precision - 1));
	return _mm256_srai_epi32(_mm256_add_epi32(_mm256_add_epi32(_mm256_slli_epi32(high, low_bits), low), half), precision);
}

// Two pixels' weights for two taps: in each half those of one pixel, four times.
typedef struct {
	int16_t high[16], low[16];
} weight_pair;

// The sums for two pixels, in 32 bits: red, green, blue and nothing of one, then of the other.
INLINE __m256i two_pixels(const uint8_t *src, const int32_t *at, const weight_pair *w, int pairs) {
	const __m256i first = _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1);
	const __m256i second = _mm256_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
	const uint8_t *a = src + at[0], *b = src + at[1];
	__m256i high = _mm256_setzero_si256(), low = high;
	for (int p = 0; p < pairs; p += 2, a += 12, b += 12) {
		__m256i px = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)), _mm_loadu_si128((const __m128i *)b), 1);
		__m256i v = _mm256_shuffle_epi8(px, first);
		high = _mm256_add_epi32(high, _mm256_madd_epi16(v, _mm256_loadu_si256((const __m256i *)w[p].high)));
		low = _mm256_add_epi32(low, _mm256_madd_epi16(v, _mm256_loadu_si256((const __m256i *)w[p].low)));
		if (p + 1 == pairs) break;
		v = _mm256_shuffle_epi8(px, second);
		high = _mm256_add_epi32(high, _mm256_madd_epi16(v, _mm256_loadu_si256((const __m256i *)w[p + 1].high)));
		low = _mm256_add_epi32(low, _mm256_madd_epi16(v, _mm256_loadu_si256((const __m256i *)w[p + 1].low)));
	}
	return rounded(high, low);
}

// Rows of pixels, four at a time.
INLINE void along_rows(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int rows, int out, int pairs,
	const int32_t *at, const weight_pair *weights) {
	const __m128i in_order = _mm_setr_epi8(0, 1, 2, 8, 9, 10, 4, 5, 6, 12, 13, 14, -1, -1, -1, -1);
	for (int y = 0; y < rows; y++, dst += dst_stride, src += src_stride) {
		const weight_pair *w = weights;
		for (int x = 0; x < out; x += 4, w += 2 * pairs) {
			__m256i words = _mm256_packs_epi32(two_pixels(src, at + x, w, pairs), two_pixels(src, at + x + 2, w + pairs, pairs));
			__m256i bytes = _mm256_packus_epi16(words, words); // of pixels 0, 2, and in the upper half 1, 3
			__m128i four = _mm_unpacklo_epi64(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
			four = _mm_shuffle_epi8(four, in_order);
			uint8_t *to = dst + 3 * x;
			if (x + 4 <= out) {
				_mm_storel_epi64((__m128i *)to, four);
				int32_t last = _mm_extract_epi32(four, 2);
				memcpy(to + 8, &last, 4);
			} else {
				uint8_t rest[16];
				_mm_storeu_si128((__m128i *)rest, four);
				memcpy(to, rest, 3 * (size_t)(out - x));
			}
		}
	}
}

AVX2 void avx2_along_rows(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int width, int rows,
	const avx2_run *runs, const int32_t *weights, int out, int pairs, uint8_t *packed) {
	int whole = (out + 3) & ~3;
	weight_pair *w = (weight_pair *)packed;
	int32_t *at = (int32_t *)(w + whole / 2 * pairs);
	memset(w, 0, sizeof *w * (size_t)(whole / 2 * pairs));
	for (int x = 0; x < whole; x++) {
		at[x] = 0;
		if (x >= out) continue;
		// A run at the right edge may be shorter than others: it takes the last of the pairs' places then.
		int first = (int)runs[x].first, n = (int)runs[x].n, room = width - 2 * pairs;
		int shift = first > room ? first - room : 0;
		at[x] = 3 * (first - shift);
		for (int j = 0; j < n; j++) {
			int tap = j + shift;
			weight_pair *p = w + x / 2 * pairs + tap / 2;
			for (int k = 0; k < 4; k++) {
				int slot = x % 2 * 8 + 2 * k + tap % 2;
				p->high[slot] = (int16_t)(weights[j] >> low_bits);
				p->low[slot] = (int16_t)(weights[j] & ((1 << low_bits) - 1));
			}
		}
		weights += n;
	}
	switch (pairs) {
	case 1: along_rows(dst, dst_stride, src, src_stride, rows, out, 1, at, w); break;
	case 2: along_rows(dst, dst_stride, src, src_stride, rows, out, 2, at, w); break;
	default: along_rows(dst, dst_stride, src, src_stride, rows, out, pairs, at, w);
	}
}

// Two weights each, for two rows.
typedef struct {
	int16_t high[2], low[2];
} row_weights;

INLINE __m256i both(const int16_t w[2]) {
	int32_t two;
	memcpy(&two, w, 4);
	return _mm256_set1_epi32(two);
}

// The weighted means of 16 neighbouring columns of bytes.
INLINE void columns16(uint8_t *dst, const uint8_t *src, ptrdiff_t stride, const row_weights *w, ptrdiff_t n) {
	__m256i high0 = _mm256_setzero_si256(), high1 = high0, low0 = high0, low1 = high0;
	for (ptrdiff_t j = 0; j < n; j += 2, src += 2 * stride, w++) {
		__m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)src)), b = _mm256_setzero_si256();
		if (j + 1 < n) b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(src + stride)));
		__m256i left = _mm256_unpacklo_epi16(a, b), right = _mm256_unpackhi_epi16(a, b), high = both(w->high), low = both(w->low);
		high0 = _mm256_add_epi32(high0, _mm256_madd_epi16(left, high));
		high1 = _mm256_add_epi32(high1, _mm256_madd_epi16(right, high));
		low0 = _mm256_add_epi32(low0, _mm256_madd_epi16(left, low));
		low1 = _mm256_add_epi32(low1, _mm256_madd_epi16(right, low));
	}
	__m256i words = _mm256_packs_epi32(rounded(high0, low0), rounded(high1, low1));
	__m256i bytes = _mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0x08);
	_mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(bytes));
}

AVX2 void avx2_along_columns(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int n, const avx2_run *runs,
	const int32_t *weights, int out, uint8_t *packed) {
	row_weights *w = (row_weights *)packed;
	for (int y = 0; y < out; y++, dst += dst_stride) {
		ptrdiff_t taps = runs[y].n;
		for (ptrdiff_t j = 0; j < taps + taps % 2; j++) { // with one of 0 after an odd number
			int32_t v = j < taps ? weights[j] : 0;
			w[j / 2].high[j % 2] = (int16_t)(v >> low_bits);
			w[j / 2].low[j % 2] = (int16_t)(v & ((1 << low_bits) - 1));
		}
		weights += taps;
		const uint8_t *from = src + runs[y].first * src_stride;
		for (int x = 0; x < n; x += 16) {
			int at = x + 16 <= n ? x : n - 16;
			columns16(dst + at, from + at, src_stride, w, taps);
		}
	}
}

AVX2 void avx2_mirror(uint8_t *dst, ptrdiff_t dst_stride, const uint8_t *src, ptrdiff_t src_stride, int width, int rows) {
	// Five pixels, behind a byte that the next five are written over.
	const __m128i five = _mm_setr_epi8(-1, 12, 13, 14, 9, 10, 11, 6, 7, 8, 3, 4, 5, 0, 1, 2);
	for (int y = 0; y < rows; y++, dst += dst_stride, src += src_stride) {
		const uint8_t *from = src;
		uint8_t *to = dst + 3 * width;
		int left = width;
		for (; left >= 6; left -= 5, from += 15) {
			to -= 15;
			_mm_storeu_si128((__m128i *)(to - 1), _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)from), five));
		}
		for (; left > 0; left--, from += 3) {
			to -= 3;
			memcpy(to, from, 3);
		}
	}
}

// Eight pixels: red, green and blue in 32 bits each.
typedef struct {
	__m256i channel[3];
} eight_pixels;

INLINE eight_pixels load8(const uint8_t *src) {
	const __m256i red = _mm256_setr_epi8(0, -1, -1, -1, 3, -1, -1, -1, 6, -1, -1, -1, 9, -1, -1, -1, 4, -1, -1, -1, 7, -1, -1, -1, 10, -1, -1, -1, 13, -1, -1, -1);
	const __m256i next = _mm256_set1_epi32(1);
	// Four pixels from byte 0 of the lower half on, four from byte 4 of the upper half on.
	__m256i px = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)src)), _mm_loadu_si128((const __m128i *)(src + 8)), 1);
	__m256i green = _mm256_add_epi8(red, next);
	return (eight_pixels){{_mm256_shuffle_epi8(px, red), _mm256_shuffle_epi8(px, green), _mm256_shuffle_epi8(px, _mm256_add_epi8(green, next))}};
}

INLINE void store8(uint8_t *dst, eight_pixels px) {
	const __m256i packed = _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
	__m256i v = _mm256_or_si256(px.channel[0], _mm256_or_si256(_mm256_slli_epi32(px.channel[1], 8), _mm256_slli_epi32(px.channel[2], 16)));
	v = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(v, packed), _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
	_mm_storeu_si128((__m128i *)dst, _mm256_castsi256_si128(v));
	_mm_storel_epi64((__m128i *)(dst + 16), _mm256_extracti128_si256(v, 1));
}

INLINE void normalize(float *dst, const uint8_t *src, ptrdiff_t n, const float *mean, const float *std, bool stream) {
	const __m256 full = _mm256_set1_ps(255);
	__m256 m[3], s[3];
	for (int c = 0; c < 3; c++) {
		m[c] = _mm256_set1_ps(mean[c]);
		s[c] = _mm256_set1_ps(std[c]);
	}
	for (ptrdiff_t i = 0; i + 8 <= n; i += 8, src += 24) {
		eight_pixels px = load8(src);
		for (int c = 0; c < 3; c++) {
			__m256 v = _mm256_div_ps(_mm256_cvtepi32_ps(px.channel[c]), full);
			v = _mm256_div_ps(_mm256_sub_ps(v, m[c]), s[c]);
			if (stream) {
				_mm256_stream_ps(dst + c * n + i, v);
			} else {
				_mm256_storeu_ps(dst + c * n + i, v);
			}
		}
	}
}

AVX2 void avx2_normalize(float *dst, const uint8_t *src, ptrdiff_t n, const float *mean, const float *std, bool uncached) {
	if (uncached && (uintptr_t)dst % 32 == 0 && n % 8 == 0) {
		normalize(dst, src, n, mean, std, true);
		_mm_sfence(); // another core may read it after this
	} else {
		normalize(dst, src, n, mean, std, false);
	}
}

AVX2 void avx2_standardize(float *dst, const float *src, ptrdiff_t n, float mean, float std) {
	__m256 m = _mm256_set1_ps(mean), s = _mm256_set1_ps(std);
	ptrdiff_t i = 0;
	for (; i + 8 <= n; i += 8) _mm256_storeu_ps(dst + i, _mm256_div_ps(_mm256_sub_ps(_mm256_loadu_ps(src + i), m), s));
	for (; i < n; i++) dst[i] = (src[i] - mean) / std;
}

// What lies at factor on the line from a (0) to b (1), cut off and rounded down.
INLINE __m256i mix(__m256i a, __m256i b, __m256 factor) {
	__m256 v = _mm256_add_ps(_mm256_cvtepi32_ps(a), _mm256_mul_ps(factor, _mm256_cvtepi32_ps(_mm256_sub_epi32(b, a))));
	v = _mm256_min_ps(_mm256_max_ps(v, _mm256_setzero_ps()), _mm256_set1_ps(255)); // max gives 0 for what is no number
	return _mm256_cvttps_epi32(v);
}

INLINE __m256i grey(eight_pixels px) {
	__m256i sum = _mm256_mullo_epi32(px.channel[0], _mm256_set1_epi32(19595));
	sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(px.channel[1], _mm256_set1_epi32(38470)));
	sum = _mm256_add_epi32(sum, _mm256_mullo_epi32(px.channel[2], _mm256_set1_epi32(7471)));
	return _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 15)), 16);
}

AVX2 void avx2_mix_grey(uint8_t *dst, const uint8_t *src, ptrdiff_t n, int grey, float factor) {
	__m256i g = _mm256_set1_epi32(grey);
	__m256 f = _mm256_set1_ps(factor);
	for (ptrdiff_t i = 0; i < n; i += 32) {
		__m256i v[4];
		for (int k = 0; k < 4; k++) v[k] = mix(g, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(src + i + 8 * k))), f);
		__m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
		bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
		_mm256_storeu_si256((__m256i *)(dst + i), bytes);
	}
}

AVX2 void avx2_saturate(uint8_t *dst, const uint8_t *src, ptrdiff_t n, float factor) {
	__m256 f = _mm256_set1_ps(factor);
	for (ptrdiff_t i = 0; i < n; i += 24) {
		eight_pixels px = load8(src + i);
		__m256i g = grey(px);
		for (int c = 0; c < 3; c++) px.channel[c] = mix(g, px.channel[c], f);
		store8(dst + i, px);
	}
}

AVX2 int64_t avx2_sum_greys(const uint8_t *src, ptrdiff_t n) {
	__m256i sum = _mm256_setzero_si256();
	for (ptrdiff_t i = 0; i < n; i += 24) {
		__m256i g = grey(load8(src + i));
		sum = _mm256_add_epi64(sum, _mm256_sad_epu8(g, _mm256_setzero_si256()));
	}
	int64_t part[4];
	_mm256_storeu_si256((__m256i *)part, sum);
	return part[0] + part[1] + part[2] + part[3];
}

// Eight numbers in float64.
typedef struct {
	__m256d half[2];
} eight_doubles;

INLINE eight_doubles doubles(__m256 v) {
	return (eight_doubles){{_mm256_cvtps_pd(_mm256_castps256_ps128(v)), _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))}};
}

INLINE __m256 floats(eight_doubles v) { return _mm256_set_m128(_mm256_cvtpd_ps(v.half[1]), _mm256_cvtpd_ps(v.half[0])); }

INLINE __m256i whole(eight_doubles v) { return _mm256_set_m128i(_mm256_cvttpd_epi32(v.half[1]), _mm256_cvttpd_epi32(v.half[0])); }

// start + a - b.
INLINE __m256 beyond(double start, eight_doubles a, eight_doubles b) {
	for (int i = 0; i < 2; i++) a.half[i] = _mm256_sub_pd(_mm256_add_pd(_mm256_set1_pd(start), a.half[i]), b.half[i]);
	return floats(a);
}

// A share, from 0 to 1, of 255, rounded down.
INLINE __m256i of_255(eight_doubles v) {
	for (int i = 0; i < 2; i++) v.half[i] = _mm256_mul_pd(v.half[i], _mm256_set1_pd(255));
	return whole(v);
}

// A colour's value times 1 - share, rounded.
INLINE __m256i part(eight_doubles value, eight_doubles share) {
	for (int i = 0; i < 2; i++) {
		__m256d rest = _mm256_sub_pd(_mm256_set1_pd(1), share.half[i]);
		share.half[i] = _mm256_add_pd(_mm256_mul_pd(value.half[i], rest), _mm256_set1_pd(0.5));
	}
	return whole(share);
}

INLINE __m256i choose(__m256i a, __m256i b, __m256i where) { return _mm256_blendv_epi8(a, b, where); }

// The hues of colours, of which high is the largest channel and chroma how much larger it is than the smallest.
INLINE __m256i hue(eight_pixels px, __m256i high, __m256i chroma) {
	const __m256d one = _mm256_set1_pd(1);
	__m256 below[3], c = _mm256_cvtepi32_ps(_mm256_max_epi32(chroma, _mm256_set1_epi32(1))); // greys have none, and hue 0
	for (int i = 0; i < 3; i++) below[i] = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(high, px.channel[i])), c);
	eight_doubles red = doubles(below[0]), green = doubles(below[1]), blue = doubles(below[2]);
	__m256i side = _mm256_castps_si256(beyond(4, green, red));
	side = choose(side, _mm256_castps_si256(beyond(2, red, blue)), _mm256_cmpeq_epi32(high, px.channel[1]));
	side = choose(side, _mm256_castps_si256(_mm256_sub_ps(below[2], below[1])), _mm256_cmpeq_epi32(high, px.channel[0]));
	eight_doubles turn = doubles(_mm256_castsi256_ps(side));
	for (int i = 0; i < 2; i++) {
		__m256d t = _mm256_add_pd(_mm256_div_pd(turn.half[i], _mm256_set1_pd(6)), one);
		turn.half[i] = _mm256_sub_pd(t, _mm256_and_pd(_mm256_cmp_pd(t, one, _CMP_GE_OQ), one));
	}
	return of_255(doubles(floats(turn)));
}

AVX2 void avx2_turn_hues(uint8_t *dst, const uint8_t *src, ptrdiff_t n, const int32_t *sector, const float *within) {
	for (ptrdiff_t i = 0; i < n; i += 24) {
		eight_pixels px = load8(src + i);
		__m256i high = _mm256_max_epi32(px.channel[0], _mm256_max_epi32(px.channel[1], px.channel[2]));
		__m256i chroma = _mm256_sub_epi32(high, _mm256_min_epi32(px.channel[0], _mm256_min_epi32(px.channel[1], px.channel[2])));
		__m256i h = hue(px, high, chroma);
		__m256 brightest = _mm256_cvtepi32_ps(_mm256_max_epi32(high, _mm256_set1_epi32(1))); // black has no saturation
		__m256i s = of_255(doubles(_mm256_div_ps(_mm256_cvtepi32_ps(chroma), brightest)));

		__m256 saturation = _mm256_div_ps(_mm256_cvtepi32_ps(s), _mm256_set1_ps(255)), into = _mm256_i32gather_ps(within, h, 4);
		eight_doubles value = doubles(_mm256_cvtepi32_ps(high)), full = doubles(saturation), rest = doubles(into);
		for (int k = 0; k < 2; k++) rest.half[k] = _mm256_mul_pd(full.half[k], _mm256_sub_pd(_mm256_set1_pd(1), rest.half[k]));
		__m256i least = part(value, full), falling = part(value, doubles(_mm256_mul_ps(saturation, into))), rising = part(value, rest);
		__m256i at = _mm256_i32gather_epi32(sector, h, 4), in[6];
		for (int k = 0; k < 6; k++) in[k] = _mm256_cmpeq_epi32(at, _mm256_set1_epi32(k));
		// From sector to sector another channel is the largest, rises or falls.
		for (int c = 0; c < 3; c++) {
			__m256i v = choose(least, high, _mm256_or_si256(in[(2 * c + 5) % 6], in[2 * c]));
			v = choose(v, falling, in[2 * c + 1]);
			px.channel[c] = choose(v, rising, in[(2 * c + 4) % 6]);
		}
		store8(dst + i, px);
	}
}
