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
	d := &decibels{factor: 10, top: float32(math.Inf(1))}
	if s.Stype == "magnitude" {
		d.factor = 20
	}
	if s.TopDB != nil {
		d.top = float32(*s.TopDB)
	}
	return d, nil
}

type decibels struct{ factor, top float32 }

func (d *decibels) Process(_ *stages.Call, in, out *stages.Element) error {
	const least = 1e-10
	shape := in.Type.Shape
	dst := out.Tensor(shape[0], shape[1], shape[2])[:len(in.F32)]
	most := float32(math.Inf(-1))
	for i, v := range in.F32 {
		log := math.Log(float64(max(v, least))) * (1 / math.Ln10)
		dst[i] = d.factor * float32(log)
		most = max(most, dst[i])
	}
	if math.IsInf(float64(d.top), 1) {
		return nil
	}
	for i, v := range dst {
		dst[i] = max(v, most-d.top)
	}
	return nil
}
