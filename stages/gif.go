package stages

import "image"

// gifToRGB makes out the first frame of a GIF file whose screen has w×h pixels. Where the frame doesn't reach, it has the transparent
// colour, or else the palette's first one, as in PIL.
func gifToRGB(file []byte, frame *image.Paletted, w, h int, out *Element) {
	colours := rgbPalette(frame.Palette)
	ground := colours[0]
	if index, colour, ok := gifTransparency(file); ok {
		colours[index], ground = colour, colour
	}
	dst := out.Image(h, w)
	if r := frame.Bounds(); r.Dx() < w || r.Dy() < h {
		for i := range w * h {
			copy(dst[3*i:], ground[:])
		}
	}
	r := frame.Bounds().Intersect(image.Rect(0, 0, w, h))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			copy(dst[3*(y*w+x):], colours[frame.ColorIndexAt(x, y)][:])
		}
	}
}

// gifTransparency returns which number stands for transparent pixels in a GIF file's first frame, and the colour that the palette has for
// it, which package image/gif leaves out: black where it has none. (GIF89a, CompuServe, 1990)
func gifTransparency(file []byte) (index byte, colour [3]byte, ok bool) {
	const screen, frame, extension, graphicControl = 13, 0x2c, 0x21, 0xf9
	palette, rest := gifPalette(file[10], file[screen:])
	for len(rest) > 10 {
		switch {
		case rest[0] == frame:
			if local, _ := gifPalette(rest[9], rest[10:]); local != nil {
				palette = local
			}
			copy(colour[:], palette[min(3*int(index), len(palette)):])
			return index, colour, ok
		case rest[0] != extension:
			return 0, colour, false
		case rest[1] == graphicControl && rest[3]&1 != 0:
			index, ok = rest[6], true
		}
		for rest = rest[2:]; len(rest) > 0 && rest[0] != 0; {
			rest = rest[min(1+int(rest[0]), len(rest)):]
		}
		rest = rest[min(1, len(rest)):]
	}
	return 0, colour, false
}

// gifPalette parts the palette that flags announce, nil for none, from what follows it.
func gifPalette(flags byte, data []byte) (palette, rest []byte) {
	if flags&0x80 == 0 {
		return nil, data
	}
	n := min(3<<(flags&7+1), len(data))
	return data[:n], data[n:]
}
