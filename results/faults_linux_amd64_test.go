package results

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
)

// fault is what happens to a process at one of the system calls by which it changes its files.
type fault struct {
	name  string
	errno syscall.Errno // the call fails so, and nothing is done; 0: the process is killed
	half  bool          // before it is killed, it does the call, and of a write the first half
	want  []string      // a message about it says one of these
}

var faults = []fault{
	{name: "killed before it"},
	{name: "killed in it", half: true},
	{name: "full disk", errno: syscall.ENOSPC, want: []string{"free some disk space", "the disk not full"}},
	{name: "failing disk", errno: syscall.EIO, want: []string{"the disk or its file system is at fault", "the file and its folder must be writable", "choose another place"}},
}

// TestFaults lets a process that stores a run meet each fault at each call by which it changes a file. What it had reported as
// stored is there, no more than one thing besides, and the database can be written to.
func TestFaults(t *testing.T) {
	stride := 1
	if raceEnabled {
		stride = 16
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			stuck := 0
			for n := 1; ; n += stride {
				folder, err := os.MkdirTemp("/dev/shm", "pipectl") // in memory: nothing waits for a disk
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(folder) })
				path := filepath.Join(folder, "sub", "results.db")
				lines, met, err := traced("PIPECTL_TEST_TRACED", path, n, f)
				if errors.Is(err, errStuck) && stuck < 3 {
					stuck++
					n -= stride
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				checkFaulted(t, fmt.Sprintf("call %d, %s", n, met), path, lines, f, met != "")
				if t.Failed() {
					t.Fatalf("the process said:\n%s", strings.Join(lines, "\n"))
				}
				if met == "" { // it got to its end
					t.Logf("%d calls", n-1)
					return
				}
			}
		})
	}
}

// checkFaulted checks the database of a process that wrote these lines.
func checkFaulted(t *testing.T, at, path string, lines []string, f fault, met bool) {
	t.Helper()
	reported := map[string]int{}
	for _, line := range lines {
		what, rest, _ := strings.Cut(line, " ")
		if what != "failed" {
			reported[what]++
			continue
		}
		said := false
		for _, want := range f.want {
			said = said || strings.Contains(rest, want)
		}
		if !said || !strings.Contains(rest, path) && !strings.Contains(rest, filepath.Dir(path)) {
			t.Errorf("%s: it doesn't say what to do: %s", at, rest)
		}
	}
	if (f.errno != 0 || !met) && reported["closed"] != 1 {
		t.Errorf("%s: it didn't get to its end", at)
	}
	s, err := Open(t.Context(), path)
	if errors.Is(err, ErrNoDatabase) && reported["begun"] == 0 {
		s, err = Create(t.Context(), path)
	}
	if err != nil {
		t.Errorf("%s: opening: %v", at, err)
		return
	}
	defer s.Close()
	runs, err := s.List(t.Context(), Filter{}, 0)
	if err != nil || len(runs) < reported["begun"] || len(runs) > 1 {
		t.Errorf("%s: %d runs, %v", at, len(runs), err)
	}
	slack := 1 // what was being stored when it was killed may be there
	if f.errno != 0 {
		slack = 0
	}
	for _, r := range runs {
		run, err := s.Load(t.Context(), r.ID)
		if err != nil {
			t.Errorf("%s: %v", at, err)
			continue
		}
		rounds := 0
		for _, p := range run.Probes {
			for _, iv := range p.Rounds {
				rounds++
				if len(iv.Stages) != 4 {
					t.Errorf("%s: %d stages in a round", at, len(iv.Stages))
				}
			}
		}
		for what, got := range map[string]int{"interval": rounds, "skipped": len(run.Skipped), "note": len(run.Notes)} {
			if got < reported[what] || got > reported[what]+slack {
				t.Errorf("%s: %d %ss were reported as stored, %d are", at, reported[what], what, got)
			}
		}
		if run.Status != Done && (reported["finished"] > 0 || run.Status != Interrupted) {
			t.Errorf("%s: status %s", at, run.Status)
		}
	}
	var integrity string
	if err := s.db.QueryRow("PRAGMA integrity_check").Scan(&integrity); err != nil || integrity != "ok" {
		t.Errorf("%s: integrity: %s, %v", at, integrity, err)
	}
	w, err := Create(t.Context(), path)
	if err != nil {
		t.Errorf("%s: %v", at, err)
		return
	}
	defer w.Close()
	run, err := w.Begin(t.Context(), Start{Experiment: experiment("next"), Kind: Session})
	if err == nil {
		err = run.Finish(nil, Done, nil)
	}
	if err != nil {
		t.Errorf("%s: writing to it: %v", at, err)
	}
}

