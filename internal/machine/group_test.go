package machine

import (
	"testing"
	"testing/fstest"
)

func TestCPUQuota(t *testing.T) {
	files := func(pairs ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
		}
		return m
	}
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want float64 // 0: none
	}{
		{"no control groups", files(), 0},
		{"version 2", files("proc/self/cgroup", "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max", "250000 100000\n"), 2.5},
		{"version 2, no limit", files("proc/self/cgroup", "0::/a\n", "sys/fs/cgroup/a/cpu.max", "max 100000\n"), 0},
		{"version 2, the tightest counts", files("proc/self/cgroup", "0::/a/b/c\n",
			"sys/fs/cgroup/a/cpu.max", "150000 100000\n", "sys/fs/cgroup/a/b/cpu.max", "max 100000\n", "sys/fs/cgroup/a/b/c/cpu.max", "300000 100000\n"), 1.5},
		{"version 2, in a container", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "50000 100000\n"), 0.5},
		{"version 2, outside the mount", files("proc/self/cgroup", "0::/../x\n", "sys/fs/cgroup/cpu.max", "50000 100000\n"), 0.5},
		{"version 1", files("proc/self/cgroup", "7:memory:/m\n4:cpu,cpuacct:/docker/1f\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.cfs_quota_us", "400000\n", "sys/fs/cgroup/cpu,cpuacct/docker/1f/cpu.cfs_period_us", "100000\n"), 4},
		{"version 1, no limit", files("proc/self/cgroup", "4:cpu:/\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"), 0},
		{"nonsense", files("proc/self/cgroup", "what\n0::/\n", "sys/fs/cgroup/cpu.max", "a b c\n"), 0},
		{"no period", files("proc/self/cgroup", "0::/\n", "sys/fs/cgroup/cpu.max", "1000 0\n"), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := CPUQuota(tt.root)
			if got != tt.want || ok != (tt.want != 0) {
				t.Errorf("got %v, %v, want %v", got, ok, tt.want)
			}
		})
	}
}

func TestGroupMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for _, tc := range []struct {
		name        string
		files       fstest.MapFS
		left, limit int64 // -1: none
	}{
		{"none", fstest.MapFS{}, -1, -1},
		{"no limit", fstest.MapFS{
			"proc/self/cgroup":                  file("0::/user\n"),
			"sys/fs/cgroup/user/memory.max":     file("max\n"),
			"sys/fs/cgroup/user/memory.current": file("100\n"),
		}, -1, -1},
		{"version 2, the outer group is the tighter one", fstest.MapFS{
			"proc/self/cgroup":                      file("0::/user/job\n"),
			"sys/fs/cgroup/user/job/memory.max":     file("5000\n"),
			"sys/fs/cgroup/user/job/memory.current": file("1000\n"),
			"sys/fs/cgroup/user/memory.max":         file("4000\n"),
			"sys/fs/cgroup/user/memory.current":     file("2000\n"),
			"sys/fs/cgroup/user/memory.stat":        file("anon 1500\ninactive_file 500\n"),
		}, 2500, 4000},
		{"version 1, no limit", fstest.MapFS{
			"proc/self/cgroup":                           file("4:memory:/\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes": file("1000\n"),
		}, -1, -1},
		{"version 1", fstest.MapFS{
			"proc/self/cgroup": file("5:cpu:/x\n4:memory:/docker/1f\n"),
			"sys/fs/cgroup/memory/docker/1f/memory.limit_in_bytes": file("3000\n"),
			"sys/fs/cgroup/memory/docker/1f/memory.usage_in_bytes": file("1000\n"),
			"sys/fs/cgroup/memory/docker/1f/memory.stat":           file("inactive_file 7\ntotal_inactive_file 100\n"),
		}, 2100, 3000},
		{"over its limit", fstest.MapFS{
			"proc/self/cgroup":             file("0::/\n"),
			"sys/fs/cgroup/memory.max":     file("3000\n"),
			"sys/fs/cgroup/memory.current": file("3100\n"),
		}, 0, 3000},
		{"not as the kernel writes it", fstest.MapFS{
			"proc/self/cgroup":             file("nonsense\n0::\n"),
			"sys/fs/cgroup/memory.max":     file("many\n"),
			"sys/fs/cgroup/memory.current": file("\n"),
		}, -1, -1},
	} {
		left, limit, ok := GroupMemory(tc.files)
		if !ok {
			left, limit = -1, -1
		}
		if left != tc.left || limit != tc.limit {
			t.Errorf("%s: %d of %d, want %d of %d", tc.name, left, limit, tc.left, tc.limit)
		}
	}
}
