package audio

import (
	"fmt"
	"math/bits"
)

// subframe decodes one channel of a frame, whose samples have width bits.
func (d *flacDecoder) subframe(dst []int64, width uint) error {
	r := &d.reader
	if r.read(1) != 0 {
		return fmt.Errorf("a channel doesn't start where it should: %w", errFLACDamaged)
	}
	kind := r.read(6)
	var wasted uint
	if r.read(1) != 0 {
		wasted = uint(min(r.unary(), 64)) + 1
	}
	if wasted >= width {
		return fmt.Errorf("%d bits of %d are unused: %w", wasted, width, errFLACDamaged)
	}
	width -= wasted
	var err error
	switch {
	case kind == 0:
		v := r.signed(width)
		for i := range dst {
			dst[i] = v
		}
	case kind == 1:
		for i := range dst {
			dst[i] = r.signed(width)
		}
	case kind >= 8 && kind <= 12:
		err = d.fixed(dst, int(kind-8), width)
	case kind >= 32:
		err = d.linear(dst, int(kind-31), width)
	default:
		err = fmt.Errorf("a channel is coded in the unknown way %d: %w", kind, errFLACDamaged)
	}
	if err != nil {
		return err
	}
	if r.ended {
		return errFLACEnd
	}
	if wasted > 0 {
		for i := range dst {
			dst[i] <<= wasted
		}
	}
	return nil
}

// warmUp reads the samples that a predictor of an order starts from.
func (d *flacDecoder) warmUp(dst []int64, order int, width uint) error {
	if order > len(dst) {
		return fmt.Errorf("%d samples can't be predicted from %d: %w", len(dst), order, errFLACDamaged)
	}
	for i := range dst[:order] {
		dst[i] = d.reader.signed(width)
	}
	return nil
}

// fixed decodes samples that a polynomial of an order from 0 to 4 predicts.
func (d *flacDecoder) fixed(dst []int64, order int, width uint) error {
	if err := d.warmUp(dst, order, width); err != nil {
		return err
	}
	if err := d.residual(dst, order); err != nil {
		return err
	}
	switch order {
	case 1:
		for i := 1; i < len(dst); i++ {
			dst[i] += dst[i-1]
		}
	case 2:
		for i := 2; i < len(dst); i++ {
			dst[i] += 2*dst[i-1] - dst[i-2]
		}
	case 3:
		for i := 3; i < len(dst); i++ {
			dst[i] += 3*(dst[i-1]-dst[i-2]) + dst[i-3]
		}
	case 4:
		for i := 4; i < len(dst); i++ {
			dst[i] += 4*(dst[i-1]+dst[i-3]) - 6*dst[i-2] - dst[i-4]
		}
	}
	return nil
}

// linear decodes samples that are predicted from the order ones before each, with coefficients of the stream's own.
func (d *flacDecoder) linear(dst []int64, order int, width uint) error {
	r := &d.reader
	if err := d.warmUp(dst, order, width); err != nil {
		return err
	}
	precision, shift := uint(r.read(4))+1, r.signed(5)
	if precision == 16 || shift < 0 {
		return fmt.Errorf("a channel's predictor can't be: %w", errFLACDamaged)
	}
	var stored [32]int64 // reversed, to stand in the samples' order
	weights := stored[:order]
	for i := range weights {
		weights[order-1-i] = r.signed(precision)
	}
	if err := d.residual(dst, order); err != nil {
		return err
	}
	predict(dst, weights, uint(shift))
	return nil
}

// predict adds to each residual what the samples before it predict.
func predict(dst, weights []int64, shift uint) {
	order := len(weights)
	for i := order; i < len(dst); i++ {
		before := dst[i-order:][:order]
		w := weights[:len(before)]
		var a, b int64
		for len(before) >= 4 && len(w) >= 4 {
			a += before[0]*w[0] + before[1]*w[1]
			b += before[2]*w[2] + before[3]*w[3]
			before, w = before[4:], w[4:]
		}
		for j, v := range before {
			a += v * w[j]
		}
		dst[i] += (a + b) >> shift
	}
}

// residual reads what the prediction of the samples after the first order ones is off by, into their places.
func (d *flacDecoder) residual(dst []int64, order int) error {
	r := &d.reader
	method, partitions := r.read(2), 1<<r.read(4)
	if method > 1 {
		return fmt.Errorf("its residuals are coded in the unknown way %d: %w", method, errFLACDamaged)
	}
	size := len(dst) / partitions
	if size*partitions != len(dst) || size < order {
		return fmt.Errorf("%d samples can't be in %d parts: %w", len(dst), partitions, errFLACDamaged)
	}
	width := uint(4 + method)
	dst = dst[order:]
	for p := range partitions {
		n := size
		if p == 0 {
			n -= order
		}
		if r.ended {
			return errFLACEnd
		}
		parameter := uint(r.read(width))
		if parameter == 1<<width-1 {
			r.plain(dst[:n])
		} else {
			r.rice(dst[:n], parameter)
		}
		dst = dst[n:]
	}
	return nil
}

// plain reads signed numbers of a width that stands before them.
func (b *bitReader) plain(dst []int64) {
	width := uint(b.read(5))
	for i := range dst {
		if dst[i] = 0; width > 0 {
			dst[i] = b.signed(width)
		}
	}
}

// rice reads numbers in Rice code: what is above the lowest k bits in unary, then these; the sign is the lowest bit.
func (b *bitReader) rice(dst []int64, k uint) {
	for i := range dst {
		if b.n < 32 {
			b.fill()
		}
		var v uint64
		if z := uint(bits.LeadingZeros64(b.acc)); z+1+k <= b.n {
			acc := b.acc << (z + 1)
			v = uint64(z)<<k | acc>>(64-k)
			b.acc = acc << k
			b.n -= z + 1 + k
		} else {
			if v = b.unary()<<k | b.read(k); b.ended {
				return
			}
		}
		dst[i] = int64(v>>1) ^ -int64(v&1)
	}
}
