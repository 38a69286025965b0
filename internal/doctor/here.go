package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/shirou/gopsutil/v4/disk"

	"github.com/pipectl/pipectl/gpu/cpu"
	"github.com/pipectl/pipectl/stages"
)

// Here returns this machine, without its GPU. database is the path of the results database, which need not be there.
func Here(database string) *Machine {
	folder, err := writable(database)
	return &Machine{
		Root:        os.DirFS("/"),
		CPUs:        runtime.NumCPU(),
		PageSize:    os.Getpagesize(),
		ClockRead:   readClock(),
		JPEGDecoder: stages.JPEGDecoder,
		BLAS:        cpu.BLAS,
		Shm:         space("/dev/shm"),
		Results:     Results{Path: database, Err: err, Space: space(folder)},
	}
}

// readClock measures what reading the clock takes: the best of a few tries, each of many reads.
func readClock() time.Duration {
	const tries, reads = 5, 1000
	best := time.Duration(1<<63 - 1)
	for range tries {
		start := time.Now()
		end := start
		for range reads {
			end = time.Now()
		}
		best = min(best, end.Sub(start)/reads)
	}
	return best
}

// space returns the space of the file system that has a file, nil if it can't be found out.
func space(path string) *Space {
	usage, err := disk.Usage(path)
	if err != nil {
		return nil
	}
	return &Space{usage.Free, usage.Total}
}

// writable returns nil where a database can be written at path, or made there with its folder, and the innermost folder
// of the path that is there. It leaves everything as it was.
func writable(path string) (folder string, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return ".", err
	}
	folder = filepath.Dir(path)
	switch file, err := os.OpenFile(path, os.O_RDWR, 0); {
	case err == nil:
		file.Close()
	case !errors.Is(err, fs.ErrNotExist):
		return folder, err
	}
	for {
		info, err := os.Stat(folder)
		if err == nil && !info.IsDir() {
			return folder, fmt.Errorf("%s is not a folder", folder)
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) || folder == filepath.Dir(folder) {
			break
		}
		folder = filepath.Dir(folder)
	}
	file, err := os.CreateTemp(folder, ".pipectl-doctor-*")
	if err != nil {
		return folder, err
	}
	return folder, errors.Join(file.Close(), os.Remove(file.Name()))
}
