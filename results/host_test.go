package results

import (
	"os"
	"runtime"
	"testing"
)

func TestReadHost(t *testing.T) {
	h := ReadHost(t.Context())
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	if h.Hostname != hostname || h.GOMAXPROCS != runtime.GOMAXPROCS(0) || h.CPUs < 1 || h.Memory < 1<<20 || h.Kernel == "" || h.Go != runtime.Version() {
		t.Errorf("got %+v", h)
	}
}

func TestHostKey(t *testing.T) {
	h := wholeStart.Host
	same, other := h, h
	same.Hostname, same.Kernel, same.Go = "elsewhere", "7.0", "go1.30"
	other.GOMAXPROCS = 4
	if same.Key() != h.Key() || other.Key() == h.Key() || new(Host).Key() == h.Key() {
		t.Errorf("keys %s, %s, %s", h.Key(), same.Key(), other.Key())
	}
}
