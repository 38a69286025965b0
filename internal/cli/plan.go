package cli

import (
	"os"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/engine"
)

func newPlanCommand(s *state) *cobra.Command {
	sel, what := new(selection), new(whatIfOptions)
	cmd := &cobra.Command{
		Use:   "plan [PATH]",
		Short: "Show how an experiment would run",
		Long: `Show how the experiment at PATH (default: the current folder) would run: which stages share workers, what each boundary between
stages holds, where the pipeline can be probed, the steps of an epoch and the memory it needs. The data set, the device and the training
step are opened, so that what keeps the experiment from running here is found, and nothing runs.

With --what-if, predict instead what a change would do to the step rate, from how long the workers of each stage were busy in a run that
was measured: ADDRESS.workers=N, ADDRESS.prefetch=N, or ADDRESS.cost, how long an item takes (behind the batch block a batch), as a factor
(0.5x) or a duration (12ms). Given more than once, the changes are made together.`,
		Example: `  pipectl plan examples/photos -e photos
  pipectl plan --what-if prepare.decode.workers=8
  pipectl plan --what-if prepare.decode.cost=0.5x --what-if train.step.cost=20ms --run latest~1`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sel.path = pathArgument(args)
			if _, err := what.parse(); err != nil {
				return err
			}
			if len(what.changes) == 0 && (cmd.Flags().Changed("run") || cmd.Flags().Changed("db")) {
				return usagef("--run and --db are for --what-if")
			}
			cfg, chosen, err := s.load(cmd.Context(), sel)
			if err != nil {
				return err
			}
			if len(what.changes) > 0 && len(chosen) > 1 {
				return usagef("--what-if is about one experiment: choose one with -e NAME")
			}
			opts := engine.Options{OpenDevice: s.OpenDevice, Memory: availableMemory(os.DirFS("/"))}
			if len(what.changes) > 0 {
				opts.OpenDevice = nil // what was measured on another machine can be asked about here
			}
			views := []planView{}
			for _, e := range chosen {
				opts.OnWarning = func(address, text string) {
					s.showDiagnostics(hcl.Diagnostics{blockWarning(cfg, e, address, text)}, cfg.Files)
				}
				plan, problems, err := engine.Describe(cmd.Context(), e, opts)
				if err := s.opened(cfg, e, problems, err); err != nil {
					return err
				}
				if len(what.changes) > 0 {
					return s.whatIf(cmd.Context(), sel.path, plan, what)
				}
				views = append(views, newPlanView(plan, opts.Memory))
			}
			if s.json {
				return s.writeJSON(plansView{formatVersion, "plans", views})
			}
			for i := range views {
				s.showPlan(&views[i], i > 0)
			}
			return nil
		},
	}
	s.selectionFlags(cmd, sel)
	s.jsonFlag(cmd, "write one JSON object")
	s.databaseFlag(cmd)
	cmd.Flags().StringArrayVar(&what.changes, "what-if", nil, "predict the step rate with a change, such as prepare.decode.workers=8 or train.step.cost=0.5x")
	cmd.Flags().StringVar(&what.run, "run", latestRun, "the measured run that --what-if starts from")
	cmd.RegisterFlagCompletionFunc("run", func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return s.completeRuns(1)(cmd, nil, toComplete)
	})
	return cmd
}
