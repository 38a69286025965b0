package audio

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

func TestDecode(t *testing.T) {
	for _, name := range []string{
		"u8.wav", "s16.wav", "s24.wav", "s32.wav", "f32.wav", "f64.wav", "extensible16.wav", "extensible24.wav", "extensible_f32.wav", "rf64.wav",
		"flac_s8.flac", "flac_16.flac", "flac_24.flac",
	} {
		got := process(t, &Decode{SampleRate: 16000}, encoded(read(t, name)))
		if want := golden(t, name); got.Type != stages.TensorType(2, 1, 60) || !slices.Equal(got.F32, want) {
			t.Errorf("%s: %v %v, want %v", name, got.Type, got.F32, want)
		}
	}
}

// All codes of telephony's formats, also as WAVE_FORMAT_EXTENSIBLE has them.
func TestDecodeTelephony(t *testing.T) {
	for _, name := range []string{"alaw.wav", "mulaw.wav"} {
		file, want := read(t, name), golden(t, name)
		extended := slices.Concat(file[:16], []byte{40, 0, 0, 0, 0xFE, 0xFF}, file[22:36], []byte{22, 0, 8, 0, 0, 0, 0, 0}, file[20:22],
			[]byte("\x00\x00\x00\x00\x10\x00\x80\x00\x00\xAA\x00\x38\x9B\x71"), file[36:])
		for _, file := range [][]byte{file, extended} {
			if got := process(t, &Decode{SampleRate: 8000}, encoded(file)); got.Type != stages.TensorType(1, 1, 256) || !slices.Equal(got.F32, want) {
				t.Errorf("%s: %v %v, want %v", name, got.Type, got.F32, want)
			}
		}
	}
}

// Floats are taken as they are.
func TestDecodeNotFinite(t *testing.T) {
	file := read(t, "f32.wav")
	copy(file[len(file)-12:], "\x00\x00\xC0\x7F\x00\x00\x80\x7F\x00\x00\x80\xFF")
	got := process(t, &Decode{SampleRate: 16000}, encoded(file)).F32
	if s := fmt.Sprint(got[59], got[118], got[119]); s != "+Inf NaN -Inf" {
		t.Error(s)
	}
}

// FLAC files state the MD5 sum of their samples, which the encoder computed.
func TestFLAC(t *testing.T) {
	var d flacDecoder // one for all, as a worker has it
	for _, tt := range []struct {
		name    string
		want    format
		hasNoMD bool
	}{
		{"fixed", format{44100, 2, 1500}, false},
		{"linear", format{44100, 2, 1500}, false},
		{"mid_side", format{44100, 2, 700}, false},
		{"left_side", format{44100, 2, 700}, false},
		{"noise", format{44100, 1, 400}, false},
		{"silence", format{44100, 1, 9300}, false},
		{"wasted", format{44100, 2, 500}, false},
		{"bits24", format{44100, 2, 500}, false},
		{"bits32", format{44100, 2, 300}, false},
		{"channels5", format{44100, 5, 200}, false},
		{"many_frames", format{44100, 1, 2200}, false},
		{"smooth", format{44100, 1, 400}, false},
		{"clicks", format{44100, 1, 900}, false},
		{"unknown_length", format{44100, 1, 700}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := read(t, tt.name+".flac")
			f, err := d.open(file, flacStart(file))
			if err != nil || f != tt.want {
				t.Fatalf("%+v with error %v, want %+v", f, err, tt.want)
			}
			// frame by frame, since float32 doesn't hold 32 bits
			sum, n := md5.New(), 0
			d.reader = newBitReader(file, d.frames)
			for n < f.samples {
				size, err := d.frame()
				if err != nil {
					t.Fatal(err)
				}
				for i := range size {
					for c := range f.channels {
						sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(d.channel[c][i]))[:(d.bits+7)/8])
					}
				}
				n += size
			}
			if want := file[4+4+18:][:16]; n != f.samples || !tt.hasNoMD && !bytes.Equal(sum.Sum(nil), want) {
				t.Errorf("%d samples with the sum %x, want %d with %x", n, sum.Sum(nil), f.samples, want)
			}
		})
	}
	unknown := process(t, &Decode{SampleRate: 44100}, encoded(read(t, "unknown_length.flac"))).F32
	if known := process(t, &Decode{SampleRate: 44100}, encoded(read(t, "fixed.flac"))).F32; !slices.Equal(unknown, known[:700]) {
		t.Error("the file of unknown length has other samples than that of the same sound with a length")
	}
}

