package config

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/pipectl/pipectl/internal/suggest"
	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// fault is what is wrong with a value.
type fault struct {
	summary string
	detail  string // goes on after the attribute's name
	index   int    // the element of a list that it is about, or -1
}

func wrongType(want string, v cty.Value) *fault {
	return &fault{"Wrong type", fmt.Sprintf("needs a %s, not %s", want, describe(v)), -1}
}

// describe names a value in a message: short ones by what they are.
func describe(v cty.Value) string {
	switch {
	case v.IsNull():
		return "null"
	case v.Type() == cty.String:
		s := v.AsString()
		if r := []rune(s); len(r) > 40 {
			s = string(r[:40]) + "…"
		}
		return fmt.Sprintf("%q", s)
	case v.Type() == cty.Number:
		return number(v.AsBigFloat())
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	}
	return "a " + v.Type().FriendlyName()
}

// extreme reports whether a number has more digits than are worth writing, which might take forever.
func extreme(n *big.Float) bool {
	e := n.MantExp(nil)
	return e > 1024 || e < -1024
}

// wholeBits is the size up to which a whole number is written in full.
const wholeBits = 100

func number(n *big.Float) string {
	if extreme(n) {
		return "a number of extreme size"
	}
	if n.IsInt() && n.MantExp(nil) <= wholeBits {
		return n.Text('f', 0)
	}
	return n.Text('g', 15)
}

// assign converts v to the type of dst, the field of attribute a or an element of its list, and sets it.
func assign(dst reflect.Value, a stages.Attribute, v cty.Value) *fault {
	if v.IsNull() {
		return &fault{"Null value", "can't be null. Leave the attribute out to get its default", -1}
	}
	if dst.Kind() == reflect.Pointer {
		p := reflect.New(dst.Type().Elem())
		if f := assign(p.Elem(), a, v); f != nil {
			return f
		}
		dst.Set(p)
		return nil
	}
	if dst.Kind() == reflect.Slice {
		return assignList(dst, a, v)
	}
	parsed, f := scalar(dst.Type(), v)
	if f != nil {
		return f
	}
	auto := parsed == any(stages.Count(0)) && v.Type() == cty.String
	if !auto && !a.Allows(parsed) {
		if s, ok := parsed.(string); ok {
			return &fault{"Unknown value", fmt.Sprintf("must be %s, not %q.%s", a.Limits(), s, suggest.Sentence(s, a.Enum)), -1}
		}
		return &fault{"Value out of range", fmt.Sprintf("must be %s, not %s", a.Limits(), describe(v)), -1}
	}
	dst.Set(reflect.ValueOf(parsed).Convert(dst.Type()))
	return nil
}

func assignList(dst reflect.Value, a stages.Attribute, v cty.Value) *fault {
	t := v.Type()
	switch {
	case t == cty.Number && isNumber(dst.Type().Elem()):
		v = cty.TupleVal([]cty.Value{v})
	case !t.IsListType() && !t.IsTupleType() && !t.IsSetType():
		return wrongType(a.Type, v)
	}
	list := reflect.MakeSlice(dst.Type(), v.LengthInt(), v.LengthInt())
	i := 0
	for _, e := range v.Elements() {
		if f := assign(list.Index(i), a, e); f != nil {
			return &fault{f.summary, f.detail, i}
		}
		i++
	}
	dst.Set(list)
	return nil
}

// isNumber reports whether lists of t's may be written as a single number.
func isNumber(t reflect.Type) bool { return t.Kind() == reflect.Int || t.Kind() == reflect.Float64 }

