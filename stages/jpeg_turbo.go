//go:build cgo && !purejpeg

package stages

// #cgo LDFLAGS: -ljpeg
// #cgo noescape jpeg_decoder_header
// #cgo nocallback jpeg_decoder_header
// #cgo noescape jpeg_decoder_pixels
// #cgo nocallback jpeg_decoder_pixels
// #cgo noescape jpeg_decoder_part
// #cgo nocallback jpeg_decoder_part
// #include "jpeg_turbo.h"
import "C"

import (
	"bytes"
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
	header, err := d.header(data, limit)
	if err != nil {
		return err
	}
	return d.whole(data, out.Image(int(header.height), int(header.width)))
}

// decodePart returns the part of the picture of a file that choose chooses, in RGB, and by how much it is reduced: choose is given
// the picture's height and width. The pixels lie in buffer. Of the file it reads no more than it needs, if it is whole.
func (d *jpegDecoder) decodePart(data []byte, limit int, buffer *Element, choose func(h, w int) part) (pixels, int, error) {
	header, err := d.header(data, limit)
	if err != nil {
		return pixels{}, 0, err
	}
	h, w := int(header.height), int(header.width)
	p := choose(h, w)
	if header.reducible == 0 {
		p.denominator = 1
	}
	if !bytes.HasSuffix(data, []byte("\xff\xd9")) { // it may be truncated
		if err := d.whole(data, buffer.Image(h, w)); err != nil {
			return pixels{}, 0, err
		}
		return pixelsOf(buffer).crop(p.box), 1, nil
	}
	r := p.reduced()
	c := C.jpeg_part{denominator: C.int(p.denominator), left: C.int(r.Left), top: C.int(r.Top), width: C.int(r.Width), height: C.int(r.Height)}
	buffer.Image(r.Height, r.Width+C.jpeg_part_margin)
	got := pixelsOf(buffer)
	if msg := C.jpeg_decoder_part(d.c, bytePointer(data), C.size_t(len(data)), &c, bytePointer(got.pix), C.size_t(got.stride)); msg != nil {
		return pixels{}, 0, jpegError(C.GoString(msg))
	}
	return got.crop(box{0, int(c.before), r.Height, r.Width}), p.denominator, nil
}

// header reads a file up to its pixels.
func (d *jpegDecoder) header(data []byte, limit int) (C.jpeg_header, error) {
	h := C.jpeg_decoder_header(d.c, bytePointer(data), C.size_t(len(data)))
	if h.error != nil {
		return h, jpegError(C.GoString(h.error))
	}
	return h, checkPixels(int(h.width), int(h.height), limit)
}

// whole goes on with the file whose header was read.
func (d *jpegDecoder) whole(data, rgb []byte) error {
	if msg := C.jpeg_decoder_pixels(d.c, bytePointer(data), C.size_t(len(data)), bytePointer(rgb)); msg != nil {
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

func bytePointer(b []byte) *C.uchar { return (*C.uchar)(unsafe.SliceData(b)) }
