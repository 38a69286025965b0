package audio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
)

// WAVE format codes (Microsoft's mmreg.h).
const (
	wavePCM        = 1
	waveFloat      = 3
	waveALaw       = 6
	waveMuLaw      = 7
	waveExtensible = 0xFFFE
)

// unknownSize is the size of a chunk whose size is stated elsewhere, or nowhere.
const unknownSize = 1<<32 - 1

// wav is a RIFF/WAVE file, or one of its 64-bit variants, whose samples haven't been converted yet.
type wav struct {
	format
	code int // wavePCM, waveFloat, waveALaw or waveMuLaw
	bits int // of a sample's container, a multiple of 8
	data []byte
}

// parseWAV reads a file's headers. The samples stay where they are in file.
func parseWAV(file []byte) (wav, error) {
	var w wav
	if len(file) < 12 || !slices.Contains([]string{"RIFF", "RF64", "BW64"}, string(file[:4])) || string(file[8:12]) != "WAVE" {
		return w, errForeign(file)
	}
	long := int64(unknownSize) // what the samples' size is where their chunk has no room to say it
	found := false             // the chunk fmt
	for at := 12; ; {
		if len(file)-at < 8 {
			return w, fmt.Errorf("the file ends at byte %d without a chunk of samples: it is cut off", len(file))
		}
		id, size, body := file[at:at+4], int64(binary.LittleEndian.Uint32(file[at+4:])), file[at+8:]
		if string(id) == "data" {
			if !found {
				return w, errors.New("its samples come before their format: it is damaged")
			}
			if size == unknownSize {
				size = long
			} else if end := 8 + int64(binary.LittleEndian.Uint32(file[4:])); size == 0 && end <= int64(at+8) {
				size = unknownSize // the file should end before its samples: they were written to a pipe, after these sizes
			}
			return w, w.samplesIn(body, size)
		}
		if size > int64(len(body)) {
			return w, fmt.Errorf("the chunk %q at byte %d should have %d bytes, and %d are left: the file is cut off", id, at, size, len(body))
		}
		switch string(id) {
		case "ds64": // of RF64 (EBU Tech 3306) and BW64: the sizes of the file, of its samples, …
			if size >= 16 {
				if long = int64(binary.LittleEndian.Uint64(body[8:])); long < 0 {
					return w, fmt.Errorf("the samples can't have %d bytes: the file is damaged", uint64(long))
				}
			}
		case "fmt ":
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
	case w.code == wavePCM && w.bits >= 8 && w.bits <= 32, w.code == waveFloat && (w.bits == 32 || w.bits == 64),
		(w.code == waveALaw || w.code == waveMuLaw) && w.bits == 8:
	case w.code == wavePCM || w.code == waveFloat:
		return fmt.Errorf("samples of %d bits (format %d) aren't supported: convert the file to PCM of 8 to 32 bits, or to floats of 32 or 64", w.bits, w.code)
	default:
		return fmt.Errorf("the WAV format %#04x isn't supported: convert the file to PCM, by ffmpeg -i FILE -c:a pcm_s16le NEW.wav for example", w.code)
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
	case size >= 0x7FFFF000 && size <= unknownSize:
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
		case w.code == waveALaw:
			for i := range plane {
				plane[i] = float32(aLaw(src[i*stride])) / (1 << 15)
			}
		case w.code == waveMuLaw:
			for i := range plane {
				plane[i] = float32(muLaw(src[i*stride])) / (1 << 15)
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

// aLaw and muLaw make 16-bit samples of telephony's 8 bits (ITU-T G.711): a sign, an exponent of 3 bits and 4 bits after the
// leading one.
func aLaw(b byte) int {
	b ^= 0x55
	v := int(b&0x0F)<<4 + 0x08
	if e := b >> 4 & 7; e > 0 {
		v = (v + 0x100) << (e - 1)
	}
	if b&0x80 == 0 {
		return -v
	}
	return v
}

func muLaw(b byte) int {
	b = ^b
	v := (int(b&0x0F)<<3+0x84)<<(b>>4&7) - 0x84
	if b&0x80 != 0 {
		return -v
	}
	return v
}
