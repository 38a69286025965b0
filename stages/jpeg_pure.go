//go:build !cgo || purejpeg

package stages

import (
	"bytes"
	"fmt"
	"image/jpeg"
)

// JPEGDecoder names the JPEG decoder that this program was built with.
const JPEGDecoder = "Go image/jpeg"

// jpegDecoder decodes JPEG files, one at a time.
type jpegDecoder struct{}

func newJPEGDecoder() (*jpegDecoder, error) { return &jpegDecoder{}, nil }

// decode leaves the picture of a file that isn't empty in out, in RGB, unless it has more pixels than limit.
func (*jpegDecoder) decode(data []byte, limit int, out *Element) error {
	cfg, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("decoding JPEG: %w", err)
	}
	if err := checkPixels(cfg.Width, cfg.Height, limit); err != nil {
		return err
	}
	img, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("decoding JPEG: %w", err)
	}
	toRGB(img, out)
	return nil
}

// decodePart returns the part of the picture of a file that choose chooses, in RGB: it is given the picture's height and width. It
// lies in buffer, and isn't reduced.
func (d *jpegDecoder) decodePart(data []byte, limit int, buffer *Element, choose func(h, w int) part) (pixels, int, error) {
	if err := d.decode(data, limit, buffer); err != nil {
		return pixels{}, 0, err
	}
	whole := pixelsOf(buffer)
	return whole.crop(choose(whole.h, whole.w).box), 1, nil
}

// Close has nothing to free.
func (*jpegDecoder) Close() error { return nil }
