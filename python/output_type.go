package python

import (
	"fmt"

	"github.com/pipectl/pipectl/stages"
)

// outputType returns the type of what Python code gives that the file declares as output and shape.
func outputType(output string, shape []int) stages.Type {
	switch output {
	case "image":
		if len(shape) >= 2 {
			return stages.ImageType(shape[0], shape[1])
		}
		return stages.ImageType(0, 0)
	case "tensor":
		if len(shape) == 0 || len(shape) > 3 {
			return stages.TensorType(0, 0, 0)
		}
		whole := stages.Shape{1, 1, 1}
		copy(whole[3-len(shape):], shape)
		return stages.Type{Kind: stages.Tensor, Shape: whole}
	case "tokens":
		t := stages.Type{Kind: stages.Tokens}
		copy(t.Shape[:1], shape)
		return t
	case "encoded":
		return stages.Type{Kind: stages.Encoded}
	}
	return stages.Type{Kind: stages.Object}
}

func shapeless(output string, shape []int) bool {
	return len(shape) == 0 && output != "object" && output != "encoded"
}

// shapeProblems reports a shape that output can't have.
func shapeProblems(output string, shape []int) []stages.Problem {
	want := ""
	switch n := len(shape); {
	case n == 0:
	case output == "image" && n != 2 && (n != 3 || shape[2] != 3):
		want = "An image's is [height, width]."
	case output == "tensor" && n > 3:
		want = "A tensor's has up to three dimensions, such as [channels, height, width]."
	case output == "tokens" && n != 1:
		want = "That of tokens is their number."
	case output == "object" || output == "encoded":
		want = fmt.Sprintf("With output = %q there is none: remove it, or say with output what the items are.", output)
	}
	if want == "" {
		return nil
	}
	return []stages.Problem{{Attribute: "shape", Summary: "Unsuitable shape", Detail: want}}
}
