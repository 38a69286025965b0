package python

import (
	"slices"
	"unsafe"

	"github.com/pipectl/pipectl/stages"
)

// room is the memory of the arena that one worker uses.
type room struct {
	arena   *arena
	regions [][]byte // all that it has taken
	idle    [][]byte // those of them that can be taken again
	lost    [][]byte // that a cancelled call may yet use

	in, out []byte // for data that comes from elsewhere, and for results that go elsewhere
	size    int    // of the largest result so far
}

// take returns a region for n bytes.
func (r *room) take(n int) ([]byte, error) {
	if i := slices.IndexFunc(r.idle, func(b []byte) bool { return cap(b) >= n }); i >= 0 {
		b := r.idle[i]
		r.idle = slices.Delete(r.idle, i, i+1)
		return b[:n], nil
	}
	b, err := r.arena.alloc(n)
	if err == nil {
		r.regions = append(r.regions, b)
	}
	return b, err
}

// close gives all back.
func (r *room) close() {
	for _, b := range r.regions {
		r.arena.release(b)
	}
	r.regions, r.idle, r.lost, r.in, r.out = nil, nil, nil, nil, nil
}

// lose gives up what a cancelled call works with, until found says that it has ended.
func (r *room) lose(result []byte, out *stages.Element) {
	if _, ok := r.arena.offset(memory(out)); ok {
		setMemory(out, nil)
	}
	for _, b := range [][]byte{result, r.in} {
		if cap(b) > 0 {
			r.lost = append(r.lost, b)
		}
	}
	r.in, r.out = nil, nil
}

func (r *room) found() {
	r.idle = append(r.idle, r.lost...)
	r.lost = nil
}

// holds reports whether data lies where the processes see it.
func (r *room) holds(data []byte) bool {
	_, ok := r.arena.offset(data)
	return ok || len(data) == 0
}

// shared returns data where the processes see it: as it is, or copied.
func (r *room) shared(data []byte) ([]byte, error) {
	if r.holds(data) {
		return data, nil
	}
	copied, err := r.reserve(len(data))
	copy(copied, data)
	return copied, err
}

// reserve returns n bytes for what comes from elsewhere, until it is called again.
func (r *room) reserve(n int) ([]byte, error) {
	if cap(r.in) < n {
		grown, err := r.take(max(n, 2*cap(r.in)))
		if err != nil {
			return nil, err
		}
		r.in = grown
	}
	return r.in[:n], nil
}

// sample is one of a batch's.
type sample struct {
	typ  stages.Type
	data []byte
}

// samples returns a batch's samples where the processes see them, until it is called again.
func (r *room) samples(b *stages.Batch) ([]sample, error) {
	list := make([]sample, b.Len)
	if b.Ragged == nil {
		all, err := r.shared(dense(b))
		if err != nil {
			return nil, err
		}
		size := b.Sample.Size()
		for i := range list {
			list[i] = sample{b.Sample, all[i*size : (i+1)*size]}
		}
		return list, nil
	}
	need := 0
	for i := range list {
		list[i] = sample{b.Ragged[i].Type, data(&b.Ragged[i])}
		if !r.holds(list[i].data) {
			need += aligned(len(list[i].data))
		}
	}
	space, err := r.reserve(need)
	if err != nil {
		return nil, err
	}
	for i, s := range list {
		if !r.holds(s.data) {
			n := copy(space, s.data)
			list[i].data, space = space[:n], space[aligned(n):]
		}
	}
	return list, nil
}

// aligned returns n rounded up to what all types of numbers are aligned to, and vectors of them.
func aligned(n int) int { return (n + 63) / 64 * 64 }

// dense returns the bytes of a batch's samples that lie one after the other.
func dense(b *stages.Batch) []byte {
	all := stages.Element{Type: b.Sample, U8: b.U8, F32: b.F32, I32: b.I32}
	return data(&all)[:b.Len*b.Sample.Size()]
}

// data returns the bytes of an element.
func data(el *stages.Element) []byte {
	switch el.Type.Kind {
	case stages.Tensor:
		return asBytes(el.F32)
	case stages.Tokens:
		return asBytes(el.I32)
	}
	return el.U8
}

// memory returns the memory that an element of a type keeps its data in, up to its capacity.
func memory(el *stages.Element) []byte {
	d := data(el)
	return d[:cap(d)]
}

// setMemory makes b the data of an element.
func setMemory(el *stages.Element, b []byte) {
	switch el.Type.Kind {
	case stages.Tensor:
		el.F32 = fromBytes[float32](b)
	case stages.Tokens:
		el.I32 = fromBytes[int32](b)
	default:
		el.U8 = b
	}
}

func asBytes[T float32 | int32](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*cap(v))[: 4*len(v) : 4*cap(v)]
}

// fromBytes returns bytes, aligned as regions are, as values.
func fromBytes[T float32 | int32](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), cap(b)/4)[: len(b)/4 : cap(b)/4]
}
