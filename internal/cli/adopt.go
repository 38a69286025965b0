package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/python"
	"github.com/pipectl/pipectl/stages"
)

// adoptFlags are the flags of init that say something about --from.
var adoptFlags = []string{"step", "step-time", "python", "pythonpath", "output", "timeout", "json"}

// adopter is one `pipectl init --from`.
type adopter struct {
	*state
	from, step string
	stepTime   time.Duration
	python     string
	pythonpath []string
	output     string
	timeout    time.Duration
}

func (a *adopter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.from, "from", "", "module:name of a DataLoader or dataset, or of a function that returns one; train.py:name too")
	flags.StringVar(&a.step, "step", "", "module:name of the training step: a callable on one batch, or a class or function that makes it")
	flags.DurationVar(&a.stepTime, "step-time", 0, "emulate a training step that takes so long (default: it takes no time)")
	flags.StringVar(&a.python, "python", "", "the interpreter (default python3, or another that has what the module imports)")
	flags.StringArrayVar(&a.pythonpath, "pythonpath", nil, "folder to import from; may be repeated (default: the current folder, or that of train.py)")
	flags.StringVarP(&a.output, "output", "o", "", "file to write, - for the standard output (default: the loader's name with .hcl)")
	flags.DurationVar(&a.timeout, "timeout", time.Minute, "how long importing the module may take")
	cmd.MarkFlagsMutuallyExclusive("step", "step-time")
	a.jsonFlag(cmd, "with --from: write one JSON object that tells what was found")
}

func (a *adopter) run(cmd *cobra.Command) error {
	switch {
	case a.stepTime < 0:
		return usagef("--step-time %s: want a time of 0 or more", a.stepTime)
	case a.timeout <= 0:
		return usagef("--timeout %s: want a time of more than 0", a.timeout)
	case a.output == "-" && a.json:
		return usagef("-o - and --json both write to the standard output: give one of them")
	case a.output != "" && a.output != "-" && !strings.HasSuffix(a.output, ".hcl"):
		return usagef("-o %s: want a file that ends in .hcl, or -", a.output)
	}
	from, step, folders, err := a.references()
	if err != nil {
		return err
	}
	in := python.Interpreter{Python: a.python}
	for _, folder := range folders {
		in.Pythonpath = append(in.Pythonpath, stages.Path(folder))
	}
	// Before the module is imported, which may take long.
	if err := absent(a.output); err != nil {
		return err
	}
	adoption, err := python.Adopt(cmd.Context(), in, from, step, a.timeout)
	if detailed := (*python.Error)(nil); errors.As(err, &detailed) && detailed.Detail() != "" {
		return fmt.Errorf("%w\n\n%s", err, detailed.Detail())
	}
	if err != nil {
		return err
	}
	file := adoptedFile{
		Adoption: adoption,
		name:     experimentName(adoption.Reference),
		command:  commandLine(a.args),
		path:     a.output,
		stepTime: a.stepTime,
	}
	if file.path == "" {
		file.path = file.name + ".hcl"
	}
	if file.python, err = programPath(adoption.Program); err != nil {
		return err
	}
	if file.pythonpath, err = relativeTo(file.path, folders); err != nil {
		return err
	}
	content, err := file.render()
	if err != nil {
		return err
	}
	if file.path != "-" {
		if err := createNew(file.path, content); err != nil {
			return err
		}
	}
	if adoption.Missing != "" {
		fmt.Fprintf(a.Err, "python3 has no module %q, but %s (Python %s) has: the file says python = %[2]q.\n\n", adoption.Missing, adoption.Program, adoption.Version)
	}
	if file.path == "-" {
		_, err := a.stdout.Write(content)
		file.show(a.Err, a.errTerm)
		return err
	}
	if a.json {
		return a.writeJSON(newAdoptionView(&file))
	}
	file.show(a.stdout, a.outTerm)
	return nil
}

