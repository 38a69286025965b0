//go:build cgo && !purejpeg

package stages

// #cgo LDFLAGS: -ljpeg
// #cgo noescape jpeg_decoder_header
// #cgo nocallback jpeg_decoder_header
// #cgo noescape jpeg_decoder_pixels
// #cgo nocallback jpeg_decoder_pixels
// #include "jpeg_turbo.h"
import "C"

import (
	"errors"
	"unsafe"
)

// JPEGDecoder names the JPEG decoder that this program was built with.
const JPEGDecoder = "libjpeg-turbo"

// jpegDecoder decodes JPEG files, one at a time.
type jpegDecoder struct{ c *C.jpeg_decoder }

func newJPEGDecoder() (*jpegDecoder, error) {
	c := C.jpeg_decoder_new()
	if c == nil {
		return nil, errors.New("libjpeg-turbo gives no decoder: no memory, or another version than at build time")
	}
	return &jpegDecoder{c}, nil
}

// decode leaves the picture of a file that isn't empty in out, in RGB, unless it has more pixels than limit.
func (d *jpegDecoder) decode(data []byte, limit int, out *Element) error {
	src, n := (*C.uchar)(unsafe.SliceData(data)), C.size_t(len(data))
	h := C.jpeg_decoder_header(d.c, src, n)
	if h.error != nil {
		return jpegError(C.GoString(h.error))
	}
	width, height := int(h.width), int(h.height)
	if err := checkPixels(width, height, limit); err != nil {
		return err
	}
	pixels := out.Image(height, width)
	if msg := C.jpeg_decoder_pixels(d.c, src, n, (*C.uchar)(unsafe.SliceData(pixels))); msg != nil {
		return jpegError(C.GoString(msg))
	}
	return nil
}

// Close frees the decoder's memory.
func (d *jpegDecoder) Close() error {
	C.jpeg_decoder_free(d.c)
	return nil
}

func jpegError(msg string) error { return errors.New("decoding JPEG: " + msg) }
