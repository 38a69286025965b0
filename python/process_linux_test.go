package python

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// code writes a module of the user's and returns an interpreter that finds it.
func code(t testing.TB, m *manager, module, source string) *Interpreter {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, module+".py"), []byte(source), 0o666); err != nil {
		t.Fatal(err)
	}
	return &Interpreter{Python: "python3", Pythonpath: []stages.Path{stages.Path(dir)}, Timeout: 20 * time.Second, manager: m}
}

func start(t testing.TB, in *Interpreter) *Hold {
	t.Helper()
	h, err := in.start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func TestResolve(t *testing.T) {
	in := code(t, new(manager), "train", `
import os
class Holder:
    parts = [1, {"a": print, 'k"': 2}]
    def __len__(self): return 3
    def __getitem__(self, i): return i
class Maker:
    def __init__(self, mean, std=1): self.mean = mean
    def __call__(self, x): return x
made = []
def holder():
    made.append(1)
    return Holder()
def two(a, b): pass
def fails(): raise ValueError("bad   luck\nhere")
def exits(): os._exit(3)
number = 3
`)
	h := start(t, in)
	tests := []struct {
		role, ref string
		args      any
		want      string // the error's kind and text
	}{
		{"callable", "train:holder().parts[1]['a']", nil, ""},
		{"callable", `train:holder().parts[1]["a"]`, nil, ""},
		{"callable", "train:Maker", map[string]any{"mean": 1}, ""},
		{"dataset", "train:Holder", nil, ""},
		{"callable", "train", nil, `attribute "train" is no reference: write "module:name", as in "train:loader"`},
		{"callable", "train:a-b", nil, `attribute "train:a-b" is no reference from "-b" on: after a name come .attribute, [0], ["key"] or ()`},
		{"callable", "train:hodler", nil, `attribute module train has no attribute "hodler"; did you mean "holder"?`},
		{"callable", "train:holder().part", nil, `attribute a train.Holder, train:holder() has no attribute "part"; did you mean "parts"?`},
		{"callable", "train:holder().parts[2]", nil, `attribute train:holder().parts, a list, has no [2]: it has 2 elements`},
		{"callable", "train:number", nil, `signature train:number is a int, which can't be called`},
		{"callable", "train:two", nil, `signature train:two(a, b) can't be called with 1 positional argument: missing a required argument: 'b'`},
		{"callable", "train:Maker", nil, `signature train:Maker is a class, whose instances are the callables: set args to what it is made of, {} for nothing`},
		{"callable", "train:Maker", map[string]any{"std": 1}, `signature train:Maker(mean, std=1) can't be called with std=…: missing a required argument: 'mean'`},
		{"dataset", "train:fails", nil, `exception ValueError: bad luck here`},
		{"dataset", "train:number", nil, `attribute train:number gives a int, which is no data set: it has neither __getitem__ nor __iter__`},
		{"loader", "train:Holder", nil, `attribute train:Holder gives a train.Holder, and loader takes a torch.utils.data.DataLoader: for a data set, set dataset in its place`},
		{"callable", "train:holder().made", nil, `attribute a train.Holder, train:holder() has no attribute "made"`},
	}
	for _, tt := range tests {
		err := h.Call(t.Context(), in.Timeout, "resolve", map[string]any{"role": tt.role, "ref": tt.ref, "args": tt.args}, nil)
		got := ""
		if e := (*Error)(nil); errors.As(err, &e) {
			got = e.Kind + " " + e.Error()
		} else if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %s %v:\n got %s\nwant %s", tt.role, tt.ref, tt.args, got, tt.want)
		}
	}
	err := h.Call(t.Context(), in.Timeout, "resolve", map[string]any{"role": "dataset", "ref": "train:exits"}, nil)
	if want := "the Python process (python3) ended with exit status 3"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestMissingModule(t *testing.T) {
	in := code(t, new(manager), "train", "import nothing_of_that_name\n")
	err := start(t, in).Call(t.Context(), in.Timeout, "resolve", map[string]any{"role": "callable", "ref": "train:x"}, nil)
	if err == nil || !strings.Contains(err.Error(), `importing train: there is no module "nothing_of_that_name" in `) {
		t.Errorf("got %v", err)
	}
}

// waitFor returns what get does once it is right, or after a while.
func waitFor(get func() string, right func(string) bool) string {
	for range 2000 {
		if right(get()) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return get()
}
