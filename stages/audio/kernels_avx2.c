//go:build cgo && amd64

#include "kernels_avx2.h"

#include <float.h>
#include <immintrin.h>
#include <string.h>

// Without FMA in the target the compiler can't fuse a product and a sum, which would round differently.
#define AVX2 __attribute__((target("avx2")))
#define INLINE static inline __attribute__((always_inline, target("avx2")))

typedef __m256 row;

// A row of complex numbers.
typedef struct {
	row r, i;
} complex_row;

INLINE row add(row a, row b) { return _mm256_add_ps(a, b); }
INLINE row sub(row a, row b) { return _mm256_sub_ps(a, b); }
INLINE row mul(row a, row b) { return _mm256_mul_ps(a, b); }
INLINE row all(float v) { return _mm256_set1_ps(v); }
INLINE row load(const float *p) { return _mm256_loadu_ps(p); }
INLINE void store(float *p, row v) { _mm256_storeu_ps(p, v); }

INLINE complex_row loadc(const float *r, const float *i, ptrdiff_t at) { return (complex_row){load(r + at), load(i + at)}; }
INLINE complex_row addc(complex_row a, complex_row b) { return (complex_row){add(a.r, b.r), add(a.i, b.i)}; }
INLINE complex_row subc(complex_row a, complex_row b) { return (complex_row){sub(a.r, b.r), sub(a.i, b.i)}; }

INLINE void storec(float *r, float *i, ptrdiff_t at, complex_row v) {
	store(r + at, v.r);
	store(i + at, v.i);
}

INLINE complex_row times(complex_row a, row w_r, row w_i) {
	return (complex_row){sub(mul(a.r, w_r), mul(a.i, w_i)), add(mul(a.r, w_i), mul(a.i, w_r))};
}

bool audio_supported(void) { return __builtin_cpu_supports("avx2"); }

// Columns of 8 rows become rows.
INLINE void transpose(row v[8]) {
	row a[8], b[8];
	for (int k = 0; k < 4; k++) {
		a[2 * k] = _mm256_unpacklo_ps(v[2 * k], v[2 * k + 1]);
		a[2 * k + 1] = _mm256_unpackhi_ps(v[2 * k], v[2 * k + 1]);
	}
	for (int k = 0; k < 8; k += 4) {
		b[k] = _mm256_shuffle_ps(a[k], a[k + 2], 0x44);
		b[k + 1] = _mm256_shuffle_ps(a[k], a[k + 2], 0xEE);
		b[k + 2] = _mm256_shuffle_ps(a[k + 1], a[k + 3], 0x44);
		b[k + 3] = _mm256_shuffle_ps(a[k + 1], a[k + 3], 0xEE);
	}
	for (int k = 0; k < 4; k++) {
		v[k] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x20);
		v[k + 4] = _mm256_permute2f128_ps(b[k], b[k + 4], 0x31);
	}
}

AVX2 void audio_cut(float *even, float *odd, ptrdiff_t stride, const float *samples, const ptrdiff_t *starts, const float *window, ptrdiff_t n) {
	ptrdiff_t i = 0;
	for (; i + 8 <= n; i += 8) {
		row v[8], w = load(window + i);
		for (int lane = 0; lane < 8; lane++) v[lane] = mul(load(samples + starts[lane] + i), w);
		transpose(v);
		for (int k = 0; k < 8; k++) store((k % 2 ? odd : even) + (i + k) / 2 * stride, v[k]);
	}
	for (; i < n; i++) {
		float *to = (i % 2 ? odd : even) + i / 2 * stride;
		for (int lane = 0; lane < 8; lane++) to[lane] = samples[starts[lane] + i] * window[i];
	}
}

AVX2 void audio_two(float *to_r, float *to_i, const float *from_r, const float *from_i, ptrdiff_t s, ptrdiff_t left, const float *tw_r, const float *tw_i) {
	ptrdiff_t half = s * left;
	for (ptrdiff_t j = 0; j < left; j++) {
		row w_r = all(tw_r[j]), w_i = all(tw_i[j]);
		for (ptrdiff_t q = s * j, to = 2 * s * j; q < s * (j + 1); q += 8, to += 8) {
			complex_row a = loadc(from_r, from_i, q), b = loadc(from_r, from_i, q + half);
			storec(to_r, to_i, to, addc(a, b));
			storec(to_r, to_i, to + s, times(subc(a, b), w_r, w_i));
		}
	}
}

