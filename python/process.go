package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// defaultTimeout is how long a call may take where the file doesn't say.
const defaultTimeout = time.Minute

// bootstrap is what the interpreter is told to run. Every Python can read it, so that those that are too old can say so. What comes
// before the standard library in sys.path, of PYTHONPATH, is left out until the helper is loaded: see library.py.
const bootstrap = `import sys
if sys.version_info < (3, 8):
    sys.exit("%s is Python %s, and pipectl needs 3.8 or newer" % (sys.executable, sys.version.split()[0]))
loaded = set(sys.modules)
if sys.path[:1] == [""]:
    del sys.path[0]  # the working directory, which is pipectl's
import os
library = os.path.dirname(os.__file__)
first = sys.path.index(library) if library in sys.path else 0
if first and os.path.basename(sys.path[first - 1]).startswith("python") and sys.path[first - 1].endswith(".zip"):
    first -= 1
folders = sys.path[:first]
sys.path[:first] = [sys.argv[1]]
theirs = {}
for name, module in list(sys.modules.items()):
    if (getattr(module, "__file__", None) or "").startswith(tuple(os.path.join(f, "") for f in folders)):
        theirs[name] = sys.modules.pop(name)
from pipectl_python.main import main
main(folders, loaded, theirs)
`

// Main is an interpreter's main process: the first of a group of processes, in which the user's code runs.
type Main struct {
	manager *manager
	key     string
	holds   int // guarded by the manager's mutex

	program string
	cmd     *exec.Cmd
	pid     int // also the group's
	life    *os.File
	printed *output
	exited  chan struct{} // closed when the process has ended
	timeout time.Duration

	// Version is the interpreter's, "3.11.2", and Executable its path, as it gives them itself.
	Version, Executable string

	mu      sync.Mutex // a call at a time
	channel channel
	dead    *Error // why the process takes no more calls; guarded by mu
}

// startMain starts an interpreter, and waits until it can be called.
func startMain(ctx context.Context, in *Interpreter, m *manager) (_ *Main, err error) {
	path, err := exec.LookPath(in.program())
	if err != nil {
		return nil, &Error{Kind: StartError, Message: fmt.Sprintf("the interpreter %q can't be run: %v", in.program(), errors.Unwrap(err))}
	}
	folders, err := absolute(in.Pythonpath)
	if err != nil {
		return nil, err
	}
	p := &Main{manager: m, program: in.program(), exited: make(chan struct{}), timeout: in.timeout()}
	conn, far, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	p.channel.conn = conn
	defer func() {
		if err != nil && p.cmd == nil {
			p.channel.close()
		}
	}()
	alive, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer alive.Close()
	if p.printed, err = newOutput(); err != nil {
		return nil, errors.Join(err, life.Close())
	}
	cmd := exec.Command(path, "-c", bootstrap, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), m.helper.Fd()))
	cmd.Env = append(os.Environ(), in.environ()...)
	cmd.ExtraFiles = []*os.File{far, m.arena.file, alive}
	cmd.Stdout, cmd.Stderr = p.printed.write, p.printed.write
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		p.printed.close()
		return nil, errors.Join(&Error{Kind: StartError, Message: fmt.Sprintf("starting the interpreter %q: %v", in.program(), err)}, life.Close())
	}
	p.printed.write.Close()
	far.Close() // so that the process's end is seen
	p.cmd, p.pid, p.life = cmd, cmd.Process.Pid, life
	p.printed.onFlood(p.kill)
	go func() {
		defer close(p.exited)
		cmd.Wait() // the state tells how it ended
		p.kill()   // what it has started
	}()
	var hello struct{ Version, Executable string }
	request := map[string]any{"pythonpath": folders, "python": in.program()}
	if err := p.Call(ctx, p.timeout, "hello", request, &hello); err != nil {
		p.end()
		var e *Error
		if errors.As(err, &e) && e.Kind == ExitError {
			e.Kind = StartError
			explainStart(e, in.program(), cmd)
		}
		return nil, err
	}
	p.Version, p.Executable = hello.Version, hello.Executable
	return p, nil
}

