// Package audio holds the operators for sound: files are decoded to waveforms, waveforms become spectrograms, and both
// can be cut, padded and masked.
//
// A waveform is a float32 tensor of channels×1×samples in -1…1, a spectrogram one of channels×frequencies×frames: time is
// the last dimension of both, as in torchaudio, whose waveforms have no dimension of 1. The sample rate is no part of an
// element: decode_audio promises it, and the stages that depend on it state it.
package audio

import (
	"errors"

	"github.com/pipectl/pipectl/stages"
)

// Add registers the operators.
func Add(r *stages.Registry) {
	r.Add(
		audioFolderOperator(),
		decodeAudioOperator(),
		resampleOperator(),
		padOrTrimOperator(),
		melSpectrogramOperator(),
		amplitudeToDBOperator(),
		timeMaskOperator(),
		frequencyMaskOperator(),
	)
}

// accept returns nil where a stage that takes a waveform, a spectrogram or either, as what says, can take an element of
// type in, or else what the file's author is told.
func accept(in stages.Type, what string) error {
	advice := ""
	switch in.Kind {
	case stages.Tensor, stages.Unknown:
		return nil
	case stages.Encoded:
		advice = `Put prepare "decode_audio" above it.`
	default:
		advice = "Remove it, or load sound."
	}
	return errors.New("It takes " + what + ", and gets " + in.String() + ". " + advice)
}

// acceptWaveform is accept for stages that take waveforms alone.
func acceptWaveform(in stages.Type) error {
	if in.Kind == stages.Tensor && in.Shape[1] != 1 {
		return errors.New("It takes a waveform, float32 channels×1×samples, and gets " + in.String() + ". Move it above the stage that makes this of the waveform.")
	}
	return accept(in, "a waveform")
}
