// What follows the linear layer: the softmax cross-entropy with its gradient, and the likeliest class. Both take the
// linear layer's partial products: splits × samples × stride, where the first classes of stride are real.

const int threads = 128; // of a block, which has one sample

// logit adds up the parts of one of the row's logits, in order.
__device__ __forceinline__ float logit(int splits, int stride, const float *partial, const float *bias, int c) {
	float z = bias[c];
	for (int s = 0; s < splits; s++) z += partial[((long long)s * gridDim.x + blockIdx.x) * stride + c];
	return z;
}

__device__ __forceinline__ float larger(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ float plus(float a, float b) { return a + b; }

// combine returns the block's v put together by join, in the same order every time.
template <float join(float, float)> static __device__ __forceinline__ float combine(float v) {
	__shared__ float all[threads];
	int t = threadIdx.x;
	all[t] = v;
	__syncthreads();
	for (int half = threads / 2; half > 0; half /= 2) {
		if (t < half) all[t] = join(all[t], all[t + half]);
		__syncthreads();
	}
	v = all[0];
	__syncthreads(); // before the next call writes
	return v;
}

// losses gets each sample's cross-entropy, dLogits, samples × stride, the gradient of their mean by the logits. A block
// a sample. Its label has the weight own, and that of the sample it is mixed with, the one before it, the rest. Not a number stays one:
// fmaxf would drop it, but the sum below doesn't.
extern "C" __global__ void __launch_bounds__(threads) softmax_cross_entropy(int classes, int stride, int splits, const float *partial, const float *bias,
	const int *labels, float own, float *losses, float *dLogits) {
	float *z = dLogits + (long long)blockIdx.x * stride; // the logits, until each thread makes gradients of its own
	float top = -__builtin_inff();
	for (int c = threadIdx.x; c < classes; c += threads) {
		z[c] = logit(splits, stride, partial, bias, c);
		top = larger(top, z[c]);
	}
	top = combine<larger>(top);
	float sum = 0.f;
	for (int c = threadIdx.x; c < classes; c += threads) sum += expf(z[c] - top);
	sum = combine<plus>(sum);
	int label = labels[blockIdx.x], other = own == 1.f ? label : labels[(blockIdx.x > 0 ? blockIdx.x : gridDim.x) - 1];
	float rest = 1.f - own;
	if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + (own * (top - z[label]) + rest * (top - z[other]));
	__syncthreads(); // before the gradients take the logits' place
	for (int c = threadIdx.x; c < stride; c += threads) {
		float p = c < classes ? expf(z[c] - top) / sum : 0.f;
		if (c == label) p -= own;
		if (c == other) p -= rest;
		z[c] = p / gridDim.x;
	}
}

// loss gets the mean of n losses. One block; a thread sums up every 128th, then the sums are added up.
extern "C" __global__ void __launch_bounds__(threads) mean_loss(int n, const float *losses, float *loss) {
	float sum = 0.f;
	for (int i = threadIdx.x; i < n; i += threads) sum += losses[i];
	sum = combine<plus>(sum);
	if (threadIdx.x == 0) *loss = sum / n;
}

// predicted gets the likeliest class of each sample, the first where several are. A block a sample.
extern "C" __global__ void __launch_bounds__(threads) classify(int classes, int stride, int splits, const float *partial, const float *bias, int *predicted) {
	__shared__ float values[threads];
	__shared__ int indices[threads];
	int t = threadIdx.x, best = t;
	float top = t < classes ? logit(splits, stride, partial, bias, t) : 0.f;
	for (int c = t + threads; c < classes; c += threads) {
		float z = logit(splits, stride, partial, bias, c);
		if (z > top) top = z, best = c;
	}
	values[t] = top;
	indices[t] = best;
	__syncthreads();
	for (int half = threads / 2; half > 0; half /= 2) {
		if (t < half && t + half < classes) {
			float z = values[t + half];
			int c = indices[t + half];
			if (z > values[t] || (z == values[t] && c < indices[t])) values[t] = z, indices[t] = c;
		}
		__syncthreads();
	}
	if (t == 0) predicted[blockIdx.x] = indices[0];
}