// TestRemoveKilled kills a process that removes two of three runs in one transaction, at each call by which it changes a file: both are there, or
// neither is, and the third is as it was stored.
func TestRemoveKilled(t *testing.T) {
	folder, err := os.MkdirTemp("/dev/shm", "pipectl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "results.db")
	s, err := Create(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	kept := writeWhole(t, s).ID()
	writeWhole(t, s)
	writeWhole(t, s)
	if _, err := s.Tag(t.Context(), []string{kept}, []string{"base"}, NewTag); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	stride := 1
	if raceEnabled {
		stride = 8
	}
	for _, f := range faults[:2] {
		left := map[int]int{} // how often so many runs were left
		for n, stuck := 1, 0; ; n += stride {
			path := filepath.Join(folder, fmt.Sprint(f.half, n), "sub", "results.db")
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, whole, 0o644)); err != nil {
				t.Fatal(err)
			}
			_, met, err := traced("PIPECTL_TEST_REMOVE", path, n, f)
			if errors.Is(err, errStuck) && stuck < 3 {
				stuck++
				n -= stride
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := Open(t.Context(), path)
			if err != nil {
				t.Fatalf("call %d, %s: %v", n, met, err)
			}
			runs, err := s.List(t.Context(), Filter{}, 0)
			left[len(runs)]++
			if err != nil || len(runs) != 1 && (met == "" || len(runs) != 3) {
				t.Errorf("call %d, %s: %d runs are left, %v", n, met, len(runs), err)
			}
			for _, r := range runs {
				if _, err := s.Load(t.Context(), r.ID); err != nil {
					t.Errorf("call %d, %s: %v", n, met, err)
				}
			}
			if id, err := s.Resolve(t.Context(), "base", ""); id != kept || err != nil {
				t.Errorf("call %d, %s: the tag is of %q, %v", n, met, id, err)
			}
			s.Close()
			if met == "" || t.Failed() {
				break
			}
		}
		if left[1] < 2 || left[3] == 0 {
			t.Errorf("%s: runs that were left, and how often: %v", f.name, left)
		}
	}
}

// removeTraced removes all runs but the oldest, as writeTraced writes one.
func removeTraced(path string) {
	runtime.LockOSThread()
	fmt.Println(unix.Gettid())
	unix.Read(0, make([]byte, 1))
	s, err := Open(context.Background(), path)
	if err == nil {
		var ids []string
		if ids, err = s.IDs(context.Background(), Filter{}); err == nil {
			_, err = s.Remove(context.Background(), ids[1:])
		}
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		fmt.Println("failed", err)
	}
}

// writeTraced stores a run on one thread, whose number it prints, once it is told to on its standard input. It prints a line for
// all that is stored, and for what can't be, which it tries once more.
func writeTraced(path string) {
	runtime.LockOSThread()
	fmt.Println(unix.Gettid())
	unix.Read(0, make([]byte, 1))
	ctx := context.Background()
	var s *Store
	var run *Run
	step := func(name string, f func() error) {
		for range 2 {
			err := f()
			if err == nil {
				fmt.Println(name)
				return
			}
			fmt.Println("failed", strings.ReplaceAll(err.Error(), "\n", " "))
		}
		os.Exit(1)
	}
	step("created", func() (err error) { s, err = Create(ctx, path); return err })
	step("begun", func() (err error) {
		run, err = s.Begin(ctx, Start{Experiment: experiment("photos"), Kind: Session})
		return err
	})
	for i := range 3 {
		step("interval", func() error { return run.AddInterval(engine.Probe{To: i % 2}, interval(float64(i+1))) })
	}
	step("skipped", func() error {
		return run.AddSkipped(engine.SkippedItem{Address: "prepare.decode", Item: "a.jpg", Reason: "truncated"})
	})
	step("note", func() error { return run.AddNote(bisect.Note{Code: "cold", Text: "The first round was slower."}) })
	step("host", func() error { return run.SetHost(wholeStart.Host) })
	step("finished", func() error { return run.Finish(nil, Done, nil) })
	step("closed", s.Close)
}

// errStuck says that a traced process stood still. That is the tracing's fault, rarely and on busy machines: the same call is tried
// again.
var errStuck = errors.New("the traced process stood still")

// traced runs what the variable stands for, writeTraced or removeTraced, in a process that meets a fault at the nth call by which it changes a file. It returns the lines that
// the process wrote, and which call met the fault, "" if there were fewer.
func traced(variable, path string, n int, f fault) (lines []string, met string, err error) {
	runtime.LockOSThread() // all calls of ptrace must come from one thread
	defer runtime.UnlockOSThread()
	cmd, err := testProcess(variable, path)
	if err != nil {
		return nil, "", err
	}
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		return nil, "", err
	}
	defer cmd.Wait() // its error is that the process was killed, or waited for here
	defer cmd.Process.Kill()
	r := bufio.NewReader(out)
	var tid int
	if _, err := fmt.Fscanln(r, &tid); err != nil {
		return nil, "", err
	}
	p := tracee{pid: cmd.Process.Pid, tid: tid, folder: filepath.Dir(filepath.Dir(path))}
	if err := p.attach(); err != nil {
		return nil, "", fmt.Errorf("tracing the process: %w", err)
	}
	io.WriteString(in, "\n")
	var stuck atomic.Bool
	watch := time.AfterFunc(20*time.Second, func() {
		stuck.Store(true)
		cmd.Process.Kill()
	})
	met, err = p.run(n, f)
	watch.Stop()
	if stuck.Load() {
		return nil, "", errStuck
	}
	rest, readErr := io.ReadAll(r)
	return strings.Split(strings.TrimSuffix(string(rest), "\n"), "\n"), met, errors.Join(err, readErr)
}

