package stages

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// DecodeImage holds the attributes of `prepare "decode_image"`.
type DecodeImage struct {
	ExifOrientation bool `hcl:"exif_orientation,optional" doc:"Turn and mirror the picture as its EXIF orientation says. torchvision doesn't."`
	MaxPixels       int  `hcl:"max_pixels,optional" min:"1" doc:"A picture of more pixels is an error, found before memory is taken for it."`
}

func decodeImageOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "decode_image",
		Summary: "Decodes JPEG, PNG, GIF, BMP, WebP and TIFF files to RGB images.",
		Doc: `The format is told by the file's content, not by its name. JPEG files are decoded as by ` + "`decode_jpeg`" + `. The others give what PIL's
` + "`Image.open(f).convert(\"RGB\")`" + ` gives: palettes are looked up, greyscale becomes RGB, alpha is dropped, 16 bits a channel keep the upper 8; of an animated
file the first frame is taken, a TIFF is always turned as it says. Only JPEG is decoded without allocating memory for each item.

Where it differs from PIL:

- Greyscale of 16 bits keeps the upper 8 bits; PIL cuts off all above 255, so that most become white.
- PPM and PGM are errors, as are BMP files that are compressed, have 16 bits a pixel or an OS/2 header, and TIFF files but those in greyscale, RGB or with a
  palette, uncompressed or compressed by LZW, Deflate, PackBits or as fax.
- A PNG or BMP file that ends early is an error although all pixels are there; numbers that aren't in a PNG's palette are black.`,
		New: func() any { return &DecodeImage{MaxPixels: maxDecoded} },
	}
}

// Output returns the type of an image of any size.
func (s *DecodeImage) Output(in Type) (Type, error) { return decodedType(in) }

// New makes an instance for one worker.
func (s *DecodeImage) New() (Stage, error) {
	j, err := newJPEGDecoder()
	if err != nil {
		return nil, err
	}
	decode := func(data []byte, limit int, out *Element) error {
		if f := formatOf(data); f != jpegFormat {
			return decodeOther(f, data, limit, out)
		}
		return j.decode(data, limit, out)
	}
	return &decoder{limit: s.MaxPixels, upright: s.ExifOrientation, decode: decode, jpeg: j}, nil
}

// decodeOther decodes a file in a format other than JPEG.
func decodeOther(f format, data []byte, limit int, out *Element) error {
	var config func(io.Reader) (image.Config, error)
	var decode func(io.Reader) (image.Image, error)
	switch f {
	case pngFormat:
		config, decode = png.DecodeConfig, png.Decode
	case gifFormat:
		config, decode = gif.DecodeConfig, gif.Decode
	case bmpFormat:
		config, decode = bmp.DecodeConfig, bmp.Decode
	case webpFormat:
		if a, ok := animationOf(data); ok {
			return a.decode(limit, out)
		}
		config, decode = webp.DecodeConfig, webp.Decode
	case tiffFormat:
		if err := checkTIFF(data); err != nil {
			return decodingError(f, err)
		}
		config, decode = tiff.DecodeConfig, tiff.Decode
	default:
		return errors.New("not a JPEG, PNG, GIF, BMP, WebP or TIFF file" + foreign(data))
	}
	c, err := config(bytes.NewReader(data))
	if err != nil {
		return decodingError(f, err)
	}
	if err := checkPixels(c.Width, c.Height, limit); err != nil {
		return err
	}
	img, err := decode(bytes.NewReader(data))
	if err != nil {
		return decodingError(f, err)
	}
	switch img := img.(type) {
	case *image.Paletted:
		if f == gifFormat {
			gifToRGB(data, img, c.Width, c.Height, out)
			return nil
		}
	case *image.YCbCr:
		if f == webpFormat {
			vp8ToRGB(img, out)
			return nil
		}
	case *image.NYCbCrA:
		vp8ToRGB(&img.YCbCr, out)
		return nil
	}
	toRGB(img, out)
	if f == tiffFormat && invertedFax(data) {
		for i := range out.U8 {
			out.U8[i] ^= 0xff
		}
	}
	return nil
}

// decodingError says what to do about what a decoder doesn't support.
func decodingError(f format, err error) error {
	advice := ""
	if errors.As(err, new(png.UnsupportedError)) || errors.As(err, new(tiff.UnsupportedError)) || errors.Is(err, bmp.ErrUnsupported) {
		advice = ": convert the file, such as to PNG"
	}
	return fmt.Errorf("decoding %s: %w%s", f, err, advice)
}

// checkTIFF reports what x/image overlooks in a TIFF file, for all but fax: bits that come in reverse order, and planes of one channel each
// (TIFF 6.0, FillOrder and PlanarConfiguration).
func checkTIFF(data []byte) error {
	const fillOrder, planar = 0x010a, 0x011c
	switch {
	case tiffShort(data, fillOrder) == 2 && !fax(data):
		return tiff.UnsupportedError("FillOrder of 2")
	case tiffShort(data, planar) == 2:
		return tiff.UnsupportedError("PlanarConfiguration of 2")
	}
	return nil
}

// fax reports whether a TIFF file is compressed as fax is.
func fax(data []byte) bool {
	compression := tiffShort(data, 0x0103)
	return compression == 3 || compression == 4
}

// invertedFax reports whether x/image decodes a TIFF with black and white exchanged: fax compression (3, 4) in a file that
// says that its zeros are black, where fax's white is to become black (TIFF 6.0, PhotometricInterpretation).
func invertedFax(data []byte) bool {
	return fax(data) && tiffShort(data, 0x0106) == 1
}
