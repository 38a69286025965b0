//go:build !linux

package stages

import (
	"context"
	"time"
)

// exactTimer is for Linux alone: elsewhere waits are Go's.
type exactTimer struct{}

func newExactTimer() *exactTimer                              { return nil }
func (*exactTimer) watch(context.Context)                     {}
func (*exactTimer) wait(context.Context, time.Duration) error { return nil }
func (*exactTimer) close() error                              { return nil }
