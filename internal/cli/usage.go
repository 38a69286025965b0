package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unknownCommand is cobra's error for the first argument, which is no type of its own.
var unknownCommand = regexp.MustCompile(`^unknown command "(.*)" for "pipectl"$`)

// wrongUsage words an error that cobra or pflag found in a command line.
func wrongUsage(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		text := fmt.Sprintf("--%s %s", value.GetFlag().Name, value.GetValue())
		switch kind := value.GetFlag().Value.Type(); kind {
		case "int":
			return usagef("%s: want a whole number", text)
		case "bool":
			return usagef("%s: want true or false", text)
		}
		return usagef("%s: %w", text, value.Unwrap())
	}
	if m := unknownCommand.FindStringSubmatch(err.Error()); m != nil {
		return unknown(cmd.Root(), m[1])
	}
	return usagef("%s", strings.TrimSpace(err.Error()))
}

// unknown is the error for a name that none of a command's subcommands has.
func unknown(parent *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", parent.CommandPath()+" "+name)
	if near := parent.SuggestionsFor(name); len(near) > 0 {
		// Of names that are equally near, letters are swapped more often than left out: "rnu" is run rather than rm.
		longer := func(s string) int { return max(len(s)-len(name), len(name)-len(s)) }
		text += fmt.Sprintf(". Did you mean %q?", slices.MinFunc(near, func(a, b string) int { return longer(a) - longer(b) }))
	}
	return usagef("%s", text)
}

// atMost returns what checks that a command has n arguments at most.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) <= n:
			return nil
		case n == 0:
			return usagef("%s takes no arguments, but %q is one", cmd.CommandPath(), args[0])
		}
		return usagef("%s takes %s at most, but %q is one more", cmd.CommandPath(), count(n, "argument"), args[n])
	}
}

// strictHelp makes the commands that cobra adds refuse what they don't know: a help topic, a shell to complete for.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			show := cmd.Run
			cmd.Run = nil
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil || about != root && len(rest) > 0 {
					return unknown(about, append(rest, args...)[0])
				}
				show(cmd, args)
				return nil
			}
		case "completion":
			cmd.Args = nil
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return unknown(cmd, args[0])
				}
				return cmd.Help()
			}
		}
	}
}
