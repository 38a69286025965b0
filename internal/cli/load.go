package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/internal/suggest"
)

// selection is the part of a command line that says which experiments it is about, and with which values.
type selection struct {
	path        string // a file or folder
	experiment  string // a name, "all", or "" for the only one
	assignments assignments
	contents    map[string][]byte // of files, in place of what is on disk
}

// allExperiments chooses all experiments one after the other. The language keeps the name free.
const allExperiments = "all"

// selectionFlags adds -e, --var and --var-file to a command.
func (s *state) selectionFlags(cmd *cobra.Command, sel *selection) {
	cmd.Flags().StringVarP(&sel.experiment, "experiment", "e", "", "the experiment's name, or \"all\": one after the other")
	sel.assignments.add(cmd)
	cmd.RegisterFlagCompletionFunc("experiment", func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		sel.path = pathArgument(args)
		cfg, _ := s.read(cmd.Context(), sel)
		return append(names(cfg.Experiments), allExperiments), cobra.ShellCompDirectiveNoFileComp
	})
}

// pathArgument returns a command's only argument, the path of a file or folder, which may be left out.
func pathArgument(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// patience is how long reading the experiments may take: an expression can ask for any amount of work. It leaves several stages the time
// to ask servers that don't answer.
const patience = time.Minute

// read reads the experiments and checks them as far as that needs no data. The Config is never nil. Where ctx ends first,
// nothing is said: the caller sees it.
func (s *state) read(ctx context.Context, sel *selection) (*config.Config, hcl.Diagnostics) {
	var cfg *config.Config
	var diags hcl.Diagnostics
	done := make(chan struct{})
	go func() {
		defer close(done)
		cfg, diags = config.Load(config.Options{Path: sel.path, Registry: s.Registry, Assignments: sel.assignments, Environ: s.Environ,
			Contents: sel.contents})
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return new(config.Config), nil
	case <-time.After(patience):
		// Nothing stops an evaluation. It ends with the program, which has nothing to go on with.
		return new(config.Config), hcl.Diagnostics{{
			Severity: hcl.DiagError,
			Summary:  "Too much to work out",
			Detail: fmt.Sprintf("The values in %s were not worked out within %v. Look for `for` expressions or functions that make very long lists or texts, and for files on "+
				"slow servers.", sel.path, patience),
		}}
	}
	for _, e := range cfg.Experiments {
		_, problems := engine.Check(e)
		diags = append(diags, problemDiagnostics(cfg, e, problems)...)
	}
	return cfg, diags
}

// load reads the experiments, shows warnings, and returns the experiments chosen.
func (s *state) load(ctx context.Context, sel *selection) (*config.Config, []*engine.Experiment, error) {
	cfg, diags := s.read(ctx, sel)
	if ctx.Err() != nil {
		return nil, nil, errInterrupted
	}
	if diags.HasErrors() {
		return nil, nil, &diagnosticsError{diags, cfg.Files, exitInvalid}
	}
	if len(cfg.Experiments) == 0 {
		return nil, nil, &diagnosticsError{hcl.Diagnostics{{
			Severity: hcl.DiagError,
			Summary:  "No experiment",
			Detail:   fmt.Sprintf("%s has no experiment block. Write one with `pipectl init`.", sel.path),
		}}, cfg.Files, exitInvalid}
	}
	s.showDiagnostics(diags, cfg.Files)
	chosen, err := choose(cfg.Experiments, sel.experiment)
	return cfg, chosen, err
}

// choose returns the experiments that -e NAME stands for.
func choose(all []*engine.Experiment, name string) ([]*engine.Experiment, error) {
	if name == allExperiments || name == "" && len(all) == 1 {
		return all, nil
	}
	if i := slices.IndexFunc(all, func(e *engine.Experiment) bool { return e.Name == name }); i >= 0 {
		return all[i : i+1], nil
	}
	list := strings.Join(names(all), ", ")
	if name == "" {
		return nil, usagef("there are several experiments: choose one with -e NAME, or all with -e all. They are %s", list)
	}
	return nil, usagef("there is no experiment %q.%s The experiments are %s", name, suggest.Sentence(name, names(all)), list)
}

func names(experiments []*engine.Experiment) []string {
	list := make([]string, len(experiments))
	for i, e := range experiments {
		list[i] = e.Name
	}
	return list
}

// problemDiagnostics returns the engine's problems with an experiment as diagnostics at its blocks.
func problemDiagnostics(cfg *config.Config, e *engine.Experiment, problems []engine.Problem) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range problems {
		severity := hcl.DiagError
		if p.Warning {
			severity = hcl.DiagWarning
		}
		diags = append(diags, cfg.Diagnostic(e.Name, p.Address, p.Attribute, p.Summary, p.Detail, severity))
	}
	return diags
}

// opened shows the warnings found when an experiment's data set was opened, and returns what went wrong: err, or problems
// that are errors. What keeps a stage from being opened is a matter of the configuration, such as a wrong path.
func (s *state) opened(cfg *config.Config, e *engine.Experiment, problems []engine.Problem, err error) error {
	diags := problemDiagnostics(cfg, e, problems)
	if d := stageDiagnostic(cfg, e, err); d != nil {
		diags = append(diags, d)
	} else if err != nil {
		return err
	}
	if diags.HasErrors() {
		code := exitInvalid
		if failure := (*engine.StageError)(nil); errors.As(err, &failure) && failure.Item != "" {
			code = exitError // one of the items was tried: the configuration may be all right
		}
		return &diagnosticsError{diags, cfg.Files, code}
	}
	s.showDiagnostics(diags, cfg.Files)
	return nil
}

// stageDiagnostic returns a stage's failure as a diagnostic at its block, nil where err isn't one.
func stageDiagnostic(cfg *config.Config, e *engine.Experiment, err error) *hcl.Diagnostic {
	var failure *engine.StageError
	if !errors.As(err, &failure) || errors.Is(err, context.Canceled) {
		return nil
	}
	detail := failure.Err.Error()
	if failure.Item != "" {
		detail = failure.Item + ": " + detail
	}
	var detailed interface{ Detail() string } // such as the traceback of an exception in Python
	if errors.As(err, &detailed) && detailed.Detail() != "" {
		detail = sentence(detail) + "\n" + strings.TrimRight(detailed.Detail(), "\n")
	}
	return cfg.Diagnostic(e.Name, failure.Address, "", failure.Address+" failed", detail, hcl.DiagError)
}
