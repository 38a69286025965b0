package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/engine"
)

func newPlanCommand(s *state) *cobra.Command {
	sel := new(selection)
	cmd := &cobra.Command{
		Use:   "plan [PATH]",
		Short: "Show how an experiment would run",
		Long: `Show how the experiment at PATH (default: the current folder) would run: which stages share workers, what each boundary between
stages holds, where the pipeline can be probed, the steps of an epoch and the memory it needs. The data set is opened, and
nothing runs.`,
		Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			sel.path = pathArgument(args)
			cfg, chosen, err := s.load(cmd.Context(), sel)
			if err != nil {
				return err
			}
			memory := availableMemory(os.DirFS("/"))
			views := []planView{}
			for _, e := range chosen {
				plan, problems, err := engine.Describe(cmd.Context(), e, memory)
				if err := s.opened(cfg, e, problems, err); err != nil {
					return err
				}
				views = append(views, newPlanView(plan, memory))
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
	return cmd
}
