package stages

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// maxDecoded is the number of pixels from which PIL takes an image for a decompression bomb.
const maxDecoded = 178_956_970

// format is how a file's picture is encoded.
type format string

const (
	jpegFormat format = "JPEG"
	pngFormat  format = "PNG"
	gifFormat  format = "GIF"
	bmpFormat  format = "BMP"
	webpFormat format = "WebP"
	tiffFormat format = "TIFF"
)

// formatOf tells a file's format by its first bytes, or returns "".
func formatOf(data []byte) format {
	for _, f := range []struct {
		magic string
		format
	}{
		{"\xff\xd8\xff", jpegFormat},
		{"\x89PNG\r\n\x1a\n", pngFormat},
		{"GIF87a", gifFormat},
		{"GIF89a", gifFormat},
		{"BM", bmpFormat},
		{"II*\x00", tiffFormat},
		{"MM\x00*", tiffFormat},
	} {
		if bytes.HasPrefix(data, []byte(f.magic)) {
			return f.format
		}
	}
	if len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP" {
		return webpFormat
	}
	return ""
}

// foreign says what a file is whose format no stage decodes, as far as its first bytes tell, and what to do. It goes on from another
// message.
func foreign(data []byte) string {
	const convert, fetch = "convert it", "fetch it anew"
	for _, f := range []struct {
		at           int
		magic        string
		name, advice string
	}{
		{4, "ftypheic", "a HEIC file", convert},
		{4, "ftypmif1", "a HEIC file", convert},
		{4, "ftypavif", "an AVIF file", convert},
		{4, "JXL ", "a JPEG XL file", convert},
		{0, "\xff\x0a", "a JPEG XL file", convert},
		{4, "jP  ", "a JPEG 2000 file", convert},
		{0, "\xff\x4f\xff\x51", "a JPEG 2000 file", convert},
		{0, "P5", "a PGM file", convert},
		{0, "P6", "a PPM file", convert},
		{0, "II+\x00", "a BigTIFF file", convert},
		{0, "MM\x00+", "a BigTIFF file", convert},
		{0, "<!doctype html", "a web page in its place", fetch},
		{0, "<html", "a web page in its place", fetch},
		{0, "version https://git-lfs", "a Git LFS pointer in its place", "fetch it with git lfs pull"},
	} {
		if end := f.at + len(f.magic); len(data) >= end && strings.EqualFold(string(data[f.at:end]), f.magic) {
			return " but " + f.name + ": " + f.advice
		}
	}
	return ""
}

// decodedType returns the type of what decode stages make.
func decodedType(in Type) (Type, error) {
	advice := "Put it right after the load block."
	switch in.Kind {
	case Encoded:
		return ImageType(0, 0), nil
	case Unknown:
		return Type{}, nil
	case Image:
		advice = "It's decoded already, so remove this stage."
	case Opaque:
		advice = `These bytes are no file of a picture; load some (load "image_folder") or make some (load "synthetic" with encode = "jpeg").`
	}
	return Type{}, errors.New("It takes encoded bytes, and gets " + in.String() + ". " + advice)
}

// decoder is a decode stage.
type decoder struct {
	limit   int // pixels
	upright bool
	decode  func(data []byte, limit int, out *Element) error
	jpeg    *jpegDecoder
	lying   Element // the picture before it is turned
}

// Process decodes the file in in.
func (d *decoder) Process(_ *Call, in, out *Element) error {
	if len(in.U8) == 0 {
		return errors.New("the file is empty")
	}
	if d.upright || formatOf(in.U8) == tiffFormat { // a TIFF's orientation is part of the format, and PIL always heeds it
		if o := exifOrientation(in.U8); o != 1 {
			if err := d.decode(in.U8, d.limit, &d.lying); err != nil {
				return err
			}
			turnOf(o).show(out, pixelsOf(&d.lying))
			return nil
		}
	}
	return d.decode(in.U8, d.limit, out)
}

// Close frees the decoder's memory.
func (d *decoder) Close() error { return d.jpeg.Close() }

// checkPixels returns an error for a picture too large to be decoded.
func checkPixels(w, h, limit int) error {
	if w <= 0 || h <= 0 {
		return errors.New("the picture is empty")
	}
	if w > limit/h {
		return fmt.Errorf("the picture has %d×%d pixels, which is more than max_pixels = %d", w, h, limit)
	}
	return nil
}
