package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/hcl/config"
)

// assignments are the --var and --var-file of a command line, in the order given.
type assignments []config.Assignment

// add adds --var and --var-file to a command.
func (a *assignments) add(cmd *cobra.Command) {
	cmd.Flags().Var(varFlag{a}, "var", "set a variable; may be given several times")
	cmd.Flags().Var(varFileFlag{a}, "var-file", "read variables from a file; may be given several times")
	cmd.MarkFlagFilename("var-file", "hcl")
}

// varFlag appends the values of --var to assignments.
type varFlag struct{ *assignments }

func (f varFlag) Set(v string) error {
	if name, _, ok := strings.Cut(v, "="); !ok || strings.TrimSpace(name) == "" {
		return fmt.Errorf("want NAME=VALUE")
	}
	*f.assignments = append(*f.assignments, config.Assignment{Var: v})
	return nil
}

func (f varFlag) String() string { return "" }
func (f varFlag) Type() string   { return "NAME=VALUE" }

// varFileFlag appends the values of --var-file to assignments.
type varFileFlag struct{ *assignments }

func (f varFileFlag) Set(v string) error {
	if v == "" {
		return fmt.Errorf("want the path of a file")
	}
	*f.assignments = append(*f.assignments, config.Assignment{File: v})
	return nil
}

func (f varFileFlag) String() string { return "" }
func (f varFileFlag) Type() string   { return "FILE" }
