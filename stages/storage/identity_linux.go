package storage

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity returns a file's number, which another that takes its place or that a link leads to doesn't have, and when its content, name or
// rights were changed last. That time can't be set, as that of the last change of the content can.
func identity(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" %d %d.%09d", stat.Ino, stat.Ctim.Sec, stat.Ctim.Nsec)
}
