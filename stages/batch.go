package stages

// Batch is a number of samples collated on the host. Samples of a fixed size lie one after the other in one of the
// dense arrays; samples that differ in size are in Ragged. Item i of the batch is the i-th in the data's order,
// whichever worker made it.
type Batch struct {
	Index  int64 // counts the run's batches from 0
	Epoch  int
	Len    int  // samples in it: the batch size, or fewer in an epoch's last batch and where items were skipped
	Sample Type // the type of one sample
	Labels []int32
	Items  []Item // which item each sample is; nil where that isn't known
	// Mixed says that each sample is mixed with the one of Other, and its label with that one's: Own, from 0 to 1, is how much of it is
	// its own.
	Mixed bool
	Own   float32

	U8     []byte    // Len × sample, for Image and Opaque samples of a fixed size
	F32    []float32 // Len × sample, for Tensor samples of a fixed size
	I32    []int32   // Len × sample, for Tokens of a fixed size
	Ragged []Element // Len elements, for all others

	Object Element // what a Collator made of the samples; of no type where none did
	Handle any     // how the pool that made the batch knows it, where the samples stay there; nil elsewhere
}

// Other returns which sample sample i is mixed with: the one before it, the first with the last.
func (b *Batch) Other(i int) int { return (i + b.Len - 1) % b.Len }

// Size returns the bytes of data in the batch, labels left out.
func (b *Batch) Size() int {
	n := len(b.U8) + 4*len(b.F32) + 4*len(b.I32)
	for i := range b.Ragged[:min(b.Len, len(b.Ragged))] {
		n += b.Ragged[i].Size()
	}
	return n
}
