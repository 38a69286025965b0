package stages

import "fmt"

// pixels is a rectangle of RGB pixels in an image's memory.
type pixels struct {
	pix    []byte // from its first pixel
	stride int    // bytes from one row to the next
	h, w   int
}

// box is a rectangle within an image, in pixels.
type box struct {
	Top, Left, Height, Width int
}

// pixelsOf returns the whole of an Image.
func pixelsOf(e *Element) pixels {
	return pixels{e.U8, 3 * e.Type.Shape[1], e.Type.Shape[0], e.Type.Shape[1]}
}

// crop returns the part of p that lies in b, without a copy. b must lie within p.
func (p pixels) crop(b box) pixels {
	return pixels{p.pix[b.Top*p.stride+3*b.Left:], p.stride, b.Height, b.Width}
}

// part is a part of a picture that is decoded, and the size in which it is.
type part struct {
	box
	denominator int // 1, or 2, 4 or 8: that part of the picture's width and height
}

// reduced returns the smallest rectangle of the reduced picture's pixels that has the part within.
func (p part) reduced() box {
	d := p.denominator
	top, left := p.Top/d, p.Left/d
	return box{top, left, (p.Top+p.Height+d-1)/d - top, (p.Left+p.Width+d-1)/d - left}
}

// spans returns where the part lies in the rectangle that reduced returns.
func (p part) spans() (down, across span) {
	r, d := p.reduced(), float64(p.denominator)
	return span{float64(p.Top)/d - float64(r.Top), float64(p.Height) / d}, span{float64(p.Left)/d - float64(r.Left), float64(p.Width) / d}
}

// row returns the bytes of row y.
func (p pixels) row(y int) []byte { return p.pix[y*p.stride:][:3*p.w] }

// maxResized keeps an odd item, such as one of 1×60000 pixels, from taking all memory once its shorter edge is enlarged.
const maxResized = 16384 * 16384

// square returns the height and width that an attribute size stands for where one number is both.
func square(size []int) (h, w int) { return size[0], size[len(size)-1] }

// sizeProblems reports a size that is neither one number nor two.
func sizeProblems(size []int) []Problem {
	if len(size) == 1 || len(size) == 2 {
		return nil
	}
	return []Problem{{
		Attribute: "size",
		Summary:   "Not a size",
		Detail:    fmt.Sprintf("A size is one number of pixels, or a list of two, [height, width]. This list has %d.", len(size)),
	}}
}
