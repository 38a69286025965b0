package audio

import (
	"github.com/pipectl/pipectl/stages"
)

// PadOrTrim holds the attributes of `prepare "pad_or_trim"`.
type PadOrTrim struct {
	Length int `hcl:"length" min:"1" max:"268435456" doc:"The number of samples of a waveform, or of frames of a spectrogram, that it gives."`
}

func padOrTrimOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "pad_or_trim",
		Summary: "Brings waveforms or spectrograms to one length, so that they can be batched.",
		Doc: `Zeros are added at the end of what is shorter, and the end of what is longer is cut off, as Whisper's function of this name does. It is a tensor's
last dimension, time, that changes.`,
		New: func() any { return new(PadOrTrim) },
	}
}

// Output returns the type with the length.
func (s *PadOrTrim) Output(in stages.Type) (stages.Type, error) {
	if err := accept(in, "a waveform or spectrogram"); err != nil {
		return stages.Type{}, err
	}
	return stages.TensorType(in.Shape[0], in.Shape[1], s.Length), nil
}

// New makes an instance for one worker.
func (s *PadOrTrim) New() (stages.Stage, error) { return &padder{s.Length}, nil }

type padder struct{ length int }

func (p *padder) Process(_ *stages.Call, in, out *stages.Element) error {
	c, h, w := in.Type.Shape[0], in.Type.Shape[1], in.Type.Shape[2]
	if w == p.length {
		out.Pass(in)
		return nil
	}
	dst, src := out.Tensor(c, h, p.length), in.F32
	for range c * h {
		n := copy(dst[:p.length], src[:w])
		clear(dst[n:p.length])
		dst, src = dst[p.length:], src[w:]
	}
	return nil
}
