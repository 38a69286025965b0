package config

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/zclconf/go-cty/cty"

	"github.com/pipectl/pipectl/stages"
)

// values converts an object to named values. Those of an empty one are nil only where the attribute is left out.
func values(v cty.Value) (any, *fault) {
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil, wrongType("object such as { size = 224 }", v)
	}
	out := stages.Values{}
	for name, e := range v.AsValueMap() {
		x, f := plain(e)
		if f != nil {
			return nil, &fault{f.summary, fmt.Sprintf("%s, which stands at %q", f.detail, name), -1}
		}
		out[name] = x
	}
	return out, nil
}

// plain converts a value to what stages.Values hold.
func plain(v cty.Value) (any, *fault) {
	t := v.Type()
	switch {
	case v.IsNull():
		return nil, nil
	case t == cty.String:
		return text(v)
	case t == cty.Bool:
		return v.True(), nil
	case t == cty.Number:
		n := v.AsBigFloat()
		if i, accuracy := n.Int64(); n.IsInt() && accuracy == big.Exact {
			return i, nil
		}
		if extreme(n) {
			return nil, &fault{"Value out of range", "can't hold " + number(n), -1}
		}
		x, _ := n.Float64()
		return x, nil
	case t.IsObjectType() || t.IsMapType():
		o, f := values(v)
		if f != nil {
			return nil, f
		}
		return map[string]any(o.(stages.Values)), nil
	case t.IsTupleType() || t.IsListType() || t.IsSetType():
		list := []any{}
		for _, e := range v.AsValueSlice() {
			x, f := plain(e)
			if f != nil {
				return nil, f
			}
			list = append(list, x)
		}
		return list, nil
	}
	return nil, &fault{"Wrong type", "can't hold " + describe(v), -1}
}

// texts converts an object whose values are strings.
func texts(v cty.Value) (any, *fault) {
	if !v.Type().IsObjectType() && !v.Type().IsMapType() {
		return nil, wrongType(`object of strings such as { OMP_NUM_THREADS = "1" }`, v)
	}
	out := map[string]string{}
	for name, e := range v.AsValueMap() {
		if e.IsNull() {
			return nil, &fault{"Null value", fmt.Sprintf("can't hold null, which stands at %q", name), -1}
		}
		s, f := text(e)
		if f != nil {
			return nil, &fault{f.summary, fmt.Sprintf("%s, at %q", f.detail, name), -1}
		}
		out[name] = s
	}
	return out, nil
}

// objectOf returns named values as an expression sees them; null where there are none because the attribute is left out.
func objectOf[V any](m map[string]V) cty.Value {
	if m == nil {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	object := map[string]cty.Value{}
	for name, x := range m {
		object[name] = ctyOf(x)
	}
	return cty.ObjectVal(object)
}

// ctyOf is plain the other way round.
func ctyOf(x any) cty.Value {
	switch x := x.(type) {
	case string:
		return cty.StringVal(x)
	case bool:
		return cty.BoolVal(x)
	case int64:
		return cty.NumberIntVal(x)
	case float64:
		return cty.MustParseNumberVal(strconv.FormatFloat(x, 'g', -1, 64))
	case map[string]any:
		return objectOf(x)
	case []any:
		list := make([]cty.Value, len(x))
		for i := range x {
			list[i] = ctyOf(x[i])
		}
		return cty.TupleVal(list)
	}
	return cty.NullVal(cty.DynamicPseudoType)
}
