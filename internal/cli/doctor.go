package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/doctor"
	"github.com/pipectl/pipectl/results"
)

func newDoctorCommand(s *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [PATH]",
		Short: "Examine this machine: what it offers and lacks, and how to mend it",
		Long: `Examine this machine: the GPU and its driver, the CPUs, memory and limits, and the place of the results database, which is that of the
experiment at PATH (default: the current folder).

Each line is "ok", a "note" on what may hold measurements back or make them vary, or a "problem". What to do about it
follows. The exit code is 0 whatever the machine lacks, and 1 where a check itself failed.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m := doctor.Here(s.databasePath(pathArgument(args)))
			s.examineGPU(m)
			findings := doctor.Examine(m)
			host := hostOf(cmd.Context(), m)
			if s.json {
				if err := s.writeJSON(newDoctorView(findings, host)); err != nil {
					return err
				}
			} else {
				writeDoctor(s.stdout, s.outTerm, findings, &host)
			}
			if slices.ContainsFunc(findings, func(f doctor.Finding) bool { return f.Err != nil }) {
				return &toldError{exitError}
			}
			return nil
		},
	}
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// examineGPU finds out about the CUDA device, which it opens and closes.
func (s *state) examineGPU(m *doctor.Machine) {
	device, err := s.OpenDevice("auto")
	if err == nil {
		m.Device = device.Info()
		m.CloseErr = device.Close()
	}
	if m.Device.Kind != "cuda" {
		_, m.DeviceErr = s.OpenDevice("cuda") // says why as an error, with the way out
	}
	if facts, ok := s.ReadGPU(m.Device.PCI); ok {
		m.GPU = &facts
	}
}

// hostOf returns the facts about a machine that are stored with runs on it.
func hostOf(ctx context.Context, m *doctor.Machine) results.Host {
	host := results.ReadHost(ctx)
	host.Device, host.DeviceName, host.DeviceMemory = m.Device.Kind, m.Device.Name, m.Device.Memory
	host.GPU = m.GPU
	return host
}
