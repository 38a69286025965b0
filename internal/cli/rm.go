package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// removalView is the output of `pipectl rm`.
type removalView struct {
	FormatVersion int           `json:"format_version"`
	Type          string        `json:"type"` // "removal"
	DryRun        bool          `json:"dry_run"`
	Runs          []summaryView `json:"runs"` // the newest first
}

func newRemovalView(runs []results.Summary, dryRun bool) removalView {
	return removalView{formatVersion, "removal", dryRun, newListView(runs).Runs}
}

// removeOptions are what the flags of `pipectl rm` say.
type removeOptions struct {
	experiment    string
	before        time.Time // when runs began; zero: at any time
	keep          int
	bulk          bool // the flags choose, and not arguments
	force, dryRun bool
}

func newRemoveCommand(s *state) *cobra.Command {
	var o removeOptions
	var olderThan string
	cmd := &cobra.Command{
		Use:     "rm {RUN… | --older-than AGE | --keep N}",
		Aliases: []string{"remove"},
		Short:   "Remove stored runs",
		Long: `Remove stored runs with all that is stored of them, and with the runs that are parts of their sessions. They are shown first, and the
command asks before it removes them. Runs that are still being measured aren't removed.

RUN is an id, the start of one, a tag, "latest", "latest~N" for the Nth before it, "@NAME" for the newest version of an experiment, or
several of these with commas between.

--older-than and --keep choose runs without tags: those that began longer ago, and all but the newest of each experiment. Where both are
given, both must hold.`,
		Example: `  pipectl rm latest
  pipectl rm --older-than 30d --keep 10 --dry-run
  pipectl rm --keep 0 -e photos --force`,
		ValidArgsFunction: s.completeRuns(math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.bulk = cmd.Flags().Changed("older-than") || cmd.Flags().Changed("keep")
			switch {
			case len(args) > 0 && o.bulk:
				return usagef("name runs, or choose them with --older-than and --keep, but not both")
			case len(args) == 0 && !o.bulk:
				return usagef("name the runs to remove, or choose them with --older-than or --keep")
			case o.keep < 0:
				return usagef("--keep %d: want a number of runs", o.keep)
			}
			if cmd.Flags().Changed("older-than") {
				age, err := parseAge(olderThan)
				if err != nil {
					return usagef("--older-than %q: %w", olderThan, err)
				}
				o.before = time.Now().Add(-age)
			}
			return s.remove(cmd.Context(), args, o)
		},
	}
	cmd.Flags().StringVar(&olderThan, "older-than", "", "remove runs that began longer than `AGE` ago, such as 30d, 2w or 12h")
	cmd.Flags().IntVar(&o.keep, "keep", 0, "keep the newest `N` runs of each experiment")
	cmd.Flags().StringVarP(&o.experiment, "experiment", "e", "", "choose, or count \"latest\", among the runs of one experiment")
	cmd.Flags().BoolVarP(&o.force, "force", "f", false, "don't ask")
	cmd.Flags().BoolVarP(&o.dryRun, "dry-run", "n", false, "show what would be removed, and remove nothing")
	cmd.MarkFlagsMutuallyExclusive("force", "dry-run")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write one JSON object; needs --force or --dry-run")
	return cmd
}

