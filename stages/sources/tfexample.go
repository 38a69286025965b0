package sources

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pipectl/pipectl/stages"
)

// example is a serialised tf.train.Example: a message whose field 1 is a map from names to features
// (https://github.com/tensorflow/tensorflow/blob/master/tensorflow/core/example/feature.proto), in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding/).
type example []byte

// feature is a list of values.
type feature struct {
	there bool // false if there is no such feature
	kind  valueKind
	list  []byte // a BytesList, FloatList or Int64List; empty where it has no values
}

// The wire types of fields.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// wireField is a field of a message.
type wireField struct {
	number uint64
	wire   uint64
	value  uint64 // of a varint
	data   []byte // of all others
}

// wireReader takes a message apart.
type wireReader struct{ rest []byte }

// next returns the next field. ok is false at the message's end.
func (r *wireReader) next() (f wireField, ok bool, err error) {
	if len(r.rest) == 0 {
		return f, false, nil
	}
	tag, err := r.varint()
	if err != nil {
		return f, false, err
	}
	f.number, f.wire = tag>>3, tag&7
	var n uint64
	switch f.wire {
	case wireVarint:
		f.value, err = r.varint()
	case wire64:
		n = 8
	case wire32:
		n = 4
	case wireBytes:
		n, err = r.varint()
	default:
		err = fmt.Errorf("a field has the wire type %d, which no Example has", f.wire)
	}
	switch {
	case err != nil:
		return f, false, err
	case f.number == 0:
		return f, false, errors.New("a field has the number 0")
	case n > uint64(len(r.rest)):
		return f, false, fmt.Errorf("a field of %d bytes has %d", n, len(r.rest))
	}
	f.data, r.rest = r.rest[:n], r.rest[n:]
	return f, true, nil
}

func (r *wireReader) varint() (uint64, error) {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		return 0, errors.New("a number doesn't end where it should")
	}
	r.rest = r.rest[n:]
	return v, nil
}

// fields calls a function with each field of a message that has a number and holds a message or bytes.
func fields(message []byte, number uint64, use func(data []byte) error) error {
	for r := (wireReader{message}); ; {
		f, ok, err := r.next()
		if err != nil || !ok {
			return err
		}
		if f.number == number && f.wire == wireBytes {
			if err := use(f.data); err != nil {
				return err
			}
		}
	}
}

// find returns the features of two names. Of a name that occurs twice the last counts, as in every map of protobuf. Those
// that don't occur aren't there.
func (e example) find(name1, name2 string) (found [2]feature, err error) {
	err = e.each(func(key, value []byte) error {
		for i, name := range [...]string{name1, name2} {
			if string(key) != name {
				continue
			}
			f, err := parseFeature(value)
			if err != nil {
				return fmt.Errorf("feature %q: %w", name, err)
			}
			found[i] = f
		}
		return nil
	})
	if err != nil {
		return found, fmt.Errorf("the record is no tf.train.Example: %w", err)
	}
	return found, nil
}

// names returns the features' names, sorted.
func (e example) names() []string {
	var names []string
	// What was found before an error is still of use to the message that wants it.
	_ = e.each(func(key, _ []byte) error {
		names = append(names, string(key))
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names)
}

// each calls a function with every entry of the map of features.
func (e example) each(use func(key, value []byte) error) error {
	return fields(e, 1, func(features []byte) error {
		return fields(features, 1, func(entry []byte) error {
			var key, value []byte
			for r := (wireReader{entry}); ; {
				f, ok, err := r.next()
				switch {
				case err != nil:
					return err
				case !ok:
					return use(key, value)
				case f.number == 1 && f.wire == wireBytes:
					key = f.data
				case f.number == 2 && f.wire == wireBytes:
					value = f.data
				}
			}
		})
	})
}

// parseFeature reads which of the lists a feature has.
func parseFeature(message []byte) (feature, error) {
	f, lists := feature{}, 0
	for r := (wireReader{message}); ; {
		field, ok, err := r.next()
		switch {
		case err != nil:
			return f, err
		case !ok && lists == 0:
			return f, errors.New("it has no values")
		case !ok && lists > 1:
			return f, errors.New("it has more than one list of values")
		case !ok:
			return f, nil
		case field.number >= 1 && field.number <= 3 && field.wire == wireBytes:
			f = feature{true, valueKind(field.number - 1), field.data}
			lists++
		}
	}
}

// bytes returns the one value of a list of bytes.
func (f feature) bytes() ([]byte, error) {
	var value []byte
	n := 0
	err := fields(f.list, 1, func(data []byte) error {
		value = data
		n++
		return nil
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("it has %d values, where an item is one", n)
	}
	return value, err
}

// each calls one of two functions with every value of a list of numbers. They may be packed into one field, or be a field each.
func (f feature) each(float func(float32) error, integer func(int64) error) error {
	for r := (wireReader{f.list}); ; {
		field, ok, err := r.next()
		switch {
		case err != nil || !ok:
			return err
		case field.number != 1:
		case f.kind == floats && (field.wire == wireBytes || field.wire == wire32):
			if len(field.data)%4 != 0 {
				return fmt.Errorf("%d bytes are no whole number of floats", len(field.data))
			}
			for b := field.data; len(b) > 0; b = b[4:] {
				if err := float(math.Float32frombits(binary.LittleEndian.Uint32(b))); err != nil {
					return err
				}
			}
		case f.kind == integers && field.wire == wireVarint:
			if err := integer(int64(field.value)); err != nil {
				return err
			}
		case f.kind == integers && field.wire == wireBytes:
			for packed := (wireReader{field.data}); len(packed.rest) > 0; {
				v, err := packed.varint()
				if err == nil {
					err = integer(int64(v))
				}
				if err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("a value has the wire type %d, which %s don't have", field.wire, f.kind)
		}
	}
}

// read makes out an item of type t.
func (f feature) read(t stages.Type, out *stages.Element) error {
	if f.kind == byteStrings {
		value, err := f.bytes()
		if err != nil {
			return err
		}
		return setBytes(t, out, value)
	}
	out.F32, out.I32 = out.F32[:0], out.I32[:0]
	err := f.each(
		func(v float32) error { out.F32 = append(out.F32, v); return nil },
		func(v int64) error { return addInt(t, out, v) })
	if err != nil {
		return err
	}
	return finish(t, out)
}

// label returns the one value of a list of whole numbers, which counts from 0 to below classes.
func (f feature) label(classes int) (int32, error) {
	if f.kind != integers {
		return 0, fmt.Errorf("it has %s, where labels are whole numbers; number the classes when the files are written", f.kind)
	}
	var label int64
	n := 0
	err := f.each(nil, func(v int64) error {
		label = v
		n++
		return nil
	})
	switch {
	case err != nil:
		return 0, err
	case n != 1:
		return 0, fmt.Errorf("it has %d values, where a label is one", n)
	case label < 0 || label >= int64(classes):
		return 0, fmt.Errorf("the label is %d, where classes = %d means 0 to %d", label, classes, classes-1)
	}
	return int32(label), nil
}
