// The threads of a block as fibers of one thread of the CPU.
#include <stdio.h>
#include <sys/mman.h>

#include <vector>

#include "emulator.h"
#include "machine.h"

#ifndef __x86_64__
#include <ucontext.h>
#endif

Dim3 threadIdx, blockIdx, blockDim, gridDim;
NativeKernel *nativeKernels;

namespace {

enum { StackSize = 64 << 10 };
enum State { Running, AtBarrier, Ended };

// Position is where a fiber goes on. swapcontext calls the kernel of the operating system each time, which is most of the
// cost of a barrier, so there is a switch of our own where we know the processor.
#ifdef __x86_64__
using Position = void *; // the stack's, with the registers that a call keeps on top

extern "C" void switchFiber(Position *from, Position to);
__asm__(R"(
	.text
	.globl switchFiber
	.hidden switchFiber
	.type switchFiber, @function
switchFiber:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size switchFiber, . - switchFiber
)");

void start(Position &p, char *stack, void (*function)()) {
	void **top = reinterpret_cast<void **>(stack + StackSize);
	*--top = nullptr; // so that the stack is aligned as after a call
	*--top = reinterpret_cast<void *>(function);
	p = top - 6;
}
void goTo(Position &from, Position &to) { switchFiber(&from, to); }
#else
using Position = ucontext_t;

void start(Position &p, char *stack, void (*function)()) {
	getcontext(&p);
	p.uc_stack.ss_sp = stack;
	p.uc_stack.ss_size = StackSize;
	p.uc_link = nullptr;
	makecontext(&p, function, 0);
}
void goTo(Position &from, Position &to) { swapcontext(&from, &to); }
#endif

struct Fiber {
	Position position;
	char *stack;
	State state;
};

std::vector<Fiber> fibers; // of the largest block so far, by thread
Position scheduler;
Fiber *current;
const NativeKernel *kernel;
void **kernelArguments;

void wait(State state) {
	current->state = state;
	goTo(current->position, scheduler);
}

void fiberMain() {
	kernel->call(kernel->function, kernelArguments);
	wait(Ended); // for good
}

int runBlock(size_t count) {
	for (size_t i = 0; i < count; i++) {
		start(fibers[i].position, fibers[i].stack, fiberMain);
		fibers[i].state = Running;
	}
	for (;;) {
		size_t waiting = 0;
		for (size_t i = 0; i < count; i++) {
			if (fibers[i].state == Ended) continue;
			threadIdx = {unsigned(i % blockDim.x), unsigned(i / blockDim.x % blockDim.y), unsigned(i / blockDim.x / blockDim.y)};
			current = &fibers[i];
			goTo(scheduler, current->position);
			waiting += current->state == AtBarrier;
		}
		if (waiting == 0) return CUDA_SUCCESS;
		if (waiting < count) {
			fprintf(stderr, "emulated CUDA: %s: %zu of %zu threads wait at a barrier that the others never reach\n", kernel->name, waiting, count);
			return CUDA_ERROR_LAUNCH_FAILED;
		}
	}
}

} // namespace

void __syncthreads() { wait(AtBarrier); }

// Lane 4·g+t holds a of rows g and g+8 at k = t and t+4, b of column g at the same k, and d of rows g and g+8 at columns 2·t
// and 2·t+1 (PTX ISA, "Matrix Fragments for mma.m16n8k8").
void mma(float (&d)[4], float a0, float a1, float a2, float a3, float b0, float b1) {
	static float a[1024][4], b[1024][2]; // by thread
	const size_t me = current - fibers.data(), warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
	a[me][0] = a0, a[me][1] = a1, a[me][2] = a2, a[me][3] = a3;
	b[me][0] = b0, b[me][1] = b1;
	__syncthreads();
	for (int k = 0; k < 8; k++)
		for (int i = 0; i < 4; i++)
			d[i] += a[warp + 4 * g + k % 4][k / 4 * 2 + i / 2] * b[warp + 4 * (2 * t + i % 2) + k % 4][k / 4];
	__syncthreads();
}

int runNative(const NativeKernel &k, Dim3 grid, Dim3 block, void **arguments) {
	const size_t count = size_t(block.x) * block.y * block.z;
	while (fibers.size() < count) {
		void *stack = mmap(nullptr, StackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (stack == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
		fibers.push_back({{}, static_cast<char *>(stack), Ended});
	}
	kernel = &k, kernelArguments = arguments, gridDim = grid, blockDim = block;
	for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
		for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
			for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
				if (int result = runBlock(count)) return result;
	return CUDA_SUCCESS;
}
