package stages

import "math"

// hueTable turns hues as Pillow and torchvision do: colour → 8-bit hue, saturation and value → turned hue → colour (the
// conversions of A. R. Smith, "Color Gamut Transform Pairs", 1978, with Pillow's rounding). It has the place on the
// colour wheel for each 8-bit hue.
type hueTable struct {
	by     byte
	filled bool
	sector [256]int32   // 0 red to yellow, 1 yellow to green …
	within [256]float32 // how far into the sector, 0 to 1
}

// turn fills the table for hues that are turned by n/255 of the wheel.
func (t *hueTable) turn(n byte) {
	if t.filled && t.by == n {
		return
	}
	t.by, t.filled = n, true
	for h := range t.sector {
		at := float64(byte(h)+n) * 6 / 255
		whole := math.Floor(at)
		t.sector[h] = int32(whole) % 6
		t.within[h] = float32(at - whole)
	}
}

func (portable) turnHues(t *hueTable, dst, src []byte) {
	for len(src) >= 3 && len(dst) >= 3 {
		r, g, b := src[0], src[1], src[2]
		v := max(r, g, b)
		h, s := hueAndSaturation(r, g, b, v, min(r, g, b))
		if s == 0 {
			dst[0], dst[1], dst[2] = v, v, v
		} else {
			dst[0], dst[1], dst[2] = t.colour(h, s, v)
		}
		src, dst = src[3:], dst[3:]
	}
}

// hueAndSaturation returns the 8-bit hue and saturation of a colour, of which high is the largest and low the smallest
// channel. Both are 0 for greys.
func hueAndSaturation(r, g, b, high, low byte) (h, s byte) {
	if high == low {
		return 0, 0
	}
	chroma := float32(high - low)
	red, green, blue := float32(high-r)/chroma, float32(high-g)/chroma, float32(high-b)/chroma
	var side float32 // in sixths of the wheel
	switch high {
	case r:
		side = blue - green
	case g:
		side = float32(2 + float64(red) - float64(blue))
	default:
		side = float32(4 + float64(green) - float64(red))
	}
	turn := float64(side)/6 + 1
	if turn >= 1 {
		turn--
	}
	return byte(float64(float32(turn)) * 255), byte(float64(chroma/float32(high)) * 255)
}

// colour returns the colour of a turned hue.
func (t *hueTable) colour(h, s, v byte) (r, g, b byte) {
	value, saturation, within := float64(v), float32(s)/255, t.within[h]
	part := func(share float64) byte { return byte(product(value, 1-share) + 0.5) }
	least := part(float64(saturation))
	switch falling, rising := part(float64(saturation*within)), part(product(float64(saturation), 1-float64(within))); t.sector[h] {
	case 0:
		return v, rising, least
	case 1:
		return falling, v, least
	case 2:
		return least, v, rising
	case 3:
		return least, falling, v
	case 4:
		return rising, least, v
	default:
		return v, least, falling
	}
}
