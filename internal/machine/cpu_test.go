package machine

import (
	"testing"
	"testing/fstest"
)

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
		if got := Governor(tt.root); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
