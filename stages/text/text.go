// Package text holds the operators for text: it is tokenised, and brought to a sequence length.
package text

import (
	"errors"

	"github.com/pipectl/pipectl/stages"
)

// Add registers the operators.
func Add(r *stages.Registry) {
	r.Add(
		tokenizeOperator(),
		packOperator(),
	)
}

// resize makes out tokens and returns n of them to be filled: their content is whatever was there before.
func resize(out *stages.Element, n int) []int32 {
	out.Type = stages.Type{Kind: stages.Tokens, Shape: stages.Shape{n}}
	if cap(out.I32) < n {
		out.I32 = make([]int32, n)
	}
	out.I32 = out.I32[:n]
	return out.I32
}

// refuse says what the author of a file is told whose stage takes something else than in.
func refuse(takes string, in stages.Type, advice string) error {
	return errors.New("It takes " + takes + ", and gets " + in.String() + ". " + advice)
}
