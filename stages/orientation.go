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
	for rest := file[12:]; len(rest) >= 8; {
		size := binary.LittleEndian.Uint32(rest[4:])
		if uint64(size) > uint64(len(rest)-8) {
			break
		}
		if string(rest[:4]) == "EXIF" {
			return bytes.TrimPrefix(rest[8:8+size], exifHeader)
		}
		rest = rest[min(8+int64(size)+int64(size%2), int64(len(rest))):]
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

// orient makes out the upright picture of src, an Image whose EXIF orientation is o.
func orient(out, src *Element, o int) {
	h, w := src.Type.Shape[0], src.Type.Shape[1]
	// The orientation says where the stored picture's first row and column are shown: 2 mirrors it, 3 turns it by 180°,
	// 4 flips it upside down; 5 to 8 are 1 to 4 after rows and columns have been exchanged.
	transposed := o >= 5
	right := o == 2 || o == 3 || o == 6 || o == 7 // columns run from the right
	below := o == 3 || o == 4 || o == 7 || o == 8 // rows run from below
	dh, dw := h, w
	if transposed {
		dh, dw = w, h
	}
	dst := out.Image(dh, dw)
	for y := range dh {
		for x := range dw {
			sy, sx := y, x
			if below {
				sy = dh - 1 - y
			}
			if right {
				sx = dw - 1 - x
			}
			if transposed {
				sy, sx = sx, sy
			}
			copy(dst[3*(y*dw+x):][:3], src.U8[3*(sy*w+sx):])
		}
	}
}
