package audio

// spectrum computes the power spectra of frames of n real samples, one in each lane: value i of lane l is at i·lanes + l.
type spectrum struct {
	n       int
	kernels kernels
	fft     *fft
	re, im  []float32
	// For even n, even samples are the real parts of n/2 numbers and odd ones the imaginary parts; root k, exp(-2πi·k/n),
	// takes what that mixes apart again.
	rootR, rootI []float32
}

func newSpectrum(n int, k kernels) *spectrum {
	s := &spectrum{n: n, kernels: k}
	size := n
	if n%2 == 0 {
		size = n / 2
		s.rootR, s.rootI = make([]float32, size+1), make([]float32, size+1)
		for k := range s.rootR {
			s.rootR[k], s.rootI[k] = root(k, n)
		}
	}
	s.fft = newFFT(size, k)
	s.re, s.im = make([]float32, size*lanes), make([]float32, size*lanes)
	return s
}

// powers fills dst with the squared magnitudes of the transforms' values 0 to n/2. The frames begin at starts in samples, and
// are multiplied by the window, which has n values.
func (s *spectrum) powers(dst, samples []float32, starts *[lanes]int, window []float32) {
	if s.n%2 != 0 {
		s.kernels.cut(s.re, s.re[lanes:], 2*lanes, samples, starts, window)
		clear(s.im)
		s.re, s.im = s.fft.transform(s.re, s.im)
		for i := range dst {
			dst[i] = square(s.re[i], s.im[i])
		}
		return
	}
	s.kernels.cut(s.re, s.im, lanes, samples, starts, window)
	s.re, s.im = s.fft.transform(s.re, s.im)
	s.kernels.untangle(dst, s.re, s.im, s.rootR, s.rootI)
}

func (portable) cut(even, odd []float32, stride int, samples []float32, starts *[lanes]int, window []float32) {
	for lane, start := range starts {
		src := samples[start:][:len(window)]
		for i := 0; i < len(src); i += 2 {
			even[i/2*stride+lane] = src[i] * window[i]
		}
		for i := 1; i < len(src); i += 2 {
			odd[i/2*stride+lane] = src[i] * window[i]
		}
	}
}

func (portable) untangle(dst, re, im, rootR, rootI []float32) {
	h := len(rootR) - 1
	for l := range lanes {
		dst[l], dst[h*lanes+l] = square(re[l]+im[l], 0), square(re[l]-im[l], 0)
	}
	for k := 1; k <= h-k; k++ {
		up, down := k*lanes, (h-k)*lanes
		for range lanes {
			zR, zI, yR, yI := re[up], im[up], re[down], im[down]
			evenR, evenI := (zR+yR)/2, (zI-yI)/2
			oddR, oddI := times((zI+yI)/2, (yR-zR)/2, rootR[k], rootI[k])
			dst[up] = square(evenR+oddR, evenI+oddI)
			dst[down] = square(evenR-oddR, evenI-oddI)
			up++
			down++
		}
	}
}

func square(re, im float32) float32 { return float32(re*re) + float32(im*im) }