AVX2 void audio_four(float *to_r, float *to_i, const float *from_r, const float *from_i, ptrdiff_t s, ptrdiff_t left, const float *tw_r, const float *tw_i) {
	ptrdiff_t quarter = s * left;
	for (ptrdiff_t j = 0; j < left; j++, tw_r += 3, tw_i += 3) {
		row w1_r = all(tw_r[0]), w1_i = all(tw_i[0]), w2_r = all(tw_r[1]), w2_i = all(tw_i[1]), w3_r = all(tw_r[2]), w3_i = all(tw_i[2]);
		for (ptrdiff_t q = s * j, to = 4 * s * j; q < s * (j + 1); q += 8, to += 8) {
			complex_row a0 = loadc(from_r, from_i, q), a1 = loadc(from_r, from_i, q + quarter);
			complex_row a2 = loadc(from_r, from_i, q + 2 * quarter), a3 = loadc(from_r, from_i, q + 3 * quarter);
			complex_row sum = addc(a0, a2), dif = subc(a0, a2), odd = addc(a1, a3);
			complex_row turned = {sub(a1.i, a3.i), sub(a3.r, a1.r)}; // their difference times -i
			storec(to_r, to_i, to, addc(sum, odd));
			storec(to_r, to_i, to + s, times(addc(dif, turned), w1_r, w1_i));
			storec(to_r, to_i, to + 2 * s, times(subc(sum, odd), w2_r, w2_i));
			storec(to_r, to_i, to + 3 * s, times(subc(dif, turned), w3_r, w3_i));
		}
	}
}

AVX2 void audio_five(float *to_r, float *to_i, const float *from_r, const float *from_i, ptrdiff_t s, ptrdiff_t left, const float *tw_r, const float *tw_i,
	const float *root_r, const float *root_i) {
	ptrdiff_t fifth = s * left;
	row c1 = all(root_r[1]), s1 = all(root_i[1]), c2 = all(root_r[2]), s2 = all(root_i[2]), minus = all(-0.0f);
	for (ptrdiff_t j = 0; j < left; j++, tw_r += 4, tw_i += 4) {
		for (ptrdiff_t q = s * j, to = 5 * s * j; q < s * (j + 1); q += 8, to += 8) {
			complex_row a0 = loadc(from_r, from_i, q), a1 = loadc(from_r, from_i, q + fifth), a2 = loadc(from_r, from_i, q + 2 * fifth);
			complex_row a3 = loadc(from_r, from_i, q + 3 * fifth), a4 = loadc(from_r, from_i, q + 4 * fifth);
			complex_row sum1 = addc(a1, a4), dif1 = subc(a1, a4), sum2 = addc(a2, a3), dif2 = subc(a2, a3);
			complex_row even1 = {add(a0.r, add(mul(sum1.r, c1), mul(sum2.r, c2))), add(a0.i, add(mul(sum1.i, c1), mul(sum2.i, c2)))};
			complex_row even2 = {add(a0.r, add(mul(sum1.r, c2), mul(sum2.r, c1))), add(a0.i, add(mul(sum1.i, c2), mul(sum2.i, c1)))};
			complex_row odd1 = {_mm256_xor_ps(minus, add(mul(dif1.i, s1), mul(dif2.i, s2))), add(mul(dif1.r, s1), mul(dif2.r, s2))};
			complex_row odd2 = {sub(mul(dif2.i, s1), mul(dif1.i, s2)), sub(mul(dif1.r, s2), mul(dif2.r, s1))};
			storec(to_r, to_i, to, addc(a0, addc(sum1, sum2)));
			storec(to_r, to_i, to + s, times(addc(even1, odd1), all(tw_r[0]), all(tw_i[0])));
			storec(to_r, to_i, to + 2 * s, times(addc(even2, odd2), all(tw_r[1]), all(tw_i[1])));
			storec(to_r, to_i, to + 3 * s, times(subc(even2, odd2), all(tw_r[2]), all(tw_i[2])));
			storec(to_r, to_i, to + 4 * s, times(subc(even1, odd1), all(tw_r[3]), all(tw_i[3])));
		}
	}
}

INLINE row square(complex_row v) { return add(mul(v.r, v.r), mul(v.i, v.i)); }

