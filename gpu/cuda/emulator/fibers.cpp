// A block's threads as fibers with a barrier.
#include "emulator.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <vector>

emu_dim3 threadIdx, blockIdx, blockDim, gridDim;
void *emu_dyn_shared;
emu_kernel *emu_kernels;

#if defined(__x86_64__)
extern "C" void emu_switch(void **save, void *to);
__asm__(".text\n.globl emu_switch\n.hidden emu_switch\n.type emu_switch,@function\nemu_switch:\n"
	"pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
	"movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
	"popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");
#else
#error "emu: write emu_switch for this CPU, or use ucontext"
#endif

enum { STACK = 64 << 10 };
struct fiber { void *sp; char *stack; int state; }; // state: 0 runnable, 1 at barrier, 2 done
static std::vector<fiber> pool;
static void *main_sp;
static fiber *cur;
static const emu_kernel *cur_k;
static void **cur_args;

static void fiber_main() {
	cur_k->call(cur_k->fn, cur_args);
	cur->state = 2;
	emu_switch(&cur->sp, main_sp);
	abort();
}
extern "C" void emu_syncthreads() { cur->state = 1; emu_switch(&cur->sp, main_sp); }

// The fragments of mma.m16n8k8 as the PTX ISA gives them: lane 4·g+t has a of rows g and g+8 at k t and t+4, b of column g at
// the same k, and d of rows g and g+8 at columns 2·t and 2·t+1.
extern "C" void emu_mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
	static float a[1024][4], b[1024][2];
	size_t me = cur - pool.data(), warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
	a[me][0] = a0, a[me][1] = a1, a[me][2] = a2, a[me][3] = a3, b[me][0] = b0, b[me][1] = b1;
	emu_syncthreads();
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < 4; i++)
			d[i] += a[warp + 4 * g + k % 4][k / 4 * 2 + i / 2] * b[warp + 4 * (2 * t + i % 2) + k % 4][k / 4];
	emu_syncthreads();
}

// returns 0, or 719 (launch failed) when a barrier is reached by part of a block only
int emu_run(const emu_kernel *k, emu_dim3 grid, emu_dim3 block, size_t dyn, void **args) {
	size_t n = (size_t)block.x * block.y * block.z;
	while (pool.size() < n) {
		char *s = (char *)mmap(0, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		pool.push_back({0, s, 0});
	}
	std::vector<char> shm(dyn + 64);
	emu_dyn_shared = (void *)(((uintptr_t)shm.data() + 63) & ~(uintptr_t)63);
	cur_k = k; cur_args = args; gridDim = grid; blockDim = block;
	for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
	for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
	for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++) {
		for (size_t i = 0; i < n; i++) {
			void **sp = (void **)(pool[i].stack + STACK);
			*--sp = 0;                   // keeps rsp 16n+8 at fiber_main's entry
			*--sp = (void *)fiber_main;  // return address
			sp -= 6;                     // six callee-saved registers
			pool[i].sp = sp; pool[i].state = 0;
		}
		for (size_t left = n; left;) {
			size_t ended = 0, waiting = 0;
			for (size_t i = 0; i < n; i++) {
				if (pool[i].state == 2) continue;
				threadIdx = {(unsigned)(i % block.x), (unsigned)(i / block.x % block.y), (unsigned)(i / block.x / block.y)};
				cur = &pool[i]; cur->state = 0;
				emu_switch(&main_sp, cur->sp);
				if (cur->state == 2) ended++; else waiting++;
			}
			if (waiting && left != waiting) { // some threads returned past a barrier that others wait at
				fprintf(stderr, "emulated CUDA: %s: divergent __syncthreads()\n", k->name);
				return 719;
			}
			left -= ended;
		}
	}
	return 0;
}
