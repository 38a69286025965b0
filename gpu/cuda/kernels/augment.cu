// The augment stages on the device. The host draws, these do what the draws say, as the host's operators do it, bit for bit:
// integers, and float arithmetic whose products aren't fused with additions. Images are height × width × 3 bytes. A thread has
// one pixel, and the blocks of threads are numbered along the pixels, then the samples.

// at returns the thread's pixel of so many in a sample, or -1, and the sample.
__device__ __forceinline__ int at(int pixels, int &sample) {
	int across = (pixels + 255) / 256, pixel = blockIdx.x % across * 256 + threadIdx.x;
	sample = blockIdx.x / across;
	return pixel < pixels ? pixel : -1;
}

// y gets the images x, mirrored left to right where flips, one a sample, isn't 0.
extern "C" __global__ void __launch_bounds__(256) flip_images(int pixels, int width, const int *flips, const unsigned char *x, unsigned char *y) {
	int sample, p = at(pixels, sample);
	if (p < 0) return;
	int from = flips[sample] ? p - p % width + width - 1 - p % width : p;
	x += ((long long)sample * pixels + from) * 3;
	y += ((long long)sample * pixels + p) * 3;
	y[0] = x[0], y[1] = x[1], y[2] = x[2];
}

// The same for tensors, of so many values a sample, whose rows are width long.
extern "C" __global__ void __launch_bounds__(256) flip_tensors(int values, int width, const int *flips, const float *x, float *y) {
	int sample, p = at(values, sample);
	if (p < 0) return;
	int from = flips[sample] ? p - p % width + width - 1 - p % width : p;
	y[(long long)sample * values + p] = x[(long long)sample * values + from];
}

// round8 is the whole part of a sum of weights with 22 bits after the point, to which a half was added, as a byte.
__device__ __forceinline__ unsigned char round8(int sum) {
	sum >>= 22;
	return sum < 0 ? 0 : sum > 255 ? 255 : sum;
}

// Resizing goes along the rows first and along the columns then. An output pixel is the weighted mean of a run of the input's:
// of each sample's pixel i of the axis, runs has the first and the number of them, and weights, most a pixel, theirs.

// y, samples × height × out × 3, gets the crops of x, samples × height × width × 3. crops has top, left and height of each.
extern "C" __global__ void __launch_bounds__(256) resize_rows(int height, int width, int out, int most, const int *crops, const int *runs,
	const int *weights, const unsigned char *x, unsigned char *y) {
	int sample, p = at(height * out, sample);
	if (p < 0) return;
	const int *crop = crops + 3 * sample;
	int row = p / out, column = p % out, entry = sample * out + column;
	if (row >= crop[2]) return;
	x += (((long long)sample * height + crop[0] + row) * width + crop[1] + runs[2 * entry]) * 3;
	weights += (long long)entry * most;
	int r = 1 << 21, g = r, b = r;
	for (int i = 0; i < runs[2 * entry + 1]; i++) {
		r += x[3 * i] * weights[i];
		g += x[3 * i + 1] * weights[i];
		b += x[3 * i + 2] * weights[i];
	}
	y += ((long long)sample * height * out + p) * 3;
	y[0] = round8(r), y[1] = round8(g), y[2] = round8(b);
}

// y, samples × out × width × 3, gets x, samples × height × width × 3.
extern "C" __global__ void __launch_bounds__(256) resize_columns(int height, int width, int out, int most, const int *runs, const int *weights,
	const unsigned char *x, unsigned char *y) {
	int sample, p = at(out * width, sample);
	if (p < 0) return;
	int row = p / width, column = p % width, entry = sample * out + row;
	x += (((long long)sample * height + runs[2 * entry]) * width + column) * 3;
	weights += (long long)entry * most;
	int r = 1 << 21, g = r, b = r;
	for (int i = 0; i < runs[2 * entry + 1]; i++, x += 3 * width) {
		r += x[0] * weights[i];
		g += x[1] * weights[i];
		b += x[2] * weights[i];
	}
	y += ((long long)sample * out * width + p) * 3;
	y[0] = round8(r), y[1] = round8(g), y[2] = round8(b);
}