AVX2 void audio_untangle(float *dst, const float *re, const float *im, const float *root_r, const float *root_i, ptrdiff_t h) {
	row half = all(0.5f), first = add(load(re), load(im)), last = sub(load(re), load(im));
	store(dst, mul(first, first));
	store(dst + 8 * h, mul(last, last));
	for (ptrdiff_t k = 1; k <= h - k; k++) {
		complex_row z = loadc(re, im, 8 * k), y = loadc(re, im, 8 * (h - k));
		complex_row even = {mul(add(z.r, y.r), half), mul(sub(z.i, y.i), half)};
		complex_row odd = times((complex_row){mul(add(z.i, y.i), half), mul(sub(y.r, z.r), half)}, all(root_r[k]), all(root_i[k]));
		store(dst + 8 * k, square(addc(even, odd)));
		store(dst + 8 * (h - k), square(subc(even, odd)));
	}
}

AVX2 void audio_filter(float *dst, ptrdiff_t stride, ptrdiff_t n, const float *values, const audio_band *bands, ptrdiff_t count, const float *weights) {
	for (ptrdiff_t b = 0; b < count; b++, dst += stride) {
		const float *v = values + 8 * bands[b].first;
		row sum = _mm256_setzero_ps();
		for (ptrdiff_t k = 0; k < bands[b].n; k++, v += 8) sum = add(sum, mul(load(v), all(*weights++)));
		if (n == 8) {
			store(dst, sum);
		} else {
			float rest[8];
			store(rest, sum);
			memcpy(dst, rest, sizeof *dst * (size_t)n);
		}
	}
}

AVX2 void audio_resample(float *dst, ptrdiff_t n, const float *src, const ptrdiff_t *first, ptrdiff_t phases, ptrdiff_t step, const float *kernel, ptrdiff_t taps) {
	for (ptrdiff_t i = 0, phase = 0; i < n; i++) {
		const float *s = src + first[phase], *k = kernel + phase * taps;
		row sum = _mm256_setzero_ps();
		for (ptrdiff_t t = 0; t < taps; t += 8) sum = add(sum, mul(load(s + t), load(k + t)));
		__m128 four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps(sum, 1));
		__m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
		dst[i] = _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
		if (++phase == phases) {
			phase = 0;
			src += step;
		}
	}
}

// The logarithms of 4 values, at least the least normal number.
INLINE __m128 logarithms4(__m128 v, const double *series) {
	const __m256i to_root = _mm256_set1_epi64x((0x3FFLL << 52) - (0x3FE6A09ELL << 32)), bias = _mm256_set1_epi64x(0x3FFLL << 52);
	const __m256i whole = _mm256_set1_epi64x(0x433LL << 52); // 2^52, whose fraction is a whole number
	const __m256d one = _mm256_set1_pd(1);
	__m256i bits = _mm256_castpd_si256(_mm256_cvtps_pd(v)), exponent = _mm256_srli_epi64(_mm256_add_epi64(bits, to_root), 52);
	__m256d m = _mm256_castsi256_pd(_mm256_add_epi64(_mm256_sub_epi64(bits, _mm256_slli_epi64(exponent, 52)), bias));
	__m256d s = _mm256_div_pd(_mm256_sub_pd(m, one), _mm256_add_pd(m, one)), z = _mm256_mul_pd(s, s), sum = _mm256_set1_pd(series[7]);
	for (int k = 6; k >= 0; k--) sum = _mm256_add_pd(_mm256_mul_pd(sum, z), _mm256_set1_pd(series[k]));
	__m256d e = _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(exponent, whole)), _mm256_set1_pd(0x1p52 + 0x3FF));
	return _mm256_cvtpd_ps(_mm256_add_pd(_mm256_mul_pd(e, _mm256_set1_pd(0.30102999566398119521)), _mm256_mul_pd(s, sum)));
}

AVX2 void audio_logarithms(float *dst, const float *src, ptrdiff_t n, float factor, float least, const double *series) {
	for (ptrdiff_t i = 0; i < n; i += 8) {
		row v = _mm256_max_ps(all(least), load(src + i)); // NaN stays
		row log = _mm256_set_m128(logarithms4(_mm256_extractf128_ps(v, 1), series), logarithms4(_mm256_castps256_ps128(v), series));
		row finite = _mm256_cmp_ps(v, all(FLT_MAX), _CMP_LE_OQ);
		store(dst + i, _mm256_blendv_ps(v, mul(all(factor), log), finite));
	}
}
