// The convolution of one block of the network, 3×3 with padding 1, with the bias, ReLU and 2×2 maximum behind it, and
// its gradients, each as one product of matrices. Pictures are H×W×C: a pixel's channels lie together.
//
// The pooling is part of the products. Its windows are 4 rows of the forward product's tile that one thread holds, so
// the convolution's output never goes to memory: what does is the maxima, a quarter, and for each the pixel of its
// window that it came from (argmax), or dead where ReLU has cut it off. The backward products look a pixel's
// gradient up in there. As in PyTorch, an odd last row or column belongs to no window; it isn't even computed.
#pragma once
#include "tile.h"

const int dead = 4;

// Patches is the loader of the forward product's left side: row 4·w+p is the patch, 9 taps of in channels, that pixel p of
// window w sees.
template <class Product> struct Patches {
	typedef Down<Product::threads, tileM> Layout;
	const float *centre[Layout::quads]; // of each patch
	unsigned taps[Layout::quads];       // bit t: tap t is inside the picture
	int offset, channel, tap;           // of this thread's next values: where from the centre, which
	int in, skip;
	float4 q[Layout::quads];

	__device__ __forceinline__ Patches(const float *x, int samples, int height, int width, int in, int stride, int rows, int columns, int m0)
		: offset((-width - 1) * in), channel(0), tap(0), in(in), skip((width - 3) * in) {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			int m = m0 + Layout::row(i), pixel = m % 4, window = m / 4, sample = window / (rows * columns);
			taps[i] = 0;
			centre[i] = x;
			if (sample >= samples) continue;
			int cy = (window / columns % rows * 2 + pixel / 2) * stride, cx = (window % columns * 2 + pixel % 2) * stride;
			centre[i] = x + ((long long)sample * height + cy) * width * in + cx * in;
#pragma unroll
			for (int t = 0; t < 9; t++) {
				int y = cy + t / 3 - 1, x = cx + t % 3 - 1;
				if (y >= 0 && y < height && x >= 0 && x < width) taps[i] |= 1u << t;
			}
		}
		advance(Layout::k());
	}
	// advance goes k values on. A patch's three rows are 3·in values each that lie together.
	__device__ __forceinline__ void advance(int k) {
		offset += k;
		channel += k;
		while (channel >= in) {
			channel -= in;
			tap++;
			if (tap == 3 || tap == 6) offset += skip;
		}
	}
	__device__ __forceinline__ void load() {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			q[i] = float4{0.f, 0.f, 0.f, 0.f};
			if (taps[i] >> tap & 1) q[i] = load4(centre[i] + offset); // past the ninth tap no bit is set
		}
		advance(tileK);
	}
	template <class P> __device__ __forceinline__ void store(Shared<tileM> &tile) { Layout::template store<P>(tile, q); }
};

// pass returns the gradients that pixel of a window gets, for 4 channels.
__device__ __forceinline__ float4 pass(const float *dOut, const unsigned char *argmax, int pixel) {
	float4 d = load4(dOut);
	uchar4 arg = *(const uchar4 *)argmax;
	return float4{arg.x == pixel ? d.x : 0.f, arg.y == pixel ? d.y : 0.f, arg.z == pixel ? d.z : 0.f, arg.w == pixel ? d.w : 0.f};
}

// GradientPatches is the left side of the product for the gradient by the input, of a convolution with stride 1: row m
// is what pixel m of the input was seen by, 9 taps of out channels, of which tap t stands for the kernel's 8-t.
template <class Product> struct GradientPatches {
	typedef Down<Product::threads, tileM> Layout;
	const float *dOut;
	const unsigned char *argmax;
	int first[Layout::quads]; // window of each row's sample
	int y[Layout::quads], x[Layout::quads];
	long long at[Layout::quads]; // where this tap's channels begin, or -1
	int pixel[Layout::quads];    // of its window
	int out, rows, columns, channel, tap;
	float4 q[Layout::quads];

	__device__ __forceinline__ GradientPatches(const float *dOut, const unsigned char *argmax, int samples, int height, int width, int out,
		int rows, int columns, int m0)
		: dOut(dOut), argmax(argmax), out(out), rows(rows), columns(columns), channel(0), tap(0) {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			int m = m0 + Layout::row(i), sample = m / (width * height);
			first[i] = sample * rows * columns;
			y[i] = sample < samples ? m / width % height : -2; // a row that no tap reaches
			x[i] = m % width;
		}
		find();
		advance(Layout::k());
	}
	// find looks up the windows of the current tap.
	__device__ __forceinline__ void find() {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			int v = y[i] + tap / 3 - 1, u = x[i] + tap % 3 - 1;
			bool inside = tap < 9 && v >= 0 && v < 2 * rows && u >= 0 && u < 2 * columns;
			at[i] = inside ? (long long)(first[i] + v / 2 * columns + u / 2) * out : -1;
			pixel[i] = v % 2 * 2 + u % 2;
		}
	}
	__device__ __forceinline__ void advance(int k) {
		channel += k;
		if (channel < out) return;
		do {
			channel -= out;
			tap++;
		} while (channel >= out);
		find();
	}
	__device__ __forceinline__ void load() {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			q[i] = float4{0.f, 0.f, 0.f, 0.f};
			if (at[i] >= 0) q[i] = pass(dOut + at[i] + channel, argmax + at[i] + channel, pixel[i]);
		}
		advance(tileK);
	}
	template <class P> __device__ __forceinline__ void store(Shared<tileM> &tile) { Layout::template store<P>(tile, q); }
};

