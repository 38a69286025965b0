package stages

import "errors"

// accept returns nil if a block takes an element of type in, which it does if its kind is among kinds, or else what the
// file's author is told: what it takes, what it gets, and what to do. An unknown type is accepted, because the block
// that is to blame has a diagnostic of its own.
func accept(in Type, kinds ...Kind) error {
	names := map[Kind]string{Image: "an image", Tensor: "a tensor"}
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
	case Encoded:
		advice = `Put a decode stage (prepare "decode_jpeg") above it.`
	case Tensor:
		advice = `Move it above the stage that makes the tensor (prepare "to_float" or "normalize").`
	default:
		advice = "Remove it, or load images."
	}
	return errors.New("It takes " + takes + ", and gets " + in.String() + ". " + advice)
}
