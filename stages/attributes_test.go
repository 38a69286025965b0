package stages

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type shared struct {
	Shape []int `hcl:"shape,optional" min:"1" doc:"Edges."`
}

type everything struct {
	shared
	Path   Path          `hcl:"path" doc:"A folder."`
	Paths  []Path        `hcl:"paths" doc:"Folders."`
	Count  Count         `hcl:"count,optional" min:"1" max:"8" doc:"Workers."`
	Size   Bytes         `hcl:"size,optional" min:"1KiB" doc:"Bytes."`
	Time   time.Duration `hcl:"time" moremin:"1ms" max:"1h" doc:"Time."`
	Jitter Jitter        `hcl:"jitter,optional" doc:"Jitter."`
	Mode   string        `hcl:"mode,optional" enum:"a,b" doc:"Mode."`
	Names  []string      `hcl:"names,optional" doc:"Names."`
	Scale  []float64     `hcl:"scale,optional" moremin:"0" lessmax:"1" doc:"Scale."`
	Seed   uint64        `hcl:"seed,optional" doc:"Seed."`
	Fast   bool          `hcl:"fast,optional" doc:"Fast."`
	Rate   *float64      `hcl:"rate,optional" lessmax:"2.5" doc:"Rate."`
	Hidden int
}

func TestAttributes(t *testing.T) {
	type row struct {
		Name, Type string
		Required   bool
		Default    any
		Limits     string
		Doc        string
	}
	var got []row
	for _, a := range Attributes(&everything{shared: shared{Shape: []int{2}}, Count: 1, Size: 2048, Mode: "a"}) {
		got = append(got, row{a.Name, a.Type, a.Required, a.Default, a.Limits(), a.Doc})
	}
	want := []row{
		{"shape", "whole number, or a list of them", false, []int{2}, "at least 1", "Edges."},
		{"path", "path", true, nil, "", "A folder."},
		{"paths", "list of paths", true, nil, "", "Folders."},
		{"count", `whole number or "auto"`, false, Count(1), "from 1 to 8", "Workers."},
		{"size", "size", false, Bytes(2048), "at least 1KiB", "Bytes."},
		{"time", "duration", true, nil, "more than 1ms and at most 1h", "Time."},
		{"jitter", "duration or fraction", false, Jitter{}, "", "Jitter."},
		{"mode", "string", false, "a", `one of "a", "b"`, "Mode."},
		{"names", "list of strings", false, []string(nil), "", "Names."},
		{"scale", "number, or a list of them", false, []float64(nil), "more than 0 and less than 1", "Scale."},
		{"seed", "whole number", false, uint64(0), "", "Seed."},
		{"fast", "bool", false, false, "", "Fast."},
		{"rate", "number", false, nil, "less than 2.5", "Rate."},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAllows(t *testing.T) {
	attrs := map[string]Attribute{}
	for _, a := range Attributes(&everything{Size: 2048, Mode: "a"}) {
		attrs[a.Name] = a
	}
	for _, c := range []struct {
		name string
		v    any
		want bool
	}{
		{"shape", 1, true}, {"shape", 0, false},
		{"count", Count(1), true}, {"count", Count(8), true}, {"count", Count(9), false}, {"count", Count(0), false},
		{"size", Bytes(1024), true}, {"size", Bytes(1023), false},
		{"time", time.Millisecond, false}, {"time", time.Millisecond + 1, true}, {"time", time.Hour, true}, {"time", time.Hour + 1, false},
		{"jitter", Jitter{Fraction: 1}, true},
		{"mode", "a", true}, {"mode", "", false}, {"mode", "a,b", false},
		{"scale", 0.0, false}, {"scale", 0.5, true}, {"scale", 1.0, false},
		{"seed", uint64(1 << 63), true},
		{"rate", 2.4, true}, {"rate", 2.5, false},
		{"names", "anything", true}, {"fast", false, true},
	} {
		if got := attrs[c.name].Allows(c.v); got != c.want {
			t.Errorf("%s allows %v: %v, want %v", c.name, c.v, got, c.want)
		}
	}
}

// TestAttributesPanics has one programmer's mistake a struct.
func TestAttributesPanics(t *testing.T) {
	for _, c := range []struct {
		spec any
		want string
	}{
		{everything{}, "not a pointer to a struct"},
		{new(int), "not a pointer to a struct"},
		{new(struct {
			A map[string]int `hcl:"a"`
		}), "can't be an attribute"},
		{new(struct {
			A []bool `hcl:"a"`
		}), "can't be an attribute"},
		{new(struct {
			a int `hcl:"a"`
		}), "can't be an attribute"},
		{new(struct {
			A int `hcl:",optional"`
		}), "can't be an attribute"},
		{new(struct {
			A *int `hcl:"a"`
		}), "pointer is for an optional attribute"},
		{new(struct {
			A int `hcl:"a" min:"one"`
		}), "limit min"},
		{new(struct {
			A Bytes `hcl:"a" max:"1XB"`
		}), "limit max"},
		{new(struct {
			A time.Duration `hcl:"a" lessmax:"10"`
		}), "limit lessmax"},
		{new(struct {
			A string `hcl:"a,optional" enum:"x,y"`
		}), "the default  must be one of"},
		{new(struct {
			A Bytes `hcl:"a,optional" min:"1B"`
		}), "the default 0 B must be at least 1B"},
		{&struct {
			A []int `hcl:"a,optional" max:"3"`
		}{[]int{3, 4}}, "the default [3 4] must be at most 3"},
	} {
		func() {
			defer func() {
				r := recover()
				if text, ok := r.(string); !ok || !strings.Contains(text, c.want) {
					t.Errorf("%T: panic %v, want %q", c.spec, r, c.want)
				}
			}()
			Attributes(c.spec)
		}()
	}
}

func TestParseBytes(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Bytes
		text string // "" where it is an error
	}{
		{"0", 0, "0B"},
		{"4096", 4096, "4KiB"},
		{"512KiB", 512 << 10, "512KiB"},
		{" 2 GiB ", 2 << 30, "2GiB"},
		{"1.5MiB", 3 << 19, "1536KiB"},
		{"1MB", 1e6, "1MB"},
		{"1kB", 1000, "1KB"},
		{"1001", 1001, "1001B"},
		{"9007199254740993", 1<<53 + 1, "9007199254740993B"},
		{"3B", 3, "3B"},
		{"7PiB", 7 << 50, "7PiB"},
		{"8191PiB", 8191 << 50, "8191PiB"},
		{"8192PiB", 0, ""},
		{"-1KiB", 0, ""},
		{"", 0, ""},
		{"KiB", 0, ""},
		{"1XB", 0, ""},
		{"1KiBs", 0, ""},
		{"0x10", 0, ""},
		{"1e3", 1000, "1KB"},
		{"NaN", 0, ""},
		{"Inf", 0, ""},
		{"infinity", 0, ""},
		{"1_000", 0, ""},
	} {
		got, err := ParseBytes(c.in)
		if got != c.want || (err != nil) != (c.text == "") || err == nil && got.Text() != c.text {
			t.Errorf("ParseBytes(%q) = %d (%s), %v; want %d (%s)", c.in, got, got.Text(), err, c.want, c.text)
		}
		if err == nil {
			if again, err := ParseBytes(got.Text()); again != got || err != nil {
				t.Errorf("ParseBytes(%q) = %d, %v; want %d", got.Text(), again, err, got)
			}
		}
	}
}

func TestAddPanicsOnCommonAttribute(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "attribute workers") {
			t.Errorf("panic %v", r)
		}
	}()
	new(Registry).Add(Operator{Block: Prepare, Type: "x", New: func() any {
		return new(struct {
			Workers int `hcl:"workers,optional"`
		})
	}})
}

