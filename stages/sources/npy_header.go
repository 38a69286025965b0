package sources

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/pipectl/pipectl/stages/storage"
)

// npyHeader is what a .npy file says of its array (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
type npyHeader struct {
	dtype string // as numpy writes it: "<f4"
	dims  []int  // the number of rows first
	start int64  // where the values begin
}

// kind returns a letter: f for floating-point numbers, i for whole numbers, u for those without a sign, b for truth values.
func (h npyHeader) kind() byte { return h.dtype[1] }

// width returns the bytes of a value.
func (h npyHeader) width() int { return int(h.dtype[2] - '0') }

// row returns the number of values in a row.
func (h npyHeader) row() int {
	n := 1
	for _, d := range h.dims[1:] {
		n *= d
	}
	return n
}

const (
	npyMagic     = "\x93NUMPY"
	mostNpy      = 1 << 20 // bytes of a header
	mostNpyDims  = 32      // numpy's own limit
	mostNpyBytes = 1 << 50 // of values
)

// readNpyHeader reads and checks what stands before the values, and that the values are there.
func readNpyHeader(ctx context.Context, f storage.File) (npyHeader, error) {
	var start [12]byte
	prefix := start[:min(int64(len(start)), f.Size())]
	if err := readAt(ctx, f, prefix, 0); err != nil {
		return npyHeader{}, err
	}
	switch {
	case !strings.HasPrefix(string(prefix), npyMagic) || len(prefix) < len(start):
		return npyHeader{}, fmt.Errorf("it doesn't start as a .npy file does, with %q and a header", npyMagic)
	}
	var length, at int64
	switch version := start[6]; version {
	case 1:
		length, at = int64(binary.LittleEndian.Uint16(start[8:])), 10
	case 2, 3:
		length, at = int64(binary.LittleEndian.Uint32(start[8:])), 12
	default:
		return npyHeader{}, fmt.Errorf("its format has the version %d, where 1 to 3 are known", version)
	}
	if length > mostNpy {
		return npyHeader{}, fmt.Errorf("its header is of %d bytes, more than any array needs: the file is damaged", length)
	}
	text := make([]byte, length)
	if err := readAt(ctx, f, text, at); err != nil {
		return npyHeader{}, err
	}
	h, err := parseNpyHeader(string(text))
	if err != nil {
		return npyHeader{}, err
	}
	h.start = at + length
	want := int64(h.dims[0]) * int64(h.row()) * int64(h.width())
	if have := f.Size() - h.start; have != want {
		return npyHeader{}, fmt.Errorf("its header says that %d bytes of values follow, and there are %d: it is truncated, or holds more than one array", want, have)
	}
	return h, nil
}

// parseNpyHeader reads the Python dictionary that a header is.
func parseNpyHeader(text string) (npyHeader, error) {
	p := literal{rest: text}
	v, err := p.value(0)
	if p.space(); err == nil && p.rest != "" {
		err = errors.New("something follows the dictionary")
	}
	dict, ok := v.(map[string]any)
	if err == nil && !ok {
		err = errors.New("it is no dictionary")
	}
	if err != nil {
		return npyHeader{}, fmt.Errorf("its header is malformed: %w", err)
	}
	h := npyHeader{}
	descr, ok := dict["descr"].(string)
	if !ok {
		return h, errors.New("it is a structured array; save each of its fields by itself: numpy.save(path, a[field])")
	}
	h.dtype = descr
	switch strings.TrimLeft(descr, "<>|=") {
	case "f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1":
		if len(descr) == 2 {
			return h, fmt.Errorf("its values have the type %q, which doesn't say in which order their bytes are", descr)
		}
	case "O":
		return h, errors.New("it holds Python objects, which can't be read without running code; save an array of numbers, of rows of one shape")
	default:
		return h, fmt.Errorf(`its values have the type %q; convert them before they are saved: a.astype("<f4") for numbers, "|u1" for images, "<i4" for tokens`, descr)
	}
	if fortran, ok := dict["fortran_order"].(bool); !ok || fortran {
		return h, errors.New("it is in Fortran order, so that its rows aren't in one piece; save numpy.ascontiguousarray(a)")
	}
	shape, ok := dict["shape"].([]any)
	if !ok || len(shape) > mostNpyDims {
		return h, errors.New("its header gives no shape")
	}
	if len(shape) == 0 {
		return h, errors.New("it is a single value, without rows")
	}
	size := uint64(h.width())
	for _, d := range shape {
		n, ok := d.(int)
		if !ok || n < 0 {
			return h, errors.New("its header gives no shape")
		}
		if n == 0 {
			return h, errors.New("it is empty: one of its dimensions is 0")
		}
		hi, lo := bits.Mul64(size, uint64(n))
		if size = lo; hi != 0 || size > mostNpyBytes {
			return h, errors.New("its header says that it holds more than a PiB")
		}
		h.dims = append(h.dims, n)
	}
	return h, nil
}

// literal reads the literals of Python that headers are made of: dictionaries, lists and tuples (as []any), strings, whole numbers,
// True, False and None.
type literal struct{ rest string }

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n\x00") }

// next takes a token if it stands next.
func (p *literal) next(token string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, token)
	p.rest = rest
	return ok
}

func (p *literal) value(depth int) (any, error) {
	const mostDepth = 8
	switch {
	case depth > mostDepth:
		return nil, errors.New("it is nested too deeply")
	case p.next("True"):
		return true, nil
	case p.next("False"):
		return false, nil
	case p.next("None"):
		return nil, nil
	case p.next("{"):
		dict := make(map[string]any)
		for !p.next("}") {
			key, err := p.value(depth + 1)
			if err != nil {
				return nil, err
			}
			name, ok := key.(string)
			if !ok || !p.next(":") {
				return nil, errors.New("a dictionary has no key where one should be")
			}
			if dict[name], err = p.value(depth + 1); err != nil {
				return nil, err
			}
			if err := p.comma("}"); err != nil {
				return nil, err
			}
		}
		return dict, nil
	case p.next("("):
		return p.list(")", depth)
	case p.next("["):
		return p.list("]", depth)
	case p.next("'"):
		return p.text("'")
	case p.next(`"`):
		return p.text(`"`)
	}
	end := 0
	for end < len(p.rest) && (p.rest[end] == '-' || p.rest[end] >= '0' && p.rest[end] <= '9') {
		end++
	}
	n, err := strconv.Atoi(p.rest[:end])
	if err != nil {
		return nil, fmt.Errorf("it goes on with %.20q", p.rest)
	}
	p.rest = strings.TrimPrefix(p.rest[end:], "L") // as Python 2 wrote long numbers
	return n, nil
}

// comma takes the comma after a value, which may be missing before the end.
func (p *literal) comma(end string) error {
	if p.next(",") {
		return nil
	}
	if p.space(); !strings.HasPrefix(p.rest, end) {
		return fmt.Errorf("there is no %q or comma before %.20q", end, p.rest)
	}
	return nil
}

func (p *literal) list(end string, depth int) (any, error) {
	list := []any{}
	for !p.next(end) {
		v, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if err := p.comma(end); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (p *literal) text(quote string) (any, error) {
	text, rest, ok := strings.Cut(p.rest, quote)
	if !ok {
		return nil, errors.New("a string doesn't end")
	}
	p.rest = rest
	return text, nil
}
