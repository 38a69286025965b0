// The linear layer: logits = features · weightsᵀ + bias. weights are classes × features; both are padded to multiples of
// 4. Launched with 64 threads over the product's tiles of 128×32, numbered along N first: there are seldom more classes
// than that, and memory limits this layer, not arithmetic.
#include "tile.h"

typedef MultiplyAdd<32> Product;
const int tileN = Product::tileN;

// There are few products and each is long, so K is split: part s of the grid sums up span features, a multiple of 8,
// into partial s, samples × classes. Whoever reads the logits adds the parts up, and the bias.
extern "C" __global__ void __launch_bounds__(64, 6) linear_forward(int samples, int features, int classes, int span, const float *x,
	const float *weights, float *partial) {
	int across = (classes + tileN - 1) / tileN;
	int m0 = blockIdx.x / across * tileM, n0 = blockIdx.x % across * tileN;
	int first = blockIdx.y * span, end = first + span;
	if (end > features) end = features;
	Rows<Product, tileM> a(x, features, m0, samples, first, end);
	Rows<Product, tileN> b(weights, features, n0, classes, first, end);
	float sum[8][8];
	multiply<Product>(a, b, (end - first + tileK - 1) / tileK, sum);
	storeRows<Product>(partial + (long long)blockIdx.y * samples * classes, classes, m0, samples, n0, classes, sum);
}

// The gradient by the features. M is the features, N the samples.
extern "C" __global__ void __launch_bounds__(64, 6) linear_backward_data(int samples, int features, int classes, const float *dLogits,
	const float *weights, float *dx) {
	int across = (samples + tileN - 1) / tileN;
	int m0 = blockIdx.x / across * tileM, n0 = blockIdx.x % across * tileN;
	Columns<Product, tileM> a(weights, features, m0, features, classes);
	Rows<Product, tileN> b(dLogits, classes, n0, samples, 0, classes);
	float sum[8][8];
	multiply<Product>(a, b, (classes + tileK - 1) / tileK, sum);
	storeColumns<Product>(dx, features, m0, features, n0, samples, sum);
}

// The gradient by the weights and, behind it, by the bias. M is the features, N the classes.
extern "C" __global__ void __launch_bounds__(64, 6) linear_backward_weights(int samples, int features, int classes, const float *x,
	const float *dLogits, float *gradients) {
	int across = (classes + tileN - 1) / tileN;
	int m0 = blockIdx.x / across * tileM, n0 = blockIdx.x % across * tileN;
	Columns<Product, tileM> a(x, features, m0, features, samples);
	Columns<Product, tileN> b(dLogits, classes, n0, classes, samples);
	float sum[8][8];
	multiply<Product>(a, b, (samples + tileK - 1) / tileK, sum);
	storeColumns<Product>(gradients, features, m0, features, n0, classes, sum);
	if (m0 == 0) storeTotals<Product>(gradients + (long long)classes * features, n0, classes, b.total);
}
