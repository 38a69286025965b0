package sources

import (
	"fmt"
	"slices"

	"github.com/pipectl/pipectl/stages"
)

// Sample holds the attributes by which formats that know of bytes and numbers alone are told what these are.
type Sample struct {
	Output string `hcl:"output,optional" enum:"auto,encoded,opaque,image,tensor,tokens" doc:"What an item is: \x60encoded\x60, the bytes of a file; \x60opaque\x60, other bytes, such as text; \x60image\x60, the uint8 values of a picture; \x60tensor\x60; or \x60tokens\x60. By default bytes are encoded, or an image where there is a \x60shape\x60, floating-point numbers are a tensor, and whole numbers are tokens."`
	Shape  []int  `hcl:"shape,optional" min:"1" doc:"An image's \x60[height, width, 3]\x60; a tensor's \x60[c, h, w]\x60, \x60[h, w]\x60 or \x60[n]\x60, which is n×1×1; the number of tokens or of opaque bytes. Every item must have as many values. Without it, items may differ in length, so that they can't be collated into one array."`
}

// valueKind says what the values of a feature or column are.
type valueKind uint8

const (
	byteStrings valueKind = iota
	floats
	integers
)

func (k valueKind) String() string {
	return [...]string{"bytes", "floating-point numbers", "whole numbers"}[k]
}

// typeOf returns the type of an item that is made of values of a kind.
func (s *Sample) typeOf(have valueKind) (stages.Type, error) {
	output := s.Output
	if output == "auto" {
		output = [...]string{"encoded", "tensor", "tokens"}[have]
		if have == byteStrings && len(s.Shape) > 0 {
			output = "image"
		}
	}
	dims := append(slices.Clone(s.Shape), 1, 1, 1)
	fail := func(attribute, summary, format string, args ...any) (stages.Type, error) {
		return stages.Type{}, &problemError{Attribute: attribute, Summary: summary, Detail: fmt.Sprintf(format, args...)}
	}
	t, fits, dimensions := stages.Type{}, have == byteStrings, ""
	switch n := len(s.Shape); output {
	case "encoded":
		t = stages.Type{Kind: stages.Encoded}
		if n > 0 {
			dimensions = "none, as files differ in length"
		}
	case "opaque":
		t = stages.Type{Kind: stages.Opaque}
		if n > 1 {
			dimensions = "one number, of bytes"
		} else if n == 1 {
			t.Shape[0] = dims[0]
		}
	case "image":
		t = stages.ImageType(dims[0], dims[1])
		if n != 3 || dims[2] != 3 {
			dimensions = "[height, width, 3]"
		}
	case "tensor":
		fits = have != byteStrings
		switch n {
		case 0:
			t = stages.TensorType(0, 1, 1)
		case 1, 3:
			t = stages.TensorType(dims[0], dims[1], dims[2])
		case 2:
			t = stages.TensorType(1, dims[0], dims[1])
		default:
			dimensions = "at most three numbers"
		}
	case "tokens":
		fits = have == integers
		t = stages.Type{Kind: stages.Tokens}
		if n > 1 {
			dimensions = "one number, of tokens"
		} else if n == 1 {
			t.Shape[0] = dims[0]
		}
	}
	switch {
	case !fits:
		return fail("output", "Output doesn't fit", "The values are %s, which can't be %s.", have, map[string]string{"encoded": "encoded bytes", "opaque": "opaque bytes", "image": "an image", "tensor": "a tensor", "tokens": "tokens"}[output])
	case dimensions != "":
		return fail("shape", "Shape doesn't fit", "The shape for output = %q is %s.", output, dimensions)
	}
	const mostValues = 1 << 29
	size := 1
	for _, d := range s.Shape {
		if size *= min(d, mostValues+1); size > mostValues {
			return fail("shape", "Shape too large", "An item has at most %d values.", mostValues)
		}
	}
	return t, nil
}

// setBytes makes out an item of type t.
func setBytes(t stages.Type, out *stages.Element, b []byte) error {
	if err := fits(t, len(b), "bytes"); err != nil {
		return err
	}
	copy(out.Bytes(t, len(b)), b)
	return nil
}

// finish gives an item of numbers its type, after they have been put into out.
func finish(t stages.Type, out *stages.Element) error {
	out.Type = t
	n := len(out.F32)
	if t.Kind == stages.Tokens {
		n = len(out.I32)
	}
	if err := fits(t, n, "values"); err != nil {
		return err
	}
	if t.Len() == 0 {
		out.Type.Shape[0] = n
	}
	return nil
}

// fits returns nil if n values can be an item of type t.
func fits(t stages.Type, n int, what string) error {
	if want := t.Len(); want > 0 && n != want {
		return fmt.Errorf("it has %d %s, where an item of the type %s has %d; mend the shape, or leave it out", n, what, t, want)
	}
	return nil
}

// addInt appends a whole number to an item of type t.
func addInt(t stages.Type, out *stages.Element, v int64) error {
	if t.Kind == stages.Tensor {
		out.F32 = append(out.F32, float32(v))
		return nil
	}
	if int64(int32(v)) != v {
		return fmt.Errorf("value %d is %d, which doesn't fit in an int32", len(out.I32), v)
	}
	out.I32 = append(out.I32, int32(v))
	return nil
}