// scalar converts v to a value of type t, or of t's kind.
func scalar(t reflect.Type, v cty.Value) (any, *fault) {
	switch t {
	case reflect.TypeFor[stages.Count]():
		if v.Type() == cty.String && v.AsString() == "auto" {
			return stages.Count(0), nil
		}
		n, f := whole(v, `whole number or "auto"`)
		if n <= 0 {
			n-- // 0 stands for "auto"
		}
		return stages.Count(n), f
	case reflect.TypeFor[stages.Bytes]():
		return size(v)
	case reflect.TypeFor[time.Duration]():
		return duration(v)
	case reflect.TypeFor[stages.Jitter]():
		return jitter(v)
	case reflect.TypeFor[stages.Values]():
		return values(v)
	case reflect.TypeFor[map[string]string]():
		return texts(v)
	case reflect.TypeFor[stages.Path]():
		s, f := text(v)
		if f == nil && s == "" {
			f = &fault{"Empty path", `needs the path of a file or folder; "." is this file's own folder`, -1}
		} else if what := storage.CheckScheme(s); f == nil && what != "" {
			f = &fault{"Unknown kind of URL", what, -1}
		}
		return s, f
	}
	switch t.Kind() {
	case reflect.String:
		return text(v)
	case reflect.Bool:
		b, err := convert.Convert(v, cty.Bool)
		if err != nil {
			return nil, wrongType("bool, true or false", v)
		}
		return b.True(), nil
	case reflect.Int:
		return whole(v, "whole number")
	case reflect.Uint64:
		return unsigned(v)
	}
	n := toNumber(v)
	if n == nil {
		return nil, wrongType("number", v)
	}
	x, _ := n.Float64()
	if math.IsInf(x, 0) {
		return nil, &fault{"Value out of range", "must be a finite number", -1}
	}
	return x, nil
}

// toNumber returns v as a number, or nil if it isn't one and doesn't hold the text of one.
func toNumber(v cty.Value) *big.Float {
	n, err := convert.Convert(v, cty.Number)
	if err != nil {
		return nil
	}
	return n.AsBigFloat()
}

func text(v cty.Value) (string, *fault) {
	if v.Type() == cty.Number && extreme(v.AsBigFloat()) {
		return "", wrongType("string", v)
	}
	s, err := convert.Convert(v, cty.String)
	if err != nil {
		return "", wrongType("string", v)
	}
	if strings.ContainsRune(s.AsString(), 0) {
		return "", &fault{"Malformed string", "contains a NUL character; remove it", -1}
	}
	return s.AsString(), nil
}

func whole(v cty.Value, want string) (int, *fault) {
	n := toNumber(v)
	switch {
	case n == nil:
		return 0, wrongType(want, v)
	case !n.IsInt():
		return 0, &fault{"Not a whole number", fmt.Sprintf("needs a %s, not %s", want, number(n)), -1}
	}
	i, accuracy := n.Int64()
	if accuracy != big.Exact || int64(int(i)) != i {
		return 0, &fault{"Value out of range", "is out of the range of whole numbers", -1}
	}
	return int(i), nil
}

func unsigned(v cty.Value) (uint64, *fault) {
	n := toNumber(v)
	switch {
	case n == nil:
		return 0, wrongType("whole number", v)
	case !n.IsInt():
		return 0, &fault{"Not a whole number", "needs a whole number, not " + number(n), -1}
	}
	u, accuracy := n.Uint64()
	if accuracy != big.Exact {
		return 0, &fault{"Value out of range", fmt.Sprintf("must be a whole number from 0 to %d, not %s", uint64(math.MaxUint64), number(n)), -1}
	}
	return u, nil
}

func size(v cty.Value) (stages.Bytes, *fault) {
	switch v.Type() {
	case cty.Number:
		n, f := whole(v, "size in whole bytes")
		if f == nil && n < 0 {
			f = &fault{"Value out of range", "is a size, which can't be negative", -1}
		}
		return stages.Bytes(n), f
	case cty.String:
		b, err := stages.ParseBytes(v.AsString())
		if err != nil {
			return 0, &fault{"Malformed size", fmt.Sprintf(`needs a size such as "512KiB", "2GiB" or "1MB", not %s`, describe(v)), -1}
		}
		return b, nil
	}
	return 0, wrongType(`size such as "512KiB"`, v)
}

