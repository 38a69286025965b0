package stages

import (
	"image"
	"image/color"
)

// toRGB makes out the RGB image that PIL's convert("RGB") makes of img.
func toRGB(img image.Image, out *Element) {
	r := img.Bounds()
	dst := out.Image(r.Dy(), r.Dx())
	switch img := img.(type) {
	case *image.Gray:
		eachRow(dst, img.Pix, img.Stride, r, 1, func(d, s []byte) { d[0], d[1], d[2] = s[0], s[0], s[0] })
	case *image.Gray16:
		eachRow(dst, img.Pix, img.Stride, r, 2, func(d, s []byte) { d[0], d[1], d[2] = s[0], s[0], s[0] })
	case *image.NRGBA:
		eachRow(dst, img.Pix, img.Stride, r, 4, func(d, s []byte) { copy(d, s[:3]) })
	case *image.NRGBA64:
		eachRow(dst, img.Pix, img.Stride, r, 8, func(d, s []byte) { d[0], d[1], d[2] = s[0], s[2], s[4] })
	case *image.RGBA:
		eachRow(dst, img.Pix, img.Stride, r, 4, func(d, s []byte) { unmultiply(d, s[0], s[1], s[2], s[3]) })
	case *image.RGBA64:
		eachRow(dst, img.Pix, img.Stride, r, 8, func(d, s []byte) { unmultiply(d, s[0], s[2], s[4], s[6]) })
	case *image.CMYK:
		eachRow(dst, img.Pix, img.Stride, r, 4, func(d, s []byte) { cmykToRGB(d, s) })
	case *image.Paletted:
		colours := rgbPalette(img.Palette)
		eachRow(dst, img.Pix, img.Stride, r, 1, func(d, s []byte) { copy(d, colours[s[0]][:]) })
	case *image.YCbCr:
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				c, i := img.COffset(x, y), img.YOffset(x, y)
				dst[0], dst[1], dst[2] = color.YCbCrToRGB(img.Y[i], img.Cb[c], img.Cr[c])
				dst = dst[3:]
			}
		}
	default:
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				c := color.NRGBAModel.Convert(img.At(x, y)).(color.NRGBA)
				dst[0], dst[1], dst[2] = c.R, c.G, c.B
				dst = dst[3:]
			}
		}
	}
}

// eachRow calls convert for each pixel of a picture whose pixels take size bytes each; dst has 3 bytes for each of them.
func eachRow(dst, src []byte, stride int, r image.Rectangle, size int, convert func(dst, src []byte)) {
	for range r.Dy() {
		for x := range r.Dx() {
			convert(dst[3*x:3*x+3], src[size*x:size*x+size])
		}
		dst = dst[3*r.Dx():]
		src = src[min(stride, len(src)):]
	}
}

// unmultiply takes alpha out of a colour that was multiplied with it, as PIL does.
func unmultiply(dst []byte, r, g, b, a byte) {
	for i, v := range [3]byte{r, g, b} {
		if a != 0 && a != 255 {
			v = byte(min(255*int(v)/int(a), 255))
		}
		dst[i] = v
	}
}

// cmykToRGB is PIL's formula, in which the product is divided by 255 with rounding.
func cmykToRGB(dst, src []byte) {
	light := 255 - int(src[3])
	for i, ink := range src[:3] {
		t := int(ink)*light + 128
		dst[i] = byte(light - ((t>>8)+t)>>8)
	}
}

// rgbPalette returns the palette's colours without their alpha; those it doesn't list are black.
func rgbPalette(p color.Palette) (rgb [256][3]byte) {
	for i, c := range p {
		switch c := c.(type) {
		case color.RGBA: // opaque, or all 0
			rgb[i] = [3]byte{c.R, c.G, c.B}
		default:
			n := color.NRGBAModel.Convert(c).(color.NRGBA)
			rgb[i] = [3]byte{n.R, n.G, n.B}
		}
	}
	return rgb
}
