// The limit of the machine: JPEG files to batches of random resized crops, mirrored at random and normalized, as fast as C can with
// libjpeg-turbo and AVX2, and nothing around it. Weights have 14 bits, so that colours may be one of 255 levels off.
//
// usage: limit THREADS BATCHES FILE... : does so many batches of 64 for each line of standard input, and prints images/s.
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jpeglib.h>

enum { side = 224, batch = 64, precision = 14, margin = 256, max_taps = 64 };

static const float mean[3] = {0.485f, 0.456f, 0.406f}, deviation[3] = {0.229f, 0.224f, 0.225f};

typedef struct {
	int top, left, height, width;
} box;

// How the pixels of an axis are made of others: bilinear and antialiased, as in Pillow.
typedef struct {
	int first[side], taps; // an even number of them for each pixel
	int16_t weight[side][max_taps];
} axis;

typedef struct {
	pthread_t thread;
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	uint64_t random;
	uint8_t *file, *pixels, *narrow;
	size_t file_size, pixels_size, narrow_size;
	axis across, down;
	float *out; // a batch
} worker;

static char **files;
static int file_count;
static atomic_long next_image, last_image;

static void die(const char *what) {
	perror(what);
	exit(1);
}

static void *room(uint8_t **p, size_t *size, size_t n) {
	if (*size < n) {
		free(*p);
		*size = n + n / 2;
		if ((*p = malloc(*size)) == NULL) die("memory");
	}
	return *p;
}

static double uniform(worker *w, double low, double high) { // xorshift64*, G. Marsaglia and S. Vigna
	w->random ^= w->random >> 12;
	w->random ^= w->random << 25;
	w->random ^= w->random >> 27;
	return low + (high - low) * (double)((w->random * 2685821657736338717u) >> 11) / 9007199254740992.0;
}

// The crop is drawn as torchvision's RandomResizedCrop does.
static box draw(worker *w, int height, int width) {
	for (int i = 0; i < 10; i++) {
		double area = (double)height * width * uniform(w, 0.08, 1), ratio = exp(uniform(w, log(3. / 4), log(4. / 3)));
		int cw = (int)lrint(sqrt(area * ratio)), ch = (int)lrint(sqrt(area / ratio));
		if (cw < 1 || cw > width || ch < 1 || ch > height) continue;
		return (box){(int)uniform(w, 0, height - ch + 1), (int)uniform(w, 0, width - cw + 1), ch, cw};
	}
	int edge = height < width ? height : width;
	return (box){(height - edge) / 2, (width - edge) / 2, edge, edge};
}

static size_t read_file(worker *w, const char *name) {
	int f = open(name, O_RDONLY);
	struct stat s;
	if (f < 0 || fstat(f, &s) < 0) die(name);
	size_t n = (size_t)s.st_size;
	room(&w->file, &w->file_size, n);
	if (read(f, w->file, n) != (ssize_t)n) die(name);
	close(f);
	return n;
}

// Decodes what is needed of a picture, at a half, a quarter or an eighth where the crop is large; returns where the crop lies in the
// pixels, and the length of their rows.
static box decode(worker *w, size_t n, int *stride) {
	j_decompress_ptr j = &w->jpeg;
	jpeg_mem_src(j, w->file, n);
	jpeg_read_header(j, TRUE);
	box b = draw(w, (int)j->image_height, (int)j->image_width);
	int denominator = 1;
	while (denominator < 8 && b.width >= 4 * denominator * side && b.height >= 4 * denominator * side) denominator *= 2;
	j->out_color_space = JCS_RGB;
	j->scale_num = 1;
	j->scale_denom = (unsigned)denominator;
	jpeg_start_decompress(j);
	b = (box){b.top / denominator, b.left / denominator, b.height / denominator, b.width / denominator};
	JDIMENSION left = (JDIMENSION)b.left, width = (JDIMENSION)b.width;
	if (width < j->output_width) jpeg_crop_scanline(j, &left, &width);
	if (b.top > 0) jpeg_skip_scanlines(j, (JDIMENSION)b.top);
	*stride = 3 * (int)width;
	uint8_t *p = room(&w->pixels, &w->pixels_size, (size_t)b.height * *stride + margin);
	for (int y = 0; y < b.height; y++, p += *stride) jpeg_read_scanlines(j, &p, 1);
	jpeg_abort_decompress(j);
	return (box){0, b.left - (int)left, b.height, b.width};
}

static void set_axis(axis *a, int n) {
	double scale = (double)n / side, support = scale > 1 ? scale : 1;
	a->taps = (int)ceil(support) * 2 + 1;
	a->taps += a->taps % 2;
	if (a->taps > max_taps) a->taps = max_taps;
	memset(a->weight, 0, sizeof a->weight);
	for (int i = 0; i < side; i++) {
		double centre = (i + 0.5) * scale, weight[max_taps], sum = 0;
		int first = (int)(centre - support + 0.5), end = (int)(centre + support + 0.5);
		if (first < 0) first = 0;
		if (end > n) end = n;
		if (end > first + a->taps) end = first + a->taps;
		for (int x = first; x < end; x++) {
			double d = 1 - fabs((x - centre + 0.5) / support);
			sum += weight[x - first] = d > 0 ? d : 0;
		}
		a->first[i] = first;
		for (int x = first; x < end; x++) a->weight[i][x - first] = (int16_t)lrint(weight[x - first] / sum * (1 << precision));
	}
	// Most runs are shorter than the longest that the kernel's width allows for.
	for (bool used = false; a->taps > 2; a->taps -= 2) {
		for (int i = 0; i < side; i++) used |= a->weight[i][a->taps - 2] != 0 || a->weight[i][a->taps - 1] != 0;
		if (used) break;
	}
}