func duration(v cty.Value) (time.Duration, *fault) {
	if n := toNumber(v); n != nil {
		return 0, &fault{"Duration without a unit", fmt.Sprintf(`needs a unit: "%sms" or "%[1]ss"`, number(n)), -1}
	}
	if v.Type() != cty.String {
		return 0, wrongType(`duration such as "10ms"`, v)
	}
	d, err := time.ParseDuration(v.AsString())
	switch {
	case err != nil && wellFormed(v.AsString()):
		return 0, &fault{"Value out of range", "must be at most 2562047h, which is 292 years, not " + describe(v), -1}
	case err != nil:
		return 0, &fault{"Malformed duration", fmt.Sprintf(`needs a duration such as "250us", "10ms", "1.5s" or "2m", not %s`, describe(v)), -1}
	case d < 0:
		return 0, &fault{"Value out of range", "is a duration, which can't be negative", -1}
	}
	return d, nil
}

// wellFormed reports whether a text that isn't taken for a duration would be one with other digits.
func wellFormed(s string) bool {
	_, err := time.ParseDuration(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, s))
	return err == nil
}

func jitter(v cty.Value) (stages.Jitter, *fault) {
	n := toNumber(v)
	if n == nil {
		d, f := duration(v)
		return stages.Jitter{Time: d}, f
	}
	x, _ := n.Float64()
	if x < 0 || x > 1 {
		return stages.Jitter{}, &fault{"Value out of range", `must be a fraction from 0 to 1, or a duration such as "2ms", not ` + number(n), -1}
	}
	return stages.Jitter{Fraction: x}, nil
}

// valueOf returns the effective value of a field as expressions and Settings show it. A nil pointer is null, and a list of
// one number, where a single number does, that number.
func valueOf(field reflect.Value) cty.Value {
	if field.Kind() == reflect.Pointer {
		if field.IsNil() {
			return cty.NullVal(cty.DynamicPseudoType)
		}
		field = field.Elem()
	}
	switch v := field.Interface().(type) {
	case stages.Count:
		if v == 0 {
			return cty.StringVal("auto")
		}
		return cty.NumberIntVal(int64(max(v, 0)))
	case stages.Bytes:
		return cty.StringVal(v.Text())
	case time.Duration:
		return cty.StringVal(durationText(v))
	case stages.Jitter:
		if v.Time != 0 {
			return cty.StringVal(durationText(v.Time))
		}
		return cty.NumberFloatVal(v.Fraction)
	case stages.Values:
		return objectOf(v)
	case map[string]string:
		return objectOf(v)
	}
	switch field.Kind() {
	case reflect.String:
		return cty.StringVal(field.String())
	case reflect.Bool:
		return cty.BoolVal(field.Bool())
	case reflect.Int:
		return cty.NumberIntVal(field.Int())
	case reflect.Uint64:
		return cty.NumberUIntVal(field.Uint())
	case reflect.Float64:
		// By its shortest text, so that 0.1 stays 0.1 and isn't the nearest binary fraction.
		return cty.MustParseNumberVal(strconv.FormatFloat(field.Float(), 'g', -1, 64))
	}
	if field.Len() == 1 && isNumber(field.Type().Elem()) {
		return valueOf(field.Index(0))
	}
	list := make([]cty.Value, field.Len())
	for i := range list {
		list[i] = valueOf(field.Index(i))
	}
	return cty.TupleVal(list)
}

// durationText writes a duration without the zero parts that time.Duration.String leaves at its end.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Literal returns an attribute's value, such as a stages.Attribute's Default, as HCL text; it is "" for nil.
func Literal(v any) string {
	if v == nil {
		return ""
	}
	return literal(valueOf(reflect.ValueOf(v)))
}

// literal writes a value in one line: an object's attributes are set apart by commas.
func literal(v cty.Value) string {
	lines := strings.Split(string(hclwrite.TokensForValue(v).Bytes()), "\n")
	var s strings.Builder
	for i, line := range lines {
		line = strings.TrimSpace(line)
		switch {
		case i == 0:
		case strings.HasSuffix(lines[i-1], "{"), strings.HasPrefix(line, "}"):
			s.WriteString(" ")
		default:
			s.WriteString(", ")
		}
		s.WriteString(line)
	}
	return s.String()
}
