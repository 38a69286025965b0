//go:build linux && !core

package python

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/internal/testpython"
	"github.com/pipectl/pipectl/stages"
)

// torchCode is code for an interpreter that has torch.
func torchCode(t testing.TB, m *manager, module, source string) Interpreter {
	in := *code(t, m, module, source)
	in.Python = testpython.Interpreter(t, "torch")
	return in
}

func process(t *testing.T, s stages.Stage, in *stages.Element, r *rand.Rand) *stages.Element {
	t.Helper()
	out := new(stages.Element)
	if err := s.Process(&stages.Call{Context: t.Context(), Rand: r}, in, out); err != nil {
		t.Fatal(err)
	}
	return out.Result()
}

func newStage(t *testing.T, c *Callable) stages.Stage {
	t.Helper()
	if c.As == "" {
		c.As = "array"
	}
	if c.Kind == "" {
		c.Kind = "object"
	}
	s, err := c.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.(interface{ Close() error }).Close() })
	return s
}

func image() *stages.Element {
	el := new(stages.Element)
	for i := range el.Image(2, 3) {
		el.U8[i] = byte(i)
	}
	return el
}

func tensor() *stages.Element {
	el := new(stages.Element)
	for i := range el.Tensor(2, 1, 3) {
		el.F32[i] = float32(i) / 2
	}
	return el
}

const forms = `
import numpy as np, torch, PIL.Image, random
def say(x): return repr(x).encode()
def shape(x): return (type(x).__module__ + " " + str(x.dtype) + " " + str(tuple(x.shape)) + " " + str(x.reshape(-1)[:4].tolist())).encode()
def pil(x): return (x.mode + str(x.size) + str(x.getpixel((1, 0)))).encode()
def same(x): return x
def as_torch(x): return torch.from_numpy(np.array(x))
def as_pil(x): return PIL.Image.fromarray(x)
def as_chw(x): return torch.from_numpy(x).permute(2, 0, 1)
def transposed(x): return np.asfortranarray(x)
def tokens(x): return np.arange(len(x), dtype="int32")
def longs(x): return np.arange(len(x))
def double(x): return x.astype("float64")
def grey(x): return PIL.Image.fromarray(x).convert("L")
def text(x): return "text"
def none(x): return None
def mutate(x):
    x += 1
    return x
def drawn(x): return repr((random.random(), np.random.rand(), torch.rand(1).item())).encode()
def unpicklable(x): return lambda: 0
class Adds:
    def __init__(self, n): self.n = n
    def __call__(self, x): return x + np.uint8(self.n)
`

