package machine

import (
	"testing"
	"testing/fstest"
)

func TestLastLevelCache(t *testing.T) {
	caches := func(pairs ...string) fstest.MapFS {
		m := fstest.MapFS{}
		for i := 0; i < len(pairs); i += 2 {
			dir := "sys/devices/system/cpu/cpu0/cache/index" + string(rune('0'+i/2))
			m[dir+"/level"] = &fstest.MapFile{Data: []byte(pairs[i] + "\n")}
			m[dir+"/size"] = &fstest.MapFile{Data: []byte(pairs[i+1] + "\n")}
		}
		return m
	}
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want int64
	}{
		{"unknown", caches(), 0},
		{"three levels", caches("1", "32K", "1", "32K", "2", "512K", "3", "32768K"), 32 << 20},
		{"two levels", caches("2", "1024K", "1", "64K"), 1 << 20},
		{"not as the kernel writes it", caches("1", "32K", "2", "large", "x", "5K"), 32 << 10},
	} {
		if got := LastLevelCache(tt.root); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestNUMANodes(t *testing.T) {
	nodes := fstest.MapFS{}
	if got := NUMANodes(nodes); got != 0 {
		t.Errorf("without a file: %d", got)
	}
	for _, name := range []string{"node0/cpulist", "node1/cpulist", "possible", "online"} {
		nodes["sys/devices/system/node/"+name] = &fstest.MapFile{}
	}
	if got := NUMANodes(nodes); got != 2 {
		t.Errorf("%d, want 2", got)
	}
}

func TestCPUList(t *testing.T) {
	for want, cores := range map[string][]int{"": nil, "5": {5}, "0-3": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}} {
		if got := CPUList(cores); got != want {
			t.Errorf("%v: %q, want %q", cores, got, want)
		}
	}
}