// references returns the references that --from and --step give, and the folders that the modules are imported from.
func (a *adopter) references() (from, step string, folders []string, err error) {
	from, folders = python.Reference(a.from)
	add := func(folder string) {
		if !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}
	if a.step != "" {
		if !strings.Contains(a.step, ":") {
			return "", "", nil, usagef("--step %s: want module:name", a.step)
		}
		var more []string
		step, more = python.Reference(a.step)
		for _, folder := range more {
			add(folder)
		}
	}
	for _, folder := range a.pythonpath {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return "", "", nil, usagef("--pythonpath %s: there is no such folder", folder)
		}
		add(filepath.Clean(folder))
	}
	if len(folders) == 0 || python.InFolder(from, ".") || step != "" && python.InFolder(step, ".") {
		add(".") // where `python` would look, too
	}
	return from, step, folders, nil
}

// absent returns an error if a file is there.
func absent(name string) error {
	if name == "" || name == "-" {
		return nil
	}
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s exists already: give another path, or edit it", name)
	}
	return nil
}

// programPath returns an interpreter as a file names it, wherever pipectl is run; "" for the usual one.
func programPath(program string) (string, error) {
	switch {
	case program == "python3":
		return "", nil
	case strings.ContainsRune(program, filepath.Separator):
		return filepath.Abs(program)
	}
	return program, nil
}

// relativeTo returns folders as a file names them; nil where they are what it means without naming any, its own folder.
func relativeTo(file string, folders []string) ([]string, error) {
	base, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	var relative []string
	for _, folder := range folders {
		abs, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(base, abs); err == nil {
			abs = filepath.ToSlash(rel)
		}
		relative = append(relative, abs)
	}
	if len(relative) == 1 && relative[0] == "." {
		return nil, nil
	}
	return relative, nil
}

// commandLine returns a command line as it can be typed into a shell.
func commandLine(args []string) string {
	words := []string{"pipectl"}
	for _, arg := range args {
		if strings.ContainsFunc(arg, func(r rune) bool {
			return !strings.ContainsRune("-_./:=,@%+", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		}) || arg == "" {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// show tells people what the file describes.
func (f *adoptedFile) show(w io.Writer, term ui.Terminal) {
	p := page{w, term}
	what := "Found " + f.Reference
	if f.path != "-" {
		what = "Wrote " + f.path + " for " + f.Reference
	}
	p.prose(ui.Plain, "", what+": "+f.summary()+".")
	p.blank()
	t := ui.Table{Columns: []ui.Column{{}, {Min: 20}}}
	for _, s := range f.stages() {
		t.Row(ui.Cell{Text: "  " + s.Address, Style: ui.Strong}, ui.Cell{Text: s.Text})
	}
	fmt.Fprint(w, t.Render(term))
	for _, note := range f.notes() {
		p.blank()
		p.lead(ui.Caution, "Note:", note)
	}
	if f.path != "-" {
		fmt.Fprintf(w, "\nFind the stage that starves the step:\n\n  %s\n", commandLine([]string{"run", f.path}))
	}
}

// adoptionView is the output of `pipectl init --from`.
type adoptionView struct {
	FormatVersion int                `json:"format_version"`
	Type          string             `json:"type"` // "adoption"
	File          string             `json:"file"`
	Experiment    string             `json:"experiment"`
	Reference     string             `json:"reference"`
	Python        string             `json:"python"`
	Samples       *int               `json:"samples"`
	Workers       int                `json:"workers"`
	Prefetch      *int               `json:"prefetch"`
	BatchSize     *int               `json:"batch_size"`
	DropLast      bool               `json:"drop_last"`
	Stages        []adoptedStageView `json:"stages"`
	Notes         []string           `json:"notes"`
}

// adoptedStageView is a stage that was found in a user's code.
type adoptedStageView struct {
	Address   string  `json:"address"`
	Reference *string `json:"reference"`
	Text      string  `json:"text"`
}

func newAdoptionView(f *adoptedFile) adoptionView {
	l := f.loader()
	return adoptionView{
		FormatVersion: formatVersion,
		Type:          "adoption",
		File:          f.path,
		Experiment:    f.name,
		Reference:     f.Reference,
		Python:        f.Program,
		Samples:       f.Dataset.Length,
		Workers:       l.Workers,
		Prefetch:      l.Prefetch,
		BatchSize:     l.Batch,
		DropLast:      l.DropLast,
		Stages:        f.stages(),
		Notes:         append([]string{}, f.notes()...),
	}
}
