// Kernels that the tests of the emulated driver and of the device's ordering launch.

// y += a x through shared memory, in reverse within a block, so that the barrier has to work.
extern "C" __global__ void saxpy_reversed(int n, float a, const float *x, float *y) {
	__shared__ float buf[256];
	int first = blockIdx.x * blockDim.x, t = threadIdx.x, other = blockDim.x - 1 - t;
	if (first + t < n) buf[t] = a * x[first + t];
	__syncthreads();
	if (first + other < n) y[first + other] += buf[other];
}
