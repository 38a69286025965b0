package audio

import (
	"math"

	"github.com/pipectl/pipectl/stages"
)

// AmplitudeToDB holds the attributes of `prepare "amplitude_to_db"`.
type AmplitudeToDB struct {
	Stype string   `hcl:"stype,optional" enum:"power,magnitude" doc:"What the spectrogram's values are."`
	TopDB *float64 `hcl:"top_db,optional" min:"0" doc:"Raise what is further than this below the spectrogram's greatest value to that limit, in decibels. Common: 80. Default: no limit."`
}

func amplitudeToDBOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "amplitude_to_db",
		Summary: "Turns a spectrogram's values into decibels.",
		Doc: `As torchaudio's ` + "`AmplitudeToDB`" + `: 10·log₁₀ of powers, 20·log₁₀ of magnitudes, of 1e-10 at least. The result is torchaudio's (0.13) but for the last bit of
some values.`,
		New: func() any { return &AmplitudeToDB{Stype: "power"} },
	}
}

// Output returns in.
func (s *AmplitudeToDB) Output(in stages.Type) (stages.Type, error) {
	return in, accept(in, "a spectrogram")
}

// New makes an instance for one worker.
func (s *AmplitudeToDB) New() (stages.Stage, error) {
	d := &decibels{kernels: fastKernels(), factor: 10, top: float32(math.Inf(1))}
	if s.Stype == "magnitude" {
		d.factor = 20
	}
	if s.TopDB != nil {
		d.top = float32(*s.TopDB)
	}
	return d, nil
}

type decibels struct {
	kernels     kernels
	factor, top float32
}

func (d *decibels) Process(_ *stages.Call, in, out *stages.Element) error {
	shape := in.Type.Shape
	dst := out.Tensor(shape[0], shape[1], shape[2])[:len(in.F32)]
	d.kernels.logarithms(dst, in.F32, d.factor)
	if math.IsInf(float64(d.top), 1) {
		return nil
	}
	most := float32(math.Inf(-1))
	for _, v := range dst {
		if !(v <= most) {
			if most = v; v != v {
				break // one NaN spreads to all
			}
		}
	}
	floor := most - d.top
	for i, v := range dst {
		if !(v >= floor) {
			dst[i] = floor
		}
	}
	return nil
}

// leastAmplitude is what smaller values count as.
const leastAmplitude = 1e-10

// logSeries are the coefficients of artanh(s)/s by powers of s², times 2/ln 10: with s = (m-1)/(m+1) the series gives log₁₀ m, for
// m between √½ and √2 to 13 digits.
var logSeries = [...]float64{
	2 / math.Ln10, 2 / math.Ln10 / 3, 2 / math.Ln10 / 5, 2 / math.Ln10 / 7, 2 / math.Ln10 / 9, 2 / math.Ln10 / 11, 2 / math.Ln10 / 13, 2 / math.Ln10 / 15,
}

func (portable) logarithms(dst, src []float32, factor float32) {
	const (
		toRoot = 0x3FF<<52 - 0x3FE6A09E<<32 // from √½ to 1, as bits
		bias   = 0x3FF
	)
	for i, v := range src {
		v = max(v, leastAmplitude)
		if !(v <= math.MaxFloat32) {
			dst[i] = v
			continue
		}
		b := math.Float64bits(float64(v))
		exponent := (b + toRoot) >> 52
		m := math.Float64frombits(b - exponent<<52 + bias<<52)
		s := (m - 1) / (m + 1)
		z := s * s
		sum := logSeries[len(logSeries)-1]
		for k := len(logSeries) - 2; k >= 0; k-- {
			sum = float64(sum*z) + logSeries[k]
		}
		dst[i] = factor * float32(float64((float64(exponent)-bias)*(math.Ln2/math.Ln10))+float64(s*sum))
	}
}
