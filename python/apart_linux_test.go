package python

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// shadows are modules of the standard library that the helper needs at some time, and that a file can be in place of.
var shadows = []string{"ast", "copy", "ctypes", "dataclasses", "difflib", "hashlib", "inspect", "json", "mmap", "pickle", "platform", "random", "re", "select",
	"shutil", "signal", "socket", "struct", "subprocess", "traceback", "zlib"}

// TestShadowed has files of the names of the standard library's in all folders of the user's: they are for the user's code, not for the
// helper.
func TestShadowed(t *testing.T) {
	out, err := exec.Command("python3", "-c", "import sys; print(*sys.modules, *sys.builtin_module_names)").Output()
	if err != nil {
		t.Fatal(err)
	}
	early := strings.Fields(string(out)) // the interpreter has these before a script's folder is looked into
	source := "import sys\n"
	for _, name := range shadows {
		if slices.Contains(early, name) {
			continue
		}
		source += "import " + name + "\nassert " + name + ".MINE, " + name + "\n"
	}
	source += "def seen(x): return x + sys.modules['difflib'].MINE\ndef lacks(x): import difflib; difflib.ndiff(1)\n"
	shadow := func(dir string) {
		for _, name := range shadows {
			if err := os.WriteFile(filepath.Join(dir, name+".py"), []byte("MINE = b'mine'\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, place := range []string{"pythonpath", "PYTHONPATH", "working directory"} {
		t.Run(place, func(t *testing.T) {
			m := new(manager)
			in := code(t, m, "train", source)
			dir := string(in.Pythonpath[0])
			switch place {
			case "PYTHONPATH":
				dir = t.TempDir()
				in.Env = map[string]string{"PYTHONPATH": dir}
			case "working directory":
				t.Chdir(dir)
			}
			shadow(dir)
			s, err := (&Callable{Callable: "train:seen", Kind: "encoded", Interpreter: *in}).New()
			if err != nil {
				t.Fatal(err)
			}
			defer s.(*caller).Close()
			var out stages.Element
			if err := s.Process(&stages.Call{Context: t.Context(), Rand: rand.New(rand.NewPCG(1, 2))}, encoded("x "), &out); err != nil || string(out.U8) != "x mine" {
				t.Errorf("got %q, %v", out.U8, err)
			}
			s, err = (&Callable{Callable: "train:lacks", Kind: "encoded", Interpreter: *in}).New()
			if err != nil {
				t.Fatal(err)
			}
			defer s.(*caller).Close()
			want := "AttributeError: module 'difflib' has no attribute 'ndiff' (" + filepath.Join(dir, "difflib.py") + " hides Python's own module difflib: rename it)"
			if err := s.Process(&stages.Call{Context: t.Context()}, encoded("x"), &out); err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// TestImportEffects has modules that change the process when they are imported: their stages are run as ever.
func TestImportEffects(t *testing.T) {
	for _, tt := range []struct{ name, source string }{
		{"default timeout", "import socket; socket.setdefaulttimeout(0.05)"},
		{"no output", "import sys; sys.stdout = None; sys.stderr.close()"},
		{"output without flush", "import sys; sys.stdout = sys.stderr = object()"},
		{"another root", "import os; os.getuid() or (os.chroot('/tmp'), os.chdir('/'))"},
		{"another user", "import os; os.getuid() or os.setuid(65534)"},
		{"another group", "import os; os.setpgid(0, os.getppid() and os.getpgid(os.getppid()))"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := code(t, new(manager), "train", tt.source+"\ndef same(x): return x\n")
			h := start(t, in)
			s, err := (&Callable{Callable: "train:same", Kind: "encoded", Interpreter: *in}).New()
			if err != nil {
				t.Fatal(err)
			}
			defer s.(*caller).Close()
			for range 2 {
				if err := s.Process(&stages.Call{Context: t.Context()}, encoded("x"), new(stages.Element)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond) // longer than the socket's timeout
			}
			err = h.Call(t.Context(), in.Timeout, "step.open", map[string]any{"ref": "train:same", "args": nil}, nil)
			if err != nil {
				t.Error(err)
			}
			s.(*caller).Close()
			h.Close()
			if exists(h.pid) && syscall.Kill(h.pid, 0) == nil {
				t.Error("the process is left")
			}
		})
	}
}

func TestImportFails(t *testing.T) {
	in := code(t, new(manager), "train", "raise KeyboardInterrupt\n")
	err := start(t, in).Call(t.Context(), in.Timeout, "resolve", map[string]any{"role": "callable", "ref": "train:x"}, nil)
	if want := "importing train: KeyboardInterrupt"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestOwnFrames reads what Python prints of a hang.
func TestOwnFrames(t *testing.T) {
	e := &Error{Output: `Current thread 0x1 (most recent call first):
  File "/home/u/train.py", line 3 in hangs
  File "/usr/lib/python3.11/importlib/__init__.py", line 126 in import_module
  File "<frozen importlib._bootstrap>", line 1 in _call
  File "/proc/7/fd/5/pipectl_python/serve.py", line 94 in serve
    connection.send(answer)
  File "<string>", line 17 in <module>`}
	want := "It printed last:\nCurrent thread 0x1 (most recent call first):\n  File \"/home/u/train.py\", line 3 in hangs"
	if got := e.Detail(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// TestLimitedMemory makes an arena in an address space that has no room for twice the machine's memory.
func TestLimitedMemory(t *testing.T) {
	if os.Getenv("PIPECTL_TEST_LIMITED") == "" {
		cmd := exec.Command("sh", "-c", "ulimit -v 4000000 && exec \"$0\" -test.run '^TestLimitedMemory$'", os.Args[0])
		cmd.Env = append(os.Environ(), "PIPECTL_TEST_LIMITED=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	a, err := newArena()
	if err != nil {
		t.Fatal(err)
	}
	if len(a.mem) > 4000000<<10 {
		t.Errorf("%d bytes are mapped", len(a.mem))
	}
	a.close()
}
