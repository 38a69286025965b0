package audio

import (
	"errors"
	"fmt"
	"math"

	"github.com/pipectl/pipectl/stages"
)

// MelSpectrogram holds the attributes of `prepare "mel_spectrogram"`.
type MelSpectrogram struct {
	SampleRate int      `hcl:"sample_rate,optional" min:"1" max:"1048575" doc:"The sample rate of the waveforms it gets, in Hz: \x60decode_audio\x60's, or \x60resample\x60's \x60new_freq\x60."`
	NFFT       int      `hcl:"n_fft,optional" min:"2" max:"1048576" doc:"The number of samples of each Fourier transform, fastest where its prime factors are small."`
	WinLength  *int     `hcl:"win_length,optional" min:"1" doc:"The number of samples of the Hann window, at most \x60n_fft\x60. Default: \x60n_fft\x60."`
	HopLength  *int     `hcl:"hop_length,optional" min:"1" doc:"The number of samples from frame to frame. Default: half of \x60win_length\x60."`
	NMels      int      `hcl:"n_mels,optional" min:"1" max:"65536" doc:"The number of mel filters, which is that of the spectrogram's frequencies."`
	FMin       float64  `hcl:"f_min,optional" min:"0" doc:"The lowest frequency, in Hz."`
	FMax       *float64 `hcl:"f_max,optional" moremin:"0" doc:"The highest frequency, in Hz. Default: half of \x60sample_rate\x60."`
	Power      float64  `hcl:"power,optional" moremin:"0" doc:"The exponent of the magnitudes: 1 for magnitudes, 2 for powers."`
	Norm       string   `hcl:"norm,optional" enum:"none,slaney" doc:"Whether the filters have the same height, or the same area as Slaney's have."`
	MelScale   string   `hcl:"mel_scale,optional" enum:"htk,slaney" doc:"The formula by which the filters' frequencies are spaced."`
}

func melSpectrogramOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "mel_spectrogram",
		Summary: "Makes mel-scaled spectrograms of waveforms.",
		Doc: `As torchaudio's ` + "`MelSpectrogram`" + ` with its window, centring and padding: frame t lies around sample t·hop_length, under a periodic Hann window, and beyond
its ends the waveform is mirrored, so it must have more than n_fft/2 samples. For an even n_fft it gives
channels×n_mels×(1 + samples/hop_length, rounded down). Values differ from torchaudio's (0.13) by less than 1e-5 of a frame's greatest one, unless most
of the filters are empty, of which a warning tells.`,
		New: func() any {
			return &MelSpectrogram{SampleRate: 16000, NFFT: 400, NMels: 128, Power: 2, Norm: "none", MelScale: "htk"}
		},
	}
}

// Validate reports lengths and frequencies that don't go together.
func (s *MelSpectrogram) Validate() []stages.Problem {
	var problems []stages.Problem
	if s.winLength() > s.NFFT {
		problems = append(problems, stages.Problem{Attribute: "win_length", Summary: "Window too long",
			Detail: fmt.Sprintf("A window of %d samples doesn't fit in a transform of n_fft = %d.", s.winLength(), s.NFFT)})
	}
	if s.FMin >= s.fMax() {
		return append(problems, stages.Problem{Attribute: "f_min", Summary: "No frequencies",
			Detail: fmt.Sprintf("The lowest frequency, %v Hz, must be below the highest, %v Hz.", s.FMin, s.fMax())})
	}
	empty := 0
	for _, b := range s.filters().bands {
		if b.n == 0 {
			empty++
		}
	}
	if empty > 0 {
		problems = append(problems, stages.Problem{Attribute: "n_mels", Summary: "Empty mel filters", Warning: true,
			Detail: fmt.Sprintf("%d of the %d filters are narrower than the distance of two frequencies, %.4g Hz, and always give 0. Lower n_mels or raise n_fft.",
				empty, s.NMels, float64(s.SampleRate)/float64(s.NFFT))})
	}
	return problems
}

func (s *MelSpectrogram) winLength() int {
	if s.WinLength != nil {
		return *s.WinLength
	}
	return s.NFFT
}

