package audio

import "math"

// melFilters are the parts of a spectrum that are weighed and summed up, and their weights, those of all bands in a row.
type melFilters struct {
	bands   []band
	weights []float32
}

// band is n values of a spectrum, from the one at first on.
type band struct{ first, n int }

// filters returns torchaudio.functional.melscale_fbanks: triangles between the frequencies, evenly spaced in mel, of a
// filter's neighbours. It rounds where torchaudio does.
func (s *MelSpectrogram) filters() *melFilters {
	fromHz, toHz := htkFromHz, htkToHz
	if s.MelScale == "slaney" {
		fromHz, toHz = slaneyFromHz, slaneyToHz
	}
	frequency := linspace(0, float32(s.SampleRate/2), s.NFFT/2+1)
	corner := linspace(float32(fromHz(s.FMin)), float32(fromHz(s.fMax())), s.NMels+2)
	for i, mel := range corner {
		corner[i] = toHz(mel)
	}
	f := &melFilters{bands: make([]band, s.NMels)}
	above := 0 // the first frequency above a filter's lowest
	for m := range f.bands {
		low, mid, high := corner[m], corner[m+1], corner[m+2]
		for above < len(frequency) && frequency[above] <= low {
			above++
		}
		b := &f.bands[m]
		b.first = above
		for k := above; k < len(frequency) && frequency[k] < high; k++ {
			weight := min((frequency[k]-low)/(mid-low), (high-frequency[k])/(high-mid))
			if s.Norm == "slaney" {
				weight *= 2 / (high - low)
			}
			f.weights = append(f.weights, weight)
			b.n++
		}
	}
	return f
}

func (portable) filter(dst []float32, stride, n int, values []float32, f *melFilters) {
	weights := f.weights
	for i, b := range f.bands {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		for k, w := range weights[:b.n] {
			v := (*[lanes]float32)(values[(b.first+k)*lanes:])
			s0 += float32(v[0] * w)
			s1 += float32(v[1] * w)
			s2 += float32(v[2] * w)
			s3 += float32(v[3] * w)
			s4 += float32(v[4] * w)
			s5 += float32(v[5] * w)
			s6 += float32(v[6] * w)
			s7 += float32(v[7] * w)
		}
		weights = weights[b.n:]
		sums := [lanes]float32{s0, s1, s2, s3, s4, s5, s6, s7}
		copy(dst[i*stride:], sums[:n])
	}
}

// linspace returns n numbers, evenly spaced, as torch.linspace computes them: from both ends.
func linspace(first, last float32, n int) []float32 {
	values := make([]float32, n)
	step := (last - first) / float32(n-1)
	for i := range values {
		if i < n/2 {
			values[i] = first + float32(step*float32(i))
		} else {
			values[i] = last - float32(step*float32(n-1-i))
		}
	}
	return values
}

// htkFromHz and htkToHz convert between Hz and the mel scale of the Hidden Markov Model Toolkit.
func htkFromHz(hz float64) float64 { return 2595 * math.Log10(1+hz/700) }

func htkToHz(mel float32) float32 { return 700 * (float32(math.Pow(10, float64(mel/2595))) - 1) }

// The mel scale of Slaney's Auditory Toolbox is linear up to 1000 Hz, which are 15 mel, and logarithmic above.
const (
	slaneyLinear = 200.0 / 3 // Hz for each mel, up to slaneyBreak
	slaneyBreak  = 1000.0
	slaneySteps  = 27 // mel from any frequency above it to 6.4 times that
)

func slaneyFromHz(hz float64) float64 {
	if hz < slaneyBreak {
		return hz / slaneyLinear
	}
	return slaneyBreak/slaneyLinear + math.Log(hz/slaneyBreak)*slaneySteps/math.Log(6.4)
}

func slaneyToHz(mel float32) float32 {
	const at = slaneyBreak / slaneyLinear
	if mel < at {
		return slaneyLinear * mel
	}
	step := float32(math.Log(6.4) / slaneySteps)
	return slaneyBreak * float32(math.Exp(float64(step*(mel-at))))
}
