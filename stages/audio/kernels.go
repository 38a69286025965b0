package audio

// lanes is the number of frames that are transformed at a time: what a vector of 256 bits holds.
const lanes = 8

// kernels are the loops that take most of the operators' time. Those of portable are in Go, where they are used; others use a
// processor's vector instructions, and give the same bits.
type kernels interface {
	// cut multiplies lanes of samples, which begin at starts, by the window. Those with even places in a frame it puts into rows of
	// even, one for each place, the others into rows of odd; stride is from row to row.
	cut(even, odd []float32, stride int, samples []float32, starts *[lanes]int, window []float32)
	// two, four and five are the passes of fft of these radices.
	two(p *pass, toR, toI, fromR, fromI []float32)
	four(p *pass, toR, toI, fromR, fromI []float32)
	five(p *pass, toR, toI, fromR, fromI []float32)
	// untangle fills dst with the squared magnitudes of real samples' spectrum, of which re and im are the transform of n/2
	// complex numbers, and rootR and rootI have the first n/2 + 1 of n roots.
	untangle(dst, re, im, rootR, rootI []float32)
	// filter fills n lanes of dst's rows, which are stride apart, with the sums of the spectra under the filters.
	filter(dst []float32, stride, n int, values []float32, f *melFilters)
	// resample fills dst with the products of r's kernels, phase by phase, and what stands under them in src.
	resample(dst, src []float32, r *resampler)
	// logarithms fills dst with factor times the decimal logarithms of src, of leastAmplitude at least.
	logarithms(dst, src []float32, factor float32)
}

type portable struct{}
