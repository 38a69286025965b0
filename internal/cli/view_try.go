package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/rogpeppe/go-internal/diff"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/improve"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
)

// outcome is what a search for improvements found, and what it means for the experiment's files.
type outcome struct {
	*improve.Result
	confidence float64
	runs       map[int][2]string // ids, of the original and the changed pipeline, by the number of the try
	database   string            // the --db that other commands need, or ""
	files      map[string][]byte // that change, with their new contents
	diff       string            // of them
	byHand     []byHand
	written    bool
}

// byHand is a change that its author must make.
type byHand struct {
	Change improve.Change
	Place  *hcl.Range
	Why    string
}

// outcome works out how the files have to change for what was kept.
func (r *session) outcome(ctx context.Context, result *improve.Result, runs map[int][2]string) *outcome {
	o := &outcome{Result: result, confidence: r.experiment.Bisect.Confidence, runs: runs, database: r.databaseArgument()}
	var edits []config.Edit
	for _, c := range result.Changes {
		edits = append(edits, config.Edit{Address: c.Address, Attribute: c.Attribute, Value: c.Value})
	}
	files, obstacles := r.config.Rewrite(r.experiment.Name, edits)
	made := slices.Clone(result.Changes)
	for _, x := range obstacles {
		i := slices.IndexFunc(made, func(c improve.Change) bool { return c.Address == x.Address && c.Attribute == x.Attribute })
		o.byHand = append(o.byHand, byHand{made[i], &x.Range, x.Why})
		made = slices.Delete(made, i, i+1)
	}
	if len(made) > 0 && !r.saysSo(ctx, files, improve.Apply(r.experiment, made...)) {
		for _, c := range made {
			o.byHand = append(o.byHand, byHand{c, r.config.Range(r.experiment.Name, c.Address, c.Attribute), "is referred to elsewhere, or given by --var, so that more would change with it"})
		}
		return o
	}
	o.files = files
	for _, name := range slices.Sorted(maps.Keys(files)) {
		o.diff += string(diff.Diff(name, r.config.Files[name], name, files[name]))
	}
	return o
}

// saysSo reports whether files with other contents say what an experiment is, and nothing else.
func (r *session) saysSo(ctx context.Context, files map[string][]byte, want *engine.Experiment) bool {
	sel := r.options.selection
	sel.contents = files
	cfg, diags := r.read(ctx, &sel)
	i := slices.IndexFunc(cfg.Experiments, func(e *engine.Experiment) bool { return e.Name == want.Name })
	return !diags.HasErrors() && i >= 0 && results.Fingerprint(cfg.Experiments[i].Settings) == results.Fingerprint(want.Settings)
}

// write writes the changed files, each in one go. It refuses where one isn't as it was read any more, or where something is to be
// changed by hand, since the files would then be what nobody has measured.
func (o *outcome) write(read map[string][]byte) error {
	if len(o.Changes) == 0 {
		return nil
	}
	if len(o.byHand) > 0 {
		return errors.New("nothing was written, because some of what was kept can only be changed by hand")
	}
	for name := range o.files {
		now, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("nothing was written: %w", err)
		}
		if !bytes.Equal(now, read[name]) {
			return fmt.Errorf("%s has changed since it was read, so nothing was written: make the changes shown by hand", name)
		}
	}
	for name, content := range o.files {
		if err := replace(name, content); err != nil {
			return err
		}
	}
	o.written = true
	return nil
}

// tries writes what was tried, and what came of it.
func (p page) tries(o *outcome, write bool) {
	p.blank()
	if len(o.Tries) > 0 {
		p.triesTable(o)
		p.blank()
	}
	lead, text := triesText(o)
	style := ui.Caution
	if len(o.Changes) > 0 {
		style = ui.Good
	}
	p.lead(style, lead, text)
	if o.diff != "" {
		p.blank()
		for line := range strings.Lines(o.diff) {
			fmt.Fprint(p.w, p.term.Paint(diffStyle(line), ui.Clean(strings.TrimSuffix(line, "\n")))+"\n")
		}
	}
	for i, h := range o.byHand {
		if i == 0 {
			p.blank()
		}
		p.prose(ui.Plain, "By hand: ", byHandText(h))
	}
	switch {
	case o.written:
		p.blank()
		p.prose(ui.Plain, "", "Written to "+strings.Join(slices.Sorted(maps.Keys(o.files)), ", ")+".")
	case o.diff != "" && len(o.byHand) == 0 && !write:
		p.blank()
		p.prose(ui.Faint, "", "Run it with --write and the changes are written to the file.")
	}
	if s := o.Store; s != nil {
		p.blank()
		p.lead(ui.Strong, "Computed, not tried:", storeText(s))
	}
}

