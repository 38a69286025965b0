package audio

import (
	"encoding/binary"
	"math/bits"
)

// bitReader reads numbers of any number of bits, the most significant first. Beyond the end it reads zeros, and ended
// is set.
type bitReader struct {
	data  []byte
	pos   int    // the next byte that isn't in acc
	acc   uint64 // the next n bits at the top; below them, what the next bytes start with, or zeros
	n     uint
	ended bool
}

// newBitReader reads data from the byte at pos on.
func newBitReader(data []byte, pos int) bitReader { return bitReader{data: data, pos: pos} }

// fill leaves at least 57 bits in acc, or as many as there are.
func (b *bitReader) fill() {
	if len(b.data)-b.pos >= 8 {
		b.acc |= binary.BigEndian.Uint64(b.data[b.pos:]) >> b.n
		whole := (64 - b.n) / 8
		b.pos += int(whole)
		b.n += 8 * whole
		return
	}
	for b.n <= 56 && b.pos < len(b.data) {
		b.acc |= uint64(b.data[b.pos]) << (56 - b.n)
		b.pos++
		b.n += 8
	}
}

// read reads n bits, at most 57.
func (b *bitReader) read(n uint) uint64 {
	if b.n < n {
		if b.fill(); b.n < n {
			b.ended, b.acc, b.n = true, 0, 0
			return 0
		}
	}
	v := b.acc >> (64 - n)
	b.acc <<= n
	b.n -= n
	return v
}

// signed reads a number of n bits in two's complement, n at least 1.
func (b *bitReader) signed(n uint) int64 { return int64(b.read(n)<<(64-n)) >> (64 - n) }

// unary reads the number of zeros before the next one, and the one.
func (b *bitReader) unary() uint64 {
	var zeros uint64
	for {
		if z := uint(bits.LeadingZeros64(b.acc)); z < b.n {
			b.acc <<= z + 1
			b.n -= z + 1
			return zeros + uint64(z)
		}
		zeros += uint64(b.n)
		b.acc, b.n = 0, 0
		if b.fill(); b.n == 0 {
			b.ended = true
			return zeros
		}
	}
}

// align skips the rest of a byte.
func (b *bitReader) align() {
	b.acc <<= b.n % 8
	b.n -= b.n % 8
}

// offset returns the place of the next bit, in whole bytes.
func (b *bitReader) offset() int { return b.pos - int(b.n/8) }
