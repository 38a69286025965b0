package stages

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Count is a whole number, or "auto", which is 0: the engine decides.
type Count int

// None is the Count that is written 0, of attributes that may be.
const None Count = -1

// Attribute describes one attribute of a spec struct by its tags, its type and its pre-set value. One description drives
// decoding, `pipectl stages` and the generated documents.
type Attribute struct {
	Name     string
	Type     string // in words: "whole number", "list of strings"
	Required bool
	Default  any // the field's pre-set value; nil where the attribute is required or has no default
	Doc      string
	Enum     []string
	Field    reflect.StructField

	min, moremin, max, lessmax *limit
}

type limit struct {
	text  string
	value float64
}

// Common reports whether the language itself gives the attribute to stages, or to those of a block, so that a spec can't have it.
func Common(block, name string) bool {
	return slices.Contains([]string{"workers", "prefetch", "on_error", "max_skips"}, name) ||
		name == "device" && (block == Prepare || block == Augment) || name == "weight" && block == Load
}

// Attributes describes the attributes of spec, a pointer to a struct whose fields carry the tags listed at Operator.
// Fields of embedded structs count as its own; a pointer stands for an optional attribute without a default. It panics
// where a tag or type isn't one of those, or a default breaks its own limits: that is a programmer's mistake.
func Attributes(spec any) []Attribute {
	v := reflect.ValueOf(spec)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("stages: spec %T is not a pointer to a struct", spec))
	}
	var attrs []Attribute
	for _, f := range reflect.VisibleFields(v.Elem().Type()) {
		tag, ok := f.Tag.Lookup("hcl")
		if !ok {
			continue
		}
		a, err := describe(f, tag, v.Elem().FieldByIndex(f.Index))
		if err != nil {
			panic(fmt.Sprintf("stages: field %s of %T: %v", f.Name, spec, err))
		}
		attrs = append(attrs, a)
	}
	return attrs
}

func describe(f reflect.StructField, tag string, v reflect.Value) (Attribute, error) {
	name, option, _ := strings.Cut(tag, ",")
	a := Attribute{Name: name, Required: option != "optional", Doc: f.Tag.Get("doc"), Field: f}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		if a.Required {
			return a, errors.New("a pointer is for an optional attribute")
		}
		t = t.Elem()
	}
	if a.Type = typeWords(t); a.Type == "" || name == "" || !f.IsExported() {
		return a, fmt.Errorf("%s can't be an attribute", f.Type)
	}
	if !a.Required && f.Type.Kind() != reflect.Pointer {
		a.Default = v.Interface()
	}
	if enum := f.Tag.Get("enum"); enum != "" {
		a.Enum = strings.Split(enum, ",")
	}
	for key, dst := range map[string]**limit{"min": &a.min, "moremin": &a.moremin, "max": &a.max, "lessmax": &a.lessmax} {
		text := f.Tag.Get(key)
		if text == "" {
			continue
		}
		n, err := parseLimit(t, text)
		if err != nil {
			return a, fmt.Errorf("limit %s: %w", key, err)
		}
		*dst = &limit{text, n}
	}
	if a.Default != nil && !a.allowsDefault(v) {
		return a, fmt.Errorf("the default %v must be %s", a.Default, a.Limits())
	}
	return a, nil
}

func (a Attribute) allowsDefault(v reflect.Value) bool {
	if v.Kind() != reflect.Slice {
		return v.Interface() == any(Count(0)) || a.Allows(v.Interface())
	}
	for i := range v.Len() {
		if !a.Allows(v.Index(i).Interface()) {
			return false
		}
	}
	return true
}

// typeWords returns the words for a field's type, or "" if attributes can't have it.
func typeWords(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Path]():
		return "path"
	case reflect.TypeFor[Bytes]():
		return "size"
	case reflect.TypeFor[Jitter]():
		return "duration or fraction"
	case reflect.TypeFor[time.Duration]():
		return "duration"
	case reflect.TypeFor[Count]():
		return `whole number or "auto"`
	case reflect.TypeFor[Values]():
		return "object"
	case reflect.TypeFor[map[string]string]():
		return "object of strings"
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Uint64:
		return "whole number"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		switch e := t.Elem(); e.Kind() {
		case reflect.Slice, reflect.Pointer, reflect.Bool:
		case reflect.Int, reflect.Float64:
			if words := typeWords(e); words == "number" || words == "whole number" {
				return words + ", or a list of them"
			}
		default:
			if words := typeWords(e); words != "" {
				return "list of " + words + "s"
			}
		}
	}
	return ""
}

