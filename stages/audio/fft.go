package audio

import "math"

// fft computes the discrete Fourier transforms of lanes times n complex numbers in float32, of any n, fastest where its prime
// factors are small. Value i of lane l is at i·lanes + l. It is Stockham's algorithm, which sorts as it goes, and treats the
// lanes as it treats the transforms that it interleaves itself. Products are rounded before they are added, so that the result
// is the same on every CPU. (gonum's dsp/fourier takes several times as long, in float64.)
type fft struct {
	kernels    kernels
	passes     []pass
	re, im     []float32 // work space
	sumR, sumI []float32 // of the largest odd pass
}

// pass splits each transform that is left into radix smaller ones.
type pass struct {
	radix  int
	left   int // the number of values in each smaller transform
	stride int // how many transforms are interleaved, those of all lanes
	// twiddles holds, for each j below left and k from 1 to radix-1, exp(-2πi·jk/(left·radix)).
	twR, twI []float32
	// roots are exp(-2πi·k/radix), for odd radices.
	rootR, rootI []float32
}

func newFFT(n int, k kernels) *fft {
	f := &fft{kernels: k, re: make([]float32, n*lanes), im: make([]float32, n*lanes)}
	stride, left := lanes, n
	for left > 1 {
		p := pass{radix: smallFactor(left), stride: stride}
		left /= p.radix
		p.left = left
		p.twR, p.twI = make([]float32, left*(p.radix-1)), make([]float32, left*(p.radix-1))
		for j := range left {
			for k := 1; k < p.radix; k++ {
				at := j*(p.radix-1) + k - 1
				p.twR[at], p.twI[at] = root(j*k, left*p.radix)
			}
		}
		if p.radix%2 != 0 {
			p.rootR, p.rootI = make([]float32, p.radix), make([]float32, p.radix)
			for k := range p.radix {
				p.rootR[k], p.rootI[k] = root(k, p.radix)
			}
			if p.radix > len(f.sumR) {
				f.sumR, f.sumI = make([]float32, p.radix), make([]float32, p.radix)
			}
		}
		f.passes = append(f.passes, p)
		stride *= p.radix
	}
	return f
}

// smallFactor returns a factor of n to split it by: 4, or its smallest prime factor.
func smallFactor(n int) int {
	if n%4 == 0 {
		return 4
	}
	for p := 2; p*p <= n; p++ {
		if n%p == 0 {
			return p
		}
	}
	return n
}

// root returns exp(-2πi·k/n).
func root(k, n int) (re, im float32) {
	sin, cos := math.Sincos(-2 * math.Pi * float64(k%n) / float64(n))
	return float32(cos), float32(sin)
}

// transform replaces re and im, n numbers of each lane, by their transform; it may swap the slices' memory with its own, and
// returns those that hold the result.
func (f *fft) transform(re, im []float32) ([]float32, []float32) {
	toR, toI := f.re, f.im
	for i := range f.passes {
		switch p := &f.passes[i]; p.radix {
		case 2:
			f.kernels.two(p, toR, toI, re, im)
		case 4:
			f.kernels.four(p, toR, toI, re, im)
		case 5:
			f.kernels.five(p, toR, toI, re, im)
		default:
			p.any(f, toR, toI, re, im)
		}
		re, toR = toR, re
		im, toI = toI, im
	}
	f.re, f.im = toR, toI
	return re, im
}

// times returns the complex product of a and w.
func times(aR, aI, wR, wI float32) (re, im float32) {
	return float32(aR*wR) - float32(aI*wI), float32(aR*wI) + float32(aI*wR)
}

func (portable) two(p *pass, toR, toI, fromR, fromI []float32) {
	s, half := p.stride, p.stride*p.left
	for j := range p.left {
		wR, wI := p.twR[j], p.twI[j]
		a0R, a0I := fromR[s*j:][:s], fromI[s*j:][:s]
		a1R, a1I := fromR[s*j+half:][:s], fromI[s*j+half:][:s]
		b0R, b0I := toR[2*s*j:][:s], toI[2*s*j:][:s]
		b1R, b1I := toR[2*s*j+s:][:s], toI[2*s*j+s:][:s]
		for q := range a0R {
			b0R[q], b0I[q] = a0R[q]+a1R[q], a0I[q]+a1I[q]
			b1R[q], b1I[q] = times(a0R[q]-a1R[q], a0I[q]-a1I[q], wR, wI)
		}
	}
}

func (portable) four(p *pass, toR, toI, fromR, fromI []float32) {
	s, quarter := p.stride, p.stride*p.left
	for j := range p.left {
		w1R, w2R, w3R := p.twR[3*j], p.twR[3*j+1], p.twR[3*j+2]
		w1I, w2I, w3I := p.twI[3*j], p.twI[3*j+1], p.twI[3*j+2]
		at := s * j
		a0R, a0I := fromR[at:][:s], fromI[at:][:s]
		a1R, a1I := fromR[at+quarter:][:s], fromI[at+quarter:][:s]
		a2R, a2I := fromR[at+2*quarter:][:s], fromI[at+2*quarter:][:s]
		a3R, a3I := fromR[at+3*quarter:][:s], fromI[at+3*quarter:][:s]
		at = 4 * s * j
		b0R, b0I := toR[at:][:s], toI[at:][:s]
		b1R, b1I := toR[at+s:][:s], toI[at+s:][:s]
		b2R, b2I := toR[at+2*s:][:s], toI[at+2*s:][:s]
		b3R, b3I := toR[at+3*s:][:s], toI[at+3*s:][:s]
		for q := range a0R {
			sumR, sumI := a0R[q]+a2R[q], a0I[q]+a2I[q]
			difR, difI := a0R[q]-a2R[q], a0I[q]-a2I[q]
			oddR, oddI := a1R[q]+a3R[q], a1I[q]+a3I[q]
			turR, turI := a1I[q]-a3I[q], a3R[q]-a1R[q] // their difference times -i
			b0R[q], b0I[q] = sumR+oddR, sumI+oddI
			b1R[q], b1I[q] = times(difR+turR, difI+turI, w1R, w1I)
			b2R[q], b2I[q] = times(sumR-oddR, sumI-oddI, w2R, w2I)
			b3R[q], b3I[q] = times(difR-turR, difI-turI, w3R, w3I)
		}
	}
}