// Turned is that product's right side: the weights out × 9 × in as 9·out × in, with the taps in reverse.
template <class Product> struct Turned {
	typedef Across<Product::threads, Product::tileN> Layout;
	static_assert(Layout::quads == 1, "a thread has one row");
	const float *weights;
	int in, out, tap, channel;
	bool inside;
	float4 q[1];

	__device__ __forceinline__ Turned(const float *weights, int in, int out, int n0)
		: in(in), out(out), tap(8), channel(0), inside(n0 + Layout::column() < in) {
		this->weights = weights + (inside ? n0 + Layout::column() : 0);
		advance(Layout::k(0));
	}
	__device__ __forceinline__ void advance(int k) {
		channel += k;
		while (channel >= out) {
			channel -= out;
			tap--;
		}
	}
	__device__ __forceinline__ void load() {
		q[0] = float4{0.f, 0.f, 0.f, 0.f};
		if (inside && tap >= 0) q[0] = load4(weights + ((long long)channel * 9 + tap) * in);
		advance(tileK);
	}
	template <class P> __device__ __forceinline__ void store(Shared<Product::tileN> &tile) { Layout::template store<P>(tile, q); }
};

// TapColumns is the left side of the product for the gradient by the weights, transposed: row 4·w+p of it, along the
// tile's, is the patch of pixel p of window w. A thread has the same 4 channels of one tap all the time.
template <class Product> struct TapColumns {
	typedef Across<Product::threads, tileM> Layout;
	const float *at; // the sample's values for this tap and these channels
	int window, end; // windows of all samples
	int py, px;      // the window in its sample
	int height, width, in, stride, rows, columns, dy, dx;
	bool inside;
	float4 q[Layout::quads];

	__device__ __forceinline__ TapColumns(const float *x, int height, int width, int in, int stride, int rows, int columns, int m0, int first, int end)
		: window(first), end(end), height(height), width(width), in(in), stride(stride), rows(rows), columns(columns) {
		int m = m0 + Layout::column(), tap = m / in;
		inside = tap < 9;
		dy = tap / 3 - 1;
		dx = tap % 3 - 1;
		py = first / columns % rows;
		px = first % columns;
		at = x + (long long)(first / (rows * columns)) * height * width * in + m % in;
	}
	__device__ __forceinline__ void load() {
		// A turn's 8 pixels are two windows; a thread has as many pixels of the one as of the other.
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			int pixel = Layout::k(i) % 4, y = (2 * py + pixel / 2) * stride + dy, x = (2 * px + pixel % 2) * stride + dx;
			q[i] = float4{0.f, 0.f, 0.f, 0.f};
			if (inside && window < end && y >= 0 && y < height && x >= 0 && x < width) q[i] = load4(at + (y * width + x) * in);
			if (i % (Layout::quads / 2) == Layout::quads / 2 - 1) next();
		}
	}
	__device__ __forceinline__ void next() {
		window++;
		if (++px < columns) return;
		px = 0;
		if (++py < rows) return;
		py = 0;
		at += (long long)height * width * in;
	}
	template <class P> __device__ __forceinline__ void store(Shared<tileM> &tile) { Layout::template store<P>(tile, q); }
};

// PixelGradients is that product's right side: row 4·w+p has the gradients of pixel p of window w. total, their sum, is
// the gradient by the bias.
template <class Product> struct PixelGradients {
	typedef Across<Product::threads, Product::tileN> Layout;
	static_assert(Layout::quads == 1, "a thread has one row");
	const float *dOut;
	const unsigned char *argmax;
	int window, end, out;
	bool inside;
	float4 q[1];
	float4 total;

	__device__ __forceinline__ PixelGradients(const float *dOut, const unsigned char *argmax, int out, int n0, int first, int end)
		: window(first + Layout::k(0) / 4), end(end), out(out), inside(n0 + Layout::column() < out), total{0.f, 0.f, 0.f, 0.f} {
		int column = inside ? n0 + Layout::column() : 0;
		this->dOut = dOut + column;
		this->argmax = argmax + column;
	}
	__device__ __forceinline__ void load() {
		q[0] = float4{0.f, 0.f, 0.f, 0.f};
		if (inside && window < end) {
			long long at = (long long)window * out;
			q[0] = pass(dOut + at, argmax + at, Layout::k(0) % 4);
		}
		total.x += q[0].x, total.y += q[0].y, total.z += q[0].z, total.w += q[0].w;
		window += 2;
	}
	template <class P> __device__ __forceinline__ void store(Shared<Product::tileN> &tile) { Layout::template store<P>(tile, q); }
};

