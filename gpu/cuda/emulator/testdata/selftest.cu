// Kernels for the tests of the emulated driver, and of the order in which the device does its work. The script
// ../../kernels/build says how a .ptx is made.

// y += a x through shared memory, in reverse within a block, so that the barrier has to work.
extern "C" __global__ void saxpy_reversed(int n, float a, const float *x, float *y) {
	__shared__ float buf[256];
	int first = blockIdx.x * blockDim.x, t = threadIdx.x, other = blockDim.x - 1 - t;
	if (first + t < n) buf[t] = a * x[first + t];
	__syncthreads();
	if (first + other < n) y[first + other] += buf[other];
}

// Results of the language's arithmetic on two integers and two floats, of which the first is no NaN: 24 for each thread.
extern "C" __global__ void arithmetic(int n, const int *integers, const float *floats, int *out) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n) return;
	int a = integers[2 * i], b = integers[2 * i + 1];
	unsigned ua = a, ub = b;
	float x = floats[2 * i], y = floats[2 * i + 1];
	int *r = out + 24 * i;
	r[0] = (int)((long long)a * b >> 32);
	r[1] = (int)((unsigned long long)ua * ub >> 32);
	r[2] = (int)(a * ub + 7);
	r[3] = b == 0 || b == -1 ? 0 : a / b;
	r[4] = b == 0 || b == -1 ? 0 : a % b;
	r[5] = b == 0 ? 0 : (int)(ua / ub);
	r[6] = b == 0 ? 0 : (int)(ua % ub);
	r[7] = a < b ? a : b;
	r[8] = (int)(ua > ub ? ua : ub);
	r[9] = a >> (b & 31);
	r[10] = (int)(ua >> (b & 31));
	r[11] = (int)(ua << (b & 31));
	r[12] = (a & ~b) | (a ^ (b >> 3));
	r[13] = (int)(signed char)a + (int)(unsigned short)b;
	r[14] = (a >> 5) & 0x1ff;
	r[15] = x < y;
	r[16] = !(x >= y);
	r[17] = x != y;
	r[18] = (x < 1e9f && x > -1e9f) ? (int)x : 0;
	r[19] = (x < 4e9f && x >= 0.f) ? (int)(unsigned)x : 0;
	*(float *)(r + 20) = (float)a + (float)ub;
	*(float *)(r + 21) = x / y - x * y;
	*(double *)(r + 22) = (double)x + (double)a;
}
