//go:build cuda

package driver

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// searchPath returns the folders in which a driver library is looked for: those of libraryPath, which has the form of
// LD_LIBRARY_PATH, then where distributions, containers and WSL put it.
func searchPath(libraryPath string) []string {
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	return append(filepath.SplitList(libraryPath), "/usr/lib/"+triplet, "/lib/"+triplet, "/usr/lib64", "/lib64", "/usr/lib",
		"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/run/opengl-driver/lib")
}

// find returns the driver library in the first of folders that has one for this processor, or the soname where none has, for
// the dynamic linker may know more. A library that is there and broken is an error.
func find(folders []string) (string, error) {
	for _, folder := range folders {
		file := filepath.Join(folder, soname)
		err := checkFile(file)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errOther):
			return "", fmt.Errorf("the CUDA driver library is broken: %w", err)
		}
	}
	return soname, nil
}

// errOther is the error of a library that the dynamic linker passes over, too, on its way through the folders.
var errOther = errors.New("it is for another processor")

// checkFile returns nil for a file that the dynamic linker can map. The linker itself doesn't look: from a library that was
// cut off it maps what isn't there, and the process dies of SIGBUS.
func checkFile(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s isn't a file", file)
	}
	// The section headers, which elf.NewFile reads and the linker doesn't, stand at the end of a library.
	library, err := elf.NewFile(io.NewSectionReader(f, 0, info.Size()))
	if err != nil {
		return fmt.Errorf("%s isn't a whole library: %w", file, err)
	}
	if library.Machine != map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH] {
		return fmt.Errorf("%s can't be loaded: %w", file, errOther)
	}
	for _, p := range library.Progs {
		if p.Type == elf.PT_LOAD && p.Off+p.Filesz > uint64(info.Size()) {
			return fmt.Errorf("%s isn't a whole library: it ends after %d of %d bytes", file, info.Size(), p.Off+p.Filesz)
		}
	}
	return nil
}
