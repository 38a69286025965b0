package python

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

func TestOperators(t *testing.T) {
	r := stages.Builtin()
	Add(r)
	got := map[string][]string{}
	for _, op := range r.Operators() {
		if op.Type == "python" {
			for _, a := range stages.Attributes(op.New()) {
				got[op.Block] = append(got[op.Block], a.Name)
			}
		}
	}
	interpreter := []string{"python", "pythonpath", "env", "timeout"}
	callable := append([]string{"callable", "args", "part", "as", "output", "shape"}, interpreter...)
	want := map[string][]string{
		"load":    append([]string{"loader", "dataset", "args", "lift", "shuffle", "output", "shape"}, interpreter...),
		"prepare": callable,
		"augment": callable,
		"batch":   {"collate"},
		"train":   append([]string{"callable", "args"}, interpreter...),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		spec *Load
		want string
	}{
		{&Load{Dataset: "a:b", Kind: "object"}, "[]"},
		{&Load{Kind: "object"}, "[{ No data Set loader to a DataLoader, or dataset to a data set. false}]"},
		{&Load{Loader: "a:b", Dataset: "a:b", Kind: "object"}, "[{dataset Two sources Set either loader or dataset: the loader has its data set. false}]"},
		{&Load{Dataset: "a:b", Kind: "image", Lift: []string{"transform"}}, "[{output Lifted items aren't whole The stages below make the items whole, so set output at the last of them. false}]"},
		{&Load{Dataset: "a:b", Kind: "tokens", Shape: []int{1, 2}}, "[{shape Unsuitable shape That of tokens is their number. false}]"},
		{&Load{Dataset: "a:b", Kind: "object", Interpreter: Interpreter{Python: "no-such-python"}}, `[{python Interpreter not found There is no program "no-such-python". false}]`},
		{&Load{Dataset: "a:b", Kind: "object", Interpreter: Interpreter{Pythonpath: []stages.Path{"nowhere"}}}, `[{pythonpath Folder not found There is no folder "nowhere". false}]`},
	} {
		if got := fmt.Sprint(tt.spec.Validate()); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// TestInherit leaves the interpreter to the load block, unless a stage names one of its own.
func TestInherit(t *testing.T) {
	r := new(stages.Registry)
	Add(r)
	make := func(block string) any {
		op, _ := r.Lookup(block, "python")
		return op.New()
	}
	load := make(stages.Load).(*Load)
	load.Python, load.Pythonpath, load.Env, load.Lift = "python9", []stages.Path{"src"}, map[string]string{"A": "1"}, []string{"dataset.transform", "target"}
	stage := make(stages.Prepare).(*Callable)
	stage.Pythonpath[0] = "/resolved"
	stage.Inherit(load)
	if stage.key() != load.key() || stage.Part != "dataset.transform" {
		t.Errorf("got %s, part %s", stage.key(), stage.Part)
	}
	own := make(stages.Prepare).(*Callable)
	own.Pythonpath, own.Part = []stages.Path{"."}, "target"
	own.Inherit(load)
	if want := `"python3" ["."] [] ""`; own.key() != want || own.Part != "target" {
		t.Errorf("got %s, part %s, want %s", own.key(), own.Part, want)
	}
	step := make(stages.Train).(*Train)
	step.Inherit(new(stages.Synthetic))
	if want := `"python3" ["."] [] ""`; step.key() != want {
		t.Errorf("got %s, want %s", step.key(), want)
	}
}
