package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/results"
)

// runOptions are what the command line of `pipectl run` says.
type runOptions struct {
	selection
	probe  string // measure this probe alone; "" for a session
	epochs int    // train for so many epochs; 0 for a session
	quiet  bool
	// try has the advice of a session tried, maxTries changes at most, and write has what helps written to the files.
	try, write bool
	maxTries   int
}

// kind returns what a run is asked to do.
func (o *runOptions) kind() results.Kind {
	switch {
	case o.epochs > 0:
		return results.Epochs
	case o.probe != "":
		return results.OneProbe
	}
	return results.Session
}

func newRunCommand(s *state) *cobra.Command {
	o := new(runOptions)
	cmd := &cobra.Command{
		Use:   "run [PATH]",
		Short: "Find the stage that starves the training step",
		Long: `Run the experiment at PATH (default: the current folder): measure its step rate with caches at the boundaries between its stages, until it
is proven which stage starves the training step. Every measurement is stored as soon as it is made.

With --try it then makes the changes that may help, one after the other, measures each beside the pipeline as it is, keeps those that are
significantly faster, and searches again, until the training step itself is the slowest or nothing helps. It shows the changed file as a
diff.

The results go to the standard output, progress to the standard error stream. With --json the standard output has one
JSON object a line; the last one is the verdict. docs/json.md describes them.

The exit code is 0 when done, 1 for an error, 2 for wrong usage, 3 for an invalid configuration, 4 where a threshold of
the expect block isn't met, 130 when interrupted (Ctrl-C, SIGTERM, a closed terminal; what was measured is stored; a second Ctrl-C ends it
at once), and 141 where nobody reads the standard output any more, which interrupts too.`,
		Example: `  pipectl run examples/photos -e photos
  pipectl run --var batch_size=32 --json | tail -1
  pipectl run --probe baseline
  pipectl run --epochs 3
  pipectl run --try --write`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.path = pathArgument(args)
			switch {
			case cmd.Flags().Changed("epochs") && cmd.Flags().Changed("probe"):
				return usagef("--probe and --epochs exclude each other: measure a probe, or train")
			case cmd.Flags().Changed("epochs") && o.epochs < 1:
				return usagef("--epochs %d: want at least 1", o.epochs)
			case cmd.Flags().Changed("probe") && o.probe == "":
				return usagef("--probe: want baseline, ceiling, a stage's address or a checkpoint's name")
			case o.try && o.kind() != results.Session:
				return usagef("--try goes on from what a session finds: leave out --probe and --epochs")
			case !o.try && (o.write || cmd.Flags().Changed("max-tries")):
				return usagef("--write and --max-tries are about what --try finds: add --try")
			case o.maxTries < 1:
				return usagef("--max-tries %d: want at least 1", o.maxTries)
			}
			return s.run(cmd, o)
		},
	}
	s.selectionFlags(cmd, &o.selection)
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object a line, the verdict last")
	cmd.Flags().StringVar(&o.probe, "probe", "", "measure one probe alone: baseline, ceiling, or the cache after a stage, by its address or its checkpoint's name")
	cmd.Flags().IntVar(&o.epochs, "epochs", 0, "simply train for so many epochs")
	cmd.Flags().BoolVar(&o.try, "try", false, "then try what may help, keep what is shown to, and go on from there")
	cmd.Flags().IntVar(&o.maxTries, "max-tries", 12, "with --try: measure so many changes at most")
	cmd.Flags().BoolVar(&o.write, "write", false, "with --try: write the changes that were kept to the experiment's file")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	return cmd
}

// run runs the experiments chosen, one after the other. Where one fails, the others still run.
func (s *state) run(cmd *cobra.Command, o *runOptions) error {
	cfg, chosen, err := s.load(cmd.Context(), &o.selection)
	if err != nil {
		return err
	}
	if o.write && len(chosen) > 1 {
		return usagef("--write changes the file of one experiment: choose it with -e NAME")
	}
	if len(chosen) == 1 {
		return (&session{state: s, options: o, config: cfg, experiment: chosen[0]}).run(cmd.Context())
	}
	worst := error(nil)
	for i, e := range chosen {
		if i > 0 && !s.json {
			s.stdout.Write([]byte("\n"))
		}
		err := (&session{state: s, options: o, config: cfg, experiment: e}).run(cmd.Context())
		if errors.Is(err, errInterrupted) {
			return err
		}
		if err != nil {
			s.report(err)
			if worst == nil || severity(err) > severity(worst) {
				worst = &toldError{exitCode(err)}
			}
		}
	}
	return worst
}

// severity orders the errors of several experiments: the exit code is the worst one's.
func severity(err error) int {
	switch exitCode(err) {
	case exitError:
		return 3
	case exitInvalid, exitUsage:
		return 2
	}
	return 1
}
