package python

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/stages"
)

const faults = `
import os, signal, sys, time, threading
def fine(x): return os.getpid().to_bytes(4, "little")
def killed(x): os.kill(os.getpid(), signal.SIGKILL)
def crashes(x): os.abort()
def exits(x):
    print("going down", flush=True)
    os._exit(3)
def hangs(x): time.sleep(60)
def sys_exit(x): sys.exit("stop")
def floods(x):
    while True: print("x" * 10000)
def raises(x): raise ValueError("item is  bad")
def closes(x):
    os.closerange(3, 100)
    time.sleep(60)
def returns(x):
    os.closerange(3, 100)
    return x
class Mute(BaseException):
    __module__ = None
    def __str__(self): raise KeyboardInterrupt
def mute(x): raise Mute
def interrupts(x): raise KeyboardInterrupt
def chatters(x): raise ValueError("much " * (20 << 20))
class Items:
    def __len__(self): return 4
    def __getitem__(self, i):
        if i == 1: raise KeyError("no one")
        if i == 2: os._exit(4)
        return b"item %d" % i
items = Items()
def starts(x):
    os.system("sleep 60 &")
    return b""
`

// TestFaults has a stage's process fail, and goes on with the next item.
func TestFaults(t *testing.T) {
	m := new(manager)
	in := code(t, m, "train", faults)
	in.Timeout = 2 * time.Second
	h := start(t, in)
	tests := []struct {
		callable, kind, want string
		detail               string // a part of it
	}{
		{"killed", ExitError, "its Python process was killed (SIGKILL: by hand, or by the kernel for want of memory)", ""},
		{"crashes", ExitError, "its Python process was ended by signal 6, SIGABRT (aborted)", "in crashes"},
		{"exits", ExitError, "its Python process ended with exit status 3", "It printed last:\ngoing down"},
		{"hangs", TimeoutError, "its Python process gave no answer within 2s (timeout), and was killed", "in hangs"},
		{"floods", OutputError, "its Python process printed more than 64 MiB, and was killed: remove what prints for every item", "xxx"},
		{"raises", Exception, "ValueError: item is bad", "in raises\n    def raises(x): raise ValueError(\"item is  bad\")\n"},
		{"sys_exit", Exception, "SystemExit: stop", "in sys_exit"},
		{"closes", ExitError, "its Python process closed its connection to pipectl, as os.closerange(3, …) does, and was killed", ""},
		{"returns", ExitError, "its Python process ended with exit status 1", "It printed last:\nThe code has closed the descriptor that pipectl reaches it by"},
		{"mute", Exception, "Mute: (its text can't be had: KeyboardInterrupt)", "in mute"},
		{"interrupts", Exception, "KeyboardInterrupt", "in interrupts"},
		{"chatters", Exception, "ValueError: " + strings.Repeat("much ", 200) + "…", "more characters"},
	}
	for _, tt := range tests {
		t.Run(tt.callable, func(t *testing.T) {
			t.Parallel()
			s, err := (&Callable{Callable: "train:" + tt.callable, Kind: "encoded", Interpreter: *in}).New()
			if err != nil {
				t.Fatal(err)
			}
			defer s.(*caller).Close()
			for range 2 { // the second is another process's, where the first has ended
				err = s.Process(&stages.Call{Context: t.Context()}, encoded("x"), new(stages.Element))
				var e *Error
				if !errors.As(err, &e) || e.Kind != tt.kind || e.Error() != tt.want || !strings.Contains(e.Detail(), tt.detail) {
					t.Fatalf("got %v, want %s: %s", err, tt.kind, tt.want)
				}
				if strings.Contains(e.Traceback, "pipectl_python") {
					t.Errorf("the traceback shows the helper:\n%s", e.Traceback)
				}
			}
		})
	}
	t.Cleanup(func() {
		if !h.alive() {
			t.Error("the main process didn't outlive its stage's")
		}
	})
}

func encoded(s string) *stages.Element {
	return &stages.Element{Type: stages.Type{Kind: stages.Encoded}, U8: []byte(s)}
}

