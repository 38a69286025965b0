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

// Close has nothing to free.
func (*jpegDecoder) Close() error { return nil }
