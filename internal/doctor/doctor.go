// Package doctor examines a machine: what it offers to a pipeline, what it lacks, and what to do about that.
package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/nvml"
)

// State says what a finding means.
type State string

// The states.
const (
	OK      State = "ok"
	Note    State = "note"    // it may hold measurements back or make them vary, or isn't known
	Problem State = "problem" // something that the machine has can't be used, or pipectl can't work
)

// Finding is what a check found.
type Finding struct {
	Check string // its name, for programs
	Title string // its name, for people
	State State
	Text  string   // with the numbers
	Fix   string   // what to do, in full sentences; "" where there is nothing
	Value *float64 // the number that counts; nil where there is none, or it isn't known
	Unit  string   // of Value: "bytes", "CPUs", "MHz", "ns", "files", "share"
	Err   error    // why the check itself broke
}

// Machine is what the checks look at. All else is read from files below Root.
type Machine struct {
	Root        fs.FS         // "/"
	CPUs        int           // as Go counts them
	PageSize    int           // bytes
	ClockRead   time.Duration // what reading the clock takes
	JPEGDecoder string        // the build's
	BLAS        string        // the build's

	Device    gpu.Info    // the CUDA device
	DeviceErr error       // why there is none
	CloseErr  error       // what closing it met
	GPU       *nvml.Facts // nil if unknown

	Shm     *Space // of /dev/shm; nil if unknown
	Results Results
}

// Space is the space of a file system in bytes.
type Space struct{ Free, Total uint64 }

// Results is the place of the results database.
type Results struct {
	Path  string
	Err   error  // why it can't be written
	Space *Space // nil if unknown
}

// Examine runs all checks.
func Examine(m *Machine) []Finding {
	var all []Finding
	for _, check := range []struct {
		name, title string
		run         func(*Machine) Finding
	}{
		{"cuda", "CUDA", cuda},
		{"gpu", "GPU", gpuNow},
		{"memlock", "locked memory", memlock},
		{"shm", "/dev/shm", shm},
		{"cpus", "CPUs", cpus},
		{"cpu_quota", "CPU quota", cpuQuota},
		{"cpu_governor", "CPU governor", cpuGovernor},
		{"cpu_clock", "CPU clock", cpuClock},
		{"simd", "SIMD", simd},
		{"memory", "memory", memory},
		{"memory_limit", "memory limit", memoryLimit},
		{"swap", "swap", swap},
		{"page_size", "page size", pageSize},
		{"huge_pages", "huge pages", hugePages},
		{"open_files", "open files", openFiles},
		{"clock", "clock", clock},
		{"jpeg_decoder", "JPEG decoder", jpegDecoder},
		{"blas", "BLAS", blas},
		{"results", "results", results},
	} {
		f := check.run(m)
		f.Check, f.Title = check.name, check.title
		all = append(all, f)
	}
	return all
}

// of returns a finding with its number.
func of(state State, value float64, unit, format string, args ...any) Finding {
	return Finding{State: state, Text: fmt.Sprintf(format, args...), Value: &value, Unit: unit}
}

// fix returns f with what to do.
func (f Finding) fix(text string) Finding {
	f.Fix = text
	return f
}

// unread returns the finding of a check whose file couldn't be read. That there is none, or that it may not be read, is how
// some machines are; another error means that the check broke.
func unread(err error) Finding {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return Finding{State: Note, Text: fmt.Sprintf("unknown (%v)", err)}
	}
	return broken(err)
}

// broken returns the finding of a check that couldn't do its work.
func broken(err error) Finding {
	return Finding{State: Problem, Text: fmt.Sprintf("the check itself failed: %v", err), Err: err}
}

// odd returns the finding of a check whose file doesn't say what was looked for.
func odd(file, what string) Finding {
	return Finding{State: Note, Text: fmt.Sprintf("unknown (/%s doesn't tell %s)", file, what)}
}

// read returns a file's text without the space around it.
func (m *Machine) read(name string) (string, error) {
	text, err := fs.ReadFile(m.Root, name)
	return strings.TrimSpace(string(text)), err
}

// field returns what stands behind a name on the first line of text that begins with both: "MemTotal: 16 kB" or
// "model name : EPYC".
func field(text, name string) (value string, ok bool) {
	for line := range strings.Lines(text) {
		key, value, found := strings.Cut(line, ":")
		if found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
