package sources

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// order returns the order of a value's bytes.
func (h npyHeader) order() binary.ByteOrder {
	switch h.dtype[0] {
	case '>':
		return binary.BigEndian
	case '=':
		return binary.NativeEndian
	}
	return binary.LittleEndian
}

// asInMemory reports whether values are stored as float32 numbers are in memory.
func (h npyHeader) asInMemory() bool {
	native := byte('<')
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		native = '>'
	}
	return h.dtype[1:] == "f4" && h.dtype[0] == native
}

// bytesOf returns the memory of values.
func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// floats fills dst from the bytes of floating-point numbers.
func (h npyHeader) floats(dst []float32, data []byte) {
	order := h.order()
	for i := range dst {
		switch h.width() {
		case 2:
			dst[i] = half(order.Uint16(data[2*i:]))
		case 4:
			dst[i] = math.Float32frombits(order.Uint32(data[4*i:]))
		case 8:
			dst[i] = float32(math.Float64frombits(order.Uint64(data[8*i:])))
		}
	}
}

// half returns the number that the bits of an IEEE 754 binary16 number mean.
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10)&31, uint32(bits)&1023
	switch exponent {
	case 0: // subnormal, which float32 has room for
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 31: // infinite, or no number
		exponent = 255 - 112
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

// ints fills dst from the bytes of whole numbers or truth values.
func (h npyHeader) ints(dst []int32, data []byte) error {
	order, signed := h.order(), h.kind() == 'i'
	for i := range dst {
		var v uint64
		switch h.width() {
		case 1:
			if v = uint64(data[i]); signed {
				v = uint64(int8(v))
			}
		case 2:
			if v = uint64(order.Uint16(data[2*i:])); signed {
				v = uint64(int16(v))
			}
		case 4:
			if v = uint64(order.Uint32(data[4*i:])); signed {
				v = uint64(int32(v))
			}
		case 8:
			v = order.Uint64(data[8*i:])
		}
		if dst[i] = int32(v); uint64(dst[i]) != v || !signed && dst[i] < 0 {
			if signed {
				return fmt.Errorf("value %d is %d, which doesn't fit in an int32", i, int64(v))
			}
			return fmt.Errorf("value %d is %d, which doesn't fit in an int32", i, v)
		}
	}
	return nil
}
