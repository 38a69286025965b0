package stages

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// TestBuiltin checks what every operator must have for `pipectl stages` and docs/stages.md to be of use. Attributes
// panics by itself where a tag or a field's type is none of those listed at Operator.
func TestBuiltin(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, op := range Builtin().Operators() {
		t.Run(op.Block+" "+op.Type, func(t *testing.T) {
			if !name.MatchString(op.Type) {
				t.Errorf("the type %q is no name in HCL's style", op.Type)
			}
			if !sentence(op.Summary) || strings.Contains(op.Summary, "\n") {
				t.Errorf("the summary %q is not one line that ends as a sentence does", op.Summary)
			}
			if op.Doc != "" && !sentence(op.Doc) {
				t.Errorf("the doc ends in %q", op.Doc[max(0, len(op.Doc)-20):])
			}
			spec := op.New()
			if other := op.New(); !reflect.DeepEqual(spec, other) {
				t.Error("New returns other defaults each time")
			} else if spec == other && reflect.TypeOf(spec).Elem().Size() > 0 {
				t.Error("New returns the same spec each time")
			}
			if op.Block == Load {
				if s, ok := spec.(SourceSpec); !ok {
					t.Errorf("%T is no SourceSpec", spec)
				} else if s.Shuffled() {
					t.Error("it shuffles by default")
				}
			} else if _, ok := spec.(StageSpec); !ok {
				t.Errorf("%T is no StageSpec", spec)
			}
			for _, a := range Attributes(spec) {
				if !name.MatchString(a.Name) {
					t.Errorf("the attribute %q is no name in HCL's style", a.Name)
				}
				if !sentence(a.Doc) {
					t.Errorf("%s has the doc %q", a.Name, a.Doc)
				}
				if a.Required || a.Default == nil {
					continue
				}
				if !allowed(a) {
					t.Errorf("%s has the default %v, which is not %s", a.Name, a.Default, a.Limits())
				}
			}
			if v, ok := spec.(Validator); ok {
				v.Validate() // of defaults alone: an attribute that is missing is no reason to panic
			}
		})
	}
}

func sentence(s string) bool {
	return strings.HasSuffix(s, ".") && strings.TrimSpace(s) == s && strings.ToUpper(s[:1]) == s[:1]
}

// allowed reports whether an attribute's default, or each element of it, keeps within its limits.
func allowed(a Attribute) bool {
	v := reflect.ValueOf(a.Default)
	if v.Kind() != reflect.Slice {
		return a.Allows(a.Default)
	}
	for i := range v.Len() {
		if !a.Allows(v.Index(i).Interface()) {
			return false
		}
	}
	return true
}