// TestFailingItems reads on after items that can't be read.
func TestFailingItems(t *testing.T) {
	in := code(t, new(manager), "train", faults)
	src, err := (&Load{Dataset: "train:items", Kind: "encoded", Interpreter: *in}).Open(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []string
	for i := range src.Len() {
		var el stages.Element
		if _, err := src.Read(&stages.Call{Context: t.Context()}, i, &el); err != nil {
			got = append(got, src.Name(i)+": "+err.Error())
		} else {
			got = append(got, string(el.U8))
		}
	}
	want := "item 0\nitem 1: KeyError: 'no one'\nitem 2: its Python process ended with exit status 4\nitem 3"
	if strings.Join(got, "\n") != want {
		t.Errorf("got %s\nwant %s", strings.Join(got, "\n"), want)
	}
}

// TestCancel cancels a call: it returns soon, and the next call gets its own answer.
func TestCancel(t *testing.T) {
	in := code(t, new(manager), "train", `
import time
def slow(x):
    time.sleep(float(x))
    return x
`)
	start(t, in)
	s, err := (&Callable{Callable: "train:slow", Kind: "encoded", Interpreter: *in}).New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.(*caller).Close()
	var out stages.Element
	if err := s.Process(&stages.Call{Context: t.Context()}, encoded("0"), &out); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Process(&stages.Call{Context: ctx}, encoded("0.6"), &out); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	for _, want := range []string{"0.001", "0.002"} {
		if err := s.Process(&stages.Call{Context: t.Context()}, encoded(want), &out); err != nil || string(out.U8) != want {
			t.Errorf("got %s, %v, want %s", out.U8, err, want)
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if err := s.Process(&stages.Call{Context: ctx}, encoded("0"), &out); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestMainKilled kills the main process: its stages' processes go with it, and a new one is started for those who come later.
func TestMainKilled(t *testing.T) {
	m := new(manager)
	in := code(t, m, "train", faults)
	h := start(t, in)
	s, err := (&Callable{Callable: "train:fine", Kind: "encoded", Interpreter: *in}).New()
	if err != nil {
		t.Fatal(err)
	}
	defer s.(*caller).Close()
	var out stages.Element
	if err := s.Process(&stages.Call{Context: t.Context()}, encoded("x"), &out); err != nil {
		t.Fatal(err)
	}
	killProcess(h.pid)
	for err == nil { // until the kernel has told the stage's process
		err = s.Process(&stages.Call{Context: t.Context()}, encoded("x"), &out)
	}
	if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != ExitError {
		t.Errorf("got %v", err)
	}
	want := "the Python process (python3) was killed (SIGKILL: by hand, or by the kernel for want of memory)"
	if err := h.Call(t.Context(), in.Timeout, "name", nil, nil); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if h2 := start(t, in); h2.Key() == h.Key() {
		t.Error("the dead process is used again")
	}
}

func TestStartErrors(t *testing.T) {
	m := new(manager)
	old := filepath.Join(t.TempDir(), "old")
	if err := os.WriteFile(old, []byte("#!/bin/sh\necho warming up\necho it is too old >&2\nexit 1\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\n[ $1 = --version ] && echo other 1.0 || exit 2\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ python, want string }{
		{"no-such-python", `the interpreter "no-such-python" can't be run: executable file not found in $PATH`},
		{old, fmt.Sprintf("%q is no Python interpreter, or can't start one: it is too old", old)},
		{other, fmt.Sprintf("%q is no Python interpreter: it answers \"other 1.0\" to --version", other)},
	} {
		in := &Interpreter{Python: tt.python, Timeout: time.Minute, manager: m}
		_, err := in.start(t.Context())
		if e := (*Error)(nil); !errors.As(err, &e) || e.Kind != StartError || e.Error() != tt.want {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	in := &Interpreter{Env: map[string]string{"PYTHONHOME": "/nonexistent"}, Timeout: time.Minute, manager: m}
	if _, err := in.start(t.Context()); err == nil || !strings.HasPrefix(err.Error(), `the interpreter "python3" doesn't start with PYTHONHOME = "/nonexistent": Fatal Python error: `) {
		t.Errorf("got %v", err)
	}
	if m.users != 0 || m.arena != nil {
		t.Error("the arena outlives its users")
	}
}

// TestNothingLeft ends processes in all ways, and looks for what is left of their groups.
func TestNothingLeft(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		m := new(manager)
		in := code(t, m, "train", faults)
		h := start(t, in)
		s, err := (&Callable{Callable: "train:starts", Kind: "encoded", Interpreter: *in}).New()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Process(&stages.Call{Context: t.Context()}, encoded("x"), new(stages.Element)); err != nil {
			t.Fatal(err)
		}
		s.(*caller).Close()
		if n := members(t, h.pid); n < 2 {
			t.Errorf("%d processes, and sleep should be one", n)
		}
		h.Close()
		if n := members(t, h.pid); n != 0 {
			t.Errorf("%d processes are left", n)
		}
		if m.users != 0 || m.arena != nil || m.helper != nil || len(m.mains) != 0 {
			t.Error("the manager keeps what it needs no longer")
		}
	})
	t.Run("pipectl killed", func(t *testing.T) {
		if os.Getenv("PIPECTL_TEST_KILLED") != "" {
			killedPipectl(t)
		}
		cmd := exec.Command(os.Args[0], "-test.run", "^TestNothingLeft$/^pipectl_killed$")
		cmd.Env = append(os.Environ(), "PIPECTL_TEST_KILLED=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		if n := members(t, pid); n < 3 {
			t.Errorf("%d processes before", n)
		}
		cmd.Process.Kill()
		cmd.Wait() // it was killed
		left := waitFor(func() string { return strconv.Itoa(members(t, pid)) }, func(n string) bool { return n == "0" })
		if left != "0" {
			t.Errorf("%s processes are left", left)
		}
	})
}

// killedPipectl is a pipectl at work: a stage's process hangs, holding Python's lock, another waits. It says the group's number.
func killedPipectl(t *testing.T) {
	in := code(t, new(manager), "train", faults+`
import re
def stuck(x): re.match("(a*)*b", "a" * 100)
`)
	h := start(t, in)
	for _, callable := range []string{"train:stuck", "train:starts"} {
		s, err := (&Callable{Callable: callable, Kind: "encoded", Interpreter: *in}).New()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		s.Process(&stages.Call{Context: ctx}, encoded("x"), new(stages.Element))
		cancel()
	}
	go h.Call(t.Context(), 0, "resolve", map[string]any{"role": "dataset", "ref": "train:hangs(1)"}, nil)
	fmt.Println(h.pid)
	time.Sleep(time.Minute) // until it is killed
}

// members counts the processes of a group, those too that have ended and that nobody has waited for.
func members(t *testing.T, pgid int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		if f, err := stat(e.Name()); err == nil && f[2] == strconv.Itoa(pgid) && f[0] != "Z" { // which waits for the system
			n++
		}
	}
	return n
}
