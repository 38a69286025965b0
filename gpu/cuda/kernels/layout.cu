// Changes of a batch's layout on its way into the network.
#include "tile.h"

// y, samples × pixels × stride, gets x, samples × channels × pixels, with channels of 0 up to stride, a multiple of 4. A
// thread has 4 channels of a pixel; neighbours have neighbouring pixels, so that what they read lies together. The blocks of
// threads are numbered along the pixels, then the channels, then the samples.
extern "C" __global__ void __launch_bounds__(256) channels_last(int channels, int pixels, int stride, const float *x, float *y) {
	int across = (pixels + 255) / 256, plane = blockIdx.x / across, pixel = blockIdx.x % across * 256 + threadIdx.x;
	int sample = plane / (stride / 4), channel = plane % (stride / 4) * 4;
	if (pixel >= pixels) return;
	float v[4];
#pragma unroll
	for (int i = 0; i < 4; i++) v[i] = channel + i < channels ? x[((long long)sample * channels + channel + i) * pixels + pixel] : 0.f;
	store4(y + ((long long)sample * pixels + pixel) * stride + channel, v[0], v[1], v[2], v[3]);
}

// y, samples × 3 × pixels, gets the images x, samples × pixels × 3, through a table, 3 × 256: the value for each channel
// and byte, made on the host, so that the result is the host's bit for bit. A thread has a pixel; the blocks of threads are numbered along the pixels.
extern "C" __global__ void __launch_bounds__(256) images_to_tensors(int pixels, const unsigned char *x, const float *table, float *y) {
	int across = (pixels + 255) / 256, sample = blockIdx.x / across, pixel = blockIdx.x % across * 256 + threadIdx.x;
	if (pixel >= pixels) return;
	const unsigned char *p = x + ((long long)sample * pixels + pixel) * 3;
	float *to = y + (long long)sample * 3 * pixels + pixel;
#pragma unroll
	for (int c = 0; c < 3; c++) to[(long long)c * pixels] = table[256 * c + p[c]];
}
