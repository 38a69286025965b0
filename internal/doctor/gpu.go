package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/nvml"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/stages"
)

// busy is the utilisation from which on a GPU counts as used by others.
const busy = 0.05

// cuda tells whether steps can run on CUDA, and else exactly why not.
func cuda(m *Machine) Finding {
	if m.DeviceErr == nil {
		if m.CloseErr != nil {
			return broken(fmt.Errorf("closing the device: %w", m.CloseErr))
		}
		return of(OK, float64(m.Device.Memory), "bytes", "%s at %s, %s of memory. %s", m.Device.Name, m.Device.PCI, stages.Bytes(m.Device.Memory), m.Device.Why)
	}
	f := Finding{State: Note, Text: m.DeviceErr.Error()}
	if u := (*gpu.Unusable)(nil); errors.As(m.DeviceErr, &u) {
		f.Text, f.Fix = u.Error(), u.Fix
	}
	if there := nvidia(m.Root); len(there) > 0 {
		f.State = Problem
		f.Text += fmt.Sprintf(". The machine has an NVIDIA GPU (PCI %s).", strings.Join(there, ", "))
	}
	return f
}

// nvidia returns the PCI addresses of NVIDIA's GPUs.
func nvidia(root fs.FS) []string {
	const folder, vendor, display = "sys/bus/pci/devices", "0x10de", "0x03" // class 3 of the PCI code and ID assignment specification
	var found []string
	entries, _ := fs.ReadDir(root, folder) // without the bus there is none on it
	for _, e := range entries {
		id, _ := fs.ReadFile(root, path.Join(folder, e.Name(), "vendor"))
		class, _ := fs.ReadFile(root, path.Join(folder, e.Name(), "class"))
		if strings.TrimSpace(string(id)) == vendor && strings.HasPrefix(string(class), display) {
			found = append(found, e.Name())
		}
	}
	return found
}

// gpuNow tells what the GPU does at this moment.
func gpuNow(m *Machine) Finding {
	switch {
	case m.GPU == nil && m.DeviceErr != nil:
		return Finding{State: OK, Text: "none is known of"}
	case m.GPU == nil:
		return Finding{State: Note, Text: "unknown: NVML (libnvidia-ml.so.1) doesn't load or doesn't know the GPU, so runs are stored without its utilisation, clocks and power."}.
			fix("Install the library, a part of NVIDIA's driver; a container needs NVIDIA_DRIVER_CAPABILITIES=compute,utility.")
	}
	text := strings.Trim(m.GPU.Name+", "+GPUText(m.GPU), ", ")
	switch u := m.GPU.Utilization; {
	case u == nil:
		return Finding{State: OK, Text: text}
	case *u >= busy:
		return of(Note, *u, "share", "%s. Something else uses it, and will take part in every measurement.", text).
			fix("`nvidia-smi` lists the processes that do: end them before you measure.")
	default:
		return of(OK, *u, "share", "%s", text)
	}
}

// GPUText words what a GPU did at one moment, without its name; "" where nothing is known.
func GPUText(f *nvml.Facts) string {
	if f == nil {
		return ""
	}
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	if f.Utilization != nil {
		add(true, "busy %s of the time", ui.Percent(*f.Utilization))
	}
	add(f.Memory > 0, "%s of %s used", stages.Bytes(f.MemoryUsed), stages.Bytes(f.Memory))
	add(f.Clock > 0, "%d MHz", f.Clock)
	add(f.MemoryClock > 0, "memory at %d MHz", f.MemoryClock)
	switch {
	case f.Power != nil && f.PowerLimit != nil:
		add(true, "%s of %s W", ui.Number(*f.Power), ui.Number(*f.PowerLimit))
	case f.Power != nil:
		add(true, "%s W", ui.Number(*f.Power))
	}
	if f.Temperature != nil {
		add(true, "%.0f °C", *f.Temperature)
	}
	add(f.Driver != "", "driver %s", f.Driver)
	return strings.Join(parts, ", ")
}
