// Package stages holds the operators a pipeline is made of, and what they pass to each other.
//
// An element is the data of one sample at one place in the pipeline: a file's bytes, an image, a tensor. A Source
// gives elements, a Stage turns one into the next. An operator's Spec struct carries its attributes; a Registry lists
// the operators by block and type. Of this module the package imports storage alone.
package stages

import "fmt"

// Kind says how an element's data is to be read.
type Kind uint8

// The kinds of element. The zero Kind stands for a type that is not known, because an earlier stage is faulty.
const (
	Unknown Kind = iota
	Encoded      // the bytes of one encoded file, in Element.U8
	Image        // uint8, H×W×3 interleaved RGB, in Element.U8
	Tensor       // float32, C×H×W planar, in Element.F32
	Tokens       // int32, one dimension, in Element.I32
	Opaque       // bytes without a structure that pipectl knows, in Element.U8
	Object       // an object of another language, serialised in Element.U8: only stages of that language can look into it
)

// Shape holds an element's dimensions in the order of its Kind: H, W, C for an Image; C, H, W for a Tensor; a length in
// the first place for the others. A dimension that differs from item to item is 0.
type Shape [3]int

// Type is what is known about an element before it exists. It is comparable.
type Type struct {
	Kind  Kind
	Shape Shape
}

// ImageType returns the type of a uint8 H×W×3 image; h and w are 0 where they differ from item to item.
func ImageType(h, w int) Type { return Type{Image, Shape{h, w, 3}} }

// TensorType returns the type of a float32 C×H×W tensor; a dimension that differs from item to item is 0.
func TensorType(c, h, w int) Type { return Type{Tensor, Shape{c, h, w}} }

// Len returns the number of values in an element of this type, or 0 if a dimension isn't fixed.
func (t Type) Len() int {
	switch t.Kind {
	case Image, Tensor:
		return t.Shape[0] * t.Shape[1] * t.Shape[2]
	case Unknown:
		return 0
	}
	return t.Shape[0]
}

// Size returns the number of bytes in an element of this type, or 0 if a dimension isn't fixed.
func (t Type) Size() int {
	if t.Kind == Tensor || t.Kind == Tokens {
		return 4 * t.Len()
	}
	return t.Len()
}

// Fixed reports whether every element of this type has the same size, so that a batch of them is one dense array.
func (t Type) Fixed() bool { return t.Len() > 0 && t.Kind != Encoded && t.Kind != Object }

// String describes the type in the words that diagnostics and plans use: "float32 3×224×224", "uint8 image ?×?×3".
func (t Type) String() string {
	dim := func(n int) string {
		if n == 0 {
			return "?"
		}
		return fmt.Sprint(n)
	}
	dims := func() string { return dim(t.Shape[0]) + "×" + dim(t.Shape[1]) + "×" + dim(t.Shape[2]) }
	switch t.Kind {
	case Encoded:
		return "encoded bytes"
	case Image:
		return "uint8 image " + dims()
	case Tensor:
		return "float32 " + dims()
	case Tokens:
		return "int32 tokens [" + dim(t.Shape[0]) + "]"
	case Opaque:
		return "opaque bytes [" + dim(t.Shape[0]) + "]"
	case Object:
		return "Python object"
	}
	return "unknown"
}

// Element is the data of one sample at one place in the pipeline. Its memory is reused from item to item: Bytes and
// Floats grow it only when it is too small.
type Element struct {
	Type Type
	U8   []byte
	F32  []float32
	I32  []int32
	// Uncached says that what is written here is read when it has long left the CPU's caches. A stage may write past them then,
	// which saves reading what it overwrites.
	Uncached bool

	passed *Element
}

// Bytes makes e an element of type t, one of the kinds kept in bytes, and returns its n bytes to be filled: their
// content is whatever was there before.
func (e *Element) Bytes(t Type, n int) []byte {
	e.Type = t
	if cap(e.U8) < n {
		e.U8 = make([]byte, n)
	}
	e.U8 = e.U8[:n]
	return e.U8
}

// Image makes e a uint8 image of h×w×3 and returns its bytes to be filled.
func (e *Element) Image(h, w int) []byte { return e.Bytes(ImageType(h, w), h*w*3) }

// Tensor makes e a float32 tensor of c×h×w and returns its values to be filled.
func (e *Element) Tensor(c, h, w int) []float32 {
	e.Type = TensorType(c, h, w)
	n := c * h * w
	if cap(e.F32) < n {
		e.F32 = make([]float32, n)
	}
	e.F32 = e.F32[:n]
	return e.F32
}

// Pass makes in the result in place of e, without a copy. in must stay as it is until the item has left the pipeline:
// it is the element that Process was given, or one that nobody writes to again.
func (e *Element) Pass(in *Element) { e.passed = in }

// Result returns the element that a call left in e: e itself, or the one it passed on. It forgets the latter.
func (e *Element) Result() *Element {
	if p := e.passed; p != nil {
		e.passed = nil
		return p
	}
	return e
}

// CopyFrom makes e a copy of in, in e's own memory.
func (e *Element) CopyFrom(in *Element) {
	e.Type = in.Type
	switch in.Type.Kind {
	case Tensor:
		e.F32 = append(e.F32[:0], in.F32...)
	case Tokens:
		e.I32 = append(e.I32[:0], in.I32...)
	default:
		e.U8 = append(e.U8[:0], in.U8...)
	}
}

// Size returns the number of bytes of data in e.
func (e *Element) Size() int {
	switch e.Type.Kind {
	case Tensor:
		return 4 * len(e.F32)
	case Tokens:
		return 4 * len(e.I32)
	}
	return len(e.U8)
}
