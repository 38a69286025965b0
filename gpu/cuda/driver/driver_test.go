//go:build cuda

package driver

import "testing"

func TestOpen(t *testing.T) { t.Log(Open()) }
