// The matrix product that convolutions and the linear layer are made of: a block of threads computes a tile of
// C = A·B, M×N, walking along the K that A and B share. A and B are seen through loaders, which know where the values
// lie (a convolution's patches are never written out), and C through the caller's epilogue.
//
// How it gets to a good part of the card's rate:
//  - A thread holds 8×8 sums in registers, so that each k costs it 4 loads of 16 bytes from shared memory for 64
//    multiply-adds: the arithmetic is the limit, not the shared memory. The sums, the factors, the values on their way and
//    the addresses take 128 to 168 registers, which leaves 384 to 512 threads on a multiprocessor: 3 or 4 warps for each of
//    its schedulers. The 64 independent sums hide the latency of the multiply-adds, so few warps do. The kernels' launch
//    bounds ask for as many blocks as fit without spilling registers.
//  - Tiles lie in shared memory twice: while one pair is multiplied, the next comes from global memory into registers
//    and then into the other pair. One barrier a turn.
//  - From global memory everything comes 16 bytes at a time, so channels and classes are padded to multiples of 4. The
//    padding is zeros, whose gradients are zeros, so the padding stays and needs no conditions.
#pragma once

const int tileM = 128, tileK = 8; // tileN is 64 or 32: the product's

// The tiles lie in shared memory by k. A row has 8 floats more than the tile, so that the next one starts 8 banks on:
// four threads that read 16 bytes each of rows t = 0 … 3 get them from different banks (tensor cores ask so).
template <int width> struct Shared { float at[tileK][width + 8]; };

// place is where column m lies in row k. In rows 4 to 7 the halves of each 32 columns change places: a warp that stores
// rows k and k+4, 16 columns of each, has to get the two to different halves of the banks.
__device__ __forceinline__ int place(int k, int m) { return m ^ ((k & 4) << 2); }

__device__ __forceinline__ float4 load4(const float *p) { return *(const float4 *)p; }
__device__ __forceinline__ void store4(float *p, float a, float b, float c, float d) { *(float4 *)p = float4{a, b, c, d}; }

// Down is how the threads of a block share out a tile whose values follow each other along k in memory: a thread takes
// 4 of them, for each of its rows. 16 threads in a row take 16 rows, the next 16 the other half of their 32 bytes, so
// that a warp uses all of every 32-byte sector it asks for.
template <int threads, int width> struct Down {
	static const int quads = width * 2 / threads;
	static __device__ __forceinline__ int row(int i) {
		int t = threadIdx.x;
		return i * (threads / 2) + t / 32 * 16 + t % 16;
	}
	static __device__ __forceinline__ int k() { return threadIdx.x / 16 % 2 * 4; }
	template <class Product> static __device__ __forceinline__ void store(Shared<width> &tile, const float4 *q) {
#pragma unroll
		for (int i = 0; i < quads; i++) {
			int m = place(k(), row(i));
			tile.at[k() + 0][m] = Product::round(q[i].x);
			tile.at[k() + 1][m] = Product::round(q[i].y);
			tile.at[k() + 2][m] = Product::round(q[i].z);
			tile.at[k() + 3][m] = Product::round(q[i].w);
		}
	}
};

// Across is the same for values that follow each other along the tile's rows: a thread takes 4 columns of some rows.
template <int threads, int width> struct Across {
	static const int quads = width * 2 / threads, step = threads * 4 / width;
	static __device__ __forceinline__ int column() { return threadIdx.x % (width / 4) * 4; }
	static __device__ __forceinline__ int k(int i) { return threadIdx.x / (width / 4) + i * step; }
	template <class Product> static __device__ __forceinline__ void store(Shared<width> &tile, const float4 *q) {
#pragma unroll
		for (int i = 0; i < quads; i++)
			store4(&tile.at[k(i)][place(k(i), column())], Product::round(q[i].x), Product::round(q[i].y), Product::round(q[i].z),
				Product::round(q[i].w));
	}
};

