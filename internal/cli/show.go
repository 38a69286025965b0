package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

func newShowCommand(s *state) *cobra.Command {
	var experiment string
	var settings bool
	cmd := &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show a stored run, the latest by default",
		Long: `Show a stored run, the latest by default: its report, what it ran on and what it skipped.

RUN is an id, the start of one, a tag, "latest", or "latest~N" for the Nth before it.`,
		Args:              atMost(1),
		ValidArgsFunction: s.completeRuns(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := s.loadRun(cmd.Context(), experiment, append(args, "latest")[0])
			if err != nil {
				return err
			}
			if s.json {
				return s.writeJSON(newRunView(run))
			}
			writeRun(s.stdout, s.outTerm, run, settings, time.Now())
			return nil
		},
	}
	cmd.Flags().StringVarP(&experiment, "experiment", "e", "", "count \"latest\" among the runs of one experiment")
	cmd.Flags().BoolVar(&settings, "settings", false, "show the effective value of every attribute too")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// completeRuns completes at most n arguments that stand for runs with ids, which it describes, and tags.
func (s *state) completeRuns(n int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		store, err := s.openStore(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer store.Close()
		runs, err := store.List(cmd.Context(), results.Filter{}, 0)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, listed := []cobra.Completion{"latest"}, map[string]bool{}
		for i := range runs {
			about := runs[i].Experiment + ", " + ui.Ago(runs[i].Started, time.Now())
			for _, name := range append([]string{runs[i].ID}, runs[i].Tags...) {
				if !listed[name] { // a tag is listed with the newest of its runs
					list, listed[name] = append(list, cobra.CompletionWithDesc(name, about)), true
				}
			}
		}
		return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// loadRun returns the stored run that a reference stands for. Where that counts from the latest run, it counts the runs of one
// experiment, or of all where experiment is "".
func (s *state) loadRun(ctx context.Context, experiment, ref string) (*results.Stored, error) {
	store, err := s.openStored(ctx)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	id, err := store.Resolve(ctx, ref, experiment)
	if err != nil {
		return nil, err
	}
	return store.Load(ctx, id)
}

// openStored opens the results database, which must have runs.
func (s *state) openStored(ctx context.Context) (*results.Store, error) {
	store, err := s.openStore(ctx)
	if errors.Is(err, results.ErrNoDatabase) {
		return nil, fmt.Errorf("%w; `pipectl run` stores runs, and --db names another database", err)
	}
	return store, err
}
