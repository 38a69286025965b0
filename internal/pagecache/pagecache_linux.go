package pagecache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Drop asks the kernel to drop a file's pages. It keeps those that are to be written to the disk yet, or that a process has
// mapped; a file system in memory keeps all. The source is posix_fadvise(2), POSIX_FADV_DONTNEED.
func (Kernel) Drop(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("dropping %s from the page cache: %w", path, err)
	}
	return nil
}

// Resident returns how many of a file's pages the page cache holds, and how many it has. Of a file that this process neither owns
// nor may write to, the kernel calls all pages resident, since who has read it would be for all to see: that is fs.ErrPermission.
// The source is mincore(2), and mm/mincore.c in the kernel.
func (Kernel) Resident(path string) (resident, pages int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, err
	}
	if !tells(path, info) {
		return 0, 0, &fs.PathError{Op: "mincore", Path: path, Err: fs.ErrPermission}
	}
	if info.Size() == 0 || int64(int(info.Size())) != info.Size() {
		return 0, 0, nil
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, 0, fmt.Errorf("mapping %s: %w", path, err)
	}
	defer unix.Munmap(data)
	page := os.Getpagesize()
	in := make([]byte, (len(data)+page-1)/page) // the lowest bit of each says whether its page is there
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&in[0]))); errno != 0 {
		return 0, 0, fmt.Errorf("mincore of %s: %w", path, errno)
	}
	for _, b := range in {
		resident += int(b & 1)
	}
	return resident, len(in), nil
}

// tells reports whether the kernel tells this process of a file's pages.
func tells(path string, info fs.FileInfo) bool {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) == os.Geteuid() {
		return true
	}
	return os.Geteuid() == 0 || unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) == nil
}
