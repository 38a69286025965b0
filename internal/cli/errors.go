package cli

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/internal/ui"
)

// The exit codes.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitInvalid     = 3
	exitExpect      = 4
	ExitInterrupted = 130 // what shells report of a program that SIGINT ended
	exitUnread      = 141 // what they report of one that SIGPIPE ended
)

// errInterrupted ends a command that a signal stopped.
var errInterrupted = errors.New("interrupted")

// usageError is a mistake in the command line.
type usageError struct {
	err     error
	command string // whose --help explains
}

func (e *usageError) Error() string { return e.err.Error() }

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// diagnosticsError is a failure that diagnostics explain.
type diagnosticsError struct {
	diags hcl.Diagnostics
	files map[string][]byte
	code  int // exitInvalid where the configuration is at fault, exitError where a run failed
}

// Error returns the first error in one line.
func (e *diagnosticsError) Error() string {
	diags := slices.Clone(e.diags)
	diag.Sort(diags)
	i := slices.IndexFunc(diags, func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagError })
	if i < 0 {
		return "there is no error"
	}
	d := diags[i]
	text := d.Summary
	if r := d.Subject; r != nil {
		text = fmt.Sprintf("%s:%d:%d: %s", r.Filename, r.Start.Line, r.Start.Column, text)
	}
	if d.Detail != "" {
		text += "; " + d.Detail
	}
	if more := len(e.diags) - 1; more > 0 {
		text += fmt.Sprintf(" (and %s)", count(more, "other diagnostic"))
	}
	return oneLine(text)
}

// oneLine joins the lines of a text.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// expectError says that what was expected of a result, an expect block or --fail-on-regression, didn't hold.
type expectError struct{ err error }

func (e *expectError) Error() string { return e.err.Error() }

// toldError ends a command whose failure has been told already.
type toldError struct{ code int }

func (e *toldError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode returns the exit code for how a command ended.
func exitCode(err error) int {
	var usage *usageError
	var diags *diagnosticsError
	var expect *expectError
	var told *toldError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errInterrupted):
		return ExitInterrupted
	case errors.As(err, &told):
		return told.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &diags):
		return diags.code
	case errors.As(err, &expect):
		return exitExpect
	}
	return exitError
}

// errorEvent is an error as a JSON object.
type errorEvent struct {
	header
	Error       string         `json:"error"`
	Diagnostics []diag.Message `json:"diagnostics"`
}

// report tells of the error that ended a command.
func (s *state) report(err error) {
	if told := (*toldError)(nil); errors.As(err, &told) {
		return
	}
	event := errorEvent{newHeader("error"), oneLine(err.Error()), []diag.Message{}}
	var diags *diagnosticsError
	var usage *usageError
	if errors.As(err, &diags) {
		s.showDiagnostics(diags.diags, diags.files)
		event.Diagnostics = diag.JSON(diags.diags, diags.files)
	} else {
		fmt.Fprintf(s.Err, "%s %v\n", s.errTerm.Paint(ui.Bad, "Error:"), err)
	}
	if errors.As(err, &usage) && usage.command != "" {
		fmt.Fprintf(s.Err, "\n`%s --help` shows how to use it.\n", usage.command)
	}
	if s.json {
		s.writeJSON(event)
	}
}

// diagnosticsShown is how many diagnostics are shown to people at a time.
const diagnosticsShown = 50

// showDiagnostics writes diagnostics to the standard error stream. Of very many it shows the first, errors rather than
// warnings.
func (s *state) showDiagnostics(diags hcl.Diagnostics, files map[string][]byte) {
	width := 0
	if s.errTerm.Interactive {
		width = s.errTerm.Width
	}
	shown := diags
	if len(diags) > diagnosticsShown {
		shown = slices.Clone(diags)
		diag.Sort(shown)
		slices.SortStableFunc(shown, func(a, b *hcl.Diagnostic) int { return cmp.Compare(a.Severity, b.Severity) })
		shown = shown[:diagnosticsShown]
	}
	diag.Text(s.Err, shown, files, width, s.errTerm.Color)
	if more := len(diags) - len(shown); more > 0 {
		fmt.Fprintf(s.Err, "\n… and %d more\n", more)
	}
	s.stderr.apart = len(diags) > 0
}
