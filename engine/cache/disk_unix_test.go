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
	"time"

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

// TestLooked begins a cache while another process looks whether it is being filled.
func TestLooked(t *testing.T) {
	folder, s := t.TempDir(), settings(1, false)
	look, err := lockPartial(filepath.Join(folder, s.Key.ID()+partialSuffix), os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Millisecond, func() { look.Close() })
	fill(t, create(t, folder, s), []*stages.Element{element(1, 9)})
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

// TestShortened makes a file shorter that is mapped: reading what is gone is an error, not the end of the process. What was read before
// stays as it was, whatever becomes of the file.
func TestShortened(t *testing.T) {
	for _, compress := range []bool{false, true} {
		folder, s := t.TempDir(), settings(3, compress)
		d := create(t, folder, s)
		long, mapped := element(3, mappedBytes+1), element(4, 100_000)
		for _, el := range []*stages.Element{long, mapped} {
			for i := range el.U8 {
				el.U8[i] = byte(i * i >> 8)
			}
		}
		fill(t, d, []*stages.Element{element(1, 1), mapped, long})
		disks := []*Disk{d, reopen(t, folder, s)}
		var before []*stages.Element
		for _, d := range disks {
			before = append(before, held(t, d)...)
		}
		if err := os.Truncate(d.Path(), 200); err != nil {
			t.Fatal(err)
		}
		for _, d := range disks {
			for i := 1; i < 3; i++ {
				var el stages.Element
				damage := (*DamageError)(nil)
				if _, ok, err := d.Get(i, &el); ok || !errors.As(err, &damage) {
					t.Errorf("compress=%v: item %d: %v, %v", compress, i, ok, err)
				}
			}
			var el stages.Element
			if _, ok, err := d.Get(0, &el); !ok || err != nil {
				t.Errorf("compress=%v: what is there still: %v, %v", compress, ok, err)
			}
		}
		for i, el := range before {
			if want := []*stages.Element{element(1, 1), mapped, long}[i%3]; !same(el, want) {
				t.Errorf("compress=%v: item %d was changed after it was read", compress, i%3)
			}
		}
	}
}

// TestTaken removes the file of a cache that is being filled, for which another process then begins anew: only that one's is there at the end.
func TestTaken(t *testing.T) {
	for name, end := range map[string]func(*Disk) error{
		"sealed": func(d *Disk) error {
			if err := d.Seal(); err == nil || d.Sealed() {
				return fmt.Errorf("sealed, %v", err)
			}
			return nil
		},
		"discarded": (*Disk).Discard,
		"closed":    func(*Disk) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			folder, s := filepath.Join(t.TempDir(), "cache"), settings(1, false)
			first := create(t, folder, s)
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
			second := create(t, folder, s)
			if err := end(first); err != nil {
				t.Error(err)
			}
			if err := first.Close(); err != nil {
				t.Error(err)
			}
			fill(t, second, []*stages.Element{element(1, 9)})
			if got := held(t, reopen(t, folder, s)); !same(got[0], element(1, 9)) {
				t.Errorf("there is %v", got[0])
			}
		})
	}
}

// TestRemoveDamaged removes a file that was found damaged, and no other that has its place meanwhile.
func TestRemoveDamaged(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		s, b := whole(t, false)
		b[firstByte] ^= 1
		folder := plant(t, s, b)
		d := reopen(t, folder, s)
		var el stages.Element
		_, _, err := d.Get(0, &el)
		damage := (*DamageError)(nil)
		if !errors.As(err, &damage) {
			t.Fatal(err)
		}
		if replaced {
			b[firstByte] ^= 1
			if err := errors.Join(os.WriteFile(d.Path()+"2", b, 0o600), os.Rename(d.Path()+"2", d.Path())); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(damage.Remove(), damage.Remove()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(d.Path()); replaced != (err == nil) {
			t.Errorf("replaced: %v; afterwards: %v", replaced, err)
		}
	}
}
