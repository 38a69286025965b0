package cli

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/hcl/diag"
)

// validateView is the output of `pipectl validate`.
type validateView struct {
	FormatVersion int            `json:"format_version"`
	Type          string         `json:"type"` // "validation"
	Valid         bool           `json:"valid"`
	Errors        int            `json:"error_count"`
	Warnings      int            `json:"warning_count"`
	Experiments   []string       `json:"experiments"`
	Diagnostics   []diag.Message `json:"diagnostics"`
}

func newValidateCommand(s *state) *cobra.Command {
	sel := new(selection)
	cmd := &cobra.Command{
		Use:   "validate [PATH]",
		Short: "Check experiment files",
		Long: `Check the experiment file at PATH, or all experiment files of the folder PATH (default: the current folder): their syntax,
types and attributes, their values, and that each stage can take what the one above it gives. No data set is read and
no device opened. The exit code is 3 where there is an error.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sel.path = pathArgument(args)
			cfg, diags := s.read(cmd.Context(), sel)
			if cmd.Context().Err() != nil {
				return errInterrupted
			}
			view := validateView{
				FormatVersion: formatVersion,
				Type:          "validation",
				Valid:         !diags.HasErrors(),
				Experiments:   names(cfg.Experiments),
				Diagnostics:   diag.JSON(diags, cfg.Files),
			}
			for _, d := range diags {
				if d.Severity == hcl.DiagError {
					view.Errors++
				} else {
					view.Warnings++
				}
			}
			s.showDiagnostics(diags, cfg.Files)
			switch {
			case s.json:
				s.writeJSON(view)
			case view.Valid:
				fmt.Fprintf(s.stdout, "%s is valid: %s.\n", sel.path, count(len(cfg.Experiments), "experiment"))
			}
			if !view.Valid {
				return &toldError{exitInvalid}
			}
			return nil
		},
	}
	sel.assignments.add(cmd)
	s.jsonFlag(cmd, "write one JSON object with the diagnostics")
	return cmd
}
