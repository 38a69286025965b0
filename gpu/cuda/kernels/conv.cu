// The convolutions in float32. The number in a kernel's name is the tile's columns: 64, or 32 where there are no more.
// Launched with 2 threads for each, over the product's tiles of 128 by that. conv.h has the bodies.
#include "tile.h"
#include "conv.h"

extern "C" __global__ void __launch_bounds__(128, 4) conv_forward_64(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	const float *x, const float *weights, const float *bias, float *y, unsigned char *argmax) {
	convForward<MultiplyAdd<64>>(samples, height, width, in, out, stride, rows, columns, x, weights, bias, y, argmax);
}

extern "C" __global__ void __launch_bounds__(128, 4) conv_backward_data_64(int samples, int height, int width, int in, int out, int rows,
	int columns, const float *dOut, const unsigned char *argmax, const float *weights, float *dx) {
	convBackwardData<MultiplyAdd<64>>(samples, height, width, in, out, rows, columns, dOut, argmax, weights, dx);
}

extern "C" __global__ void __launch_bounds__(128, 3) conv_backward_weights_64(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	int span, const float *x, const float *dOut, const unsigned char *argmax, float *gradients) {
	convBackwardWeights<MultiplyAdd<64>>(samples, height, width, in, out, stride, rows, columns, span, x, dOut, argmax, gradients);
}

extern "C" __global__ void __launch_bounds__(64, 6) conv_forward_32(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	const float *x, const float *weights, const float *bias, float *y, unsigned char *argmax) {
	convForward<MultiplyAdd<32>>(samples, height, width, in, out, stride, rows, columns, x, weights, bias, y, argmax);
}

extern "C" __global__ void __launch_bounds__(64, 6) conv_backward_data_32(int samples, int height, int width, int in, int out, int rows,
	int columns, const float *dOut, const unsigned char *argmax, const float *weights, float *dx) {
	convBackwardData<MultiplyAdd<32>>(samples, height, width, in, out, rows, columns, dOut, argmax, weights, dx);
}

extern "C" __global__ void __launch_bounds__(64, 6) conv_backward_weights_32(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	int span, const float *x, const float *dOut, const unsigned char *argmax, float *gradients) {
	convBackwardWeights<MultiplyAdd<32>>(samples, height, width, in, out, stride, rows, columns, span, x, dOut, argmax, gradients);
}
