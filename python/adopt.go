package python

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Adoption describes a user's DataLoader or dataset, as an experiment can be made of it.
type Adoption struct {
	Reference string        `json:"reference"` // of the loader or dataset: "train:get_loaders()[0]"
	Step      *AdoptedStep  `json:"step"`      // the training step; nil where none was named
	Seed      *uint64       `json:"seed"`      // that the user's code gave to torch; nil where it didn't
	Dataset   Dataset       `json:"dataset"`
	Lift      []string      `json:"lift"`    // paths of the dataset's transforms that can be taken out
	Steps     []Transform   `json:"steps"`   // what those do, in order
	Opaque    []Opaque      `json:"opaque"`  // transforms that stay inside the dataset
	Samples   int           `json:"samples"` // that were compared with the untouched dataset's
	Note      *string       `json:"note"`    // a remark on that comparison
	Loader    *LoaderFacts  `json:"loader"`  // nil where the reference names a dataset
	Program   string        `json:"-"`       // the interpreter: as it was asked for, or the one that has what the code imports
	Missing   string        `json:"-"`       // the module that the interpreter asked for lacks; "" where it was used
	Version   string        `json:"-"`       // of the interpreter, "3.11.2"
	Took      time.Duration `json:"-"`       // importing the code
}

// AdoptedStep is a training step.
type AdoptedStep struct {
	Reference string `json:"reference"`
	Factory   bool   `json:"factory"` // it makes the step, called without arguments
}

// Dataset describes a dataset.
type Dataset struct {
	Class    string `json:"class"`
	Name     string `json:"name"` // the class in snake case, as a block can be named
	Iterable bool   `json:"iterable"`
	Length   *int   `json:"length"` // samples in an epoch; nil where that is unknown
}

// Transform is one step of a dataset's transforms.
type Transform struct {
	Block     string `json:"block"` // prepare or augment
	Name      string `json:"name"`  // as a block can be named; no two are the same
	Part      string `json:"part"`  // the path of Lift that it belongs to
	Reference string `json:"reference"`
	Text      string `json:"text"` // it in Python: "RandomCrop(size=(32, 32))"
}

// Opaque is a transform that can't be taken out of its dataset.
type Opaque struct {
	Path   string `json:"path"`
	Text   string `json:"text"`
	Reason string `json:"reason"`
}

// LoaderFacts are the settings of a DataLoader.
type LoaderFacts struct {
	Class             string  `json:"class"`
	Workers           int     `json:"workers"`
	Prefetch          *int    `json:"prefetch"` // batches a worker; nil without workers
	Batch             *int    `json:"batch"`    // samples; nil where that is unknown
	Batching          string  `json:"batching"` // what makes the batches: "batch_size"; "batch_sampler", one of the user's; "none", and samples are handed on as they are
	DropLast          bool    `json:"drop_last"`
	Sampler           *string `json:"sampler"` // its class, or the batch sampler's; nil for an iterable dataset
	Shuffle           *bool   `json:"shuffle"` // nil where a sampler of another kind decides
	Collate           *string `json:"collate"` // a reference; nil where it is torch's own
	PinMemory         bool    `json:"pin_memory"`
	WorkerInit        *string `json:"worker_init_fn"`
	PersistentWorkers bool    `json:"persistent_workers"`
	Generator         bool    `json:"generator"` // it has one of its own
	Timeout           float64 `json:"timeout"`   // seconds; 0: none
	Context           *string `json:"context"`   // how workers are started: "spawn"; nil where torch decides
}

// trialTime is how long it may take to find out which transforms can be taken out.
const trialTime = 20 * time.Second

// Adopt imports the user's module and describes what from names: a DataLoader, a dataset, or what makes one. It may be a module
// alone, which has just one loader. step names a training step, or is "". The module may take timeout to be imported. Where `in`
// names no interpreter and python3 lacks a module that is imported, another one is looked for that has it. The errors' texts say
// what the user can do.
func Adopt(ctx context.Context, in Interpreter, from, step string, timeout time.Duration) (*Adoption, error) {
	in.manager = &manager{}
	in.Timeout = timeout
	adoption, err := adopt(ctx, in, from, step)
	missing, ok := lacking(err)
	if !ok || in.Python != "" {
		return adoption, err
	}
	for _, program := range otherInterpreters(in, missing) {
		in.Python = program
		if other, otherErr := adopt(ctx, in, from, step); otherErr == nil {
			other.Missing = missing
			return other, nil
		} else if _, ok := lacking(otherErr); !ok { // it got further
			return nil, fmt.Errorf("with python = %q: %w", program, otherErr)
		}
	}
	return nil, err
}

// adopt has one interpreter describe what from and step name.
func adopt(ctx context.Context, in Interpreter, from, step string) (*Adoption, error) {
	hold, err := in.start(ctx)
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	request := map[string]any{"from": from}
	if step != "" {
		request["step"] = step
	}
	a := &Adoption{Program: in.program(), Version: hold.Main.Version}
	started := time.Now()
	if err := hold.Call(ctx, in.Timeout, "adopt.find", request, a); err != nil {
		return nil, hold.explain(err, from, in.Timeout)
	}
	a.Took = time.Since(started)
	err = hold.Call(ctx, in.Timeout+trialTime, "adopt.describe", map[string]any{"limit": trialTime.Seconds()}, a)
	if err != nil {
		return nil, hold.explain(err, from, in.Timeout)
	}
	return a, nil
}

