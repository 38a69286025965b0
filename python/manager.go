package python

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// Interpreter holds the attributes that say which Python runs a stage's code.
type Interpreter struct {
	Python     string            `hcl:"python,optional" doc:"The interpreter: a name on PATH, or a path. \"python3\" if it is left out here and in the load block."`
	Pythonpath []stages.Path     `hcl:"pythonpath,optional" doc:"Folders that modules are imported from, before the interpreter's own; the file's folder if it is left out here and in the load block."`
	Env        map[string]string `hcl:"env,optional" doc:"Environment variables for the interpreter, beside pipectl's own."`
	Timeout    time.Duration     `hcl:"timeout,optional" moremin:"0s" doc:"How long one call may take: an item, a batch, a step. Importing the code, and making what the file names of it, may take ten times as long."`

	manager *manager
	own     *stages.Path // the folder in Pythonpath where that is left out
	apart   string       // from the processes of the same code: a name that its own share
}

// interpreter returns the attributes as they are where the file leaves them out.
func (m *manager) interpreter() Interpreter {
	folder := []stages.Path{"."}
	return Interpreter{Pythonpath: folder, Timeout: defaultTimeout, manager: m, own: &folder[0]}
}

// inherit takes over the load block's interpreter where none is given.
func (in *Interpreter) inherit(load any) {
	l, ok := load.(*Load)
	if ok && in.Python == "" && len(in.Pythonpath) == 1 && &in.Pythonpath[0] == in.own && in.Env == nil {
		in.Python, in.Pythonpath, in.Env = l.Python, l.Pythonpath, l.Env
	}
}

// program returns the interpreter's name.
func (in *Interpreter) program() string {
	if in.Python == "" {
		return "python3"
	}
	return in.Python
}

func (in *Interpreter) key() string {
	return fmt.Sprintf("%q %q %q %q", in.program(), in.Pythonpath, in.environ(), in.apart)
}

func (in *Interpreter) environ() []string {
	var env []string
	for _, name := range slices.Sorted(maps.Keys(in.Env)) {
		env = append(env, name+"="+in.Env[name])
	}
	return env
}

// validate reports an interpreter that isn't there.
func (in *Interpreter) validate() []stages.Problem {
	if _, err := exec.LookPath(in.program()); err != nil {
		detail := fmt.Sprintf("There is no program %q.", in.program())
		if !errors.Is(err, exec.ErrNotFound) && !errors.Is(err, os.ErrNotExist) {
			detail = fmt.Sprintf("The program %q can't be run: %v.", in.program(), errors.Unwrap(err))
		}
		return []stages.Problem{{Attribute: "python", Summary: "Interpreter not found", Detail: detail}}
	}
	for _, p := range in.Pythonpath {
		if info, err := os.Stat(string(p)); err != nil || !info.IsDir() {
			return []stages.Problem{{Attribute: "pythonpath", Summary: "Folder not found", Detail: fmt.Sprintf("There is no folder %q.", p)}}
		}
	}
	return nil
}

// start returns a hold on the interpreter's main process, which it starts where it doesn't run.
func (in *Interpreter) start(ctx context.Context) (*Hold, error) { return in.manager.start(ctx, in) }

// manager keeps the main processes of the specs of one registry, and what they share.
type manager struct {
	mu     sync.Mutex
	mains  map[string]*Main
	arena  *arena
	helper *os.File // the helper's zip, in memory
	users  int      // main processes that aren't closed
}

// start returns a hold on the main process of an interpreter.
func (m *manager) start(ctx context.Context, in *Interpreter) (*Hold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := in.key()
	if p, ok := m.mains[key]; ok && p.alive() {
		p.holds++
		return &Hold{Main: p}, nil
	}
	if err := m.open(); err != nil {
		return nil, err
	}
	p, err := startMain(ctx, in, m)
	if err != nil {
		m.close()
		return nil, err
	}
	if m.mains == nil {
		m.mains = make(map[string]*Main)
	}
	m.mains[key] = p
	p.key, p.holds = key, 1
	return &Hold{Main: p}, nil
}

// open makes what the main processes share, for one more of them.
func (m *manager) open() error {
	if m.users++; m.users > 1 {
		return nil
	}
	err := m.share()
	if err != nil {
		m.close()
	}
	return err
}

func (m *manager) share() error {
	data, err := helperZip()
	if err != nil {
		return err
	}
	if m.helper, err = memoryFile("pipectl_python"); err != nil {
		return fmt.Errorf("handing the helper to Python: %w", err)
	}
	if _, err := m.helper.Write(data); err != nil {
		return fmt.Errorf("handing the helper to Python: %w", err)
	}
	m.arena, err = newArena()
	return err
}

// close frees what the main processes share, after the last.
func (m *manager) close() {
	if m.users--; m.users > 0 {
		return
	}
	if m.arena != nil {
		m.arena.close()
	}
	if m.helper != nil {
		m.helper.Close() // of memory, nothing to flush
	}
	m.arena, m.helper = nil, nil
}

// Hold keeps a main process running until it is closed.
type Hold struct {
	*Main
	once sync.Once
}

// Close lets go of the process. The last to do so ends it, with all that it has started.
func (h *Hold) Close() error {
	h.once.Do(func() {
		m := h.Main.manager
		m.mu.Lock()
		defer m.mu.Unlock()
		if h.Main.holds--; h.Main.holds > 0 {
			return
		}
		if m.mains[h.Main.key] == h.Main {
			delete(m.mains, h.Main.key)
		}
		h.Main.end()
		m.close()
	})
	return nil
}

// Key returns what tells whether two holds are of one process.
func (h *Hold) Key() any { return h.Main }

// CPUTime returns the CPU time that the process and those that it has started have used.
func (h *Hold) CPUTime() (time.Duration, bool) { return groupTime(h.Main.pid) }

// Another returns another hold on the same process.
func (h *Hold) Another() *Hold {
	m := h.Main.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	h.Main.holds++
	return &Hold{Main: h.Main}
}

// absolute returns folders as the interpreter gets them: the user's code may change its working directory.
func absolute(paths []stages.Path) ([]string, error) {
	list := make([]string, 0, len(paths))
	for _, p := range paths {
		abs, err := filepath.Abs(string(p))
		if err != nil {
			return nil, err
		}
		list = append(list, abs)
	}
	return list, nil
}
