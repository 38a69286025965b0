package machine

import (
	"fmt"
	"testing"
	"testing/fstest"
)

func TestReadClocks(t *testing.T) {
	// machine makes the files of cores: frequency in kHz, the core's count and its package's; each "" for none.
	machine := func(cores ...[3]string) fstest.MapFS {
		m := fstest.MapFS{}
		for n, core := range cores {
			dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", n)
			m[dir+"topology/physical_package_id"] = &fstest.MapFile{Data: fmt.Appendln(nil, n/2)}
			for i, name := range []string{"cpufreq/scaling_cur_freq", "thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"} {
				if core[i] != "" {
					m[dir+name] = &fstest.MapFile{Data: []byte(core[i] + "\n")}
				}
			}
		}
		return m
	}
	four := machine([3]string{"3000000", "1", "10"}, [3]string{"2000000", "2", "10"}, [3]string{"1000000", "3", "20"}, [3]string{"2000000", "4", "20"})
	var twelve [][3]string
	for i := range 12 {
		twelve = append(twelve, [3]string{fmt.Sprint(1000000 * (1 + i%2)), "", ""})
	}
	for _, tt := range []struct {
		name  string
		root  fstest.MapFS
		cores []int
		want  Clocks
	}{
		{"nothing", fstest.MapFS{}, nil, Clocks{-1, -1}},
		{"a virtual machine", machine([3]string{}, [3]string{}), nil, Clocks{-1, -1}},
		{"all", four, nil, Clocks{2e9, 40}},
		{"one", four, []int{1}, Clocks{2e9, 12}},
		{"one of each package", four, []int{0, 2}, Clocks{2e9, 34}},
		{"no such core", four, []int{9}, Clocks{-1, -1}},
		{"not as the kernel writes it", machine([3]string{"<unknown>", "many", ""}), nil, Clocks{-1, -1}},
		{"every second of many", machine(twelve...), nil, Clocks{1e9, -1}},
	} {
		if got := ReadClocks(tt.root, tt.cores); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
