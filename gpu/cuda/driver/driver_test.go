//go:build cuda

package driver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain prints what Open returns where the tests start this program anew, since a process loads one driver only.
func TestMain(m *testing.M) {
	if os.Getenv("DRIVER_TEST_OPEN") != "" {
		for range 2 {
			err := Open()
			if err == nil {
				fmt.Println("opened")
			} else {
				fmt.Println(err)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// opened returns what Open says, twice, in a process of its own with these variables.
func opened(t *testing.T, variables ...string) string {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(append(os.Environ(), Variable+"=", "DRIVER_TEST_OPEN=1", "GORACE=atexit_sleep_ms=0"), variables...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	first, second, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if first != second {
		t.Errorf("the second Open says %q, the first %q", second, first)
	}
	return first
}

func emulated(t *testing.T) string {
	t.Helper()
	file := os.Getenv(Variable)
	if file == "" && os.Getenv("PIPECTL_REQUIRE_CUDA") != "1" {
		t.Skip("the emulated driver isn't named: run make test-cuda")
	}
	return file
}

func TestOpen(t *testing.T) {
	file := emulated(t)
	folder := t.TempDir()
	link := filepath.Join(folder, soname)
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	text := write(t, []byte(strings.Repeat("no library ", 100)))
	for _, tc := range []struct {
		name      string
		variables []string
		want      string
	}{
		{"named", []string{Variable + "=" + file}, "opened"},
		{"named without a folder", []string{Variable + "=driver_test.go"}, "the driver library that PIPECTL_LIBCUDA names can't be used: " + beside(t, "driver_test.go") + " isn't a whole library: bad magic number '[47 47 103 111]' in record at byte 0x0"},
		{"on the library path", []string{"LD_LIBRARY_PATH=/nowhere:" + folder}, "opened"},
		{"no GPU", []string{Variable + "=" + file, "PIPECTL_EMULATOR_DEVICES=0"}, "the CUDA driver finds no GPU"},
		{"failing", []string{Variable + "=" + file, "PIPECTL_EMULATOR_FAIL=1", "PIPECTL_EMULATOR_FAIL_WITH=999"}, "the CUDA driver can't be initialised: CUDA_ERROR_UNKNOWN (unknown error)"},
		{"a stub", []string{Variable + "=" + file, "PIPECTL_EMULATOR_FAIL=1", "PIPECTL_EMULATOR_FAIL_WITH=34"}, file + " is the CUDA toolkit's stub to link with, not a driver"},
		{"missing", []string{Variable + "=/no/driver"}, "the driver library that PIPECTL_LIBCUDA names can't be used: open /no/driver: no such file or directory"},
		{"a folder", []string{Variable + "=" + folder}, "the driver library that PIPECTL_LIBCUDA names can't be used: " + folder + " isn't a file"},
		{"a text", []string{Variable + "=" + text}, "the driver library that PIPECTL_LIBCUDA names can't be used: " + text + " isn't a whole library: bad magic number '[110 111 32 108]' in record at byte 0x0"},
		{"a text on the library path", []string{"LD_LIBRARY_PATH=" + filepath.Dir(text)}, "the CUDA driver library is broken: " + text + " isn't a whole library: bad magic number '[110 111 32 108]' in record at byte 0x0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := opened(t, tc.variables...); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// Without a driver the reason is the dynamic linker's. Machines with a driver have no such reason to give.
func TestOpenNothing(t *testing.T) {
	found, err := find(searchPath(""))
	if err != nil || found != soname {
		t.Skip("this machine has a CUDA driver")
	}
	want := "no CUDA driver is installed (libcuda.so.1: cannot open shared object file: No such file or directory)"
	if got := opened(t); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// beside returns the path of a file in this package's folder.
func beside(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// write writes a driver library with such content and returns its path.
func write(t *testing.T, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), soname)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// A library that was cut off anywhere is an error, not a crash.
func TestCutOff(t *testing.T) {
	whole, err := os.ReadFile(emulated(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkFile(write(t, whole)); err != nil {
		t.Errorf("whole: %v", err)
	}
	for i := range 16 {
		n := i * len(whole) / 16
		if err := checkFile(write(t, whole[:n])); err == nil || !strings.Contains(err.Error(), "isn't a whole library") {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	hollow := append(whole[:len(whole)/2:len(whole)/2], make([]byte, len(whole)-len(whole)/2)...)
	if err := checkFile(write(t, hollow)); err == nil {
		t.Error("half of the bytes are zeros, and nothing is wrong")
	}
}

// A library that isn't a driver leaves every function as it was.
func TestLoadOther(t *testing.T) {
	files, err := filepath.Glob("/lib/*/libm.so.6")
	if err != nil || len(files) == 0 {
		t.Skip("there is no libm.so.6 to take for a driver")
	}
	want := files[0] + " isn't a CUDA driver that pipectl can use: it has no function cuInit"
	if err := load(files[0]); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	const notInitialized = Result(3)
	if _, err := Version(); !errors.Is(err, notInitialized) {
		t.Errorf("a call before a driver is loaded: %v", err)
	}
	if got := notInitialized.Error(); got != "CUDA error 3" {
		t.Errorf("%q", got)
	}
}

func TestFind(t *testing.T) {
	whole, err := os.ReadFile(emulated(t))
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(whole)
	other[18], other[19] = 243, 0 // e_machine: RISC-V
	good, foreign, broken, none := filepath.Dir(write(t, whole)), filepath.Dir(write(t, other)), filepath.Dir(write(t, whole[:1000])), t.TempDir()
	for _, tc := range []struct {
		name    string
		folders []string
		want    string
		broken  bool
	}{
		{"none", []string{none, "/no/such"}, soname, false},
		{"first", []string{none, good, broken}, filepath.Join(good, soname), false},
		{"behind another processor's", []string{foreign, good}, filepath.Join(good, soname), false},
		{"broken", []string{none, broken, good}, "", true},
	} {
		if got, err := find(tc.folders); got != tc.want || (err != nil) != tc.broken {
			t.Errorf("%s: %q, %v, want %q", tc.name, got, err, tc.want)
		}
	}
}

// Whatever a library's bytes are, looking at them ends with an answer.
func FuzzCheckFile(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	if self, err := os.ReadFile("/proc/self/exe"); err == nil {
		f.Add(self[:4096])
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		checkFile(write(t, content))
	})
}
