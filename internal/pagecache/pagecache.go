// Package pagecache drops files from the operating system's page cache, and tells how much of them it holds.
package pagecache

// Kernel is the page cache of the machine. On systems other than Linux its methods return errors.ErrUnsupported.
type Kernel struct{}
