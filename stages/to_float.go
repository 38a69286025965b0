package stages

// ToFloat is the spec of `prepare "to_float"`, which has no attributes.
type ToFloat struct{}

func toFloatOperator() Operator {
	return Operator{
		Block:   Prepare,
		Type:    "to_float",
		Summary: "Turns an image into a float32 tensor with values from 0 to 1.",
		Doc:     `As torchvision's ` + "`ToTensor`" + `: uint8 H×W×C becomes float32 C×H×W, divided by 255. ` + "`normalize`" + ` takes images too, and does both in one pass.`,
		New:     func() any { return new(ToFloat) },
	}
}

// Output returns a tensor's type.
func (*ToFloat) Output(in Type) (Type, error) {
	if err := accept(in, Image); err != nil {
		return Type{}, err
	}
	return TensorType(3, in.Shape[0], in.Shape[1]), nil
}

// New makes an instance for one worker.
func (*ToFloat) New() (Stage, error) { return newFloater(), nil }

// floater turns images into tensors by a table: the value for each channel and byte.
type floater [3][256]float32

func newFloater() *floater {
	var f floater
	for c := range f {
		for v := range f[c] {
			f[c][v] = float32(v) / 255
		}
	}
	return &f
}

func (f *floater) Process(_ *Call, in, out *Element) error {
	h, w := in.Type.Shape[0], in.Type.Shape[1]
	n := h * w
	t := out.Tensor(3, h, w)
	red, green, blue := t[:n], t[n:][:n], t[2*n:][:n]
	px := in.U8[:3*n]
	for i := range red {
		p := px[3*i:][:3]
		red[i], green[i], blue[i] = f[0][p[0]], f[1][p[1]], f[2][p[2]]
	}
	return nil
}