// explain says what to do about an error in importing what a reference names.
func (h *Hold) explain(err error, from string, timeout time.Duration) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	module, _, _ := strings.Cut(from, ":")
	explained := *e
	switch {
	case e.Kind == TimeoutError:
		explained.Message = fmt.Sprintf("importing %s took longer than %s, and was stopped. If it trains when it is imported, put that part under "+
			"`if __name__ == \"__main__\":`. If it only takes long, give it more time with --timeout", module, timeout)
	case e.Kind == ExitError || e.Kind == OutputError:
		explained.Message = fmt.Sprintf("importing %s: %s", module, e.Message)
	case strings.Contains(e.Message, "SystemExit") && e.Traceback == "":
		h.Close() // then all that it has printed is read
		explained.Output, _ = h.Main.printed.last()
	default:
		return err
	}
	return &explained
}

// missingModule matches the message about a module that an imported one needs.
var missingModule = regexp.MustCompile(`^importing \S+: there is no module "([^"]+)"`)

// lacking reports whether an interpreter can't be run, or lacks a module, and which.
func lacking(err error) (module string, ok bool) {
	var e *Error
	if !errors.As(err, &e) {
		return "", false
	}
	if e.Kind == StartError {
		return "", true
	}
	m := missingModule.FindStringSubmatch(e.Message)
	if e.Kind != ImportError || m == nil {
		return "", false
	}
	return m[1], true
}

// otherInterpreters returns the paths of this machine's interpreters that have a module, "" for any, but the usual one: that of the
// code's virtual environment first, then those on PATH.
func otherInterpreters(in Interpreter, module string) []string {
	var found []string
	add := func(path string) {
		if folder, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			path = filepath.Join(folder, filepath.Base(path)) // /bin may be /usr/bin; the program itself may be a link that means much
		}
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 && !info.IsDir() && !slices.Contains(found, path) {
			found = append(found, path)
		}
	}
	for _, env := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if folder := os.Getenv(env); folder != "" {
			add(filepath.Join(folder, "bin", "python"))
		}
	}
	for _, folder := range in.Pythonpath {
		for _, name := range []string{".venv", "venv"} {
			if path, err := filepath.Abs(filepath.Join(string(folder), name, "bin", "python")); err == nil {
				add(path)
			}
		}
	}
	folders := append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin")
	for _, folder := range folders {
		add(filepath.Join(folder, "python3"))
	}
	for _, folder := range folders {
		versions, _ := filepath.Glob(filepath.Join(folder, "python3.*")) // it fails on a malformed pattern alone
		slices.SortFunc(versions, func(a, b string) int { return minor(b) - minor(a) })
		for _, path := range versions {
			if minor(path) >= 8 {
				add(path)
			}
		}
	}
	usual, _ := exec.LookPath("python3") // "" where there is none
	return slices.DeleteFunc(found, func(path string) bool { return path == usual || !has(path, module) })
}

// minor returns the N of python3.N, or -1.
func minor(path string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(path), "python3."))
	if err != nil {
		return -1
	}
	return n
}

// has reports whether an interpreter has a module, or can be run where that is "".
func has(program, module string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	top, _, _ := strings.Cut(module, ".")
	const probe = "import importlib.util, sys; sys.exit(bool(sys.argv[1]) and importlib.util.find_spec(sys.argv[1]) is None)"
	return exec.CommandContext(ctx, program, "-c", probe, top).Run() == nil
}

// Reference returns a reference in which a file's path stands for the module, as in "src/train.py:loader", as it should be, with the
// folders that the module, and those beside it, are imported from; none where it is a reference already.
func Reference(text string) (reference string, folders []string) {
	file, path, _ := strings.Cut(text, ":")
	if !strings.HasSuffix(file, ".py") && !strings.ContainsRune(file, filepath.Separator) {
		return text, nil
	}
	folder, name := filepath.Split(filepath.Clean(strings.TrimSuffix(file, ".py")))
	folder = filepath.Clean(folder)
	folders = []string{folder}
	for isFile(filepath.Join(folder, "__init__.py")) { // in a package, modules import each other by its name too
		abs, err := filepath.Abs(folder)
		if err != nil {
			break
		}
		name, folder = filepath.Base(abs)+"."+name, filepath.Join(folder, "..")
	}
	if folder != folders[0] {
		folders = append([]string{folder}, folders...)
	}
	if path != "" {
		name += ":" + path
	}
	return name, folders
}

// InFolder reports whether a reference's module lies in a folder.
func InFolder(reference, folder string) bool {
	module, _, _ := strings.Cut(reference, ":")
	top, _, _ := strings.Cut(module, ".")
	path := filepath.Join(folder, top)
	info, err := os.Stat(path)
	return isFile(path+".py") || err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
