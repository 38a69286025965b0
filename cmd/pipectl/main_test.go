package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write the outputs that scripts compare anew")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"pipectl": main})
}

func TestScripts(t *testing.T) { runScripts(t, "testdata/script", nil) }

// runScripts runs the scripts in a folder.
func runScripts(t *testing.T, dir string, setup func(*testscript.Env) error) {
	photo, err := os.ReadFile("../../examples/photos/photos/coffee/coffee_00.jpg")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:           dir,
		Setup:         setup,
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"signals": signals,
			// photo FILE writes a photo.
			"photo": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.MkdirAll(filepath.Dir(ts.MkAbs(args[0])), 0o755))
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), photo, 0o644))
			},
		},
	})
}

// exits CODE COMMAND ARG… runs a command, whose exit code must be CODE.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if want := number(ts, args[0]); code != want {
		ts.Fatalf("exit code %d, want %d", code, want)
	}
}

// signals SIGNAL TIMES REGEXP CODE FILE COMMAND ARG… runs a command, sends it a signal some times as soon as its standard
// output matches, and keeps the output in FILE. The exit code must be CODE, which is -1 where the signal ends the process.
func signals(ts *testscript.TestScript, _ bool, args []string) {
	signal := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[args[0]]
	times, when, code := number(ts, args[1]), regexp.MustCompile(args[2]), number(ts, args[3])
	cmd := exec.Command(args[5], args[6:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "PIPECTL_DB=")
	out := &watched{when: when, matched: make(chan struct{})}
	var errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &errors
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-out.matched:
	case err := <-ended:
		ts.Fatalf("ended before its output matched: %v\n%s%s", err, out.text.String(), errors.String())
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		ts.Fatalf("its output never matched:\n%s", out.text.String())
	}
	for range times {
		ts.Check(cmd.Process.Signal(signal))
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		ts.Fatalf("it didn't end")
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		ts.Fatalf("exit code %d, want %d\n%s", got, code, errors.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[4]), out.text.Bytes(), 0o644))
}

// watched keeps what is written to it, and closes matched when that matches.
type watched struct {
	when    *regexp.Regexp
	matched chan struct{}
	once    sync.Once
	text    bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.text.Write(p)
	if w.when.Match(w.text.Bytes()) {
		w.once.Do(func() { close(w.matched) })
	}
	return len(p), nil
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}
