package stages

// channelTables says what becomes of each byte of each channel.
type channelTables [3][256]byte

// apply fills dst with what becomes of src. They may be the same.
func (t *channelTables) apply(dst, src []byte) {
	for len(src) >= 3 && len(dst) >= 3 {
		dst[0], dst[1], dst[2] = t[0][src[0]], t[1][src[1]], t[2][src[2]]
		src, dst = src[3:], dst[3:]
	}
}

// fill makes all channels' tables those of a function.
func (t *channelTables) fill(f func(v int) byte) {
	for v := range t[0] {
		t[0][v] = f(v)
	}
	t[1], t[2] = t[0], t[0]
}

// posterize keeps the upper bits of each byte.
func (t *channelTables) posterize(bits int) {
	t.fill(func(v int) byte { return byte(v >> (8 - bits) << (8 - bits)) })
}

// solarize inverts the bytes from threshold on.
func (t *channelTables) solarize(threshold float64) {
	t.fill(func(v int) byte {
		if float64(v) < threshold {
			return byte(v)
		}
		return byte(255 - v)
	})
}

// identity changes nothing.
func (t *channelTables) identity(channel int) {
	for v := range t[channel] {
		t[channel][v] = byte(v)
	}
}

// histograms counts how often each channel has each value.
type histograms [3][256]int

func (h *histograms) count(src []byte) {
	*h = histograms{}
	for len(src) >= 3 {
		h[0][src[0]]++
		h[1][src[1]]++
		h[2][src[2]]++
		src = src[3:]
	}
}

// autocontrast stretches each channel so that its least value becomes 0 and its greatest 255, as Pillow's ImageOps.autocontrast
// does.
func (t *channelTables) autocontrast(h *histograms) {
	for c := range t {
		low, high := 0, 255
		for low < 255 && h[c][low] == 0 {
			low++
		}
		for high > 0 && h[c][high] == 0 {
			high--
		}
		if high <= low {
			t.identity(c)
			continue
		}
		scale := 255 / float64(high-low)
		offset := product(-float64(low), scale)
		for v := range t[c] {
			t[c][v] = byte(min(max(product(float64(v), scale)+offset, 0), 255))
		}
	}
}

// equalize makes each channel's values as evenly spread as they can be, as Pillow's ImageOps.equalize does.
func (t *channelTables) equalize(h *histograms) {
	for c := range t {
		total, last := 0, 0
		for _, n := range h[c] {
			total += n
			if n > 0 {
				last = n
			}
		}
		step := (total - last) / 255
		if step == 0 {
			t.identity(c)
			continue
		}
		below := step / 2
		for v := range t[c] {
			t[c][v] = byte(min(below/step, 255))
			below += h[c][v]
		}
	}
}