func parseLimit(t reflect.Type, text string) (float64, error) {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t {
	case reflect.TypeFor[Bytes]():
		n, err := ParseBytes(text)
		return float64(n), err
	case reflect.TypeFor[time.Duration]():
		d, err := time.ParseDuration(text)
		return float64(d), err
	}
	return strconv.ParseFloat(text, 64)
}

// Limits says in words which values the attribute takes: "at least 1", `one of "auto", "cuda", "cpu"`. It is "" where its
// type says all.
func (a Attribute) Limits() string {
	if len(a.Enum) > 0 {
		quoted := make([]string, len(a.Enum))
		for i, v := range a.Enum {
			quoted[i] = strconv.Quote(v)
		}
		return "one of " + strings.Join(quoted, ", ")
	}
	var words []string
	switch {
	case a.min != nil && a.max != nil:
		return "from " + a.min.text + " to " + a.max.text
	case a.min != nil:
		words = append(words, "at least "+a.min.text)
	case a.moremin != nil:
		words = append(words, "more than "+a.moremin.text)
	}
	switch {
	case a.max != nil:
		words = append(words, "at most "+a.max.text)
	case a.lessmax != nil:
		words = append(words, "less than "+a.lessmax.text)
	}
	return strings.Join(words, " and ")
}

// Allows reports whether v, a value of the field's type or an element of its list, keeps within the limits.
func (a Attribute) Allows(v any) bool {
	var n float64
	switch v := v.(type) {
	case string:
		return len(a.Enum) == 0 || slices.Contains(a.Enum, v)
	case int:
		n = float64(v)
	case Count:
		if n = float64(v); v == None {
			n = 0
		}
	case uint64:
		n = float64(v)
	case float64:
		n = v
	case Bytes:
		n = float64(v)
	case time.Duration:
		n = float64(v)
	default:
		return true
	}
	return (a.min == nil || n >= a.min.value) && (a.moremin == nil || n > a.moremin.value) &&
		(a.max == nil || n <= a.max.value) && (a.lessmax == nil || n < a.lessmax.value)
}

// units are the units of a size, largest first.
var units = [...]struct {
	name string
	size int64
}{
	{"PiB", 1 << 50}, {"PB", 1e15}, {"TiB", 1 << 40}, {"TB", 1e12}, {"GiB", 1 << 30}, {"GB", 1e9},
	{"MiB", 1 << 20}, {"MB", 1e6}, {"KiB", 1 << 10}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// ParseBytes reads a size such as "512KiB", "1.5GB" or "4096".
func ParseBytes(s string) (Bytes, error) {
	number, scale := strings.TrimSpace(s), int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(number, u.name); ok {
			number, scale = strings.TrimSpace(rest), u.size
			break
		}
	}
	if n, err := strconv.ParseUint(number, 10, 63); err == nil && n <= math.MaxInt64/uint64(scale) {
		return Bytes(int64(n) * scale), nil // exactly, beyond what a float64 holds
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "xXpPnNiI_+") {
		return 0, fmt.Errorf("%q is not a size such as \"512KiB\", \"2GiB\" or \"1MB\"", s)
	}
	v *= float64(scale)
	if v < 0 || v >= 1<<63 {
		return 0, fmt.Errorf("the size %q is out of range", s)
	}
	return Bytes(v), nil
}

// Text returns the size exactly, as HCL files write it: "2GiB", "1MB", or "1000001B" where no larger unit divides it.
func (b Bytes) Text() string {
	for _, u := range units {
		if b != 0 && int64(b)%u.size == 0 {
			return fmt.Sprintf("%d%s", int64(b)/u.size, u.name)
		}
	}
	return "0B"
}