// tracee is a thread whose system calls are watched.
type tracee struct {
	pid, tid int
	folder   string // that of the files of interest
}

func (p *tracee) attach() error {
	if err := unix.PtraceAttach(p.tid); err != nil {
		return err
	}
	if _, err := unix.Wait4(p.tid, nil, unix.WALL, nil); err != nil {
		return err
	}
	return unix.PtraceSetOptions(p.tid, unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_EXITKILL)
}

// run lets the thread go on until it ends, with the fault at its nth call of interest, which is returned.
func (p *tracee) run(n int, f fault) (met string, err error) {
	signal := 0
	for failing := false; ; {
		if err := unix.PtraceSyscall(p.tid, signal); err != nil {
			return met, err
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(p.tid, &status, unix.WALL, nil); err != nil {
			return met, err
		}
		if status.Exited() || status.Signaled() {
			return met, nil
		}
		signal = 0
		if status.StopSignal() != unix.SIGTRAP|0x80 {
			signal = int(status.StopSignal())
			continue
		}
		var regs unix.PtraceRegs
		if err := unix.PtraceGetRegs(p.tid, &regs); err != nil {
			return met, err
		}
		entry, err := p.entering()
		if err != nil {
			return met, err
		}
		switch {
		case !entry && failing:
			failing = false
			if f.errno == 0 {
				return met, p.kill()
			}
			regs.Rax = -uint64(f.errno)
			err = unix.PtraceSetRegs(p.tid, &regs)
		case entry && met == "":
			name := p.changes(&regs)
			if name == "" {
				break
			}
			if n--; n > 0 {
				break
			}
			met = name
			switch {
			case f.errno != 0:
				failing = true
				regs.Orig_rax = ^uint64(0) // no call
			case f.half:
				failing = true
				if regs.Orig_rax == unix.SYS_WRITE || regs.Orig_rax == unix.SYS_PWRITE64 {
					regs.Rdx /= 2
				}
			default:
				return met, p.kill()
			}
			err = unix.PtraceSetRegs(p.tid, &regs)
		}
		if err != nil {
			return met, err
		}
	}
}

// kill ends the process. A traced thread that nobody waits for would keep it from being waited for.
func (p *tracee) kill() error {
	if err := unix.Kill(p.pid, unix.SIGKILL); err != nil {
		return err
	}
	for status := unix.WaitStatus(0); !status.Exited() && !status.Signaled(); {
		if _, err := unix.Wait4(p.tid, &status, unix.WALL, nil); err != nil {
			return err
		}
	}
	return nil
}

// entering reports whether the thread has stopped before a call, not after it.
func (p *tracee) entering() (bool, error) {
	var info [88]byte // struct ptrace_syscall_info; its first byte says where
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(p.tid), uintptr(len(info)), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return false, errno
	}
	return info[0] == unix.PTRACE_SYSCALL_INFO_ENTRY, nil
}

// changes names the call that the thread is about to make if it changes a file of interest, or its name.
func (p *tracee) changes(regs *unix.PtraceRegs) string {
	var name, path string
	switch regs.Orig_rax {
	case unix.SYS_WRITE, unix.SYS_PWRITE64:
		name = "write"
	case unix.SYS_FSYNC, unix.SYS_FDATASYNC:
		name = "sync"
	case unix.SYS_FTRUNCATE, unix.SYS_FALLOCATE:
		name = "truncate"
	case unix.SYS_OPEN:
		if regs.Rsi&unix.O_CREAT != 0 {
			name, path = "create", p.text(regs.Rdi)
		}
	case unix.SYS_OPENAT:
		if regs.Rdx&unix.O_CREAT != 0 {
			name, path = "create", p.text(regs.Rsi)
		}
	case unix.SYS_UNLINK, unix.SYS_RMDIR:
		name, path = "remove", p.text(regs.Rdi)
	case unix.SYS_UNLINKAT:
		name, path = "remove", p.text(regs.Rsi)
	case unix.SYS_MKDIR:
		name, path = "mkdir", p.text(regs.Rdi)
	case unix.SYS_MKDIRAT:
		name, path = "mkdir", p.text(regs.Rsi)
	}
	if name == "" {
		return ""
	}
	if path == "" {
		path, _ = os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.pid, int32(regs.Rdi)))
	}
	if !strings.HasPrefix(path, p.folder) {
		return ""
	}
	return name + " " + filepath.Base(path)
}

// text returns the string at an address of the thread.
func (p *tracee) text(address uint64) string {
	var text []byte
	for b := make([]byte, 1); ; address++ {
		if _, err := unix.PtracePeekData(p.tid, uintptr(address), b); err != nil || b[0] == 0 {
			return string(text)
		}
		text = append(text, b[0])
	}
}
