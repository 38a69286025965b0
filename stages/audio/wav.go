package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// WAVE format codes (Microsoft's mmreg.h).
const (
	wavePCM        = 1
	waveFloat      = 3
	waveExtensible = 0xFFFE
)

// wav is a RIFF/WAVE file whose samples haven't been converted yet.
type wav struct {
	format
	code int // wavePCM or waveFloat
	bits int // of a sample's container, a multiple of 8
	data []byte
}

// parseWAV reads a file's headers. The samples stay where they are in file.
func parseWAV(file []byte) (wav, error) {
	var w wav
	switch {
	case len(file) < 12:
		return w, fmt.Errorf("no WAV or FLAC file: it has %d bytes", len(file))
	case string(file[:4]) == "RIFX" || string(file[:4]) == "RF64":
		return w, fmt.Errorf("WAV files of the variant %s aren't supported: convert it to RIFF", file[:4])
	case string(file[:4]) != "RIFF" || string(file[8:12]) != "WAVE":
		return w, fmt.Errorf("no WAV or FLAC file: it starts with %q", file[:4])
	}
	found := false // the chunk fmt
	for at := 12; ; {
		if len(file)-at < 8 {
			return w, fmt.Errorf("the file ends at byte %d without a chunk of samples: it is cut off", len(file))
		}
		id, size, body := file[at:at+4], int64(binary.LittleEndian.Uint32(file[at+4:])), file[at+8:]
		if string(id) == "data" {
			if !found {
				return w, errors.New("its samples come before their format: it is damaged")
			}
			return w, w.samplesIn(body, size)
		}
		if size > int64(len(body)) {
			return w, fmt.Errorf("the chunk %q at byte %d should have %d bytes, and %d are left: the file is cut off", id, at, size, len(body))
		}
		if string(id) == "fmt " {
			if err := w.parseFormat(body[:size]); err != nil {
				return w, err
			}
			found = true
		}
		at += 8 + int(size+size%2)
		at = min(at, len(file)) // the last chunk's padding may be missing
	}
}

// parseFormat reads the body of a fmt chunk.
func (w *wav) parseFormat(b []byte) error {
	if len(b) < 16 {
		return fmt.Errorf("the format takes 16 bytes, and has %d: the file is damaged", len(b))
	}
	w.code = int(binary.LittleEndian.Uint16(b))
	w.channels = int(binary.LittleEndian.Uint16(b[2:]))
	w.rate = int(binary.LittleEndian.Uint32(b[4:]))
	align := int(binary.LittleEndian.Uint16(b[12:]))
	// A sample of 12 bits lies in the upper bits of 16.
	w.bits = (int(binary.LittleEndian.Uint16(b[14:])) + 7) / 8 * 8
	if w.code == waveExtensible {
		// The extension's GUID starts with the format code.
		if len(b) < 40 {
			return fmt.Errorf("the extensible format takes 40 bytes, and has %d: the file is damaged", len(b))
		}
		w.code = int(binary.LittleEndian.Uint16(b[24:]))
	}
	switch {
	case w.code == wavePCM && w.bits >= 8 && w.bits <= 32, w.code == waveFloat && (w.bits == 32 || w.bits == 64):
	case w.code == wavePCM || w.code == waveFloat:
		return fmt.Errorf("samples of %d bits (format %d) aren't supported: convert the file to PCM of 8 to 32 bits, or to floats of 32 or 64", w.bits, w.code)
	default:
		return fmt.Errorf("the WAV format %#04x isn't supported: convert the file to PCM", w.code)
	}
	if w.channels == 0 || w.rate == 0 || align != w.channels*w.bits/8 {
		return fmt.Errorf("%d channels of %d bits in blocks of %d bytes, %d a second, can't be: the file is damaged", w.channels, w.bits, align, w.rate)
	}
	return nil
}

// samplesIn takes the data chunk, which says that it has size bytes of the file's rest.
func (w *wav) samplesIn(rest []byte, size int64) error {
	switch {
	case size <= int64(len(rest)):
		rest = rest[:size]
	case size >= 0x7FFFF000:
		// A program that wrote to a pipe didn't know the size, and put the largest one it dares.
	default:
		return fmt.Errorf("the samples should have %d bytes, and %d are left: the file is cut off", size, len(rest))
	}
	w.samples = len(rest) / (w.channels * w.bits / 8)
	if w.samples == 0 {
		return errors.New("the file holds no samples")
	}
	w.data = rest
	return nil
}

// decode fills dst, one channel after the other.
func (w *wav) decode(dst []float32) {
	width := w.bits / 8
	stride := width * w.channels
	for c := range w.channels {
		plane, src := dst[c*w.samples:][:w.samples], w.data[c*width:]
		switch {
		case w.code == waveFloat && w.bits == 32:
			for i := range plane {
				plane[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[i*stride:]))
			}
		case w.code == waveFloat:
			for i := range plane {
				plane[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[i*stride:])))
			}
		case w.bits == 8: // the one width without a sign
			for i := range plane {
				plane[i] = float32(int(src[i*stride])-128) / (1 << 7)
			}
		case w.bits == 16:
			for i := range plane {
				plane[i] = float32(int16(binary.LittleEndian.Uint16(src[i*stride:]))) / (1 << 15)
			}
		case w.bits == 24:
			for i := range plane {
				s := src[i*stride:]
				plane[i] = float32(int32(s[0])<<8|int32(s[1])<<16|int32(s[2])<<24) / (1 << 31)
			}
		default:
			for i := range plane {
				plane[i] = float32(int32(binary.LittleEndian.Uint32(src[i*stride:]))) / (1 << 31)
			}
		}
	}
}
