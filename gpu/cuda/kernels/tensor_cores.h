// The tile's product on tensor cores (compute capability 8.0 and up): factors rounded to TF32, which keeps 10 of
// float32's 23 bits of fraction, sums in float32.
#pragma once
#include "tile.h"

#ifdef __CUDA__
__device__ __forceinline__ float roundToTF32(float v) {
	unsigned bits;
	asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(v));
	return __builtin_bit_cast(float, bits);
}

// mma adds to the 16×8 matrix d the product of a, 16×8, and b, 8×8, of which each thread of the warp holds a part (PTX
// ISA, "Matrix Fragments for mma.m16n8k8").
__device__ __forceinline__ void mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
	asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
		: "r"(__builtin_bit_cast(unsigned, a0)), "r"(__builtin_bit_cast(unsigned, a1)), "r"(__builtin_bit_cast(unsigned, a2)),
		  "r"(__builtin_bit_cast(unsigned, a3)), "r"(__builtin_bit_cast(unsigned, b0)), "r"(__builtin_bit_cast(unsigned, b1)));
}
#endif // else the emulator has them

// TensorCores computes the product by warps of 64×32. mma's fragments spread neighbouring rows over the warp; which of
// the tile's rows and columns an mma takes for its own is free, though. Rows g·4 … g·4+3 of 32, where g is the thread's
// group of 4, go to its rows g and g+8 of two mma, and columns g·4 … g·4+3 to its columns g of four. So a thread reads
// 16 bytes at a time, and its sums are whole squares of 4×4, as MultiplyAdd's.
template <int n> struct TensorCores {
	static const int tileN = n, threads = tileM * n / 64;
	static __device__ __forceinline__ float round(float v) { return roundToTF32(v); }
	static __device__ __forceinline__ int group() { return threadIdx.x % 32 / 4; }
	static __device__ __forceinline__ int member() { return threadIdx.x % 4; }
	static __device__ __forceinline__ int warpRow() { return threadIdx.x / 32 / (n / 32) * 64; }
	static __device__ __forceinline__ int warpColumn() { return threadIdx.x / 32 % (n / 32) * 32; }
	static __device__ __forceinline__ int row(int half) { return warpRow() + half * 32 + group() * 4; }
	static __device__ __forceinline__ int column(int half) { return warpColumn() + member() * 8 + half * 4; }

	static __device__ __forceinline__ void add(const Shared<tileM> &a, const Shared<n> &b, float (&sum)[8][8]) {
		int k = member(), right = warpColumn() + group() * 4;
		float4 b0 = load4(&b.at[k][place(0, right)]), b1 = load4(&b.at[k + 4][place(4, right)]);
		float first[4] = {b0.x, b0.y, b0.z, b0.w}, last[4] = {b1.x, b1.y, b1.z, b1.w};
#pragma unroll
		for (int h = 0; h < 2; h++) {
			float4 a0 = load4(&a.at[k][place(0, row(h))]), a1 = load4(&a.at[k + 4][place(4, row(h))]);
			float upper[4] = {a0.x, a0.y, a0.z, a0.w}, lower[4] = {a1.x, a1.y, a1.z, a1.w};
#pragma unroll
			for (int i = 0; i < 4; i += 2)
#pragma unroll
				for (int j = 0; j < 4; j++) {
					float(&s0)[8] = sum[4 * h + i], (&s1)[8] = sum[4 * h + i + 1];
					float d[4] = {s0[j], s0[4 + j], s1[j], s1[4 + j]};
					mma(d, upper[i], upper[i + 1], lower[i], lower[i + 1], first[j], last[j]);
					s0[j] = d[0], s0[4 + j] = d[1], s1[j] = d[2], s1[4 + j] = d[3];
				}
		}
	}
};