// What a turn of color_jitter does to a sample: ops has the kind and the float32 factor's bits, or the turn of the hues.
enum { none = -1, brightness, contrast, saturation, hue };

__device__ __forceinline__ int grey(int r, int g, int b) { return (19595 * r + 38470 * g + 7471 * b + (1 << 15)) >> 16; }

// means gets the mean grey of each image whose op is contrast. A block of threads a sample.
extern "C" __global__ void __launch_bounds__(256) mean_greys(int pixels, const int *ops, const unsigned char *x, int *means) {
	__shared__ unsigned long long sums[256];
	int t = threadIdx.x, sample = blockIdx.x;
	if (ops[2 * sample] != contrast) return;
	x += (long long)sample * pixels * 3;
	unsigned long long sum = 0;
	for (int p = t; p < pixels; p += 256) sum += grey(x[3 * p], x[3 * p + 1], x[3 * p + 2]);
	sums[t] = sum;
	__syncthreads();
	for (int half = 128; half > 0; half /= 2) {
		if (t < half) sums[t] += sums[t + half];
		__syncthreads();
	}
	if (t == 0) means[sample] = (double)sums[0] / pixels + 0.5;
}

// mix is what lies at factor on the line from a to b.
__device__ __forceinline__ unsigned char mix(int a, int b, float factor) {
	float v = (float)a + __fmul_rn(factor, (float)(b - a));
	return v >= 255.f ? 255 : v > 0.f ? (int)v : 0;
}

__device__ __forceinline__ unsigned char part(double value, double share) { return (int)(__dmul_rn(value, 1 - share) + 0.5); }

// turnHue turns a colour's hue by turn/255 of the wheel, through 8-bit hue, saturation and value.
__device__ __forceinline__ void turnHue(int turn, unsigned char &r, unsigned char &g, unsigned char &b) {
	int v = r > g ? (r > b ? r : b) : (g > b ? g : b), low = r < g ? (r < b ? r : b) : (g < b ? g : b);
	if (v == low) return; // grey
	float chroma = v - low, red = (v - r) / chroma, green = (v - g) / chroma, blue = (v - b) / chroma, side;
	if (v == r) side = blue - green;
	else if (v == g) side = 2 + (double)red - (double)blue;
	else side = 4 + (double)green - (double)red;
	double wheel = (double)side / 6 + 1;
	if (wheel >= 1) wheel -= 1;
	int h = __dmul_rn((float)wheel, 255), s = __dmul_rn(chroma / v, 255);
	if (s == 0) {
		r = g = b = v;
		return;
	}
	double place = __dmul_rn((h + turn) & 255, 6) / 255;
	int sector = place;
	float within = place - sector, saturation = (float)s / 255;
	unsigned char least = part(v, saturation), falling = part(v, __fmul_rn(saturation, within));
	unsigned char rising = part(v, __dmul_rn(saturation, 1 - (double)within)), top = v;
	switch (sector % 6) {
	case 0: r = top, g = rising, b = least; break;
	case 1: r = falling, g = top, b = least; break;
	case 2: r = least, g = top, b = rising; break;
	case 3: r = least, g = falling, b = top; break;
	case 4: r = rising, g = least, b = top; break;
	default: r = top, g = least, b = falling;
	}
}

// y gets the images x after one turn of ops. means has their mean greys. x and y may be the same.
extern "C" __global__ void __launch_bounds__(256) jitter_colours(int pixels, const int *ops, const int *means, const unsigned char *x, unsigned char *y) {
	int sample, p = at(pixels, sample);
	if (p < 0) return;
	x += ((long long)sample * pixels + p) * 3;
	y += ((long long)sample * pixels + p) * 3;
	unsigned char r = x[0], g = x[1], b = x[2];
	int op = ops[2 * sample], bits = ops[2 * sample + 1];
	if (op == hue) {
		turnHue(bits, r, g, b);
	} else if (op != none) {
		int from = op == brightness ? 0 : op == contrast ? means[sample] : grey(r, g, b);
		float factor = __int_as_float(bits);
		r = mix(from, r, factor), g = mix(from, g, factor), b = mix(from, b, factor);
	}
	y[0] = r, y[1] = g, y[2] = b;
}