// Tags in front of a FLAC file are passed over, one with a footer too.
func TestFLACWithID3(t *testing.T) {
	file := read(t, "flac_16.flac")
	tagged := slices.Concat([]byte("ID3\x04\x00\x00\x00\x00\x01\x02"), make([]byte, 130), []byte("ID3\x04\x00\x10\x00\x00\x00\x05"), make([]byte, 15), file)
	got := process(t, &Decode{SampleRate: 16000}, encoded(tagged))
	if want := golden(t, "flac_16.flac"); !slices.Equal(got.F32, want) {
		t.Errorf("%v, want %v", got.F32, want)
	}
}

// Mixing and resampling are those of the operators for them.
func TestDecodeConverts(t *testing.T) {
	one, two, three := 1, 2, 3
	stereo := process(t, &Decode{SampleRate: 16000}, encoded(read(t, "s16.wav")))
	mono := new(stages.Element)
	for i := range mono.Tensor(1, 1, 60) {
		mono.F32[i] = (stereo.F32[i] + stereo.F32[60+i]) / 2
	}
	tests := []struct {
		name string
		spec *Decode
		file []byte
		want *stages.Element
	}{
		{"mixed", &Decode{SampleRate: 16000, Channels: &one}, read(t, "s16.wav"), mono},
		{"resampled", &Decode{SampleRate: 22050, Resample: true}, read(t, "s16.wav"), process(t, &Resample{16000, 22050}, stereo)},
		{"mixed and resampled", &Decode{SampleRate: 8000, Resample: true, Channels: &one}, read(t, "s16.wav"), process(t, &Resample{16000, 8000}, mono)},
		{"as it is", &Decode{SampleRate: 16000, Resample: true, Channels: &two}, read(t, "s16.wav"), stereo},
	}
	for _, tt := range tests {
		if got := process(t, tt.spec, encoded(tt.file)); got.Type != tt.want.Type || !slices.Equal(got.F32, tt.want.F32) {
			t.Errorf("%s: %v %v, want %v", tt.name, got.Type, got.F32, tt.want.F32)
		}
	}
	for _, rate := range []int{44100, 22050} { // copied to channels, without and with resampling
		got := process(t, &Decode{SampleRate: rate, Resample: true, Channels: &three}, encoded(read(t, "noise.flac")))
		one := process(t, &Decode{SampleRate: rate, Resample: true}, encoded(read(t, "noise.flac")))
		if n := one.Type.Shape[2]; got.Type != stages.TensorType(3, 1, n) || !slices.Equal(got.F32, slices.Repeat(one.F32, 3)) {
			t.Errorf("at %d Hz three channels are %v, not three times %v", rate, got.F32, one.F32)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	three := 3
	wav, flac := read(t, "s16.wav"), read(t, "fixed.flac")
	with := func(file []byte, at int, bytes ...byte) []byte {
		file = slices.Clone(file)
		copy(file[at:], bytes)
		return file
	}
	tests := []struct {
		spec *Decode
		file []byte
		want string
	}{
		{&Decode{SampleRate: 16000}, nil, "no WAV or FLAC file: it has 0 bytes"},
		{&Decode{SampleRate: 16000}, []byte("OggS........"), "decode_audio doesn't read Ogg (Vorbis, Opus, Ogg FLAC): convert the files to WAV or FLAC, each by ffmpeg -i FILE FILE.flac for example"},
		{&Decode{SampleRate: 16000}, with(wav, 0, []byte("RIFX")...), "decode_audio doesn't read big-endian WAV (RIFX): convert the files to WAV or FLAC, each by ffmpeg -i FILE FILE.flac for example"},
		{&Decode{SampleRate: 16000}, []byte("<!DOCTYPE html>"), `no WAV or FLAC file: it starts with "<!DO"`},
		{&Decode{SampleRate: 16000}, with(wav, 8, []byte("AVI ")...), `no WAV or FLAC file: it starts with "RIFF"`},
		{&Decode{SampleRate: 44100}, wav, "the file has 16000 samples a second and sample_rate is 44100: set resample = true, or give the files' own rate and resample in a stage of its own"},
		{&Decode{SampleRate: 16000, Channels: &three}, wav, "3 channels can't be made of the file's 2"},
		{&Decode{SampleRate: 16000}, wav[:40], "the file ends at byte 40 without a chunk of samples: it is cut off"},
		{&Decode{SampleRate: 16000}, wav[:30], `the chunk "fmt " at byte 12 should have 16 bytes, and 10 are left: the file is cut off`},
		{&Decode{SampleRate: 16000}, wav[:100], "the samples should have 240 bytes, and 56 are left: the file is cut off"},
		{&Decode{SampleRate: 16000}, with(wav, 12, []byte("data")...), "its samples come before their format: it is damaged"},
		{&Decode{SampleRate: 16000}, with(wav, 20, 2), "the WAV format 0x0002 isn't supported: convert the file to PCM, by ffmpeg -i FILE -c:a pcm_s16le NEW.wav for example"},
		{&Decode{SampleRate: 16000}, with(wav, 34, 64), "samples of 64 bits (format 1) aren't supported: convert the file to PCM of 8 to 32 bits, or to floats of 32 or 64"},
		{&Decode{SampleRate: 16000}, with(wav, 32, 5), "2 channels of 16 bits in blocks of 5 bytes, 16000 a second, can't be: the file is damaged"},
		{&Decode{SampleRate: 16000}, with(wav, 40, 0, 0, 0, 0), "the file holds no samples"},
		{&Decode{SampleRate: 16000, Resample: true}, with(wav, 24, 0, 0, 0, 1), "16777216 samples a second are too many: the file is damaged"},
		{&Decode{SampleRate: 16000}, []byte("ID3\x04\x00\x00\x7F\x7F\x7F\x7Fxyz"), "decode_audio doesn't read MP3: convert the files to WAV or FLAC, each by ffmpeg -i FILE FILE.flac for example"},
		{&Decode{SampleRate: 16000}, with(read(t, "rf64.wav"), 35, 0x80), "the samples can't have 9223372036854776048 bytes: the file is damaged"},
		{&Decode{SampleRate: 16000}, with(read(t, "rf64.wav"), 33, 1), "the samples should have 1099511628016 bytes, and 240 are left: the file is cut off"},
		{&Decode{SampleRate: 44100}, flac[:30], "FLAC metadata at byte 4: the file is cut off"},
		{&Decode{SampleRate: 44100}, with(flac, 4, 4), "FLAC metadata doesn't describe the stream: the file is damaged"},
		{&Decode{SampleRate: 44100}, flac[:2000], "FLAC frame at byte 1406, sample 384 of 1500: the file is cut off"},
		{&Decode{SampleRate: 44100}, with(flac, 2300, 0), "FLAC frame at byte 2023, sample 576 of 1500: its checksum is wrong: the file is damaged"},
		{&Decode{SampleRate: 44100}, with(flac, 21, 0xF0, 0, 0, 0, 100), "FLAC frame at byte 86, sample 0 of 100: it has more samples than the 100 that the file states: the file is damaged"},
	}
	for _, tt := range tests {
		err := newStage(t, tt.spec).Process(testCall(), encoded(tt.file), new(stages.Element))
		if err == nil || err.Error() != tt.want {
			t.Errorf("\n got %v\nwant %s", err, tt.want)
		}
	}
}

// What programs write to pipes states sizes that aren't the file's, and chunks that nobody knows are passed over.
func TestWAVLenient(t *testing.T) {
	file := read(t, "s16.wav")
	want := golden(t, "s16.wav")
	tests := map[string][]byte{
		"size unknown":        slices.Concat(file[:40], []byte{255, 255, 255, 255}, file[44:]),
		"sizes not completed": slices.Concat(file[:4], []byte{36, 0, 0, 0}, file[8:40], []byte{0, 0, 0, 0}, file[44:]),
		"odd chunk":           slices.Concat(file[:12], []byte("LIST\x03\x00\x00\x00abc\x00"), file[12:]),
		"rest":                slices.Concat(file, []byte("id3 \x04\x00\x00\x00....")),
		"last frame":          slices.Concat(file[:40], []byte{242, 0, 0, 0}, file[44:], []byte{1, 2}), // half a frame more
	}
	for name, file := range tests {
		if got := process(t, &Decode{SampleRate: 16000}, encoded(file)); !slices.Equal(got.F32, want) {
			t.Errorf("%s: %v, want %v", name, got.F32, want)
		}
	}
}

func TestFolder(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	spec := &Folder{Path: stages.Path(filepath.Dir(testdata))}
	if p := spec.Validate(); p != nil {
		t.Error(p)
	}
	src, err := spec.Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var names []string
	for i := range src.Len() {
		names = append(names, filepath.Base(src.Name(i)))
	}
	if got := strings.Join(names[:3], " "); src.Classes() != 1 || len(names) != 29 || got != "alaw.wav bits24.flac bits32.flac" {
		t.Errorf("%d classes, %d files, %s, …", src.Classes(), len(names), got)
	}
	out := new(stages.Element)
	if _, err := src.Read(testCall(), 0, out); err != nil || out.Type != spec.Output() || !bytes.Equal(out.U8, read(t, "alaw.wav")) {
		t.Errorf("%v with error %v", out.Type, err)
	}
	_, err = (&Folder{Path: stages.Path(filepath.Dir(filepath.Dir(testdata)))}).Open(t.Context(), 1)
	if err == nil || !strings.HasPrefix(err.Error(), "no audio file in the class folders ") {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range []string{"linear.flac", "mid_side.flac", "noise.flac", "silence.flac", "unknown_length.flac"} {
		f.Add(read(f, name))
	}
	for _, name := range []string{"u8.wav", "s16.wav", "extensible24.wav", "f64.wav", "mulaw.wav"} {
		file := read(f, name)
		binary.LittleEndian.PutUint32(file[24:], 44100)
		f.Add(file)
	}
	f.Add(slices.Concat([]byte("RF64\xFF\xFF\xFF\xFFWAVEds64\x1C\x00\x00\x00"), make([]byte, 8), []byte("\xF0\x00"), make([]byte, 18), read(f, "s16.wav")[12:]))
	stage, err := (&Decode{SampleRate: 44100}).New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		out := new(stages.Element)
		if err := stage.Process(testCall(), encoded(file), out); err != nil {
			return
		}
		shape := out.Type.Shape
		if out.Type.Kind != stages.Tensor || shape[1] != 1 || len(out.F32) == 0 || len(out.F32) != shape[0]*shape[2] {
			t.Errorf("%v with %d values", out.Type, len(out.F32))
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"s16.wav", "linear.flac", "fixed.flac", "bits24.flac"} {
		b.Run(name, func(b *testing.B) {
			file := read(b, name)
			rate := 44100
			if name == "s16.wav" {
				rate = 16000
			}
			benchmark(b, &Decode{SampleRate: rate}, encoded(file))
		})
	}
}
