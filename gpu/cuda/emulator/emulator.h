// cuda_emu.h: lets g++ compile a .cu kernel file for the CPU.
// Blocks run one after another (under the emulator's lock); a block's threads
// are fibers, so __syncthreads() really is a barrier.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __shared__ static // blocks are serial, so one static copy is a block's shared memory
#define DYN_SHARED(T, name) T *name = (T *)emu_dyn_shared

struct emu_dim3 { unsigned x, y, z; };
extern emu_dim3 threadIdx, blockIdx, blockDim, gridDim;
extern void *emu_dyn_shared;
extern "C" void emu_syncthreads();
static inline void __syncthreads() { emu_syncthreads(); }
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(4) uchar4 { unsigned char x, y, z, w; };

// Tensor cores. Every warp of a block has to come here equally often.
extern "C" void emu_mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1);
static inline void mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1) { emu_mma(d, a0, a1, a2, a3, b0, b1); }
// Rounds to 10 bits of fraction, ties away from zero.
static inline float roundToTF32(float v) {
	uint32_t bits;
	memcpy(&bits, &v, 4);
	if ((bits & 0x7f800000) != 0x7f800000) bits += 0x1000;
	bits &= ~0x1fffu;
	memcpy(&v, &bits, 4);
	return v;
}
static inline float atomicAdd(float *p, float v) { float o = *p; *p += v; return o; }
static inline int atomicAdd(int *p, int v) { int o = *p; *p += v; return o; }

// registry of kernels by name
struct emu_kernel {
	const char *name;
	int nargs;
	size_t size[32];
	void (*fn)();
	void (*call)(void (*)(), void **);
	emu_kernel *next;
};
extern emu_kernel *emu_kernels;
template <class... A, size_t... I>
static void emu_call(void (*f)(A...), void **a, std::index_sequence<I...>) { f(*(A *)a[I]...); }
struct emu_reg : emu_kernel {
	template <class... A> emu_reg(const char *n, void (*f)(A...)) {
		name = n; nargs = sizeof...(A); fn = (void (*)())f;
		size_t s[] = {sizeof(A)...};
		for (int i = 0; i < nargs; i++) size[i] = s[i];
		call = [](void (*g)(), void **a) { emu_call((void (*)(A...))g, a, std::index_sequence_for<A...>()); };
		next = emu_kernels; emu_kernels = this;
	}
};
#define EMULATOR_KERNEL(k) static emu_reg emu_reg_##k(#k, k);