static __m128i pair(const int16_t *weights) {
	int32_t two;
	memcpy(&two, weights, 4);
	return _mm_set1_epi32(two);
}

// One pixel of a row: red, green, blue and nothing, in 32 bits.
static inline __m128i weigh_pixels(const uint8_t *p, const int16_t *weight, int taps) {
	const __m128i order[2] = {_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1),
		_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1)};
	__m128i sum = _mm_set1_epi32(1 << (precision - 1));
	for (int j = 0; j < taps; j += 4, p += 12) {
		__m128i v = _mm_loadu_si128((const __m128i *)p);
		sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_shuffle_epi8(v, order[0]), pair(weight + j)));
		if (j + 2 < taps) sum = _mm_add_epi32(sum, _mm_madd_epi16(_mm_shuffle_epi8(v, order[1]), pair(weight + j + 2)));
	}
	return _mm_srai_epi32(sum, precision);
}

// Rows of the crop become rows of three planes, mirrored or not.
static void along_rows(const axis *a, const uint8_t *src, int stride, int rows, bool mirrored, uint8_t *dst) {
	const __m128i planes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, -1, -1, -1, -1);
	const __m128i reversed = _mm_setr_epi8(12, 8, 4, 0, 13, 9, 5, 1, 14, 10, 6, 2, -1, -1, -1, -1);
	__m128i order = mirrored ? reversed : planes;
	for (int y = 0; y < rows; y++, src += stride, dst += 3 * side) {
		for (int x = 0; x < side; x += 4) {
			__m128i v[4];
			for (int k = 0; k < 4; k++) v[k] = weigh_pixels(src + 3 * a->first[x + k], a->weight[x + k], a->taps);
			__m128i four = _mm_packus_epi16(_mm_packs_epi32(v[0], v[1]), _mm_packs_epi32(v[2], v[3]));
			four = _mm_shuffle_epi8(four, order);
			uint8_t *to = dst + (mirrored ? side - 4 - x : x);
			int32_t red = _mm_extract_epi32(four, 0), green = _mm_extract_epi32(four, 1), blue = _mm_extract_epi32(four, 2);
			memcpy(to, &red, 4);
			memcpy(to + side, &green, 4);
			memcpy(to + 2 * side, &blue, 4);
		}
	}
}

// Rows of three planes become a tensor.
static void along_columns(const axis *a, const uint8_t *src, float *dst) {
	for (int y = 0; y < side; y++) {
		const uint8_t *rows = src + (size_t)a->first[y] * 3 * side;
		for (int c = 0; c < 3; c++) {
			__m256 factor = _mm256_set1_ps(1 / (255 * deviation[c])), shift = _mm256_set1_ps(-mean[c] / deviation[c]);
			float *to = dst + (c * side + y) * side;
			for (int x = 0; x < side; x += 8) {
				const uint8_t *p = rows + c * side + x;
				__m256i sum = _mm256_set1_epi32(1 << (precision - 1));
				for (int j = 0; j < a->taps; j += 2, p += 2 * 3 * side) {
					__m128i both = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)p), _mm_loadl_epi64((const __m128i *)(p + 3 * side)));
					sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_cvtepu8_epi16(both), _mm256_broadcastsi128_si256(pair(a->weight[y] + j))));
				}
				_mm256_storeu_ps(to + x, _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_srai_epi32(sum, precision)), factor, shift));
			}
		}
	}
}

static void *work(void *arg) {
	worker *w = arg;
	for (long i; (i = next_image++) < last_image;) {
		int stride;
		box b = decode(w, read_file(w, files[i % file_count]), &stride);
		set_axis(&w->across, b.width);
		set_axis(&w->down, b.height);
		uint8_t *narrow = room(&w->narrow, &w->narrow_size, (size_t)(b.height + max_taps) * 3 * side);
		along_rows(&w->across, w->pixels + 3 * b.left, stride, b.height, uniform(w, 0, 1) < 0.5, narrow);
		along_columns(&w->down, narrow, w->out + i % batch * 3 * side * side);
	}
	return NULL;
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
	if (argc < 4) {
		fprintf(stderr, "usage: limit THREADS BATCHES FILE...\n");
		return 2;
	}
	int threads = atoi(argv[1]), images = atoi(argv[2]) * batch;
	files = argv + 3;
	file_count = argc - 3;
	float *out = malloc(sizeof *out * batch * 3 * side * side);
	worker *workers = calloc((size_t)threads, sizeof *workers);
	if (out == NULL || workers == NULL) die("memory");
	for (int t = 0; t < threads; t++) {
		worker *w = workers + t;
		w->jpeg.err = jpeg_std_error(&w->errors);
		jpeg_create_decompress(&w->jpeg);
		w->random = 88172645463325252u + (uint64_t)t;
		w->out = out;
	}
	char *line = NULL;
	for (size_t size = 0; getline(&line, &size, stdin) > 0;) {
		double start = now();
		last_image = next_image + images;
		for (int t = 0; t < threads; t++)
			if (pthread_create(&workers[t].thread, NULL, work, workers + t) != 0) die("thread");
		for (int t = 0; t < threads; t++) pthread_join(workers[t].thread, NULL);
		printf("%f\n", images / (now() - start));
		fflush(stdout);
	}
	return 0;
}
