package stages

import "fmt"

// OneHot holds the attributes of `prepare "one_hot"`.
type OneHot struct {
	Classes int `hcl:"classes" min:"1" max:"1048576" doc:"How many values a token can have, from 0 up."`
}

func oneHotOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "one_hot",
		Summary: "Turns tokens into rows that are 1 at the token's place and 0 elsewhere.",
		Doc: `As torch's ` + "`nn.functional.one_hot`" + `, with float32 values: n tokens become a tensor of 1×n×classes. A token that isn't from 0 to classes - 1 is an
error.`,
		New: func() any { return new(OneHot) },
	}
}

// Output returns a tensor's type.
func (s *OneHot) Output(in Type) (Type, error) {
	if err := accept(in, Tokens); err != nil {
		return Type{}, err
	}
	return TensorType(1, in.Shape[0], s.Classes), nil
}

// New makes an instance for one worker.
func (s *OneHot) New() (Stage, error) { return oneHot(*s), nil }

type oneHot OneHot

func (s oneHot) Process(_ *Call, in, out *Element) error {
	dst := out.Tensor(1, len(in.I32), s.Classes)
	clear(dst)
	for i, token := range in.I32 {
		if token < 0 || int(token) >= s.Classes {
			return fmt.Errorf("token %d, in place %d, isn't one of %d classes: give classes a number above the largest token", token, i, s.Classes)
		}
		dst[i*s.Classes+int(token)] = 1
	}
	return nil
}
