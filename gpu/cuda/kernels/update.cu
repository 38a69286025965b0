// Stochastic gradient descent with momentum, as PyTorch's SGD: v ← momentum·v + gradient, w ← w − rate·v. The gradient is
// the sum of splits parts, which are n apart; n is a multiple of 4. Nothing changes where the loss isn't a finite number,
// so that a step that failed leaves the parameters as they were, and nobody has to wait for the loss to know.
#include "tile.h"

extern "C" __global__ void __launch_bounds__(256) sgd_momentum(int n, int splits, float rate, float momentum, const float *loss, const float *gradients,
	float *velocity, float *weights) {
	int i = (blockIdx.x * 256 + threadIdx.x) * 4;
	float l = *loss;
	if (i >= n || !(l - l == 0.f)) return;
	float4 g = load4(gradients + i);
	for (int s = 1; s < splits; s++) {
		float4 part = load4(gradients + (long long)s * n + i);
		g.x += part.x, g.y += part.y, g.z += part.z, g.w += part.w;
	}
	float4 v = load4(velocity + i), w = load4(weights + i);
	v = float4{momentum * v.x + g.x, momentum * v.y + g.y, momentum * v.z + g.z, momentum * v.w + g.w};
	store4(velocity + i, v.x, v.y, v.z, v.w);
	store4(weights + i, w.x - rate * v.x, w.y - rate * v.y, w.z - rate * v.z, w.w - rate * v.w);
}
