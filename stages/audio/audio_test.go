package audio

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/pipectl/pipectl/stages"
)

// read reads a file of testdata.
func read(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// golden reads float32 values that testdata/make_goldens.py made.
func golden(tb testing.TB, name string) []float32 {
	tb.Helper()
	data := read(tb, name+".f32")
	values := make([]float32, len(data)/4)
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, values); err != nil {
		tb.Fatal(err)
	}
	return values
}

// wave returns the first channels of wave.f32, which has two of 1200 samples.
func wave(tb testing.TB, channels int) *stages.Element {
	e := new(stages.Element)
	copy(e.Tensor(channels, 1, 1200), golden(tb, "wave"))
	return e
}

func encoded(data []byte) *stages.Element {
	return &stages.Element{Type: stages.Type{Kind: stages.Encoded}, U8: data}
}

// process runs one item through a new instance of a stage.
func process(tb testing.TB, spec stages.StageSpec, in *stages.Element) *stages.Element {
	tb.Helper()
	out := new(stages.Element)
	if err := newStage(tb, spec).Process(testCall(), in, out); err != nil {
		tb.Fatal(err)
	}
	return out.Result()
}

func newStage(tb testing.TB, spec stages.StageSpec) stages.Stage {
	tb.Helper()
	s, err := spec.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func testCall() *stages.Call {
	return &stages.Call{Context: context.Background(), Rand: rand.New(rand.NewPCG(1, 2))}
}

// near reports where got isn't a tensor of the type with the golden values, each within tolerance.
func near(t *testing.T, got *stages.Element, typ stages.Type, want []float32, tolerance float64) {
	t.Helper()
	if got.Type != typ || len(got.F32) != len(want) {
		t.Fatalf("%v with %d values, want %v with %d", got.Type, len(got.F32), typ, len(want))
	}
	worst, at := 0.0, 0
	for i, v := range got.F32 {
		if d := math.Abs(float64(v) - float64(want[i])); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("value %d is %v, want %v: %g away, more than %g", at, got.F32[at], want[at], worst, tolerance)
	}
}

func benchmark(b *testing.B, spec stages.StageSpec, in *stages.Element) {
	s, c, out := newStage(b, spec), testCall(), new(stages.Element)
	b.SetBytes(int64(in.Size()))
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Process(c, in, out); err != nil {
			b.Fatal(err)
		}
		out.Result()
	}
}

// noise returns a waveform whose samples are drawn.
func noise(channels, samples int) *stages.Element {
	r := rand.New(rand.NewPCG(uint64(channels), uint64(samples)))
	e := new(stages.Element)
	for i := range e.Tensor(channels, 1, samples) {
		e.F32[i] = r.Float32()*2 - 1
	}
	return e
}

// Every operator on tensors leaves its input as it is, gives what Output says, gives the same from the same random numbers
// whatever the instance did before, and allocates nothing once its buffers have their size.
func TestTensorOperators(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		channels, samples := rapid.IntRange(1, 3).Draw(t, "channels"), rapid.IntRange(1, 300).Draw(t, "samples")
		size := rapid.IntRange(1, 40).Draw(t, "size")
		top := 20.0
		specs := []stages.StageSpec{
			&Resample{OrigFreq: size, NewFreq: rapid.IntRange(1, 40).Draw(t, "new")},
			&PadOrTrim{Length: size},
			&AmplitudeToDB{Stype: "magnitude", TopDB: &top},
			&TimeMask{TimeMaskParam: size, P: 0.5},
		}
		if samples > size {
			specs = append(specs, &MelSpectrogram{SampleRate: 16000, NFFT: size + 1, NMels: 5, Power: 2})
		}
		seed := rapid.Uint64().Draw(t, "seed")
		pcg := rand.NewPCG(seed, 0)
		c := &stages.Call{Context: context.Background(), Rand: rand.New(pcg)}
		check := func(spec stages.StageSpec, in, other *stages.Element) {
			before := slices.Clone(in.F32)
			s, err := spec.New()
			if err != nil {
				t.Fatal(err)
			}
			run := func(in, out *stages.Element) *stages.Element {
				pcg.Seed(seed, 0)
				if err := s.Process(c, in, out); err != nil {
					t.Fatalf("%T: %v", spec, err)
				}
				return out.Result()
			}
			want, err := spec.Output(in.Type)
			if err != nil {
				t.Fatalf("%T: %v", spec, err)
			}
			first := run(in, new(stages.Element))
			if first.Type != want || first.Size() != want.Size() {
				t.Errorf("%T gives %v with %d bytes, and said %v", spec, first.Type, first.Size(), want)
			}
			out := run(other, new(stages.Element))
			second := run(in, out)
			if !slices.Equal(first.F32, second.F32) {
				t.Errorf("%T isn't the same the second time", spec)
			}
			if !slices.Equal(in.F32, before) {
				t.Errorf("%T wrote to its input", spec)
			}
			if n := testing.AllocsPerRun(3, func() { run(in, out) }); n > 0 {
				t.Errorf("%T allocates %v times an item", spec, n)
			}
		}
		for _, spec := range specs {
			check(spec, noise(channels, samples), noise(channels, samples+7))
		}
		spectrogram := func(h, w int) *stages.Element {
			e := noise(channels, h*w)
			e.Tensor(channels, h, w)
			return e
		}
		h := rapid.IntRange(2, 20).Draw(t, "h")
		check(&FrequencyMask{FreqMaskParam: size}, spectrogram(h, samples), spectrogram(h+1, samples))
	})
}

