package cli

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"
)

func TestGroupMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tc := range []struct {
		name  string
		files fstest.MapFS
		want  int64
		err   error
	}{
		{"none", fstest.MapFS{}, 0, fs.ErrNotExist},
		{"no limit", fstest.MapFS{
			"proc/self/cgroup":                  file("0::/user\n"),
			"sys/fs/cgroup/user/memory.max":     file("max\n"),
			"sys/fs/cgroup/user/memory.current": file("100\n"),
		}, 0, fs.ErrNotExist},
		{"version 2, the outer group is the tighter one", fstest.MapFS{
			"proc/self/cgroup":                      file("0::/user/job\n"),
			"sys/fs/cgroup/user/job/memory.max":     file("5000\n"),
			"sys/fs/cgroup/user/job/memory.current": file("1000\n"),
			"sys/fs/cgroup/user/memory.max":         file("4000\n"),
			"sys/fs/cgroup/user/memory.current":     file("2000\n"),
			"sys/fs/cgroup/user/memory.stat":        file("anon 1500\ninactive_file 500\n"),
		}, 2500, nil},
		{"version 1", fstest.MapFS{
			"proc/self/cgroup": file("5:cpu:/x\n4:memory:/docker/1f\n"),
			"sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes": file("3000\n"),
			"sys/fs/cgroup/memory/docker/1f/memory.usage_in_bytes": file("1000\n"),
			"sys/fs/cgroup/memory/docker/1f/memory.stat":           file("inactive_file 7\ntotal_inactive_file 100\n"),
		}, 2100, nil},
		{"over its limit", fstest.MapFS{
			"proc/self/cgroup":             file("0::/\n"),
			"sys/fs/cgroup/memory.max":     file("3000\n"),
			"sys/fs/cgroup/memory.current": file("3100\n"),
		}, 0, nil},
		{"not as the kernel writes it", fstest.MapFS{
			"proc/self/cgroup":             file("nonsense\n0::\n"),
			"sys/fs/cgroup/memory.max":     file("many\n"),
			"sys/fs/cgroup/memory.current": file("\n"),
		}, 0, fs.ErrNotExist},
	} {
		got, err := groupMemory(tc.files)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %d, %v; want %d, %v", tc.name, got, err, tc.want, tc.err)
		}
	}
}
