package stages

// sharpener changes the sharpness of images as Pillow's ImageEnhance.Sharpness does, bit for bit: it mixes an image with its
// mean over 3×3 pixels, in which the middle counts five times. Pixels at the edge stay as they are. It serves one goroutine
// at a time.
type sharpener struct {
	columns []int32 // for each value of a row, the sum of it and those above and below
}

// apply fills dst with src at a sharpness: 0 is smooth, 1 as it is, 2 sharp. They mustn't be the same.
func (s *sharpener) apply(dst, src pixels, factor float32) {
	if n := 3 * src.w; cap(s.columns) < n {
		s.columns = make([]int32, n)
	}
	for y := range src.h {
		to, from := dst.row(y), src.row(y)
		copy(to, from)
		if y == 0 || y == src.h-1 || src.w < 3 {
			continue
		}
		above, below := src.row(y - 1)[:len(from)], src.row(y + 1)[:len(from)]
		columns := s.columns[:len(from)]
		for i, v := range from {
			columns[i] = int32(above[i]) + int32(v) + int32(below[i])
		}
		left, middle, right := columns[:len(columns)-6], columns[3:], columns[6:]
		from, to = from[3:], to[3:]
		for i, v := range left {
			value := int32(from[i])
			sum := v + middle[i] + right[i] + 4*value // of weights that are 13 together
			to[i] = mix((2*sum+13)/26, value, factor)
		}
	}
}
