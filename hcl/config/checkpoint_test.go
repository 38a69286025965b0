package config_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/config"
)

// TestKeptCheckpoints finds the folders of caches on disk beside the file, or where path says.
func TestKeptCheckpoints(t *testing.T) {
	folder := write(t, map[string]string{"x.hcl": minimal("", `checkpoint "raw" {
    store = "disk"
    mode  = "keep"
  }
  prepare "decode" "decode" {}
  checkpoint "decoded" {
    store    = "disk"
    mode     = "keep"
    path     = "big"
    compress = "zstd"
    limit    = "2GiB"
  }
  prepare "scale" "scale" { size = 3 }
  checkpoint "probe" {
    path  = "/tmp"
    store = "disk"
  }`)})
	c, _ := config.Load(config.Options{Path: folder, Registry: registry()})
	var got []engine.Checkpoint
	for _, s := range c.Experiments[0].Stages {
		if s.Checkpoint != nil {
			got = append(got, *s.Checkpoint)
		}
	}
	want := []engine.Checkpoint{
		{Name: "raw", Store: engine.DiskStore, Mode: engine.KeepMode, Path: filepath.Join(folder, ".pipectl", "cache")},
		{Name: "decoded", Store: engine.DiskStore, Mode: engine.KeepMode, Path: filepath.Join(folder, "big"), Compress: true, Limit: 2 << 30},
		{Name: "probe", Store: engine.DiskStore, Mode: engine.ProbeMode, Path: "/tmp"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
}
