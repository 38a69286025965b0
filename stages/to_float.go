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
func (s *ToFloat) New() (Stage, error) { return s.imageNormalizer(), nil }

// imageNormalizer returns what does the work.
func (*ToFloat) imageNormalizer() *imageNormalizer {
	return newImageNormalizer([3]float32{}, [3]float32{1, 1, 1})
}

// imageNormalizer turns images into tensors, in which each channel's values from 0 to 1 are shifted by its mean and divided by its
// standard deviation.
type imageNormalizer struct {
	kernels   kernels
	mean, std [3]float32
	table     floater // of the same values
}

func newImageNormalizer(mean, std [3]float32) *imageNormalizer {
	n := &imageNormalizer{kernels: fastKernels(), mean: mean, std: std}
	for c := range n.table {
		for v := range n.table[c] {
			n.table[c][v] = (float32(v)/255 - mean[c]) / std[c]
		}
	}
	return n
}

func (n *imageNormalizer) Process(_ *Call, in, out *Element) error {
	n.kernels.normalize(n, out.Tensor(3, in.Type.Shape[0], in.Type.Shape[1]), in.U8, out.Uncached)
	return nil
}

func (portable) normalize(n *imageNormalizer, dst []float32, src []byte, _ bool) {
	n.table.fill(dst, src, 0)
}

// floater turns images into tensors by a table: the value for each channel and byte.
type floater [3][256]float32

func (f *floater) Process(_ *Call, in, out *Element) error {
	f.fill(out.Tensor(3, in.Type.Shape[0], in.Type.Shape[1]), in.U8, 0)
	return nil
}

// fill fills the planes of dst with the pixels of src, from pixel first on.
func (f *floater) fill(dst []float32, src []byte, first int) {
	n := len(src) / 3
	red, green, blue := dst[first:n], dst[n+first:][:n-first], dst[2*n+first:][:n-first]
	px := src[3*first : 3*n]
	for i := range red {
		p := px[3*i:][:3]
		red[i], green[i], blue[i] = f[0][p[0]], f[1][p[1]], f[2][p[2]]
	}
}
