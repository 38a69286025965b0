package stages

import (
	"errors"
	"slices"
)

// accept returns nil if a block takes an element of type in, which it does if its kind is among kinds, or else what the
// file's author is told: what it takes, what it gets, and what to do. An unknown type is accepted, because the block
// that is to blame has a diagnostic of its own.
func accept(in Type, kinds ...Kind) error {
	names := map[Kind]string{Image: "an image", Tensor: "a tensor", Tokens: "tokens"}
	takes := ""
	for i, k := range kinds {
		if in.Kind == k {
			return nil
		}
		if i > 0 {
			takes += " or "
		}
		takes += names[k]
	}
	advice := ""
	switch in.Kind {
	case Unknown:
		return nil
	case Image:
		advice = `Put the stage that makes a tensor (prepare "to_float" or "normalize") above it.`
	case Encoded:
		advice = `Put a decode stage (prepare "decode_jpeg") above it.`
	case Tensor:
		advice = `Move it above the stage that makes the tensor (prepare "to_float" or "normalize").`
	default:
		advice = "Remove it, or load images."
	}
	if slices.Contains(kinds, Tokens) {
		advice = "Remove it, or put it below what gives tokens."
	}
	return errors.New("It takes " + takes + ", and gets " + in.String() + ". " + advice)
}