// MultiplyAdd computes the product on the float32 units. A thread's 8×8 sums are four squares of 4×4, half a tile apart,
// so that the threads of a warp read neighbouring 16 bytes.
template <int n> struct MultiplyAdd {
	static const int tileN = n, threads = tileM * n / 64;
	static __device__ __forceinline__ float round(float v) { return v; }
	static __device__ __forceinline__ int row(int half) { return half * (tileM / 2) + threadIdx.x / (n / 8) * 4; }
	static __device__ __forceinline__ int column(int half) { return half * (n / 2) + threadIdx.x % (n / 8) * 4; }

	static __device__ __forceinline__ void add(const Shared<tileM> &a, const Shared<n> &b, float (&sum)[8][8]) {
#pragma unroll
		for (int k = 0; k < tileK; k++) {
			float4 a0 = load4(&a.at[k][place(k, row(0))]), a1 = load4(&a.at[k][place(k, row(1))]);
			float4 b0 = load4(&b.at[k][place(k, column(0))]), b1 = load4(&b.at[k][place(k, column(1))]);
			float left[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
			float right[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
			for (int i = 0; i < 8; i++)
#pragma unroll
				for (int j = 0; j < 8; j++) sum[i][j] += left[i] * right[j];
		}
	}
};

// multiply makes sum this thread's part of A·B over steps·8 values of k: sum[4·h+i][4·g+j] belongs to the tile's row
// Product::row(h)+i and column Product::column(g)+j. load of a loader takes its values of the next 8 k out of global
// memory, zeros where there are none; store puts them into shared memory.
template <class Product, class A, class B> static __device__ __forceinline__ void multiply(A &a, B &b, int steps, float (&sum)[8][8]) {
	__shared__ __attribute__((aligned(16))) Shared<tileM> left[2];
	__shared__ __attribute__((aligned(16))) Shared<Product::tileN> right[2];
#pragma unroll
	for (int i = 0; i < 8; i++)
#pragma unroll
		for (int j = 0; j < 8; j++) sum[i][j] = 0.f;
	a.load();
	b.load();
	a.template store<Product>(left[0]);
	b.template store<Product>(right[0]);
	__syncthreads();
	for (int step = 0; step < steps; step++) {
		int now = step & 1;
		bool more = step + 1 < steps;
		if (more) { // on their way while the product below is computed
			a.load();
			b.load();
		}
		Product::add(left[now], right[now], sum);
		if (more) { // the other pair was read before the last barrier
			a.template store<Product>(left[now ^ 1]);
			b.template store<Product>(right[now ^ 1]);
		}
		__syncthreads();
	}
}

// Rows is the loader of a matrix whose rows, along k, are stride apart, a multiple of 4. It is the tile's rows first … of
// count; k goes to end, a multiple of 4.
template <class Product, int width> struct Rows {
	typedef Down<Product::threads, width> Layout;
	const float *at[Layout::quads];
	int left; // values of k from this thread's next on; all rows end together
	bool inside[Layout::quads];
	float4 q[Layout::quads];

	__device__ __forceinline__ Rows(const float *matrix, int stride, int first, int count, int k, int end) {
		left = end - k - Layout::k();
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			int row = first + Layout::row(i);
			inside[i] = row < count;
			at[i] = matrix + (long long)(inside[i] ? row : 0) * stride + k + Layout::k();
		}
	}
	__device__ __forceinline__ void load() {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			q[i] = float4{0.f, 0.f, 0.f, 0.f};
			if (inside[i] && left > 0) q[i] = load4(at[i]);
			at[i] += tileK;
		}
		left -= tileK;
	}
	template <class P> __device__ __forceinline__ void store(Shared<width> &tile) { Layout::template store<P>(tile, q); }
};

// Columns is the loader of a matrix whose rows, along the tile's, are stride apart: row k of it has the tile's columns
// first … of count, a multiple of 4. k goes from 0 to end. total sums up what passed through this thread.
template <class Product, int width> struct Columns {
	typedef Across<Product::threads, width> Layout;
	const float *at;
	int k, end, stride;
	bool inside;
	float4 q[Layout::quads];
	float4 total;

	__device__ __forceinline__ Columns(const float *matrix, int stride, int first, int count, int end)
		: k(0), end(end), stride(stride), inside(first + Layout::column() < count), total{0.f, 0.f, 0.f, 0.f} {
		at = matrix + (inside ? first + Layout::column() : 0);
	}
	__device__ __forceinline__ void load() {
#pragma unroll
		for (int i = 0; i < Layout::quads; i++) {
			int row = k + Layout::k(i);
			q[i] = float4{0.f, 0.f, 0.f, 0.f};
			if (inside && row < end) q[i] = load4(at + (long long)row * stride);
			total.x += q[i].x, total.y += q[i].y, total.z += q[i].z, total.w += q[i].w;
		}
		k += tileK;
	}
	template <class P> __device__ __forceinline__ void store(Shared<width> &tile) { Layout::template store<P>(tile, q); }
};

// storeColumns stores the sums as C transposed: columns of C, whose rows follow each other, are stride apart.
template <class Product> __device__ __forceinline__ void storeColumns(float *c, int stride, int m0, int m, int n0, int n, const float (&sum)[8][8]) {
#pragma unroll
	for (int g = 0; g < 2; g++)
#pragma unroll
		for (int j = 0; j < 4; j++)
#pragma unroll
			for (int h = 0; h < 2; h++) {
				int row = m0 + Product::row(h), column = n0 + Product::column(g) + j, s = 4 * g + j;
				if (row < m && column < n)
					store4(c + (long long)column * stride + row, sum[4 * h][s], sum[4 * h + 1][s], sum[4 * h + 2][s], sum[4 * h + 3][s]);
			}
}

// storeRows stores the sums as C: rows are stride apart.
template <class Product> __device__ __forceinline__ void storeRows(float *c, int stride, int m0, int m, int n0, int n, const float (&sum)[8][8]) {
#pragma unroll
	for (int h = 0; h < 2; h++)
#pragma unroll
		for (int i = 0; i < 4; i++)
#pragma unroll
			for (int g = 0; g < 2; g++) {
				int row = m0 + Product::row(h) + i, column = n0 + Product::column(g), s = 4 * h + i;
				if (row < m && column < n)
					store4(c + (long long)row * stride + column, sum[s][4 * g], sum[s][4 * g + 1], sum[s][4 * g + 2], sum[s][4 * g + 3]);
			}
}

// storeTotals stores what B's loader summed up: the sums of B along k, added up over the threads in a fixed order.
template <class Product> static __device__ __forceinline__ void storeTotals(float *totals, int n0, int n, const float4 &total) {
	const int rows = Product::threads * 4 / Product::tileN; // the threads that share a column
	__shared__ __attribute__((aligned(16))) float part[rows][Product::tileN];
	int t = threadIdx.x;
	store4(&part[t / (Product::tileN / 4)][t % (Product::tileN / 4) * 4], total.x, total.y, total.z, total.w);
	__syncthreads();
	if (t >= Product::tileN || n0 + t >= n) return;
	float s = 0.f;
#pragma unroll
	for (int i = 0; i < rows; i++) s += part[i][t];
	totals[n0 + t] = s;
}
