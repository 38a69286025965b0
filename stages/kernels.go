package stages

// kernels are the loops over pixels that take most of the operators' time. Those of portable are in Go, beside their
// operators; others use a processor's vector instructions, and give the same bytes.
type kernels interface {
	// alongRows makes rows of t.out pixels of rows of t.in pixels.
	alongRows(t *taps, dst, src pixels)
	// alongColumns makes t.out rows of t.in rows.
	alongColumns(t *taps, dst, src pixels)
	// mirror fills dst with src, left and right exchanged.
	mirror(dst, src pixels)
	// normalize fills the planes of dst, a tensor of 3×n, with the values of n pixels. uncached is dst's Element.Uncached.
	normalize(n *imageNormalizer, dst []float32, src []byte, uncached bool)
	// standardize fills dst with src less mean, divided by std.
	standardize(dst, src []float32, mean, std float32)
	// mixGrey mixes src with one grey.
	mixGrey(dst, src []byte, grey int32, factor float32)
	// saturate mixes the pixels of src with their greys.
	saturate(dst, src []byte, factor float32)
	// sumGreys returns the sum of the greys of the pixels of src.
	sumGreys(src []byte) int
	// turnHues turns the hues of the pixels of src as t says.
	turnHues(t *hueTable, dst, src []byte)
}

type portable struct{}
