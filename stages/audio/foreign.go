package audio

import (
	"fmt"
	"strings"
)

// errForeign says what a file is that is neither WAV nor FLAC, as far as its start tells, and what to do about it.
func errForeign(file []byte) error {
	if len(file) < 12 {
		return fmt.Errorf("no WAV or FLAC file: it has %d bytes", len(file))
	}
	kind := foreign(file)
	if kind == "" {
		return fmt.Errorf("no WAV or FLAC file: it starts with %q", file[:4])
	}
	return fmt.Errorf("decode_audio doesn't read %s: convert the files to WAV or FLAC, each by ffmpeg -i FILE FILE.flac for example", kind)
}

// foreign returns the name of a format that other programs write, or "". file has at least 12 bytes.
func foreign(file []byte) string {
	for _, f := range []struct{ name, start string }{
		{"Ogg (Vorbis, Opus, Ogg FLAC)", "OggS"},
		{"MP3", "ID3"},
		{"AIFF", "FORM"},
		{"big-endian WAV (RIFX)", "RIFX"},
		{"Wave64", "riff"},
		{"Core Audio (CAF)", "caff"},
		{"Sun audio (AU)", ".snd"},
		{"NIST SPHERE", "NIST_1A"},
		{"Matroska or WebM", "\x1A\x45\xDF\xA3"},
		{"Windows Media (ASF)", "\x30\x26\xB2\x75"},
		{"WavPack", "wvpk"},
		{"AMR", "#!AMR"},
	} {
		if strings.HasPrefix(string(file[:12]), f.start) {
			return f.name
		}
	}
	switch {
	case string(file[4:8]) == "ftyp":
		return "MP4 (M4A)"
	case file[0] == 0xFF && file[1]&0xF6 == 0xF0: // a frame without a layer
		return "AAC"
	case file[0] == 0xFF && file[1]&0xE0 == 0xE0 && file[1]&0x06 != 0:
		return "MP3"
	}
	return ""
}