func TestAttributeField(t *testing.T) {
	spec := &everything{Size: 2048, Mode: "a"}
	for _, a := range Attributes(spec) {
		if f := reflect.ValueOf(spec).Elem().FieldByIndex(a.Field.Index); f.Type() != a.Field.Type {
			t.Errorf("%s leads to a field of type %s, want %s", a.Name, f.Type(), a.Field.Type)
		}
	}
}

// FuzzParseBytes checks that a size that can be read is written as a text that reads as the same size.
func FuzzParseBytes(f *testing.F) {
	for _, text := range []string{"4096", "1.5 GiB", " 12kB", "9223372036854775807", "8191PiB", "-0", "1e3MB", "0x10", "1_000", "NaN", "+inf", ".5B", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseBytes(text)
		if err != nil {
			return
		}
		if again, err := ParseBytes(n.Text()); n < 0 || again != n || err != nil {
			t.Errorf("%q is %d, written %q, read as %d, %v", text, n, n.Text(), again, err)
		}
	})
}

func TestBytesString(t *testing.T) {
	for b, want := range map[Bytes]string{
		0: "0 B", 1023: "1023 B", 1024: "1.00 KiB", 10230: "9.99 KiB", 1536 << 20: "1.50 GiB", 1023 << 20: "1023 MiB", 1<<30 - 1: "1.00 GiB", 33 << 30: "33.0 GiB",
	} {
		if got := b.String(); got != want {
			t.Errorf("%d bytes are %q, want %q", int64(b), got, want)
		}
	}
}
