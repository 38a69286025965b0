//go:build !linux

package pagecache

import "errors"

// Drop returns errors.ErrUnsupported.
func (Kernel) Drop(string) error { return errors.ErrUnsupported }

// Resident returns errors.ErrUnsupported.
func (Kernel) Resident(string) (resident, pages int, err error) { return 0, 0, errors.ErrUnsupported }