func (s *state) remove(ctx context.Context, refs []string, o removeOptions) error {
	if !o.force && !o.dryRun && (s.json || !isTerminal(s.In) || !s.errTerm.Interactive) {
		return usagef("there is nobody to ask: --force removes without asking, --dry-run shows what would be removed")
	}
	store, err := s.openStored(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	runs, err := s.unwanted(ctx, store, refs, o)
	if err != nil {
		return err
	}
	if len(runs) == 0 && !s.json {
		fmt.Fprintln(s.stdout, "There is nothing to remove.")
		return nil
	}
	if !s.json && !o.force {
		writeUnwanted(s.stdout, s.outTerm, runs, time.Now())
	}
	if !o.force && !o.dryRun {
		yes, err := s.ask(ctx, fmt.Sprintf("\nRemove %s?", count(len(runs), "run")))
		if err != nil {
			return err
		}
		if !yes {
			fmt.Fprintln(s.stdout, "Nothing was removed.")
			return nil
		}
	}
	if !o.dryRun {
		if err := removeRuns(ctx, store, runs); err != nil {
			return err
		}
	}
	switch {
	case s.json:
		err = s.writeJSON(newRemovalView(runs, o.dryRun))
	case o.dryRun:
		fmt.Fprintf(s.stdout, "\n%s would be removed.\n", count(len(runs), "run"))
	default:
		fmt.Fprintf(s.stdout, "Removed %s.\n", count(len(runs), "run"))
	}
	if err != nil || o.dryRun {
		return err
	}
	if err := store.Compact(ctx); err != nil {
		return fmt.Errorf("the runs are removed, but the file is as large as before: %w", err)
	}
	return nil
}

// unwanted returns the runs that are to be removed, the newest first. An error says where one of them can't be.
func (s *state) unwanted(ctx context.Context, store *results.Store, refs []string, o removeOptions) ([]results.Summary, error) {
	if o.bulk {
		runs, err := store.List(ctx, results.Filter{}, 0)
		return results.Expired{Experiment: o.experiment, Before: o.before, Keep: o.keep}.Of(runs), err
	}
	ids, err := selectIDs(ctx, store, o.experiment, refs...)
	if err != nil {
		return nil, err
	}
	runs, err := store.List(ctx, results.Filter{Sessions: ids}, 0)
	for i := range runs {
		if runs[i].Status == results.Running {
			return nil, fmt.Errorf("run %s: %w: end it first", runs[i].ID, results.ErrRunning)
		}
	}
	return runs, err
}

func removeRuns(ctx context.Context, store *results.Store, runs []results.Summary) error {
	var ids []string
	for i := range runs {
		ids = append(ids, runs[i].ID)
	}
	removed, err := store.Remove(ctx, ids)
	if err != nil && removed > 0 {
		err = fmt.Errorf("%d of %s were removed: %w", removed, count(len(runs), "run"), err)
	}
	return err
}

// unwantedShown is how many runs are shown before they are removed.
const unwantedShown = 20

// writeUnwanted shows the runs that are to be removed. Of very many it shows the newest: they are the likeliest to be missed.
func writeUnwanted(w io.Writer, term ui.Terminal, runs []results.Summary, now time.Time) {
	writeList(w, term, runs[:min(len(runs), unwantedShown)], now)
	if more := len(runs) - unwantedShown; more > 0 {
		fmt.Fprintf(w, "… and %s\n", count(more, "older run"))
	}
}

// parseAge reads "30d" and "2w", and what Go takes for a duration.
func parseAge(text string) (time.Duration, error) {
	age, err := time.ParseDuration(text)
	for unit, hours := range map[string]int64{"d": 24, "w": 7 * 24} {
		number, ok := strings.CutSuffix(text, unit)
		if !ok {
			continue
		}
		var n int64
		n, err = strconv.ParseInt(number, 10, 32)
		if n > int64(math.MaxInt64/time.Hour)/hours {
			err = strconv.ErrRange
		}
		age = time.Duration(n*hours) * time.Hour
	}
	if err != nil || age <= 0 {
		return 0, fmt.Errorf("want a length of time, such as 30d, 2w or 12h")
	}
	return age, nil
}

// isTerminal reports whether a person may type what is read there.
func isTerminal(in io.Reader) bool {
	file, ok := in.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(file.Fd()))
}

// ask asks a question on the standard error stream, and reports whether the answer is yes. What isn't yes is no.
func (s *state) ask(ctx context.Context, question string) (yes bool, err error) {
	fmt.Fprintf(s.Err, "%s [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // Nothing stops the reading: it ends with the program, at the latest.
		line, _ := bufio.NewReader(s.In).ReadString('\n')
		answers <- line
	}()
	select {
	case answer := <-answers:
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return true, nil
		}
		return false, nil
	case <-ctx.Done():
		fmt.Fprintln(s.Err)
		return false, errInterrupted
	}
}
