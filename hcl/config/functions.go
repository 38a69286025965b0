package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/shirou/gopsutil/v4/mem"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Function is one of the functions that expressions can call.
type Function struct {
	Name string
	Doc  string // one line
	impl function.Function
}

// Functions returns the functions of the language, in the order of the documents. Relative paths given to them start at
// folder.
func Functions(folder string, environ []string) []Function {
	resolve := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(folder, p)
	}
	return []Function{
		{"abs", "The number without its sign.", stdlib.AbsoluteFunc},
		{"ceil", "The number rounded up to a whole one.", stdlib.CeilFunc},
		{"floor", "The number rounded down to a whole one.", stdlib.FloorFunc},
		{"max", "The largest of the numbers.", stdlib.MaxFunc},
		{"min", "The smallest of the numbers.", stdlib.MinFunc},
		{"pow", "The first number to the power of the second.", stdlib.PowFunc},
		{"parseint", "The whole number written in a string, in the given base.", stdlib.ParseIntFunc},

		{"format", "A string made by a format such as `\"%s-%02d\"`.", stdlib.FormatFunc},
		{"join", "The strings of a list, with a separator between them.", stdlib.JoinFunc},
		{"lower", "The string in lower case.", stdlib.LowerFunc},
		{"replace", "The string with every occurrence of a part replaced.", stdlib.ReplaceFunc},
		{"split", "The parts of a string between separators, as a list.", stdlib.SplitFunc},
		{"substr", "The part of a string from an offset, of a length in characters.", stdlib.SubstrFunc},
		{"trimspace", "The string without white space at its ends.", stdlib.TrimSpaceFunc},
		{"upper", "The string in upper case.", stdlib.UpperFunc},

		{"coalesce", "The first of the values that isn't null.", stdlib.CoalesceFunc},
		{"concat", "The elements of several lists in one.", stdlib.ConcatFunc},
		{"contains", "Whether a list has an element.", stdlib.ContainsFunc},
		{"distinct", "The list with each element once.", stdlib.DistinctFunc},
		{"element", "The element of a list at an index, which wraps around.", stdlib.ElementFunc},
		{"flatten", "The list with the lists in it replaced by their elements.", stdlib.FlattenFunc},
		{"keys", "The keys of a map, in order.", stdlib.KeysFunc},
		{"length", "The number of elements in a list or map, or of characters in a string.", lengthFunc()},
		{"lookup", "The value of a key in a map, or the given default.", stdlib.LookupFunc},
		{"merge", "The entries of several maps in one; later ones win.", stdlib.MergeFunc},
		{"range", "A list of numbers from a start up to a limit, in steps.", stdlib.RangeFunc},
		{"reverse", "The list in reverse order.", stdlib.ReverseListFunc},
		{"sort", "The strings of a list in order.", stdlib.SortFunc},
		{"values", "The values of a map, in the order of its keys.", stdlib.ValuesFunc},

		{"can", "Whether an expression can be worked out.", tryfunc.CanFunc},
		{"jsondecode", "The value written in a JSON string.", stdlib.JSONDecodeFunc},
		{"jsonencode", "The value as a JSON string.", stdlib.JSONEncodeFunc},
		{"tonumber", "The value as a number.", stdlib.MakeToFunc(cty.Number)},
		{"tostring", "The value as a string.", stdlib.MakeToFunc(cty.String)},
		{"try", "The first of the expressions that can be worked out.", tryfunc.TryFunc},

		{"abspath", "The absolute path of a path; a relative one starts at the file's folder.", textFunc("path", cty.String,
			func(p string) (cty.Value, error) {
				p, err := filepath.Abs(resolve(p))
				return cty.StringVal(p), err
			})},
		{"basename", "The last part of a path.", textFunc("path", cty.String, func(p string) (cty.Value, error) {
			return cty.StringVal(filepath.Base(p)), nil
		})},
		{"cpus", "The number of CPUs that pipectl may use.", constantFunc(cty.Number, func() (cty.Value, error) {
			return cty.NumberIntVal(int64(runtime.GOMAXPROCS(0))), nil // heeds the container's limit
		})},
		{"env", "The value of an environment variable, or null where it isn't set.", textFunc("name", cty.String,
			func(name string) (cty.Value, error) {
				if v, ok := lookupEnv(environ, name); ok {
					return cty.StringVal(v), nil
				}
				return cty.NullVal(cty.String), nil
			})},
		{"fileexists", "Whether a path leads to a file or folder; a relative one starts at the file's folder.", textFunc("path", cty.Bool,
			func(p string) (cty.Value, error) {
				_, err := os.Stat(resolve(p))
				return cty.BoolVal(err == nil), nil
			})},
		{"memory", "The machine's memory in bytes.", constantFunc(cty.Number, func() (cty.Value, error) {
			m, err := mem.VirtualMemory()
			if err != nil {
				return cty.DynamicVal, fmt.Errorf("reading the machine's memory: %w", err)
			}
			return cty.NumberUIntVal(m.Total), nil
		})},
	}
}

func textFunc(param string, result cty.Type, f func(string) (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: param, Type: cty.String}},
		Type:   function.StaticReturnType(result),
		Impl:   func(args []cty.Value, _ cty.Type) (cty.Value, error) { return f(args[0].AsString()) },
	})
}

func constantFunc(result cty.Type, f func() (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Type: function.StaticReturnType(result),
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return f() },
	})
}

// lengthFunc is the standard library's length, for strings too.
func lengthFunc() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType}},
		Type:   function.StaticReturnType(cty.Number),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if args[0].Type() == cty.String {
				return stdlib.Strlen(args[0])
			}
			return stdlib.Length(args[0])
		},
	})
}

// lookupEnv finds a variable in a list of "key=value", where a later one wins.
func lookupEnv(environ []string, key string) (string, bool) {
	for _, kv := range slices.Backward(environ) {
		if v, ok := strings.CutPrefix(kv, key+"="); ok {
			return v, true
		}
	}
	return "", false
}

// functions returns the functions for expressions in files of a folder.
func (l *loader) functions(folder string) map[string]function.Function {
	if f, ok := l.funcs[folder]; ok {
		return f
	}
	table := map[string]function.Function{}
	for _, f := range Functions(folder, l.Environ) {
		table[f.Name] = f.impl
	}
	l.funcs[folder] = table
	return table
}
