package python

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/pipectl/pipectl/stages"
)

// The letters of what serve.py is asked for.
const (
	opLoad      = 'L'
	opTransform = 'T'
	opCollate   = 'B'
	opWrite     = 'W' // the result that had no room
)

// The length of a request's head: a frame's length, 'C', the letter, offset and room (int64), seed (uint64), and whether it holds.
const (
	placeAt   = 4 + 2
	placeSize = 8 + 8
)

// begin begins a request in the worker's frame. seeded says whether the process's random number generators are to be seeded.
func (w *worker) begin(op byte, seed uint64, seeded bool) {
	f := append(frame(w.frame), 'C', op)
	f = append(f, make([]byte, placeSize)...)
	f = binary.LittleEndian.AppendUint64(f, seed)
	flag := byte(0)
	if seeded {
		flag = 1
	}
	w.frame = append(f, flag)
}

// entry adds an element, whose data lies in the arena, to the request.
func (w *worker) entry(t stages.Type, label int32, data []byte) {
	f := append(w.frame, byte(t.Kind), 0, 0, 0)
	for _, n := range t.Shape {
		f = binary.LittleEndian.AppendUint32(f, uint32(n))
	}
	f = binary.LittleEndian.AppendUint32(f, uint32(label))
	off, _ := w.room.arena.offset(data)
	f = binary.LittleEndian.AppendUint64(f, uint64(off))
	w.frame = binary.LittleEndian.AppendUint64(f, uint64(len(data)))
}

// call sends the request, has the result put in out, which is of the type that the worker's process makes, and returns its label.
func (w *worker) call(ctx context.Context, out *stages.Element) (int32, error) {
	if w.pid == 0 {
		if err := w.start(ctx); err != nil {
			return 0, err
		}
	}
	out.Type = w.typ
	place, direct := w.place(out)
	for {
		if cap(place) == 0 {
			var err error
			if place, err = w.room.take(max(w.room.size, page)); err != nil {
				return 0, err
			}
		}
		off, _ := w.room.arena.offset(place)
		binary.LittleEndian.PutUint64(w.frame[placeAt:], uint64(off))
		binary.LittleEndian.PutUint64(w.frame[placeAt+8:], uint64(cap(place)))
		body, err := w.channel.call(ctx, w.timeout, w.frame)
		if err != nil {
			if ctx.Err() != nil {
				w.room.lose(place, out)
			}
			return 0, w.failed(ctx, err)
		}
		w.room.found()
		a, err := parseAnswer(body)
		if err != nil {
			return 0, err
		}
		if a.more {
			// The sizes of samples differ: this leaves room for larger ones, which costs nothing before it is used.
			w.room.size = max(w.room.size, 2*a.size)
			place = nil
			w.begin(opWrite, 0, false)
			continue
		}
		if a.size > cap(place) || a.typ.Kind != w.typ.Kind {
			return 0, errFrame
		}
		if direct {
			out.Type = a.typ
			setMemory(out, place[:a.size])
		} else {
			w.room.out = place
			copyIn(out, a.typ, place[:a.size])
		}
		return a.label, nil
	}
}

// place returns where in the arena the result for out goes: to out's own memory, where that lies there or may, and otherwise to a region
// that it is copied from. Only elements of a fixed size have memory that is part of something else.
func (w *worker) place(out *stages.Element) (place []byte, direct bool) {
	own := memory(out)
	if _, ok := w.room.arena.offset(own); ok {
		return own, true
	}
	if cap(own) == 0 || !w.typ.Fixed() {
		return nil, true
	}
	return w.room.out, false
}

// copyIn makes el an element of type t with such data, in el's own memory.
func copyIn(el *stages.Element, t stages.Type, b []byte) {
	from := stages.Element{Type: t}
	setMemory(&from, b)
	el.CopyFrom(&from)
}

// answer is what serve.py says of a result.
type answer struct {
	more  bool // it needs more room: size bytes
	typ   stages.Type
	label int32
	size  int
}

// parseAnswer reads an answer, or the Error in its place.
func parseAnswer(body []byte) (answer, error) {
	if len(body) > 0 && body[0] == 'J' {
		if err := parseReply(body, nil); err != nil {
			return answer{}, err
		}
		return answer{}, errFrame
	}
	const length = 1 + 1 + 1 + 2 + 3*4 + 4 + 8
	if len(body) != length || body[0] != 'C' || body[1] > 1 || body[2] > byte(stages.Object) {
		return answer{}, errFrame
	}
	a := answer{more: body[1] == 1, typ: stages.Type{Kind: stages.Kind(body[2])}}
	for i := range a.typ.Shape {
		a.typ.Shape[i] = int(int32(binary.LittleEndian.Uint32(body[5+4*i:])))
	}
	a.label = int32(binary.LittleEndian.Uint32(body[17:]))
	size := binary.LittleEndian.Uint64(body[21:])
	if size > math.MaxInt/4 {
		return answer{}, errFrame
	}
	a.size = int(size)
	switch a.typ.Kind {
	case stages.Object, stages.Encoded:
		a.typ.Shape = stages.Shape{}
	case stages.Image, stages.Tensor, stages.Tokens:
		if !a.more && a.typ.Size() != a.size {
			return answer{}, fmt.Errorf("%w: %d bytes of a %v", errFrame, a.size, a.typ)
		}
	}
	return a, nil
}

var errFrame = errors.New("the Python helper sent a malformed message: did the user's code write to its socket?")
