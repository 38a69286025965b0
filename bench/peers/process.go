package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// start starts a program that does a round for each line it reads, and prints images/s. images is how many it makes in one.
func start(name string, images int, program string, args ...string) (*peer, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	round := func() (float64, time.Duration, error) {
		before := groupCPU(cmd.Process.Pid)
		if _, err := io.WriteString(in, "\n"); err != nil {
			return 0, 0, err
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0, 0, fmt.Errorf("reading its result: %w", err)
		}
		rate, err := strconv.ParseFloat(strings.TrimSpace(line), 64)
		return rate, (groupCPU(cmd.Process.Pid) - before) / time.Duration(images), err
	}
	return &peer{name: name, round: round, close: func() error { return errors.Join(in.Close(), cmd.Wait()) }}, nil
}

// groupCPU returns the CPU time that the living processes of a group have used: see proc_pid_stat(5).
func groupCPU(group int) time.Duration {
	const tick = 10 * time.Millisecond // the kernel's, for programs
	used := time.Duration(0)
	names, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n } // the kernel's
		if number(2) == group {
			used += time.Duration(number(11)+number(12)) * tick
		}
	}
	return used
}
