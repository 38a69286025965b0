package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/results"
)

// exportFormats are the forms that runs can be exported in.
var exportFormats = []string{"json", "csv"}

func newExportCommand(s *state) *cobra.Command {
	var experiment, format, name string
	cmd := &cobra.Command{
		Use:   "export [RUN…]",
		Short: "Write all that is stored of runs as JSON or CSV, of all runs by default",
		Long: `Write all that is stored of runs, the oldest first, with the runs that are parts of their sessions. Without arguments, write all runs.

RUN is an id, the start of one, a tag, "latest", "latest~N" for the Nth before it, "@NAME" for the newest version of an experiment, or
several of these with commas between.

json has one object a line for each run, with its file, settings and report and every interval. csv has one row for each stage of each
interval, to be read by pandas, R or a spreadsheet. docs/runs.md lists the columns, docs/json.md the fields.`,
		Example: `  pipectl export latest
  pipectl export -e photos -o photos.csv
  pipectl export main --format json | jq .report.verdict`,
		ValidArgsFunction: s.completeRuns(math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch chosen := cmd.Flags().Changed("format"); {
			case !slices.Contains(exportFormats, format):
				return usagef("--format %q: want %s", format, strings.Join(exportFormats, ", "))
			case s.json && chosen && format != "json":
				return usagef("--json and --format %s exclude each other", format)
			case !s.json && !chosen && strings.EqualFold(filepath.Ext(name), ".csv"):
				format = "csv"
			}
			s.json = format == "json"
			return s.export(cmd.Context(), experiment, args, format, name)
		},
	}
	cmd.Flags().StringVarP(&experiment, "experiment", "e", "", "write, or count \"latest\" among, the runs of one experiment")
	cmd.Flags().StringVar(&format, "format", "json", "write `FORMAT`: json or csv; csv where --output ends in .csv")
	cmd.Flags().StringVarP(&name, "output", "o", "", "write to `FILE`, which is replaced once all is written")
	s.databaseFlag(cmd)
	s.jsonFlag(cmd, "write JSON, as --format json does")
	// That there is such a flag is known.
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// exporter writes runs in a format.
type exporter interface {
	write(run *results.Stored) error
	flush() error
}

// export writes the runs that references stand for, or all, to a file, or to the standard output where name is "".
func (s *state) export(ctx context.Context, experiment string, refs []string, format, name string) error {
	store, err := s.openStored(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	filter := results.Filter{Experiment: experiment}
	if len(refs) > 0 {
		if filter.Sessions, err = selectIDs(ctx, store, experiment, refs...); err != nil {
			return err
		}
		filter.Experiment = "" // it says what "latest" is
	}
	ids, err := store.IDs(ctx, filter)
	switch {
	case err != nil:
		return err
	case len(ids) == 0 && experiment != "":
		return fmt.Errorf("no runs of experiment %q are stored in %s", experiment, store.Path())
	}
	write := func(w io.Writer) error {
		to := newExporter(format, w)
		for _, id := range ids {
			run, err := store.Load(ctx, id)
			if err == nil {
				err = to.write(run)
			}
			if err != nil {
				return err
			}
		}
		return to.flush()
	}
	if name == "" {
		err := write(s.stdout)
		if s.stdout.err != nil {
			return nil // Run tells of it
		}
		return err
	}
	if err := writeWhole(name, write); err != nil {
		return err
	}
	fmt.Fprintf(s.Err, "Exported %s to %s.\n", count(len(ids), "run"), name)
	return nil
}

func newExporter(format string, w io.Writer) exporter {
	if format == "csv" {
		return newCSVExporter(w)
	}
	return newJSONExporter(w)
}

// writeWhole makes a file, or gives one a new content, in one go, so that nothing but the whole is ever found there. What isn't
// a file, such as a pipe, is written to as it is.
func writeWhole(name string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}()
	target, mode := name, os.FileMode(0o644)
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a folder: name a file")
	case !info.Mode().IsRegular():
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return cmp.Or(write(file), file.Close())
	default:
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
		mode = info.Mode().Perm()
	}
	// Beside it, because only there it can be renamed in one go, and made as any new file is.
	partial := filepath.Join(filepath.Dir(target), fmt.Sprintf(".%s.%d", filepath.Base(target), os.Getpid()))
	file, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	err = write(w)
	for _, end := range []func() error{w.Flush, file.Sync, file.Close} {
		err = cmp.Or(err, end())
	}
	if err == nil {
		err = os.Rename(partial, target)
	}
	if err != nil {
		os.Remove(partial)
	}
	return err
}
