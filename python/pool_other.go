//go:build !linux

package python

import "time"

func monotonic() time.Duration { return 0 }