func (portable) five(p *pass, toR, toI, fromR, fromI []float32) {
	s, fifth := p.stride, p.stride*p.left
	c1, s1, c2, s2 := p.rootR[1], p.rootI[1], p.rootR[2], p.rootI[2]
	for j := range p.left {
		wR, wI := p.twR[4*j:][:4], p.twI[4*j:][:4]
		at := s * j
		a0R, a0I := fromR[at:][:s], fromI[at:][:s]
		a1R, a1I := fromR[at+fifth:][:s], fromI[at+fifth:][:s]
		a2R, a2I := fromR[at+2*fifth:][:s], fromI[at+2*fifth:][:s]
		a3R, a3I := fromR[at+3*fifth:][:s], fromI[at+3*fifth:][:s]
		a4R, a4I := fromR[at+4*fifth:][:s], fromI[at+4*fifth:][:s]
		at = 5 * s * j
		b0R, b0I := toR[at:][:s], toI[at:][:s]
		b1R, b1I := toR[at+s:][:s], toI[at+s:][:s]
		b2R, b2I := toR[at+2*s:][:s], toI[at+2*s:][:s]
		b3R, b3I := toR[at+3*s:][:s], toI[at+3*s:][:s]
		b4R, b4I := toR[at+4*s:][:s], toI[at+4*s:][:s]
		for q := range a0R {
			sum1R, sum1I, dif1R, dif1I := a1R[q]+a4R[q], a1I[q]+a4I[q], a1R[q]-a4R[q], a1I[q]-a4I[q]
			sum2R, sum2I, dif2R, dif2I := a2R[q]+a3R[q], a2I[q]+a3I[q], a2R[q]-a3R[q], a2I[q]-a3I[q]
			even1R := a0R[q] + (float32(sum1R*c1) + float32(sum2R*c2))
			even1I := a0I[q] + (float32(sum1I*c1) + float32(sum2I*c2))
			even2R := a0R[q] + (float32(sum1R*c2) + float32(sum2R*c1))
			even2I := a0I[q] + (float32(sum1I*c2) + float32(sum2I*c1))
			odd1R, odd1I := -(float32(dif1I*s1) + float32(dif2I*s2)), float32(dif1R*s1)+float32(dif2R*s2)
			odd2R, odd2I := float32(dif2I*s1)-float32(dif1I*s2), float32(dif1R*s2)-float32(dif2R*s1)
			b0R[q], b0I[q] = a0R[q]+(sum1R+sum2R), a0I[q]+(sum1I+sum2I)
			b1R[q], b1I[q] = times(even1R+odd1R, even1I+odd1I, wR[0], wI[0])
			b2R[q], b2I[q] = times(even2R+odd2R, even2I+odd2I, wR[1], wI[1])
			b3R[q], b3I[q] = times(even2R-odd2R, even2I-odd2I, wR[2], wI[2])
			b4R[q], b4I[q] = times(even1R-odd1R, even1I-odd1I, wR[3], wI[3])
		}
	}
}

// any takes an odd radix. Of the values k and radix-k it takes sum and difference, which all outputs share.
func (p *pass) any(f *fft, toR, toI, fromR, fromI []float32) {
	s, part, half := p.stride, p.stride*p.left, p.radix/2
	for j := range p.left {
		wR, wI := p.twR[j*(p.radix-1):][:p.radix-1], p.twI[j*(p.radix-1):][:p.radix-1]
		for q := s * j; q < s*(j+1); q++ {
			a0R, a0I := fromR[q], fromI[q]
			allR, allI := a0R, a0I
			for k := 1; k <= half; k++ {
				aR, aI := fromR[q+k*part], fromI[q+k*part]
				bR, bI := fromR[q+(p.radix-k)*part], fromI[q+(p.radix-k)*part]
				f.sumR[k], f.sumI[k] = aR+bR, aI+bI
				f.sumR[p.radix-k], f.sumI[p.radix-k] = aR-bR, aI-bI
				allR, allI = allR+f.sumR[k], allI+f.sumI[k]
			}
			to := q + (p.radix-1)*s*j
			toR[to], toI[to] = allR, allI
			for m := 1; m <= half; m++ {
				evenR, evenI := a0R, a0I
				var oddR, oddI float32
				at := 0
				for k := 1; k <= half; k++ {
					if at += m; at >= p.radix {
						at -= p.radix
					}
					cos, sin := p.rootR[at], p.rootI[at]
					evenR += float32(f.sumR[k] * cos)
					evenI += float32(f.sumI[k] * cos)
					oddR -= float32(f.sumI[p.radix-k] * sin)
					oddI += float32(f.sumR[p.radix-k] * sin)
				}
				n := p.radix - m
				toR[to+m*s], toI[to+m*s] = times(evenR+oddR, evenI+oddI, wR[m-1], wI[m-1])
				toR[to+n*s], toI[to+n*s] = times(evenR-oddR, evenI-oddI, wR[n-1], wI[n-1])
			}
		}
	}
}