// The blocks of threads of all kernels below are numbered along N first: those that run at the same time then share
// their rows of A, the larger side, in the L2 cache.

// convForward computes y and argmax, samples × rows × columns × out each, of x, samples × height × width × in.
template <class Product>
__device__ __forceinline__ void convForward(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	const float *x, const float *weights, const float *bias, float *y, unsigned char *argmax) {
	int across = (out + Product::tileN - 1) / Product::tileN;
	int m0 = blockIdx.x / across * tileM, n0 = blockIdx.x % across * Product::tileN;
	Patches<Product> a(x, samples, height, width, in, stride, rows, columns, m0);
	Rows<Product, Product::tileN> b(weights, 9 * in, n0, out, 0, 9 * in);
	float sum[8][8];
	multiply<Product>(a, b, (9 * in + tileK - 1) / tileK, sum);
#pragma unroll
	for (int h = 0; h < 2; h++) {
		int window = (m0 + Product::row(h)) / 4;
		if (window >= samples * rows * columns) continue;
#pragma unroll
		for (int g = 0; g < 2; g++) {
			int column = n0 + Product::column(g);
			if (column >= out) continue;
			float4 shift = load4(bias + column);
			float shifts[4] = {shift.x, shift.y, shift.z, shift.w}, top[4];
			unsigned char from[4];
			// Bias and ReLU keep the order, so they can come after the maximum. The first of equal pixels wins.
#pragma unroll
			for (int j = 0; j < 4; j++) {
				top[j] = sum[4 * h][4 * g + j];
				from[j] = 0;
#pragma unroll
				for (int p = 1; p < 4; p++)
					if (sum[4 * h + p][4 * g + j] > top[j]) {
						top[j] = sum[4 * h + p][4 * g + j];
						from[j] = p;
					}
				top[j] += shifts[j];
				if (top[j] <= 0.f) { // a NaN stays
					top[j] = 0.f;
					from[j] = dead;
				}
			}
			long long at = (long long)window * out + column;
			store4(y + at, top[0], top[1], top[2], top[3]);
			*(uchar4 *)(argmax + at) = uchar4{from[0], from[1], from[2], from[3]};
		}
	}
}

// convBackwardData computes the gradient dx by the input of a convolution with stride 1.
template <class Product>
__device__ __forceinline__ void convBackwardData(int samples, int height, int width, int in, int out, int rows, int columns,
	const float *dOut, const unsigned char *argmax, const float *weights, float *dx) {
	int across = (in + Product::tileN - 1) / Product::tileN;
	int m0 = blockIdx.x / across * tileM, n0 = blockIdx.x % across * Product::tileN;
	GradientPatches<Product> a(dOut, argmax, samples, height, width, out, rows, columns, m0);
	Turned<Product> b(weights, in, out, n0);
	float sum[8][8];
	multiply<Product>(a, b, (9 * out + tileK - 1) / tileK, sum);
	storeRows<Product>(dx, in, m0, samples * height * width, n0, in, sum);
}

// convBackwardWeights computes the gradient by the weights, out × 9 × in, and by the bias, out, behind each other. The
// products here are small and their K, all pixels of the batch, is long, so it is split: part s of the grid sums up span
// windows into gradients s, and whoever uses them adds them up in order. The sum is the same every time, which atomic
// additions wouldn't give.
template <class Product>
__device__ __forceinline__ void convBackwardWeights(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	int span, const float *x, const float *dOut, const unsigned char *argmax, float *gradients) {
	int across = (out + Product::tileN - 1) / Product::tileN;
	int m0 = blockIdx.x / across * tileM, n0 = blockIdx.x % across * Product::tileN;
	int first = blockIdx.y * span, end = first + span;
	if (end > samples * rows * columns) end = samples * rows * columns;
	gradients += (long long)blockIdx.y * out * (9 * in + 1);
	TapColumns<Product> a(x, height, width, in, stride, rows, columns, m0, first, end);
	PixelGradients<Product> b(dOut, argmax, out, n0, first, end);
	float sum[8][8];
	multiply<Product>(a, b, (end - first + 1) / 2, sum);
	storeColumns<Product>(gradients, 9 * in, m0, 9 * in, n0, out, sum);
	if (m0 == 0) storeTotals<Product>(gradients + (long long)out * 9 * in, n0, out, b.total);
}
