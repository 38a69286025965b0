package python

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// memoryFile makes a file in memory that has no name.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// mapMemory makes a sparse file in memory and maps it.
func mapMemory(name string, size int) (*os.File, []byte, error) {
	file, err := memoryFile(name)
	if err != nil {
		return nil, nil, err
	}
	if err := file.Truncate(int64(size)); err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	if err := unix.Madvise(mem, unix.MADV_DONTDUMP); err != nil {
		return nil, nil, errors.Join(err, unix.Munmap(mem), file.Close())
	}
	return file, mem, nil
}

func unmapMemory(mem []byte) { unix.Munmap(mem) } // it fails only on what isn't mapped

// socketPair returns a connection, and its other end for a process.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("opening a socket: %w", err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	defer near.Close()
	conn, err := net.FileConn(near)
	if err != nil {
		far.Close()
		return nil, nil, fmt.Errorf("opening a socket: %w", err)
	}
	return conn.(*net.UnixConn), far, nil
}

// sendFiles writes data, and hands files over with it.
func sendFiles(conn *net.UnixConn, data []byte, files []*os.File) error {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := conn.WriteMsgUnix(data, unix.UnixRights(fds...), nil)
	if err == nil && n < len(data) {
		_, err = conn.Write(data[n:])
	}
	return err
}

// ownGroup makes the process that cmd starts the first of its own group: the terminal's Ctrl-C isn't for it, and it can be killed with
// all that it starts.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the processes of a group.
func killGroup(pgid int) {
	if pgid > 1 { // 0 would be this process's own group, -1 everyone
		unix.Kill(-pgid, unix.SIGKILL) // it fails where there are none
	}
}

// awaitGroup waits until no process of a killed group is left, for a while: those that the kernel can't end now end later.
func awaitGroup(pgid int) {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		// Where this process is the first of a container, the orphans are its own.
		unix.Wait4(-pgid, nil, unix.WNOHANG, nil)
		if !groupRuns(pgid) {
			return
		}
	}
}

// groupRuns reports whether a process of a group hasn't ended. Those that have hold nothing, however long it takes until someone waits
// for them.
func groupRuns(pgid int) bool {
	if errors.Is(unix.Kill(-pgid, 0), unix.ESRCH) {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	group := strconv.Itoa(pgid)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		f, err := stat(e.Name())
		return err == nil && f[2] == group && f[0] != "Z"
	})
}

func killProcess(pid int) { unix.Kill(pid, unix.SIGKILL) } // it fails where it has ended

// showWhere has a process print where it is at work, as main.py has set it up, before it is killed.
func showWhere(pid int) {
	if unix.Kill(pid, unix.SIGUSR1) == nil {
		time.Sleep(50 * time.Millisecond)
	}
}

// exists reports whether there is a process, ended or not.
func exists(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// stat returns the fields of /proc/PID/stat from the third, the state, on.
func stat(pid string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return nil, err
	}
	// The second field, the name in parentheses, may hold any character.
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	if len(fields) < 50 {
		return nil, fmt.Errorf("/proc/%s/stat has %d fields", pid, len(fields)+2)
	}
	return fields, nil
}

// exitOf says how a process that is a zombie ended; false where it isn't one.
func exitOf(pid int) (string, bool) {
	f, err := stat(strconv.Itoa(pid))
	if err != nil || f[0] != "Z" {
		return "", false
	}
	code, err := strconv.Atoi(f[49])
	if err != nil {
		return "", false
	}
	return describeExit(code), true
}

// describeExit says what a status of wait(2) means.
func describeExit(status int) string {
	s := syscall.WaitStatus(status)
	switch {
	case s.Signaled() && s.Signal() == syscall.SIGKILL:
		return "was killed (SIGKILL: by hand, or by the kernel for want of memory)"
	case s.Signaled():
		return fmt.Sprintf("was ended by signal %d, %s (%s)", int(s.Signal()), unix.SignalName(s.Signal()), s.Signal())
	}
	return fmt.Sprintf("ended with exit status %d", s.ExitStatus())
}

// endOf says how a process that was waited for ended.
func endOf(s *os.ProcessState) string { return describeExit(int(s.Sys().(syscall.WaitStatus))) }

// groupTime returns the CPU time that a group's processes have used, those that have ended included.
func groupTime(pgid int) (time.Duration, bool) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, false
	}
	const tick = time.Second / 100 // the kernel's USER_HZ is 100 on all machines that Go runs on
	var ticks int64
	group := strconv.Itoa(pgid)
	for _, e := range entries {
		if name := e.Name(); name[0] < '0' || name[0] > '9' {
			continue
		}
		f, err := stat(e.Name())
		if err != nil || f[2] != group {
			continue // it has ended meanwhile, or is another's
		}
		for _, field := range f[11:15] { // utime, stime, and those of its children that have ended
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, false
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * tick, true
}
