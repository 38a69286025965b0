//go:build unix

package cache

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pipectl/pipectl/stages"
)

// childFolder is the environment variable that makes the test's program a process that fills a cache in a folder, and childTask says how.
const (
	childFolder = "PIPECTL_TEST_CACHE_FOLDER"
	childTask   = "PIPECTL_TEST_CACHE_TASK"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(childFolder); folder != "" {
		if err := child(folder, os.Getenv(childTask)); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const childPlaces = 20

// child fills a cache and tells of each step on a line.
func child(folder, task string) error {
	places := childPlaces
	if task == "limited" { // no file may have more than 32 KiB, as if the disk were full
		places = 1 << 20
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 32 << 10, Max: 32 << 10}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	d, err := Create(folder, settings(places, false))
	if err != nil {
		return err
	}
	for i := range places {
		if err := d.Put(i, int32(i), element(byte(i), 1000)); err != nil {
			return errors.Join(err, d.Close())
		}
		fmt.Println("put")
	}
	if err := d.Seal(); err != nil {
		return errors.Join(err, d.Close())
	}
	fmt.Println("sealed")
	return d.Close()
}

// start starts a child. Its lines come from the scanner.
func start(t *testing.T, folder, task string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+folder, childTask+"="+task, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, bufio.NewScanner(out)
}

// childCache checks that what Open gives is what a child wrote.
func childCache(t *testing.T, folder string) {
	t.Helper()
	for i, el := range held(t, reopen(t, folder, settings(childPlaces, false))) {
		if el == nil || !same(el, element(byte(i), 1000)) {
			t.Fatalf("item %d is %v", i, el)
		}
	}
}

// TestKilled kills processes at different moments of filling a cache: there is a whole one or none, and the next process fills it.
func TestKilled(t *testing.T) {
	for lines := 1; lines <= childPlaces+1; lines += 4 {
		folder := t.TempDir()
		cmd, out := start(t, folder, "")
		for range lines {
			out.Scan()
		}
		cmd.Process.Kill()
		for out.Scan() {
		}
		cmd.Wait()
		files, err := List(folder)
		if err != nil || len(files) != 1 {
			t.Fatalf("after %d lines there are %v, %v", lines, files, err)
		}
		d, err := Open(folder, settings(childPlaces, false))
		switch {
		case errors.Is(err, fs.ErrNotExist) && files[0].State == Partial:
			cmd, out = start(t, folder, "")
			for out.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("the next process: %v", err)
			}
		case err != nil || files[0].State != Whole:
			t.Fatalf("after %d lines there is %v, %v", lines, files[0], err)
		default:
			d.Close()
		}
		childCache(t, folder)
	}
}

// TestTwoProcesses lets a process fill what another fills already, and several at once.
func TestTwoProcesses(t *testing.T) {
	folder := t.TempDir()
	d := create(t, folder, settings(childPlaces, false))
	cmd, out := start(t, folder, "")
	if out.Scan(); out.Text() != ErrBusy.Error() {
		t.Errorf("the second says %q", out.Text())
	}
	cmd.Wait()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	type process struct {
		cmd *exec.Cmd
		out *bufio.Scanner
	}
	var all []process
	for range 4 {
		cmd, out := start(t, folder, "")
		all = append(all, process{cmd, out})
	}
	sealed := 0
	for _, p := range all {
		last := ""
		for p.out.Scan() {
			last = p.out.Text()
		}
		p.cmd.Wait()
		switch last {
		case "sealed":
			sealed++
		case ErrBusy.Error():
		default:
			t.Errorf("a process ends with %q", last)
		}
	}
	if sealed == 0 {
		t.Error("nobody filled it")
	}
	childCache(t, folder)
}

// TestFullDisk ends with an error where a record can't be written, and leaves nothing behind.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	cmd, out := start(t, folder, "limited")
	puts, last := 0, ""
	for out.Scan() {
		if last = out.Text(); last == "put" {
			puts++
		}
	}
	cmd.Wait()
	if puts != 31 || !strings.Contains(last, "file too large") {
		t.Errorf("after %d records: %q", puts, last)
	}
	if left, err := os.ReadDir(folder); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestShortened makes a file shorter that is mapped: reading what is gone is an error, not the end of the process.
func TestShortened(t *testing.T) {
	for _, compress := range []bool{false, true} {
		folder, s := t.TempDir(), settings(2, compress)
		d := create(t, folder, s)
		big := element(3, 1<<20)
		for i := range big.U8 {
			big.U8[i] = byte(i * i >> 8)
		}
		fill(t, d, []*stages.Element{element(1, 1), big})
		again := reopen(t, folder, s)
		if err := os.Truncate(filepath.Join(folder, s.Key.ID()+wholeSuffix), 200); err != nil {
			t.Fatal(err)
		}
		for _, d := range []*Disk{d, again} {
			var el stages.Element
			damage := (*DamageError)(nil)
			if _, ok, err := d.Get(1, &el); ok || !errors.As(err, &damage) {
				t.Errorf("compress=%v: %v, %v", compress, ok, err)
			}
			if _, ok, err := d.Get(0, &el); !ok || err != nil {
				t.Errorf("compress=%v: what is there still: %v, %v", compress, ok, err)
			}
		}
	}
}
