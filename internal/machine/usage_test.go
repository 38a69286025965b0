package machine

import (
	"os"
	"testing"
	"testing/fstest"
	"time"
)

// TestReadUsage reads the counts of made-up machines.
func TestReadUsage(t *testing.T) {
	const stat = "cpu  100 10 50 900 30 5 5 20 7 0\ncpu0 60 5 20 400 10 3 2 10 0 0\ncpu1 40 5 30 500 20 2 3 10 7 0\nintr 12345\n"
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for _, tt := range []struct {
		name  string
		files fstest.MapFS
		cores []int
		want  Usage
	}{
		{"nothing", fstest.MapFS{}, nil, Usage{-1, -1, -1}},
		{"all cores", fstest.MapFS{"proc/stat": file(stat)}, nil, Usage{190 * tick, -1, -1}},
		{"one core", fstest.MapFS{"proc/stat": file(stat)}, []int{1}, Usage{90 * tick, -1, -1}},
		{"no such core", fstest.MapFS{"proc/stat": file(stat)}, []int{7}, Usage{-1, -1, -1}},
		{"garbage", fstest.MapFS{"proc/stat": file("cpu a b c d e f\n")}, nil, Usage{-1, -1, -1}},
		{"swap", fstest.MapFS{"proc/vmstat": file("pswpin 3\npswpout 4\npswp 9\n")}, nil, Usage{-1, -1, 7 * int64(os.Getpagesize())}},
		{"version 2", fstest.MapFS{
			"proc/self/cgroup":           file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/cpu.stat": file("usage_usec 5\nnr_throttled 2\nthrottled_usec 1500\n"),
		}, nil, Usage{-1, 1500 * time.Microsecond, -1}},
		{"version 1", fstest.MapFS{
			"proc/self/cgroup":                     file("4:cpu,cpuacct:/a\n"),
			"sys/fs/cgroup/cpu,cpuacct/a/cpu.stat": file("nr_periods 5\nthrottled_time 1500\n"),
		}, nil, Usage{-1, 1500, -1}},
		{"no quota", fstest.MapFS{
			"proc/self/cgroup":       file("0::/\n"),
			"sys/fs/cgroup/cpu.stat": file("usage_usec 5\n"),
		}, nil, Usage{-1, -1, -1}},
	} {
		if got := ReadUsage(tt.files, tt.cores); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
