// Package machine reads from /proc and /sys what the kernel lets this process use.
package machine

import (
	"io/fs"
	"slices"
	"strings"
)

// Governor returns the frequency governors of the CPUs, each once; "" if unknown.
func Governor(root fs.FS) string {
	var found []string
	files, _ := fs.Glob(root, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	for _, name := range files {
		if text, err := fs.ReadFile(root, name); err == nil {
			found = append(found, strings.TrimSpace(string(text)))
		}
	}
	slices.Sort(found)
	return strings.Join(slices.Compact(found), ", ")
}
