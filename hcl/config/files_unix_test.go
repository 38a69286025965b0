//go:build unix

package config_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/hcl/config"
)

// TestIrregularFiles gives pipes and devices for files, which must be reported instead of being waited for.
func TestIrregularFiles(t *testing.T) {
	folder := write(t, map[string]string{"good.hcl": minimal("", "")})
	inside := write(t, map[string]string{"good.hcl": minimal("", "")})
	for _, pipe := range []string{filepath.Join(folder, "pipe"), filepath.Join(inside, "pipe.hcl"), filepath.Join(inside, "pipe.auto.vars.hcl")} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	unreadable := func(path string) string {
		return path + " can't be read: it is not a regular file. Give the path of a file on disk."
	}
	for _, c := range []struct {
		name    string
		options config.Options
		want    []string
	}{
		{"a pipe", config.Options{Path: filepath.Join(folder, "pipe")}, []string{unreadable(filepath.Join(folder, "pipe"))}},
		{"a device", config.Options{Path: "/dev/zero"}, []string{unreadable("/dev/zero")}},
		{"pipes in a folder", config.Options{Path: inside},
			[]string{unreadable(filepath.Join(inside, "pipe.hcl")), unreadable(filepath.Join(inside, "pipe.auto.vars.hcl"))}},
		{"a pipe of values", config.Options{
			Path:        filepath.Join(folder, "good.hcl"),
			Assignments: []config.Assignment{{File: filepath.Join(folder, "pipe")}},
		}, []string{unreadable(filepath.Join(folder, "pipe"))}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.options.Registry = registry()
			_, diags := config.Load(c.options)
			var got []string
			for _, d := range diags {
				got = append(got, d.Detail)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
