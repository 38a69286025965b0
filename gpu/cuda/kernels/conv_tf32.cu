// The convolutions on tensor cores, for compute capability 8.0 and up. Names and launches are those of conv.cu.
#include "tensor_cores.h"
#include "conv.h"

extern "C" __global__ void __launch_bounds__(128, 4) conv_forward_tf32_64(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	const float *x, const float *weights, const float *bias, float *y, unsigned char *argmax) {
	convForward<TensorCores<64>>(samples, height, width, in, out, stride, rows, columns, x, weights, bias, y, argmax);
}

extern "C" __global__ void __launch_bounds__(128, 4) conv_backward_data_tf32_64(int samples, int height, int width, int in, int out, int rows,
	int columns, const float *dOut, const unsigned char *argmax, const float *weights, float *dx) {
	convBackwardData<TensorCores<64>>(samples, height, width, in, out, rows, columns, dOut, argmax, weights, dx);
}

extern "C" __global__ void __launch_bounds__(128, 3) conv_backward_weights_tf32_64(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	int span, const float *x, const float *dOut, const unsigned char *argmax, float *gradients) {
	convBackwardWeights<TensorCores<64>>(samples, height, width, in, out, stride, rows, columns, span, x, dOut, argmax, gradients);
}

extern "C" __global__ void __launch_bounds__(64, 6) conv_forward_tf32_32(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	const float *x, const float *weights, const float *bias, float *y, unsigned char *argmax) {
	convForward<TensorCores<32>>(samples, height, width, in, out, stride, rows, columns, x, weights, bias, y, argmax);
}

extern "C" __global__ void __launch_bounds__(64, 6) conv_backward_data_tf32_32(int samples, int height, int width, int in, int out, int rows,
	int columns, const float *dOut, const unsigned char *argmax, const float *weights, float *dx) {
	convBackwardData<TensorCores<32>>(samples, height, width, in, out, rows, columns, dOut, argmax, weights, dx);
}

extern "C" __global__ void __launch_bounds__(64, 6) conv_backward_weights_tf32_32(int samples, int height, int width, int in, int out, int stride, int rows, int columns,
	int span, const float *x, const float *dOut, const unsigned char *argmax, float *gradients) {
	convBackwardWeights<TensorCores<32>>(samples, height, width, in, out, stride, rows, columns, span, x, dOut, argmax, gradients);
}
