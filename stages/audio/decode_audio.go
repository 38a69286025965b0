package audio

import (
	"errors"
	"fmt"

	"github.com/pipectl/pipectl/stages"
)

// Decode holds the attributes of `prepare "decode_audio"`.
type Decode struct {
	SampleRate int  `hcl:"sample_rate" min:"1" max:"1048575" doc:"The sample rate of the waveforms it gives, in Hz."`
	Resample   bool `hcl:"resample,optional" doc:"Resample files of another rate, as \x60resample\x60 does. Without it such a file is an error."`
	Channels   *int `hcl:"channels,optional" min:"1" max:"255" doc:"The number of channels it gives: 1 takes the mean of a file's channels, and a file of one channel is copied to all. Other numbers than the file's own are an error. Default: each file's own."`
}

func decodeAudioOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "decode_audio",
		Summary: "Decodes WAV and FLAC files to waveforms.",
		Doc: `It gives what ` + "`torchaudio.load`" + ` does, float32 in -1…1, as channels×1×samples. It reads WAV with PCM samples of 8, 16, 24 and 32 bits, floats of 32 and
64 bits, and telephony's A-law and µ-law, plain and as WAVE_FORMAT_EXTENSIBLE, in RIFF, RF64 and BW64, and FLAC (RFC 9639) of up to 32 bits. Values are
torchaudio's, bit for bit (0.13); floats beyond -1…1 stay as they are, infinite ones and NaN too, as with its soundfile backend. A file that is cut off
or damaged is an error: FLAC's frames carry checksums, which are verified; the checksum of a whole FLAC file isn't, nor has WAV any. WAV files that were
written to a pipe don't state their size, and are read to their end. MP3, Ogg, M4A and other formats are errors: convert such files to FLAC.

Elements don't carry a sample rate, so it is stated here, and every waveform that the stage gives has it. Where all files have one rate and the model
wants another, ` + "`resample`" + ` as a stage of its own shows what that costs; ` + "`resample = true`" + ` is for data sets that mix rates.`,
		New: func() any { return new(Decode) },
	}
}

// Output returns a waveform's type.
func (s *Decode) Output(in stages.Type) (stages.Type, error) {
	out := stages.TensorType(0, 1, 0)
	if s.Channels != nil {
		out.Shape[0] = *s.Channels
	}
	switch in.Kind {
	case stages.Encoded, stages.Opaque, stages.Unknown:
		return out, nil
	}
	return stages.Type{}, errors.New("It takes the bytes of an audio file, and gets " + in.String() + ". Remove it, or load audio files.")
}

// New makes an instance for one worker.
func (s *Decode) New() (stages.Stage, error) {
	d := &decoder{rate: s.SampleRate, resample: s.Resample}
	if s.Channels != nil {
		d.channels = *s.Channels
	}
	return d, nil
}

const (
	maxRate       = 1<<20 - 1 // of samples a second, as FLAC has it
	maxSamples    = 1 << 29   // of all channels of a waveform, 2 GiB
	maxResamplers = 8         // kept at a time; data sets mix a few rates
)

type decoder struct {
	rate     int
	resample bool
	channels int // 0: the file's own

	flac   flacDecoder
	planes []float32          // what is mixed or resampled afterwards
	mixed  []float32          // what is resampled after mixing
	from   map[int]*resampler // by the file's rate
}

// format says what a file holds.
type format struct {
	rate, channels int
	samples        int // of each channel
}

func (d *decoder) Process(_ *stages.Call, in, out *stages.Element) error {
	var w wav
	var f format
	var err error
	flac := flacStart(in.U8)
	if flac >= 0 {
		f, err = d.flac.open(in.U8, flac)
	} else if w, err = parseWAV(in.U8); err == nil {
		f = w.format
	}
	if err != nil {
		return err
	}
	if f.rate > maxRate {
		return fmt.Errorf("%d samples a second are too many: the file is damaged", f.rate)
	}
	if f.rate != d.rate && !d.resample {
		return fmt.Errorf("the file has %d samples a second and sample_rate is %d: set resample = true, or give the files' own rate and resample in a stage of its own", f.rate, d.rate)
	}
	channels := f.channels
	if d.channels != 0 {
		channels = d.channels
	}
	if channels != f.channels && channels != 1 && f.channels != 1 {
		return fmt.Errorf("%d channels can't be made of the file's %d", channels, f.channels)
	}
	if f.samples > maxSamples/f.channels {
		return fmt.Errorf("%d samples of %d channels are too many: cut the file up", f.samples, f.channels)
	}
	var planes []float32
	if channels == f.channels && f.rate == d.rate {
		planes = out.Tensor(channels, 1, f.samples)
	} else {
		planes = grow(&d.planes, f.channels*f.samples)
	}
	if flac >= 0 {
		err = d.flac.decode(planes)
	} else {
		w.decode(planes)
	}
	if err != nil {
		return err
	}
	if f.rate == d.rate {
		if channels != f.channels {
			mix(out.Tensor(channels, 1, f.samples), planes, f.samples)
		}
		return nil
	}
	if channels == 1 && f.channels > 1 {
		mono := grow(&d.mixed, f.samples)
		mix(mono, planes, f.samples)
		planes = mono
	}
	r := d.resampler(f.rate)
	n := r.length(f.samples)
	if n > maxSamples/channels {
		return fmt.Errorf("at %d samples a second instead of %d the file has %d samples, which are too many", d.rate, f.rate, n)
	}
	dst := out.Tensor(channels, 1, n)
	for c := range len(planes) / f.samples {
		r.run(dst[c*n:][:n], planes[c*f.samples:][:f.samples])
	}
	for c := len(planes) / f.samples; c < channels; c++ {
		copy(dst[c*n:], dst[:n])
	}
	return nil
}

func (d *decoder) resampler(from int) *resampler {
	r := d.from[from]
	if r == nil {
		if d.from == nil || len(d.from) == maxResamplers {
			d.from = map[int]*resampler{}
		}
		r = newResampler(from, d.rate)
		d.from[from] = r
	}
	return r
}

// mix fills dst with the mean of src's channels of n samples each, or with copies of its one channel.
func mix(dst, src []float32, n int) {
	if channels := len(src) / n; channels > 1 {
		copy(dst, src[:n])
		for c := 1; c < channels; c++ {
			for i, v := range src[c*n:][:n] {
				dst[i] += v
			}
		}
		for i := range dst {
			dst[i] /= float32(channels)
		}
		return
	}
	for len(dst) > 0 {
		dst = dst[copy(dst, src):]
	}
}

// grow returns n values of *buf, whose content is whatever was there before.
func grow(buf *[]float32, n int) []float32 {
	if cap(*buf) < n {
		*buf = make([]float32, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
