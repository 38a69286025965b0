package text

import (
	"math"

	"github.com/pipectl/pipectl/stages"
)

// Pack holds the attributes of `prepare "pack"`.
type Pack struct {
	Length int `hcl:"length" min:"1" max:"268435456" doc:"The number of tokens of each sequence that it gives."`
	PadID  int `hcl:"pad_id,optional" min:"0" max:"2147483647" doc:"The token that is added at the end of a sequence that is shorter."`
}

func packOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "pack",
		Summary: "Brings sequences of tokens to one length, so that they can be batched.",
		Doc: `A shorter sequence is padded at its end, and the end of a longer one is cut off, as a Hugging Face tokenizer does with
` + "`padding = \"max_length\", truncation = True`" + `. To keep a closing special token, give ` + "`tokenize`" + ` the same length as ` + "`max_length`" + `: it truncates before it adds it.

Every item stays a sequence of its own, since a stage sees one item at a time. Where short texts would waste much of the step on padding, join them where
they are listed: ` + "`load \"text_lines\"`" + ` does so with ` + "`join`" + `. What an item has beyond the length is lost then, in every epoch.`,
		New: func() any { return new(Pack) },
	}
}

// Output returns the type of a sequence.
func (s *Pack) Output(in stages.Type) (stages.Type, error) {
	switch in.Kind {
	case stages.Tokens, stages.Unknown:
		return stages.Type{Kind: stages.Tokens, Shape: stages.Shape{s.Length}}, nil
	case stages.Encoded, stages.Opaque:
		return stages.Type{}, refuse("tokens", in, `Put prepare "tokenize" above it.`)
	}
	return stages.Type{}, refuse("tokens", in, "Remove it, or load text.")
}

// New makes an instance for one worker.
func (s *Pack) New() (stages.Stage, error) {
	return &packer{s.Length, int32(min(s.PadID, math.MaxInt32))}, nil
}

type packer struct {
	length int
	pad    int32
}

func (p *packer) Process(_ *stages.Call, in, out *stages.Element) error {
	if len(in.I32) == p.length {
		out.Pass(in)
		return nil
	}
	dst := resize(out, p.length)
	for i := copy(dst, in.I32); i < len(dst); i++ {
		dst[i] = p.pad
	}
	return nil
}
