// What makes g++ compile the kernels for the CPU, in the place of ../kernels/device.h. A block's threads are fibers that
// run in turn, each up to the next barrier; the blocks run one after the other.
#pragma once
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static // one block at a time, so one copy

struct Dim3 {
	unsigned x, y, z;
};
extern Dim3 threadIdx, blockIdx, blockDim, gridDim;
struct alignas(16) float4 {
	float x, y, z, w;
};
struct alignas(4) uchar4 {
	unsigned char x, y, z, w;
};

void __syncthreads();

// mma is one thread's part of mma.m16n8k8. All threads of the block have to come to it equally often.
void mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1);

// The host's compiler is told not to fuse products with additions.
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline float __int_as_float(int v) {
	float f;
	memcpy(&f, &v, 4);
	return f;
}

// roundToTF32 rounds to 10 bits of fraction, ties away from zero.
static inline float roundToTF32(float v) {
	uint32_t bits;
	memcpy(&bits, &v, 4);
	if ((bits & 0x7f800000) != 0x7f800000) bits += 0x1000;
	bits &= ~0x1fffu;
	memcpy(&v, &bits, 4);
	return v;
}

// NativeKernel is a kernel of the emulator's own.
struct NativeKernel {
	const char *name;
	int parameters;
	size_t sizes[32]; // of the parameters, in bytes
	void (*function)();
	void (*call)(void (*function)(), void **arguments);
	NativeKernel *next;
};
extern NativeKernel *nativeKernels;

template <class... Parameters> struct Listed : NativeKernel {
	Listed(const char *name, void (*function)(Parameters...)) : NativeKernel{name, sizeof...(Parameters), {sizeof(Parameters)...}, (void (*)())function, call, nativeKernels} {
		nativeKernels = this;
	}
	static void call(void (*function)(), void **arguments) { with(function, arguments, std::index_sequence_for<Parameters...>()); }
	template <size_t... I> static void with(void (*function)(), void **arguments, std::index_sequence<I...>) {
		((void (*)(Parameters...))function)(*(Parameters *)arguments[I]...);
	}
};
#define EMULATOR_KERNEL(kernel) static Listed kernel##Listed(#kernel, kernel);

// runNative executes a kernel and returns a CUresult.
int runNative(const NativeKernel &kernel, Dim3 grid, Dim3 block, void **arguments);
