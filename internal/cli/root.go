// Package cli is the command line: the commands, one file each, and what they show people and programs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/ui"
)

// Run runs the command line args, the program's name left out, and returns the exit code: 0 done, 1 error, 2 wrong usage,
// 3 invalid configuration, 4 an expectation failed, 130 interrupted, which is when ctx ends, 141 nobody reads the standard output any more.
func Run(ctx context.Context, args []string, world State) int {
	interrupted := ctx
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	s := &state{State: world, stdout: &output{w: world.Out, unread: leave}, stderr: &spaced{w: world.Err}, args: args}
	s.outTerm, s.errTerm = ui.Detect(s.Out, s.getenv), ui.Detect(s.Err, s.getenv)
	s.Err = s.stderr
	root, started := newRootCommand(s)
	root.SetArgs(terraformFlags(args))
	root.SetIn(s.In)
	root.SetOut(s.stdout)
	root.SetErr(s.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errInterrupted
	}
	switch {
	case err != nil && !*started:
		err = wrongUsage(cmd, err)
	case interrupted.Err() == nil && ctx.Err() != nil && (err == nil || errors.Is(err, errInterrupted)):
		return exitUnread // quietly, as others end there
	case err == nil && s.stdout.err != nil:
		err = fmt.Errorf("writing to the standard output: %w", s.stdout.err)
	}
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		usage.command = cmd.CommandPath()
	}
	if err != nil {
		s.report(err)
	}
	return exitCode(err)
}

// newRootCommand returns the command line, and where it notes that a command's own work began: errors before that are
// in the command line itself.
func newRootCommand(s *state) (root *cobra.Command, started *bool) {
	started = new(bool)
	root = &cobra.Command{
		Use:           "pipectl",
		Short:         "Find the stage of a training input pipeline that starves the GPU",
		SilenceErrors: true,
		SilenceUsage:  true,

		DisableSuggestions:         true, // ours are worded otherwise
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if err := cmd.ValidateFlagGroups(); err != nil {
				return err
			}
			*started = true
			if s.noColor {
				s.outTerm.Color, s.errTerm.Color = false, false
			}
			return nil
		},
	}
	root.PersistentFlags().BoolVar(&s.noColor, "no-color", false, "no colour, as with NO_COLOR or TERM=dumb in the environment")
	root.AddCommand(
		newInitCommand(s),
		newFmtCommand(s),
		newValidateCommand(s),
		newPlanCommand(s),
		newRunCommand(s),
		newListCommand(s),
		newShowCommand(s),
		newCompareCommand(s),
		newTagCommand(s),
		newRemoveCommand(s),
		newExportCommand(s),
		newStagesCommand(s),
		newCacheCommand(s),
		newDoctorCommand(s),
		newVersionCommand(s),
	)
	strictHelp(root)
	return root, started
}

// terraformFlags rewrites the flags that Terraform's users write with one dash, which pflag would take for a row of
// one-letter flags.
func terraformFlags(args []string) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		if arg == "--" {
			copy(out[i:], args[i:])
			break
		}
		name, _, _ := strings.Cut(arg, "=")
		switch name {
		case "-var", "-var-file", "-json":
			arg = "-" + arg
		}
		out[i] = arg
	}
	return out
}