// explainStart completes e, which is about what was started for the interpreter, and ended before the helper could answer.
func explainStart(e *Error, program string, cmd *exec.Cmd) {
	why := e.Message
	if lines := strings.Split(e.Output, "\n"); e.Output != "" {
		why = strings.TrimSpace(lines[len(lines)-1])
		for _, line := range lines {
			if strings.HasPrefix(line, "Fatal Python error: ") {
				why = line // what follows is where
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	version := exec.CommandContext(ctx, cmd.Path, "--version")
	version.Env, version.WaitDelay = cmd.Env, time.Second
	said, err := version.CombinedOutput()
	switch first, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\n"); {
	case pythonVersion.Match(said):
	case err == nil: // another program, whose output is about what it takes the helper for
		e.Message, e.Output = fmt.Sprintf("%q is no Python interpreter: it answers %q to --version", program, first), ""
		return
	default:
		e.Message = fmt.Sprintf("%q is no Python interpreter, or can't start one: %s", program, why)
		return
	}
	e.Message = why
	for _, v := range slices.Backward(cmd.Env) {
		if home, ok := strings.CutPrefix(v, "PYTHONHOME="); ok && home != "" && strings.HasPrefix(why, "Fatal") {
			e.Message = fmt.Sprintf("the interpreter %q doesn't start with PYTHONHOME = %q: %s", program, home, why)
			return
		}
	}
}

var pythonVersion = regexp.MustCompile(`(?m)^Python \d`)

func (in *Interpreter) timeout() time.Duration {
	if in.Timeout == 0 {
		return defaultTimeout
	}
	return in.Timeout
}

// kill kills the process, which the user's code may have taken out of its group, and all that it has started.
func (p *Main) kill() {
	killGroup(p.pid)
	p.cmd.Process.Kill() // it fails where the process has ended
}

// end kills the group and waits until it is gone.
func (p *Main) end() {
	p.kill()
	<-p.exited
	awaitGroup(p.pid)
	p.channel.close()
	p.life.Close()
	p.printed.close()
}

// alive reports whether the process can be called.
func (p *Main) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Call has the helper do op, one of OPS in main.py, and stores its reply in reply, unless that is nil. Other calls wait. It returns an
// *Error where the user's code fails, and where the process ends or takes longer than timeout, and is killed; 0 is no limit. Where
// ctx ends first it returns ctx's error soon, and the reply is dropped when it comes: until then the process does nothing else.
func (p *Main) Call(ctx context.Context, timeout time.Duration, op string, request, reply any) error {
	return p.call(ctx, timeout, op, request, reply)
}

func (p *Main) call(ctx context.Context, timeout time.Duration, op string, request, reply any, files ...*os.File) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("asking Python to %s: %w", op, err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return fmt.Errorf("asking Python to %s: the request is no object: %w", op, err)
	}
	if fields == nil {
		fields = make(map[string]json.RawMessage)
	}
	fields["op"], _ = json.Marshal(op) // a string
	if body, err = json.Marshal(fields); err != nil {
		return fmt.Errorf("asking Python to %s: %w", op, err)
	}
	return p.exchange(ctx, timeout, append(append(frame(nil), 'J'), body...), reply, files...)
}

// exchange sends a frame and reads the reply.
func (p *Main) exchange(ctx context.Context, timeout time.Duration, f []byte, reply any, files ...*os.File) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return p.dead
	}
	body, err := p.channel.call(ctx, timeout, f, files...)
	switch {
	case err == nil:
		return parseReply(body, reply)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	if errors.Is(err, errLate) {
		showWhere(p.pid)
	}
	if errors.Is(err, errGone) && !p.soonExited() {
		err = errClosed
	}
	p.kill()
	<-p.exited
	p.dead = ended(err, fmt.Sprintf("the Python process (%s)", filepath.Base(p.program)), timeout, p.printed, func() string { return endOf(p.cmd.ProcessState) })
	return p.dead
}

// soonExited reports whether the process has ended, or does so within a moment.
func (p *Main) soonExited() bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(exitTime):
		return false
	}
}

// ended returns what is to be said of a process that takes no more calls: err is why, and exit says how it ended.
func ended(err error, who string, timeout time.Duration, printed *output, exit func() string) *Error {
	printed.settle()
	last, flooded := printed.last()
	e := &Error{Output: last}
	switch {
	case flooded:
		e.Kind, e.Message = OutputError, fmt.Sprintf("%s printed more than %d MiB, and was killed: remove what prints for every item", who, maxOutput>>20)
	case errors.Is(err, errLate):
		e.Kind, e.Message = TimeoutError, fmt.Sprintf("%s gave no answer within %s (timeout), and was killed", who, timeout)
	case errors.Is(err, errClosed):
		e.Kind, e.Message = ExitError, who+" closed its connection to pipectl, as os.closerange(3, …) does, and was killed"
	case errors.Is(err, errGone):
		e.Kind, e.Message = ExitError, who+" "+exit()
	default:
		e.Kind, e.Message = ExitError, fmt.Sprintf("%s was killed: %v", who, err)
	}
	return e
}
