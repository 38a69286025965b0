package python

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"

	"github.com/pipectl/pipectl/stages"
)

// Load holds the attributes of `load "python"`.
type Load struct {
	Loader  string        `hcl:"loader,optional" doc:"The DataLoader, as \"module:path\", or a function that returns it."`
	Dataset string        `hcl:"dataset,optional" doc:"The data set, as \"module:path\", or the class or function that makes it."`
	Args    stages.Values `hcl:"args,optional" doc:"Keyword arguments for the class or function."`
	Lift    []string      `hcl:"lift,optional" doc:"Attributes of the data set, such as \"transform\" or \"dataset.transform\", whose callables are taken out: the stages below do their work."`
	Shuffle *bool         `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed. If it is left out: as the loader does, and not for a data set."`
	Kind    string        `hcl:"output,optional" enum:"object,image,tensor,tokens,encoded" doc:"What the items are: \"object\": something that only Python can take; \"image\": a PIL image, or uint8 H×W×3; \"tensor\": float32 of up to three dimensions; \"tokens\": int32 of one; \"encoded\": the bytes of a file."`
	Shape   []int         `hcl:"shape,optional" min:"1" doc:"The items' shape, if all have the same."`
	Interpreter

	shuffled bool // the loader does, as Start has found
}

// reference returns what names the data.
func (l *Load) reference() reference {
	if l.Loader != "" {
		return reference{"loader", l.Loader, l.Args}
	}
	return reference{"dataset", l.Dataset, l.Args}
}

// Shapeless reports whether the file leaves shape out where the items have one.
func (l *Load) Shapeless() bool { return shapeless(l.Kind, l.Shape) }

// Apart returns a copy with processes of its own.
func (l *Load) Apart(name string) any {
	own := *l
	own.apart = name
	return &own
}

// Validate reports what the attributes say against each other.
func (l *Load) Validate() []stages.Problem {
	problems := l.validate()
	report := func(attribute, summary, detail string) {
		problems = append(problems, stages.Problem{Attribute: attribute, Summary: summary, Detail: detail})
	}
	switch {
	case l.Loader == "" && l.Dataset == "":
		report("", "No data", "Set loader to a DataLoader, or dataset to a data set.")
	case l.Loader != "" && l.Dataset != "":
		report("dataset", "Two sources", "Set either loader or dataset: the loader has its data set.")
	}
	if len(l.Lift) > 0 && l.Kind != "object" {
		report("output", "Lifted items aren't whole", "The stages below make the items whole, so set output at the last of them.")
	}
	return append(problems, shapeProblems(l.Kind, l.Shape)...)
}

// Output returns the type of the items.
func (l *Load) Output() stages.Type { return outputType(l.Kind, l.Shape) }

// Shuffled reports whether each epoch's items come in a new order.
func (l *Load) Shuffled() bool {
	if l.Shuffle != nil {
		return *l.Shuffle
	}
	return l.shuffled
}

// dataInfo is what is known of a data set.
type dataInfo struct {
	Length   *int `json:"length"` // nil where it is iterable
	Iterable bool `json:"iterable"`
	Classes  int  `json:"classes"`
	Shuffled bool `json:"shuffled"`
}

// Start starts the interpreter and finds the data set.
func (l *Load) Start(ctx context.Context) (stages.Processes, error) {
	var info dataInfo
	h, err := l.resolved(ctx, l.reference(), &info)
	if err != nil {
		return nil, err // and no nil *Hold, which would not be nil
	}
	l.shuffled = info.Shuffled
	return h, nil
}

// Open finds the items.
func (l *Load) Open(ctx context.Context, seed uint64) (stages.Source, error) {
	var info dataInfo
	h, err := l.resolved(ctx, l.reference(), &info)
	if err != nil {
		return nil, err
	}
	if info.Length == nil {
		h.Close()
		return nil, errors.New("the data set is iterable, so its items can't be read one by one: put it, and the stages down to batch, in a pool block, which runs it as a DataLoader does")
	}
	l.shuffled = info.Shuffled
	return &source{spec: l, hold: h, seed: seed, items: *info.Length, classes: info.Classes}, nil
}

// source reads a data set's items with one process for each that reads at a time.
type source struct {
	spec    *Load
	hold    *Hold
	seed    uint64
	items   int
	classes int

	mu   sync.Mutex
	idle []*worker
	all  []*worker
}

func (s *source) Len() int     { return s.items }
func (s *source) Classes() int { return s.classes }

// Name returns the path of the item's file, if the data set lists it, or else its number.
func (s *source) Name(i int) string { return s.spec.itemName(s.hold, i) }

func (l *Load) itemName(h *Hold, i int) string {
	request := struct {
		reference
		Index int `json:"index"`
	}{l.reference(), i}
	var name string
	if err := h.Call(context.Background(), l.timeout(), "name", request, &name); err != nil {
		return fmt.Sprintf("item %d", i) // what failed is reported elsewhere
	}
	return name
}

// Files yields the paths of the items' files, if the data set lists them.
func (s *source) Files() iter.Seq[string] { return s.spec.files(s.hold) }

// filesAtOnce is how many paths are asked for at once.
const filesAtOnce = 10000

// files yields the paths of the items' files. It is nil where the data set doesn't list them.
func (l *Load) files(h *Hold) iter.Seq[string] {
	from := func(first int) (paths []string) {
		request := struct {
			reference
			First int `json:"first"`
			Count int `json:"count"`
		}{l.reference(), first, filesAtOnce}
		if err := h.Call(context.Background(), l.timeout(), "files", request, &paths); err != nil {
			return nil // what failed is reported elsewhere
		}
		return paths
	}
	begin := from(0)
	if len(begin) == 0 {
		return nil
	}
	return func(yield func(string) bool) {
		for first, paths := 0, begin; len(paths) > 0; paths = from(first) {
			for _, path := range paths {
				if !yield(path) {
					return
				}
			}
			first += len(paths)
		}
	}
}

// Read reads an item.
func (s *source) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	w := s.worker()
	defer func() {
		s.mu.Lock()
		s.idle = append(s.idle, w)
		s.mu.Unlock()
	}()
	w.begin(opLoad, rand.New(rand.NewPCG(s.seed, uint64(c.Item.Epoch)<<32^uint64(i))).Uint64(), true)
	w.frame = binary.LittleEndian.AppendUint64(w.frame, uint64(i))
	return w.call(c.Context, out)
}

func (s *source) worker() *worker {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.idle); n > 0 {
		w := s.idle[n-1]
		s.idle = s.idle[:n-1]
		return w
	}
	what := stageProcess{Stage: "load", reference: s.spec.reference(), Shape: s.spec.Shape, Lift: s.spec.Lift}
	w := newWorker(s.hold.Another(), what, s.spec.Output(), s.spec.timeout())
	s.all = append(s.all, w)
	return w
}

// Close ends the processes.
func (s *source) Close() error {
	for _, w := range s.all {
		w.Close()
	}
	return s.hold.Close()
}
