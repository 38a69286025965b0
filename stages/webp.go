package stages

import "image"

// vp8ToRGB makes out the RGB image that libwebp makes of a lossy WebP picture: chroma interpolated between the centres
// of its four nearest samples, and colours of ITU-R BT.601 with luma from 16 to 235.
//
// x/image leaves both to its user; package image's own conversion, which is JPEG's, has other colours.
func vp8ToRGB(img *image.YCbCr, out *Element) {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	dst := out.Image(h, w)
	cw, ch := (w+1)/2, (h+1)/2
	for y := range h {
		near, far := nearest(y, ch)
		near, far = near*img.CStride, far*img.CStride
		for x := range w {
			here, beside := nearest(x, cw)
			blend := func(c []byte) int {
				n, h, v, d := int(c[near+here]), int(c[near+beside]), int(c[far+here]), int(c[far+beside])
				return ((n+3*h+3*v+d+8)>>3 + n) >> 1 // (9n + 3h + 3v + d) / 16, rounded as libwebp does
			}
			cb, cr := blend(img.Cb), blend(img.Cr)
			luma := int(img.Y[y*img.YStride+x]) * 19077 >> 8
			dst[0] = clip6(luma + cr*26149>>8 - 14234)
			dst[1] = clip6(luma - cb*6419>>8 - cr*13320>>8 + 8708)
			dst[2] = clip6(luma + cb*33050>>8 - 17685)
			dst = dst[3:]
		}
	}
}

// nearest returns the two of n chroma samples in a line that are nearest to pixel i, the nearer one first.
func nearest(i, n int) (int, int) {
	c := i / 2
	return c, max(0, min(c+2*(i%2)-1, n-1))
}

// clip6 takes off 6 fractional bits.
func clip6(v int) byte { return byte(max(0, min(v>>6, 255))) }
