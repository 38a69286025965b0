package stages

import "math"

// affine says where in one image the pixels of another lie: what has its centre at (x, y) of the other is at
// (a[0]·x + a[1]·y + a[2], a[3]·x + a[4]·y + a[5]) of the one. Pixels are of size 1, so the first has its centre at (0.5, 0.5).
type affine [6]float64

// warp fills dst with what lies in src where a says, and with fill what lies outside, as Pillow's Image.transform does, bit
// for bit (Pillow 9.4). interpolation is a value of the attribute of that name.
func (a *affine) warp(dst, src pixels, interpolation string, fill [3]byte) {
	if interpolation == "nearest" {
		a.nearest(dst, src, fill)
	} else {
		a.interpolate(dst, src, fill, interpolation == "bicubic")
	}
}

// nearest takes the pixels that places lie in. Places are fixed-point numbers summed up along rows and columns. Where the image
// turns or shears they have 16 bits after the point, as Pillow's; elsewhere, where Pillow's are float64s, 32.
func (a *affine) nearest(dst, src pixels, fill [3]byte) {
	bits := uint(32)
	if (a[1] != 0 || a[3] != 0) && a.fits16(dst.w, dst.h) {
		bits = 16
	}
	fix := func(v float64) int64 { return int64(math.Floor(v*float64(int64(1)<<bits) + 0.5)) }
	left, top := fix(a[2]+a[0]*0.5+a[1]*0.5), fix(a[5]+a[3]*0.5+a[4]*0.5)
	perX, perY, rowX, rowY := fix(a[0]), fix(a[3]), fix(a[1]), fix(a[4])
	w, h := uint64(src.w)<<bits, uint64(src.h)<<bits
	for y := range dst.h {
		to := dst.row(y)
		atX, atY := left, top
		for len(to) >= 3 && (uint64(atX) >= w || uint64(atY) >= h) {
			to[0], to[1], to[2] = fill[0], fill[1], fill[2]
			to = to[3:]
			atX, atY = atX+perX, atY+perY
		}
		if len(to) > 0 && perX == 1<<bits && perY == 0 { // rows stay rows
			to = to[copy(to, src.row(int(atY >> bits))[3*(atX>>bits):]):]
		} else {
			for len(to) >= 3 && uint64(atX) < w && uint64(atY) < h {
				p := src.pix[int(atY>>bits)*src.stride+3*int(atX>>bits):][:3]
				to[0], to[1], to[2] = p[0], p[1], p[2]
				to = to[3:]
				atX, atY = atX+perX, atY+perY
			}
		}
		paintRow(to, fill)
		left, top = left+rowX, top+rowY
	}
}

// fits16 reports whether the corners of an image of w×h have places that fixed-point numbers with 16 bits before the point hold.
func (a *affine) fits16(w, h int) bool {
	for _, x := range [2]float64{0, float64(w)} {
		for _, y := range [2]float64{0, float64(h)} {
			if atX, atY := a.at(x, y); math.Abs(atX) >= 1<<15 || math.Abs(atY) >= 1<<15 {
				return false
			}
		}
	}
	return true
}

// at returns where (x, y) lies.
func (a *affine) at(x, y float64) (atX, atY float64) {
	return product(a[0], x) + product(a[1], y) + a[2], product(a[3], x) + product(a[4], y) + a[5]
}

// paintRow fills a row with one colour.
func paintRow(to []byte, fill [3]byte) {
	for len(to) >= 3 {
		to[0], to[1], to[2] = fill[0], fill[1], fill[2]
		to = to[3:]
	}
}

// line is an affine in one row.
type line struct {
	perX, perY float64 // how far one pixel leads
	rowX, rowY float64 // how far the row's height leads
	x, y       float64
}

// at returns where the centre of pixel i lies.
func (l *line) at(i int) (x, y float64) {
	centre := float64(i) + 0.5
	return product(l.perX, centre) + l.rowX + l.x, product(l.perY, centre) + l.rowY + l.y
}

// holds reports whether the place (x, y) lies in the image.
func (p *pixels) holds(x, y float64) bool {
	return x >= 0 && y >= 0 && x < float64(p.w) && y < float64(p.h)
}

// interpolate makes pixels of those around their places.
func (a *affine) interpolate(dst, src pixels, fill [3]byte, cubic bool) {
	for row := range dst.h {
		to, centre := dst.row(row), float64(row)+0.5
		l := line{a[0], a[3], product(a[1], centre), product(a[4], centre), a[2], a[5]}
		first, end := 0, dst.w
		for first < end && !src.holds(l.at(first)) {
			first++
		}
		for first < end && !src.holds(l.at(end-1)) {
			end--
		}
		paintRow(to[:3*first], fill)
		if inside := to[3*first : 3*end]; cubic {
			bicubic(inside, &src, &l, first)
		} else {
			bilinear(inside, &src, &l, first)
		}
		paintRow(to[3*end:], fill)
	}
}

// cell returns the whole part and the rest of a place, which is -0.5 at least.
func cell(v float64) (int, float64) {
	whole := int(v)
	if v < 0 {
		whole = -1
	}
	return whole, v - float64(whole)
}

// bilinear fills a part of a row, which begins with pixel first. It weighs the 2×2 pixels around each place. Those outside of the image are the ones at its edge.
func bilinear(to []byte, src *pixels, l *line, first int) {
	for i := first; len(to) >= 3; i, to = i+1, to[3:] {
		x, y := l.at(i)
		column, dx := cell(x - 0.5)
		row, dy := cell(y - 0.5)
		left, right := 3*max(column, 0), 3*min(column+1, src.w-1)
		upper, lower := src.row(max(row, 0)), src.row(min(row+1, src.h-1))
		a, b, c, d := upper[left:][:3], upper[right:][:3], lower[left:][:3], lower[right:][:3]
		for k := range 3 {
			u, v := float64(a[k]), float64(c[k])
			u += product(float64(b[k])-u, dx)
			v += product(float64(d[k])-v, dx)
			to[k] = byte(u + product(v-u, dy))
		}
	}
}

// bicubic does the same with the 4×4 pixels around each place, and the kernel of Keys, "Cubic Convolution Interpolation for
// Digital Image Processing", 1981, with a = -1. Those outside of the image are the ones at its edge.
func bicubic(to []byte, src *pixels, l *line, first int) {
	for i := first; len(to) >= 3; i, to = i+1, to[3:] {
		x, y := l.at(i)
		column, dx := cell(x - 0.5)
		row, dy := cell(y - 0.5)
		var across [4]int
		for k := range across {
			across[k] = 3 * min(max(column+k-1, 0), src.w-1)
		}
		var down [3][4]float64 // for each channel, what the four rows have at x
		for k := range 4 {
			pixels := src.row(min(max(row+k-1, 0), src.h-1))
			a, b, c, d := pixels[across[0]:][:3], pixels[across[1]:][:3], pixels[across[2]:][:3], pixels[across[3]:][:3]
			for channel := range down {
				down[channel][k] = convolve4(float64(a[channel]), float64(b[channel]), float64(c[channel]), float64(d[channel]), dx)
			}
		}
		for channel, v := range down {
			to[channel] = byte(min(max(convolve4(v[0], v[1], v[2], v[3], dy), 0), 255))
		}
	}
}

// convolve4 returns what lies at d on the curve from b (0) to c (1), whose neighbours are a and e.
func convolve4(a, b, c, e, d float64) float64 {
	cube, square := -a+b-c+e, 2*(a-b)+c-e
	return b + product(d, c-a+product(d, square+product(d, cube)))
}