// The types that don't fit are refused with what to do.
func TestOutput(t *testing.T) {
	waveform, spectrogram := stages.TensorType(1, 1, 0), stages.TensorType(2, 80, 100)
	two := 2
	tests := []struct {
		spec stages.StageSpec
		in   stages.Type
		want string
	}{
		{&Decode{}, stages.Type{Kind: stages.Encoded}, "float32 ?×1×? <nil>"},
		{&Decode{Channels: &two}, stages.Type{Kind: stages.Opaque}, "float32 2×1×? <nil>"},
		{&Decode{}, waveform, "unknown It takes the bytes of an audio file, and gets float32 1×1×?. Remove it, or load audio files."},
		{&Resample{44100, 16000}, stages.TensorType(2, 1, 44101), "float32 2×1×16001 <nil>"},
		{&Resample{44100, 16000}, waveform, "float32 1×1×? <nil>"},
		{&Resample{44100, 16000}, stages.Type{}, "float32 ?×1×? <nil>"},
		{&Resample{44100, 16000}, spectrogram, "unknown It takes a waveform, float32 channels×1×samples, and gets float32 2×80×100. Move it above the stage that makes this of the waveform."},
		{&Resample{44100, 16000}, stages.Type{Kind: stages.Encoded}, `unknown It takes a waveform, and gets encoded bytes. Put prepare "decode_audio" above it.`},
		{&PadOrTrim{7}, waveform, "float32 1×1×7 <nil>"},
		{&PadOrTrim{7}, stages.ImageType(2, 3), "unknown It takes a waveform or spectrogram, and gets uint8 image 2×3×3. Remove it, or load sound."},
		{mel(), waveform, "float32 1×128×? <nil>"},
		{mel(), stages.TensorType(2, 1, 16000), "float32 2×128×81 <nil>"},
		{mel(), stages.TensorType(2, 1, 200), "unknown It gets float32 2×1×200, but 200 samples are too few for n_fft = 400: more than half of it are needed, so pad the waveform above (pad_or_trim) or lower n_fft."},
		{&AmplitudeToDB{}, spectrogram, "float32 2×80×100 <nil>"},
		{&TimeMask{}, spectrogram, "float32 2×80×100 <nil>"},
		{&FrequencyMask{}, spectrogram, "float32 2×80×100 <nil>"},
		{&FrequencyMask{}, waveform, `unknown It takes a spectrogram, and gets float32 1×1×?, a waveform. Put prepare "mel_spectrogram" above it.`},
	}
	for _, tt := range tests {
		out, err := tt.spec.Output(tt.in)
		if got := fmt.Sprint(out, " ", err); got != tt.want {
			t.Errorf("%T of %v:\n got %s\nwant %s", tt.spec, tt.in, got, tt.want)
		}
	}
}
