package audio

import (
	"fmt"
	"math"

	"github.com/pipectl/pipectl/stages"
)

// Resample holds the attributes of `prepare "resample"`.
type Resample struct {
	OrigFreq int `hcl:"orig_freq" min:"1" max:"1048575" doc:"The sample rate of the waveforms it gets, in Hz: \x60decode_audio\x60's \x60sample_rate\x60."`
	NewFreq  int `hcl:"new_freq" min:"1" max:"1048575" doc:"The sample rate of those it gives, in Hz."`
}

func resampleOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "resample",
		Summary: "Changes a waveform's sample rate.",
		Doc: `As torchaudio's ` + "`Resample`" + ` with its defaults: band-limited interpolation by a windowed sinc (Hann window, 6 zero crossings to each side, cut off at
0.99 of the lower rate's half). Values differ from torchaudio's (0.13) by less than 1e-6, since they are summed in another order;
` + "`functional.resample`" + `, which computes the kernel in float32, differs by 2e-5, and where the rates have no large common factor by more.`,
		New: func() any { return new(Resample) },
	}
}

// Output returns the type with as many samples as the rates make of in's.
func (s *Resample) Output(in stages.Type) (stages.Type, error) {
	if err := acceptWaveform(in); err != nil {
		return stages.Type{}, err
	}
	if in.Kind == stages.Unknown {
		return stages.TensorType(0, 1, 0), nil
	}
	out := in
	out.Shape[2] = newRatio(s.OrigFreq, s.NewFreq).length(in.Shape[2])
	return out, nil
}

// New makes an instance for one worker.
func (s *Resample) New() (stages.Stage, error) {
	return &resampleStage{newResampler(s.OrigFreq, s.NewFreq)}, nil
}

type resampleStage struct{ *resampler }

func (r *resampleStage) Process(_ *stages.Call, in, out *stages.Element) error {
	if r.orig == r.new {
		out.Pass(in)
		return nil
	}
	channels, samples := in.Type.Shape[0], in.Type.Shape[2]
	n := r.length(samples)
	if n > maxSamples/channels {
		return fmt.Errorf("%d samples would become %d, which are too many", samples, n)
	}
	dst := out.Tensor(channels, 1, n)
	for c := range channels {
		r.run(dst[c*n:][:n], in.F32[c*samples:][:samples])
	}
	return nil
}

// ratio is that of two sample rates in lowest terms.
type ratio struct{ orig, new int }

func newRatio(orig, new int) ratio {
	a, b := orig, new
	for b != 0 {
		a, b = b, a%b
	}
	return ratio{orig / a, new / a}
}

// length returns the number of samples made of n.
func (r ratio) length(n int) int { return (n*r.new + r.orig - 1) / r.orig }

// resampler resamples as torchaudio.transforms.Resample does. Output sample q·new + p is the sum of the input samples
// around q·orig, weighted by the kernel of phase p.
type resampler struct {
	ratio
	kernels kernels
	taps    int       // weights of each kernel, a multiple of 8, so that some of the last may be 0
	before  int       // of zeros before the input
	first   []int     // by phase: where its first weight stands behind these, relative to q·orig
	kernel  []float32 // by phase, taps of each
	padded  []float32 // the input between zeros
}

func newResampler(orig, new int) *resampler {
	const crossings, rolloff = 6, 0.99
	r := &resampler{ratio: newRatio(orig, new), kernels: fastKernels()}
	if r.orig == r.new {
		return r
	}
	base := rolloff * float64(min(r.orig, r.new))
	reach := crossings * float64(r.orig) / base // of a kernel to each side, in input samples
	r.taps = (int(math.Ceil(2*reach)) + 1 + 7) &^ 7
	r.before = int(math.Ceil(reach))
	r.first = make([]int, r.new)
	r.kernel = make([]float32, r.new*r.taps)
	for p := range r.first {
		at := float64(float32(-p) / float32(r.new)) // torchaudio rounds it so
		first := int(math.Floor(-at*float64(r.orig) - reach))
		r.first[p] = first + r.before
		for i := range r.taps {
			t := (at + float64(first+i)/float64(r.orig)) * base
			if math.Abs(t) >= crossings {
				continue
			}
			window := math.Cos(t * math.Pi / crossings / 2)
			weight := base / float64(r.orig) * window * window
			if t != 0 {
				weight *= math.Sin(t*math.Pi) / (t * math.Pi)
			}
			r.kernel[p*r.taps+i] = float32(weight)
		}
	}
	return r
}

// run fills dst, which has the length that it makes of src. What lies outside src is 0.
func (r *resampler) run(dst, src []float32) {
	if r.orig == r.new {
		copy(dst, src)
		return
	}
	// Kernels of later phases stand further to the right.
	end := (len(dst)-1)/r.new*r.orig + r.first[r.new-1] + r.taps
	padded := grow(&r.padded, max(end, r.before+len(src)))
	clear(padded[:r.before])
	clear(padded[r.before+copy(padded[r.before:], src):])
	r.kernels.resample(dst, padded, r)
}

// resample takes eight products at a time, and adds up their sums as vectors do.
func (portable) resample(dst, src []float32, r *resampler) {
	phase := 0
	for i := range dst {
		var s0, s1, s2, s3, s4, s5, s6, s7 float32
		a, b := src[r.first[phase]:][:r.taps], r.kernel[phase*r.taps:][:r.taps]
		for len(a) >= 8 && len(b) >= 8 {
			x, y := (*[8]float32)(a), (*[8]float32)(b)
			s0 += float32(x[0] * y[0])
			s1 += float32(x[1] * y[1])
			s2 += float32(x[2] * y[2])
			s3 += float32(x[3] * y[3])
			s4 += float32(x[4] * y[4])
			s5 += float32(x[5] * y[5])
			s6 += float32(x[6] * y[6])
			s7 += float32(x[7] * y[7])
			a, b = a[8:], b[8:]
		}
		dst[i] = ((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))
		if phase++; phase == r.new {
			phase = 0
			src = src[min(r.orig, len(src)):]
		}
	}
}