// TestForms takes elements to Python and back in all their forms.
func TestForms(t *testing.T) {
	m := new(manager)
	in := torchCode(t, m, "train", forms)
	start(t, &in)
	text := encoded("abc")
	tests := []struct {
		name string
		spec Callable
		in   *stages.Element
		want any // []byte, *stages.Element or an error's text
	}{
		{"bytes", Callable{Callable: "train:say", Kind: "encoded"}, text, `b'abc'`},
		{"image as array", Callable{Callable: "train:shape", Kind: "encoded"}, image(), `numpy uint8 (2, 3, 3) [0, 1, 2, 3]`},
		{"image as tensor", Callable{Callable: "train:shape", Kind: "encoded", As: "tensor"}, image(), `torch torch.uint8 (3, 2, 3) [0, 3, 6, 9]`},
		{"image as pil", Callable{Callable: "train:pil", Kind: "encoded", As: "pil"}, image(), `RGB(3, 2)(3, 4, 5)`},
		{"tensor as array", Callable{Callable: "train:shape", Kind: "encoded"}, tensor(), `numpy float32 (2, 1, 3) [0.0, 0.5, 1.0, 1.5]`},
		{"tensor as tensor", Callable{Callable: "train:shape", Kind: "encoded", As: "tensor"}, tensor(), `torch torch.float32 (2, 1, 3) [0.0, 0.5, 1.0, 1.5]`},
		{"array to image", Callable{Callable: "train:same", Kind: "image", Shape: []int{2, 3}}, image(), image()},
		{"transposed to image", Callable{Callable: "train:transposed", Kind: "image"}, image(), image()},
		{"pil to image", Callable{Callable: "train:as_pil", Kind: "image"}, image(), image()},
		{"tensor to image", Callable{Callable: "train:as_chw", Kind: "image"}, image(), image()},
		{"array to tensor", Callable{Callable: "train:same", Kind: "tensor", Shape: []int{2, 1, 3}}, tensor(), tensor()},
		{"torch to tensor", Callable{Callable: "train:as_torch", Kind: "tensor"}, tensor(), tensor()},
		{"tokens", Callable{Callable: "train:tokens", Kind: "tokens"}, text, &stages.Element{Type: stages.Type{Kind: stages.Tokens, Shape: stages.Shape{3}}, I32: []int32{0, 1, 2}}},
		{"made of args", Callable{Callable: "train:Adds", Args: stages.Values{"n": 0}, Kind: "image"}, image(), image()},
		{"wrong type", Callable{Callable: "train:double", Kind: "tensor"}, tensor(), `gave float64 (2, 1, 3) where output = "tensor" needs float32`},
		{"wrong shape", Callable{Callable: "train:same", Kind: "tensor", Shape: []int{3, 1, 3}}, tensor(), `gave float32 (2, 1, 3) where shape = [3, 1, 3]`},
		{"wrong integers", Callable{Callable: "train:longs", Kind: "tokens"}, text, `gave int64 (3,) where output = "tokens" needs int32, of one dimension`},
		{"grey", Callable{Callable: "train:grey", Kind: "image"}, image(), `gave a PIL image of mode L where output = "image" needs a PIL image of mode RGB, or uint8 (H, W, 3): .convert("RGB") makes it one`},
		{"text", Callable{Callable: "train:text", Kind: "tensor"}, tensor(), `gave a str where output = "tensor" needs float32`},
		{"none", Callable{Callable: "train:none", Kind: "encoded"}, tensor(), `gave None where output = "encoded" needs bytes`},
		{"unpicklable", Callable{Callable: "train:unpicklable"}, tensor(), `a function can't be handed to another process: put the stages in a pool block, where one process does the work of all`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.spec.Interpreter = in
			s := newStage(t, &tt.spec)
			before := append([]byte(nil), data(tt.in)...)
			for range 2 { // with memory that there isn't yet, and that there is
				out := new(stages.Element)
				err := s.Process(&stages.Call{Context: t.Context()}, tt.in, out)
				switch want := tt.want.(type) {
				case *stages.Element:
					if err != nil {
						t.Fatal(err)
					}
					got := stages.Element{Type: out.Type, U8: out.U8, F32: out.F32, I32: out.I32}
					if d := cmp.Diff(fmt.Sprint(*want), fmt.Sprint(got)); d != "" {
						t.Error(d)
					}
				case string:
					got := string(out.U8)
					if err != nil {
						got = err.Error()
						if e := (*Error)(nil); errors.As(err, &e) {
							got = e.Message
						}
					}
					if !strings.HasPrefix(got, want) {
						t.Errorf("got %s, want %s", got, want)
					}
				}
			}
			if string(before) != string(data(tt.in)) {
				t.Error("the input was changed")
			}
		})
	}
}

// TestDraws draws from Python's random number generators: the same from the same state, whatever came before.
func TestDraws(t *testing.T) {
	in := torchCode(t, new(manager), "train", forms)
	s := newStage(t, &Callable{Callable: "train:drawn", Kind: "encoded", Interpreter: in})
	draw := func(seed uint64) string {
		return string(process(t, s, image(), rand.New(rand.NewPCG(seed, 0))).U8)
	}
	first, second, again := draw(1), draw(2), draw(1)
	if first != again || first == second {
		t.Errorf("got %s, %s and %s", first, second, again)
	}
}