func (s *MelSpectrogram) hopLength() int {
	if s.HopLength != nil {
		return *s.HopLength
	}
	return max(s.winLength()/2, 1)
}

func (s *MelSpectrogram) fMax() float64 {
	if s.FMax != nil {
		return *s.FMax
	}
	return float64(s.SampleRate / 2)
}

// Output returns a spectrogram's type.
func (s *MelSpectrogram) Output(in stages.Type) (stages.Type, error) {
	if err := acceptWaveform(in); err != nil {
		return stages.Type{}, err
	}
	frames := 0
	if n := in.Shape[2]; n > 0 {
		if err := s.check(n); err != nil {
			return stages.Type{}, errors.New("It gets " + in.String() + ", but " + err.Error() + ".")
		}
		frames = s.frames(n)
	}
	return stages.TensorType(in.Shape[0], s.NMels, frames), nil
}

// frames returns the number of frames that samples are cut into: of an odd transform's mirrored margins one is left over.
func (s *MelSpectrogram) frames(samples int) int { return 1 + (samples-s.NFFT%2)/s.hopLength() }

// check reports a waveform that is too short to be mirrored at its ends.
func (s *MelSpectrogram) check(samples int) error {
	if samples <= s.NFFT/2 {
		return fmt.Errorf("%d samples are too few for n_fft = %d: more than half of it are needed, so pad the waveform above (pad_or_trim) or lower n_fft", samples, s.NFFT)
	}
	return nil
}

// New makes an instance for one worker.
func (s *MelSpectrogram) New() (stages.Stage, error) {
	k := fastKernels()
	m := &melSpectrogram{
		spec: *s, hop: s.hopLength(), kernels: k, filters: s.filters(), spectrum: newSpectrum(s.NFFT, k),
		window: make([]float32, s.NFFT), values: make([]float32, (s.NFFT/2+1)*lanes),
	}
	hann := m.window[(s.NFFT-s.winLength())/2:][:s.winLength()]
	for i := range hann {
		hann[i] = float32(0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(len(hann))))
	}
	return m, nil
}

type melSpectrogram struct {
	spec     MelSpectrogram
	hop      int
	kernels  kernels
	filters  *melFilters
	spectrum *spectrum
	window   []float32 // as long as a frame, with zeros to both sides
	mirrored []float32 // a channel with its margins
	starts   [lanes]int
	values   []float32 // of the frames' spectra
}

func (m *melSpectrogram) Process(_ *stages.Call, in, out *stages.Element) error {
	channels, n := in.Type.Shape[0], in.Type.Shape[2]
	if err := m.spec.check(n); err != nil {
		return err
	}
	frames := m.spec.frames(n)
	dst := out.Tensor(channels, m.spec.NMels, frames)
	for c := range channels {
		plane := dst[c*m.spec.NMels*frames:]
		samples := m.mirror(in.F32[c*n:][:n])
		for t := 0; t < frames; t += lanes {
			for lane := range m.starts {
				m.starts[lane] = min(t+lane, frames-1) * m.hop
			}
			m.spectrum.powers(m.values, samples, &m.starts, m.window)
			m.raise()
			m.kernels.filter(plane[t:], frames, min(lanes, frames-t), m.values, m.filters)
		}
	}
	return nil
}

// mirror returns the samples with n_fft/2 more to each side, which it keeps until it is called again.
func (m *melSpectrogram) mirror(samples []float32) []float32 {
	margin := m.spec.NFFT / 2
	all := grow(&m.mirrored, len(samples)+2*margin)
	copy(all[margin:], samples)
	for i := 1; i <= margin; i++ {
		all[margin-i] = samples[i]
		all[margin+len(samples)-1+i] = samples[len(samples)-1-i]
	}
	return all
}

// raise makes of squared magnitudes the power that is asked for.
func (m *melSpectrogram) raise() {
	switch m.spec.Power {
	case 2:
	case 1:
		for i, v := range m.values {
			m.values[i] = float32(math.Sqrt(float64(v)))
		}
	default:
		for i, v := range m.values {
			m.values[i] = float32(math.Pow(float64(v), m.spec.Power/2))
		}
	}
}
