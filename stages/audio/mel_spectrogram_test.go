package audio

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

// mel returns the defaults.
func mel() *MelSpectrogram { return melSpectrogramOperator().New().(*MelSpectrogram) }

func TestMelSpectrogram(t *testing.T) {
	with := func(change func(*MelSpectrogram)) *MelSpectrogram {
		s := mel()
		change(s)
		return s
	}
	number := func(v int) *int { return &v }
	tests := []struct {
		name   string
		spec   *MelSpectrogram
		frames int
	}{
		{"default", mel(), 7},
		{"slaney", with(func(s *MelSpectrogram) {
			s.NFFT, s.WinLength, s.HopLength, s.NMels, s.Norm, s.MelScale = 512, number(400), number(160), 80, "slaney", "slaney"
		}), 8},
		{"odd", with(func(s *MelSpectrogram) {
			high := 7600.0
			s.NFFT, s.HopLength, s.NMels, s.FMin, s.FMax, s.Power = 441, number(150), 23, 60, &high, 1
		}), 8},
		{"cubes", with(func(s *MelSpectrogram) { s.NFFT, s.WinLength, s.NMels, s.Power = 420, number(301), 40, 3 }), 9},
		{"narrow", with(func(s *MelSpectrogram) {
			s.SampleRate, s.NFFT, s.HopLength, s.NMels, s.MelScale = 22050, 1024, number(256), 64, "slaney"
		}), 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			want := golden(t, "mel_"+tt.name)
			got := process(t, tt.spec, wave(t, 2))
			typ := stages.TensorType(2, tt.spec.NMels, tt.frames)
			if got.Type != typ || len(want) != typ.Len() {
				t.Fatalf("%v, want %v with %d values", got.Type, typ, len(want))
			}
			// Each frame against its own greatest value, so that loud ones don't hide the quiet.
			for frame := range 2 * tt.frames {
				at := frame/tt.frames*tt.spec.NMels*tt.frames + frame%tt.frames
				most, off := 0.0, 0.0
				for i := range tt.spec.NMels {
					g, w := float64(got.F32[at+i*tt.frames]), float64(want[at+i*tt.frames])
					most, off = max(most, w), max(off, math.Abs(g-w))
				}
				if !(off <= 1e-5*most) {
					t.Errorf("frame %d is %g of its greatest value away", frame, off/most)
				}
			}
		})
	}
}

// Silence stays silence, and isn't touched by what is loud beside it.
func TestMelSpectrogramSilence(t *testing.T) {
	in := new(stages.Element)
	samples := in.Tensor(1, 1, 4000)
	copy(samples[3000:], noise(1, 1000).F32)
	got := process(t, mel(), in)
	for i, v := range got.F32 {
		if frame := i % 21; frame < 14 && v != 0 || frame > 16 && i/21 == 100 && v == 0 {
			t.Errorf("frame %d has %v", frame, v)
		}
	}
}

func TestMelSpectrogramValidate(t *testing.T) {
	two, high := 2, 50.0
	tests := []struct {
		spec *MelSpectrogram
		want string
	}{
		{&MelSpectrogram{SampleRate: 16000, NFFT: 400, NMels: 40}, "[]"},
		{mel(), "[{n_mels Empty mel filters 4 of the 128 filters are narrower than the distance of two frequencies, 40 Hz, and always give 0. Lower n_mels or raise n_fft. true}]"},
		{&MelSpectrogram{SampleRate: 16000, NFFT: 1, WinLength: &two, FMin: 50, FMax: &high, NMels: 1},
			"[{win_length Window too long A window of 2 samples doesn't fit in a transform of n_fft = 1. false} {f_min No frequencies The lowest frequency, 50 Hz, must be below the highest, 50 Hz. false}]"},
	}
	for _, tt := range tests {
		if got := fmt.Sprint(tt.spec.Validate()); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", *tt.spec, got, tt.want)
		}
	}
}

func TestMelSpectrogramTooShort(t *testing.T) {
	err := newStage(t, mel()).Process(testCall(), noise(1, 200), new(stages.Element))
	const want = "200 samples are too few for n_fft = 400: more than half of it are needed, so pad the waveform above (pad_or_trim) or lower n_fft"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// The power spectra by the transform's definition, for sizes with all kinds of factors; all kernels give the same bits.
func TestSpectrum(t *testing.T) {
	for n := 1; n <= 130; n++ {
		samples, window := noise(1, n+2*lanes).F32, noise(1, n).F32
		starts := [lanes]int{0, 1, 5, 6, 9, 12, 15, 16}
		got, fast := make([]float32, (n/2+1)*lanes), make([]float32, (n/2+1)*lanes)
		for range 2 { // what is left in the work space doesn't matter
			newSpectrum(n, fastKernels()).powers(fast, samples, &starts, window)
		}
		newSpectrum(n, portable{}).powers(got, samples, &starts, window)
		if !slices.Equal(got, fast) {
			t.Errorf("%d: this machine's kernels give %v, want %v", n, fast, got)
		}
		for i, v := range got {
			k, start := i/lanes, starts[i%lanes]
			re, im := 0.0, 0.0
			for i, w := range window {
				x := float64(w * samples[start+i])
				sin, cos := math.Sincos(-2 * math.Pi * float64(i*k%n) / float64(n))
				re += x * cos
				im += x * sin
			}
			if want := re*re + im*im; math.Abs(float64(v)-want) > 1e-5*float64(n) {
				t.Errorf("value %d of %d is %v, want %v", i, n, v, want)
			}
		}
	}
}

// All kernels give the same bits under the filters, with any number of lanes.
func TestFilter(t *testing.T) {
	filters, values := mel().filters(), noise(1, 201*lanes).F32
	for n := 1; n <= lanes; n++ {
		got, want := make([]float32, 128*9), make([]float32, 128*9)
		fastKernels().filter(got, 9, n, values, filters)
		portable{}.filter(want, 9, n, values, filters)
		for i, v := range got {
			if v != want[i] || i%9 >= n && v != 0 {
				t.Errorf("%d lanes: value %d is %v, want %v", n, i, v, want[i])
			}
		}
	}
}

func BenchmarkMelSpectrogram(b *testing.B) {
	hop := 160
	for _, n := range []int{400, 512, 1024, 2048} {
		spec := mel()
		spec.NFFT, spec.HopLength, spec.NMels = n, &hop, 80
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmark(b, spec, noise(1, 16000)) })
	}
}

func BenchmarkSpectrum(b *testing.B) {
	for _, n := range []int{400, 480, 512, 1024, 2048} {
		for name, k := range map[string]kernels{"portable": portable{}, "fast": fastKernels()} {
			b.Run(fmt.Sprint(n, " ", name), func(b *testing.B) {
				s, in, window, out := newSpectrum(n, k), noise(1, n+lanes).F32, noise(1, n).F32, make([]float32, (n/2+1)*lanes)
				starts := [lanes]int{0, 1, 2, 3, 4, 5, 6, 7}
				for b.Loop() {
					s.powers(out, in, &starts, window)
				}
			})
		}
	}
}
