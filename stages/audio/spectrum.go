package audio

// spectrum computes the power spectrum of n real samples.
type spectrum struct {
	n      int
	fft    *fft
	re, im []float32
	// For even n, even samples are the real parts of n/2 numbers and odd ones the imaginary parts; root k, exp(-2πi·k/n),
	// takes what that mixes apart again.
	rootR, rootI []float32
}

func newSpectrum(n int) *spectrum {
	s := &spectrum{n: n}
	size := n
	if n%2 == 0 {
		size = n / 2
		s.rootR, s.rootI = make([]float32, size+1), make([]float32, size+1)
		for k := range s.rootR {
			s.rootR[k], s.rootI[k] = root(k, n)
		}
	}
	s.fft = newFFT(size)
	s.re, s.im = make([]float32, size), make([]float32, size)
	return s
}

// powers fills dst with the squared magnitudes of the transform's values 0 to n/2.
func (s *spectrum) powers(dst, samples []float32) {
	if s.n%2 != 0 {
		copy(s.re, samples)
		clear(s.im)
		s.re, s.im = s.fft.transform(s.re, s.im)
		for k := range dst {
			dst[k] = square(s.re[k], s.im[k])
		}
		return
	}
	re, im := s.re, s.im[:len(s.re)]
	for i := range re {
		re[i], im[i] = samples[2*i], samples[2*i+1]
	}
	re, im = s.fft.transform(re, im)
	s.re, s.im = re, im
	h := len(re)
	dst[0], dst[h] = square(re[0]+im[0], 0), square(re[0]-im[0], 0)
	for k := 1; k <= h-k; k++ {
		zR, zI, yR, yI := re[k], im[k], re[h-k], im[h-k]
		evenR, evenI := (zR+yR)/2, (zI-yI)/2
		oddR, oddI := times((zI+yI)/2, (yR-zR)/2, s.rootR[k], s.rootI[k])
		dst[k] = square(evenR+oddR, evenI+oddI)
		dst[h-k] = square(evenR-oddR, evenI-oddI)
	}
}

func square(re, im float32) float32 { return float32(re*re) + float32(im*im) }
