package cache

import (
	"os"

	"golang.org/x/sys/unix"
)

// prefetch has a part of a file brought into the page cache, without waiting for it. The source is posix_fadvise(2).
func prefetch(f *os.File, at, n int64) {
	_ = unix.Fadvise(int(f.Fd()), at, n, unix.FADV_WILLNEED)
}