const dataset = `
import numpy as np, torch, torch.utils.data, PIL.Image
class Images(torch.utils.data.Dataset):
    classes = ["a", "b", "c"]
    def __init__(self, n=6, transform=None):
        self.samples = [("dir/%d.png" % i, i % 3) for i in range(n)]
        self.transform = transform
    def __len__(self): return len(self.samples)
    def __getitem__(self, i):
        x = PIL.Image.new("RGB", (4, 2), (i, 2 * i, 3 * i))
        if self.transform is not None: x = self.transform(x)
        return x, i % 3
class Compose:
    def __init__(self, *transforms): self.transforms = transforms
    def __call__(self, x):
        for t in self.transforms: x = t(x)
        return x
def flip(x): return x.transpose(0)
def to_tensor(x): return torch.from_numpy(np.array(x)).permute(2, 0, 1).float().div(255)
def plain(): return Images(transform=to_tensor)
lifted = Images(transform=Compose(flip, to_tensor))
loader = torch.utils.data.DataLoader(lifted, batch_size=2, shuffle=True)
class Stream(torch.utils.data.IterableDataset):
    def __iter__(self): return iter(range(3))
stream = Stream()
class Trainer:
    def __init__(self, rate): self.rate = rate; self.seen = []
    def __call__(self, batch):
        x, y = batch
        print(type(x).__name__, x.dtype, tuple(x.shape), round(float(x.double().sum()), 3), y.dtype, y.tolist(), flush=True)
        x += 1
def columns(samples): return {"x": torch.stack([s[0] for s in samples]), "n": len(samples)}
def report(batch): print(sorted(batch), batch["n"], tuple(batch["x"].shape), flush=True)
`