// triesTable writes the table of the tries, and the reasons below it.
func (p page) triesTable(o *outcome) {
	t := ui.Table{Columns: []ui.Column{{Head: "#", Right: true}, {Head: "tried", Min: 20}, {Head: "foretold", Right: true}, {Head: "measured", Right: true},
		{Head: confidenceText(o.confidence) + " interval", Right: true}, {Head: "outcome"}}}
	for _, try := range o.Tries {
		number, measured, interval := ui.Unknown, ui.Unknown, ""
		if try.Number > 0 {
			number = fmt.Sprint(try.Number)
		}
		if try.Speedup != nil {
			measured = ui.Times(try.Speedup.Median)
			interval = ratioInterval(try.Speedup)
		}
		style := ui.Plain
		if try.Outcome == improve.Kept {
			style = ui.Good
		}
		t.Row(ui.Cell{Text: number}, ui.Cell{Text: improve.Text(try.Changes)}, ui.Cell{Text: foretoldText(try.Predicted)}, ui.Cell{Text: measured},
			ui.Cell{Text: interval}, ui.Cell{Text: outcomeWords(try.Outcome), Style: style})
	}
	fmt.Fprint(p.w, t.Render(p.term))
	p.prose(ui.Faint, "", "foretold: how many times as fast the accounts say it will be. measured: how many times as fast it was beside the pipeline "+
		"without the change, round by round.")
	for _, try := range o.Tries {
		if try.Number == 0 {
			continue
		}
		text := try.Reason
		if runs, ok := o.runs[try.Number]; ok {
			text += fmt.Sprintf(" `%s`", strings.TrimSpace(fmt.Sprintf("pipectl compare %s %s %s", runs[0], runs[1], o.database)))
		}
		p.prose(ui.Plain, fmt.Sprintf("%d. ", try.Number), text)
	}
}

// triesText says in plain sentences what was found: a few words, and the rest.
func triesText(o *outcome) (lead, text string) {
	ended := map[improve.Ending]string{
		improve.StepBound:    "the training step itself is the slowest now, and there is nothing more to gain before it.",
		improve.NothingHelps: "no other change that can be tried is worth keeping.",
		improve.Undecided:    "what holds the pipeline up now is undecided.",
		improve.MaxTries:     "no more was tried, as --max-tries is reached.",
		improve.OutOfBudget:  "no more was tried, as the budget is used up.",
		improve.Interrupted:  "it was interrupted.",
	}[o.Ended]
	if o.Ended == improve.NothingHelps && len(o.Changes) == 0 {
		ended = "no change that can be tried is worth keeping."
	}
	if o.Ended == improve.NothingHelps && o.Report.Bottleneck != "" {
		ended += " " + o.Report.Bottleneck + " still holds the step back."
	}
	switch {
	case len(o.Tries) == 0 && o.Ended == improve.StepBound:
		return "Nothing to try:", "the training step itself is the slowest."
	case len(o.Tries) == 0:
		return "Nothing tried:", ended
	case len(o.Changes) == 0:
		return "Nothing kept:", ended
	case o.Speedup == nil:
		return "Kept:", fmt.Sprintf("%s. %s", improve.Text(o.Changes), capital(ended))
	}
	return "Kept:", fmt.Sprintf("with %s it makes %s instead of %s steps/s, %s as many (%s interval %s). %s", improve.Text(o.Changes),
		ui.Number(o.Last.Median), ui.Number(o.First.Median), ui.Times(o.Speedup.Median), confidenceText(o.confidence), ratioInterval(o.Speedup), capital(ended))
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// foretoldText words a prediction.
func foretoldText(e *bisect.Estimate) string {
	if e == nil {
		return ui.Unknown
	}
	return ui.Times(e.Median)
}

// ratioInterval words an interval of a ratio.
func ratioInterval(e *bisect.Estimate) string {
	if !bounded(e) {
		return "∞"
	}
	return ui.Number(e.Low) + " … " + ui.Number(e.High)
}

func outcomeWords(o improve.Outcome) string { return strings.ReplaceAll(string(o), "_", " ") }

// outcomeText words the outcome of a try on one line.
func outcomeText(t improve.Try) string {
	if t.Speedup == nil {
		return outcomeWords(t.Outcome)
	}
	return ui.Times(t.Speedup.Median) + ", " + outcomeWords(t.Outcome)
}

// byHandText says what its author must change, where and why.
func byHandText(h byHand) string {
	place := ""
	if h.Place != nil {
		place = fmt.Sprintf(" at %s:%d:%d", h.Place.Filename, h.Place.Start.Line, h.Place.Start.Column)
	}
	return fmt.Sprintf("%s%s, which %s.", h.Change, place, h.Why)
}

// storeText says what storing a stage's output would take and give.
func storeText(s *improve.Store) string {
	size := ""
	if s.Bytes > 0 {
		size = fmt.Sprintf(", %s on disk,", stages.Bytes(s.Bytes))
	}
	text := fmt.Sprintf("what %s makes is the same in every epoch. With all of it stored%s an epoch would take %s instead of %s. Making it once takes %s at most, "+
		"so it pays off after %s epochs.", s.Address, size, ui.Duration(s.Stored), ui.Duration(s.Epoch), ui.Duration(s.Fill), ui.Number(s.BreakEven))
	if s.Read > 0 {
		text += fmt.Sprintf(" That is from rates measured with it in memory: a disk would have to read %s/s, and the time to write it comes on top.", stages.Bytes(s.Read))
	}
	return text
}

// diffStyle returns the style of a line of a diff.
func diffStyle(line string) ui.Style {
	switch {
	case strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "diff "):
		return ui.Strong
	case strings.HasPrefix(line, "+"):
		return ui.Good
	case strings.HasPrefix(line, "-"):
		return ui.Bad
	}
	return ui.Plain
}
