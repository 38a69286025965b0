// What the kernels use of CUDA's language beyond clang's own part of it, so that clang compiles them without the CUDA
// toolkit: -nocudainc -nocudalib -include device.h. The emulator has its own for the host's compiler.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ inline __attribute__((always_inline))

struct __attribute__((aligned(16))) float4 {
	float x, y, z, w;
};
struct __attribute__((aligned(4))) uchar4 {
	unsigned char x, y, z, w;
};

// The special registers of a thread.
#define REGISTER(type, name)                                                                                                     \
	struct type {                                                                                                                \
		__declspec(property(get = get_x)) unsigned x;                                                                            \
		__declspec(property(get = get_y)) unsigned y;                                                                            \
		static __device__ unsigned get_x() { return __nvvm_read_ptx_sreg_##name##_x(); }                                         \
		static __device__ unsigned get_y() { return __nvvm_read_ptx_sreg_##name##_y(); }                                         \
	}
REGISTER(thread_index, tid);
REGISTER(block_index, ctaid);
REGISTER(block_size, ntid);
REGISTER(grid_size, nctaid);
#undef REGISTER
extern const __device__ __attribute__((weak)) thread_index threadIdx;
extern const __device__ __attribute__((weak)) block_index blockIdx;
extern const __device__ __attribute__((weak)) block_size blockDim;
extern const __device__ __attribute__((weak)) grid_size gridDim;

static __device__ __forceinline__ float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
// Products that aren't fused with an addition.
static __device__ __forceinline__ float __fmul_rn(float a, float b) { return __nvvm_mul_rn_f(a, b); }
static __device__ __forceinline__ double __dmul_rn(double a, double b) { return __nvvm_mul_rn_d(a, b); }

static __device__ __forceinline__ float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }

// expf splits x into n·ln 2 + r with |r| ≤ ½ ln 2, so that the hardware's 2^x, which is good to 2 ulp, gets an argument
// whose rounding doesn't matter: x·log2(e) rounded has an error that grows with x.
static __device__ __forceinline__ float expf(float x) {
	const float log2e = 1.44269504f, ln2_high = 0.693145752f, ln2_low = 1.42860677e-6f;
	if (x < -150.f) x = -150.f; // the result is 0 from there on, and n has to fit; fmaxf would lose a NaN
	const float magic = 12582912.f; // 1.5·2^23: adding it rounds to a whole number
	float n = (x * log2e + magic) - magic;
	float r = (x - n * ln2_high) - n * ln2_low;
	return __nvvm_ex2_approx_f(r * log2e) * __nvvm_ex2_approx_f(n);
}

static __device__ __forceinline__ float logf(float x) { return __nvvm_lg2_approx_f(x) * 0.693147181f; }