// TestOwnPools takes a data set through processes of its own for each stage, to the training step.
func TestOwnPools(t *testing.T) {
	m := new(manager)
	in := torchCode(t, m, "train", dataset)
	load := &Load{Loader: "train:loader", Lift: []string{"transform"}, Kind: "object", Interpreter: in}
	held, err := load.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if !load.Shuffled() {
		t.Error("the loader shuffles")
	}
	flip := &Callable{Callable: "train:lifted.transform.transforms[0]", Interpreter: in}
	tensors := &Callable{Callable: "train:lifted.transform.transforms[1]", Interpreter: in}
	for _, c := range []*Callable{flip, tensors} {
		c.Inherit(load)
		h, err := c.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
	}
	src, err := load.Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if src.Len() != 6 || src.Classes() != 3 || src.Name(4) != "dir/4.png" {
		t.Errorf("%d items of %d classes, %s", src.Len(), src.Classes(), src.Name(4))
	}
	var files []string
	for path := range src.(stages.FileLister).Files() {
		files = append(files, path)
	}
	if len(files) != 6 || !filepath.IsAbs(files[4]) || !strings.HasSuffix(files[4], "/dir/4.png") {
		t.Errorf("files %q", files)
	}
	stageFlip, stageTensors := newStage(t, flip), newStage(t, tensors)
	b := &stages.Batch{Len: 2, Ragged: make([]stages.Element, 2), Labels: make([]int32, 2), Sample: stages.Type{Kind: stages.Object}}
	for i := range b.Len {
		var el stages.Element
		if b.Labels[i], err = src.Read(&stages.Call{Context: t.Context()}, 3+i, &el); err != nil {
			t.Fatal(err)
		}
		b.Ragged[i] = *process(t, stageTensors, process(t, stageFlip, &el, nil), nil)
	}
	for _, tt := range []struct{ collate, step, want string }{
		{"", "train:Trainer", "Tensor torch.float32 (2, 3, 2, 4) 1.318 torch.int64 [0, 1]"},
		{"train:columns", "train:report", "['n', 'x'] 2 (2, 3, 2, 4)"},
	} {
		c := &Collate{Collate: tt.collate, in: Interpreter{manager: m}}
		c.in = in
		c.Inherit(load)
		collator, err := c.New()
		if err != nil {
			t.Fatal(err)
		}
		defer collator.Close()
		train := &Train{Callable: tt.step, Interpreter: in}
		if tt.collate == "" {
			train.Args = stages.Values{"rate": 0.1}
		}
		step, err := train.NewStep(nil, gpu.Input{})
		if err != nil {
			t.Fatal(err)
		}
		defer step.Close()
		for range 2 { // the step changes its batch, and the next gets the same
			if err := collator.Collate(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			event, err := step.Submit(t.Context(), &gpu.Batch{Batch: b, Ready: gpu.Passed{}})
			if err != nil {
				t.Fatal(err)
			}
			if err := event.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if d, ok := event.Elapsed(); !ok || d <= 0 {
				t.Errorf("a step took %v, %v", d, ok)
			}
		}
		printed := held.(*Hold).printed
		want := tt.want + "\n" + tt.want
		if got := waitFor(func() string { s, _ := printed.last(); return s }, func(s string) bool { return strings.HasSuffix(s, want) }); !strings.HasSuffix(got, want) {
			t.Errorf("printed %s, want %s", got, want)
		}
	}
	_, err = (&Load{Dataset: "train:stream", Kind: "object", Interpreter: in}).Open(context.Background(), 1)
	if want := "the data set is iterable, so its items can't be read one by one: put it, and the stages down to batch, in a pool block, which runs it as a DataLoader does"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestBatchesOfGo gives the step what pipectl's own stages make.
func TestBatchesOfGo(t *testing.T) {
	in := torchCode(t, new(manager), "train", `
import torch
def text(a): return type(a).__name__ + (str(a.tolist()) if hasattr(a, "tolist") else str([text(b) for b in a]) if isinstance(a, (list, tuple)) else repr(a))
def step(batch): print(text(batch), flush=True)
`)
	h := start(t, &in)
	step, err := (&Train{Callable: "train:step", Interpreter: in}).NewStep(nil, gpu.Input{})
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	tokens := func(v ...int32) stages.Element {
		return stages.Element{Type: stages.Type{Kind: stages.Tokens, Shape: stages.Shape{len(v)}}, I32: v}
	}
	for _, tt := range []struct {
		batch stages.Batch
		want  string
	}{
		{stages.Batch{Len: 2, Sample: stages.TensorType(1, 1, 2), F32: []float32{1, 2, 3, 4, 5, 6}, Labels: []int32{7, 8, 9}},
			"tuple['Tensor[[[[1.0, 2.0]]], [[[3.0, 4.0]]]]', 'Tensor[7, 8]']"},
		{stages.Batch{Len: 1, Sample: stages.ImageType(1, 1), U8: []byte{1, 2, 3}, Labels: []int32{-1}},
			"tuple['Tensor[[[[1, 2, 3]]]]', 'Tensor[-1]']"},
		{stages.Batch{Len: 2, Sample: stages.Type{Kind: stages.Tokens}, Ragged: []stages.Element{tokens(1, 2, 3), tokens(4)}, Labels: []int32{0, 1}},
			`tuple["list['Tensor[1, 2, 3]', 'Tensor[4]']", 'Tensor[0, 1]']`},
	} {
		if _, err := step.Submit(t.Context(), &gpu.Batch{Batch: &tt.batch, Ready: gpu.Passed{}}); err != nil {
			t.Fatal(err)
		}
		got := waitFor(func() string { s, _ := h.printed.last(); return s }, func(s string) bool { return strings.HasSuffix(s, tt.want) })
		if !strings.HasSuffix(got, tt.want) {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
	if got := step.(*Step).Timed(); got != "cpu" {
		t.Errorf("timed by %q", got)
	}
}
