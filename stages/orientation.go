package stages

import (
	"bytes"
	"encoding/binary"
)

// exifOrientation returns the EXIF orientation of a JPEG, PNG, WebP or TIFF file, from 1 to 8 (CIPA DC-008, tag 0x0112).
// It is 1, upright, where the file has none or a damaged one.
func exifOrientation(file []byte) int {
	switch formatOf(file) {
	case jpegFormat:
		return tiffOrientation(jpegExif(file))
	case pngFormat:
		return tiffOrientation(pngExif(file))
	case webpFormat:
		return tiffOrientation(webpExif(file))
	case tiffFormat:
		return tiffOrientation(file)
	}
	return 1
}

// exifHeader stands before the TIFF structure in JPEG files, and by mistake in some WebP files.
var exifHeader = []byte("Exif\x00\x00")

// jpegExif returns the EXIF data of a JPEG file, or nil. It lies in a segment before the first scan.
func jpegExif(file []byte) []byte {
	const app1, startOfScan = 0xe1, 0xda
	for rest := file[2:]; len(rest) >= 4 && rest[0] == 0xff; {
		marker := rest[1]
		if marker == 0xff { // padding
			rest = rest[1:]
			continue
		}
		size := int(binary.BigEndian.Uint16(rest[2:]))
		if marker == startOfScan || size < 2 || size > len(rest)-2 {
			break
		}
		if exif, ok := bytes.CutPrefix(rest[4:2+size], exifHeader); ok && marker == app1 {
			return exif
		}
		rest = rest[2+size:]
	}
	return nil
}

// pngExif returns the EXIF data of a PNG file, or nil.
func pngExif(file []byte) []byte {
	for rest := file[8:]; len(rest) >= 12; {
		size := binary.BigEndian.Uint32(rest)
		if uint64(size) > uint64(len(rest)-12) {
			break
		}
		if string(rest[4:8]) == "eXIf" {
			return rest[8 : 8+size]
		}
		rest = rest[12+size:]
	}
	return nil
}

// webpExif returns the EXIF data of a WebP file, or nil.
func webpExif(file []byte) []byte {
	for rest := file[12:]; len(rest) > 0; {
		var name string
		var data []byte
		if name, data, rest = webpChunk(rest); name == "EXIF" {
			return bytes.TrimPrefix(data, exifHeader)
		}
	}
	return nil
}

// tiffOrientation returns the orientation in a TIFF structure, or 1.
func tiffOrientation(data []byte) int {
	if o := tiffShort(data, 0x0112); o >= 1 && o <= 8 {
		return o
	}
	return 1
}

// tiffShort returns the 16-bit value of a tag in the first directory of a TIFF structure, or 0.
func tiffShort(data []byte, tag uint16) int {
	const entry, short = 12, 3
	var order binary.ByteOrder = binary.LittleEndian
	switch {
	case len(data) < 8:
		return 0
	case string(data[:4]) == "MM\x00*":
		order = binary.BigEndian
	case string(data[:4]) != "II*\x00":
		return 0
	}
	at := int64(order.Uint32(data[4:]))
	if at > int64(len(data))-2 {
		return 0
	}
	entries := data[at+2:]
	for range order.Uint16(data[at:]) {
		if len(entries) < entry {
			break
		}
		if order.Uint16(entries) == tag && order.Uint16(entries[2:]) == short {
			return int(order.Uint16(entries[8:]))
		}
		entries = entries[entry:]
	}
	return 0
}

// turn says where a stored picture's rows and columns are shown.
type turn struct {
	transposed   bool // rows and columns are exchanged first
	below, right bool // rows run from below, columns from the right
}

// turnOf returns what an EXIF orientation stands for: 2 mirrors the picture, 3 turns it by 180°, 4 flips it upside down; 5 to 8 are 1
// to 4 after rows and columns have been exchanged.
func turnOf(orientation int) turn {
	switch orientation {
	case 2:
		return turn{right: true}
	case 3:
		return turn{below: true, right: true}
	case 4:
		return turn{below: true}
	case 5:
		return turn{transposed: true}
	case 6:
		return turn{transposed: true, right: true}
	case 7:
		return turn{transposed: true, below: true, right: true}
	case 8:
		return turn{transposed: true, below: true}
	}
	return turn{}
}

// size returns the height and width that a stored picture of h×w is shown with, and those that one shown with h×w is stored with.
func (t turn) size(h, w int) (int, int) {
	if t.transposed {
		return w, h
	}
	return h, w
}

// stored returns where a part of a picture that is shown with h×w pixels lies in the stored one.
func (t turn) stored(b box, h, w int) box {
	if t.below {
		b.Top = h - b.Top - b.Height
	}
	if t.right {
		b.Left = w - b.Left - b.Width
	}
	if t.transposed {
		b = box{b.Left, b.Top, b.Width, b.Height}
	}
	return b
}

// spans returns where parts of a stored picture's rows and columns are in the picture of h×w as it is shown.
func (t turn) spans(down, across span, h, w int) (span, span) {
	if t.transposed {
		down, across = across, down
	}
	if t.below {
		down.first = float64(h) - down.first - down.length
	}
	if t.right {
		across.first = float64(w) - across.first - across.length
	}
	return down, across
}

// show makes out the stored picture src as it is shown.
func (t turn) show(out *Element, src pixels) {
	h, w := t.size(src.h, src.w)
	dst := out.Image(h, w)
	for y := range h {
		for x := range w {
			sy, sx := y, x
			if t.below {
				sy = h - 1 - y
			}
			if t.right {
				sx = w - 1 - x
			}
			if t.transposed {
				sy, sx = sx, sy
			}
			copy(dst[3*(y*w+x):][:3], src.pix[sy*src.stride+3*sx:])
		}
	}
}
