package audio

import (
	"errors"
	"math/rand/v2"

	"github.com/pipectl/pipectl/stages"
)

// TimeMask holds the attributes of `augment "time_mask"`.
type TimeMask struct {
	TimeMaskParam int     `hcl:"time_mask_param" min:"0" doc:"The number of frames that a mask is narrower than."`
	P             float64 `hcl:"p,optional" min:"0" max:"1" doc:"The greatest fraction of a spectrogram's frames that are masked."`
}

// FrequencyMask holds the attributes of `augment "frequency_mask"`.
type FrequencyMask struct {
	FreqMaskParam int `hcl:"freq_mask_param" min:"0" doc:"The number of frequencies that a mask is narrower than."`
}

// maskDoc is what both masks have in common.
const maskDoc = ` The width of the mask is drawn uniformly from 0 to below the limit, and its place then from
all where it fits, as SpecAugment does (Park et al., 2019); a width beyond the spectrogram's masks all of it. All channels have the same mask, and
each item of a batch has its own, as with torchaudio's ` + "`iid_masks`" + `. The draws have torchaudio's distributions, but come from pipectl's own random
numbers.`

func timeMaskOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Augment,
		Type:    "time_mask",
		Summary: "Sets some consecutive frames of a spectrogram to 0.",
		Doc:     "As torchaudio's `TimeMasking`." + maskDoc,
		New:     func() any { return &TimeMask{P: 1} },
	}
}

func frequencyMaskOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Augment,
		Type:    "frequency_mask",
		Summary: "Sets some consecutive frequencies of a spectrogram to 0.",
		Doc:     "As torchaudio's `FrequencyMasking`." + maskDoc,
		New:     func() any { return new(FrequencyMask) },
	}
}

// Output returns in.
func (s *TimeMask) Output(in stages.Type) (stages.Type, error) {
	return in, accept(in, "a spectrogram")
}

// Output returns in.
func (s *FrequencyMask) Output(in stages.Type) (stages.Type, error) {
	if in.Kind == stages.Tensor && in.Shape[1] == 1 {
		return stages.Type{}, errors.New(`It takes a spectrogram, and gets ` + in.String() + `, a waveform. Put prepare "mel_spectrogram" above it.`)
	}
	return in, accept(in, "a spectrogram")
}

// New makes an instance for one worker.
func (s *TimeMask) New() (stages.Stage, error) { return &masker{s.TimeMaskParam, s.P, 2}, nil }

// New makes an instance for one worker.
func (s *FrequencyMask) New() (stages.Stage, error) { return &masker{s.FreqMaskParam, 1, 1}, nil }

type masker struct {
	limit    int     // what the width is less than
	fraction float64 // of the axis's length that may be masked
	axis     int     // 1: frequencies, 2: time
}

func (m *masker) Process(c *stages.Call, in, out *stages.Element) error {
	start, end := m.draw(c.Rand, in.Type.Shape[m.axis])
	if start == end {
		out.Pass(in)
		return nil
	}
	out.CopyFrom(in)
	channels, h, w := in.Type.Shape[0], in.Type.Shape[1], in.Type.Shape[2]
	for ch := range channels {
		plane := out.F32[ch*h*w:][:h*w]
		if m.axis == 1 {
			clear(plane[start*w : end*w])
			continue
		}
		for y := range h {
			clear(plane[y*w+start : y*w+end])
		}
	}
	return nil
}

// draw returns where the mask on an axis of size lies.
func (m *masker) draw(r *rand.Rand, size int) (start, end int) {
	limit := m.limit
	if m.fraction < 1 {
		limit = min(limit, int(float64(size)*m.fraction))
	}
	if limit < 1 {
		return 0, 0
	}
	return place(r.Float64(), r.Float64(), limit, size)
}

// place makes of two numbers in [0, 1) where a mask lies, with the width of a whole number below limit, or size if that is less.
func place(u, v float64, limit, size int) (start, end int) {
	width := float64(u * float64(limit))
	if width >= float64(size) {
		return 0, size
	}
	start = int(v * (float64(size) - width))
	return start, start + int(width)
}
