package results

import (
	"os"
	"runtime"
	"testing"
	"testing/fstest"
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
			got, ok := cpuQuota(tt.root)
			if got != tt.want || ok != (tt.want != 0) {
				t.Errorf("got %v, %v, want %v", got, ok, tt.want)
			}
		})
	}
}

func TestGovernor(t *testing.T) {
	governors := func(names ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i, name := range names {
			m["sys/devices/system/cpu/cpu"+string(rune('0'+i))+"/cpufreq/scaling_governor"] = &fstest.MapFile{Data: []byte(name + "\n")}
		}
		return m
	}
	for _, tt := range []struct {
		root fstest.MapFS
		want string
	}{
		{governors(), ""},
		{governors("powersave", "powersave"), "powersave"},
		{governors("powersave", "performance", "powersave"), "performance, powersave"},
	} {
		if got := governor(tt.root); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
