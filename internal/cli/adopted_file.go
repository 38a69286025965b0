package cli

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/zclconf/go-cty/cty"

	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/python"
)

// adoptedFile is the experiment file that is written for a user's loader.
type adoptedFile struct {
	*python.Adoption
	name       string // of the experiment
	command    string // that makes the file
	path       string // where it is written; "-" is the standard output
	python     string // the interpreter; "" for the usual one
	pythonpath []string
	stepTime   time.Duration // of the emulated step, where the user named none
}

// defaultLoader returns how torch loads a dataset where nothing else is said.
func defaultLoader() *python.LoaderFacts {
	return &python.LoaderFacts{Class: "DataLoader", Batch: new(1), Batching: "batch_size", Shuffle: new(false)}
}

// loader returns how the samples are loaded: for a dataset alone, as a DataLoader would by default.
func (f *adoptedFile) loader() *python.LoaderFacts {
	if f.Loader == nil {
		return defaultLoader()
	}
	return f.Loader
}

// batch returns the size that the file gives for batches.
func (f *adoptedFile) batch() int {
	if b := f.loader().Batch; b != nil {
		return *b
	}
	return 1
}

// outsideName matches what no name of an experiment has.
var outsideName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// experimentName returns the name of an experiment on what a reference names: train:loaders["val"] is loaders_val.
func experimentName(reference string) string {
	_, path, _ := strings.Cut(reference, ":")
	name := strings.Trim(outsideName.ReplaceAllString(path, "_"), "_-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = strings.TrimSuffix("loader_"+name, "_")
	}
	return name
}

// summary says in a few words what was found.
func (f *adoptedFile) summary() string {
	l := f.loader()
	samples := "samples of unknown number"
	if n := f.Dataset.Length; n != nil {
		samples = count(*n, "sample")
	}
	how := " in batches of " + fmt.Sprint(f.batch())
	switch l.Batching {
	case "none":
		how = ", not batched"
	case "batch_sampler":
		how = " in batches by " + *l.Sampler
	}
	by := count(l.Workers, "worker")
	if l.Workers == 0 {
		by = "the main process"
	}
	return fmt.Sprintf("%s%s, loaded by %s", samples, how, by)
}

// stages returns the stages of the experiment.
func (f *adoptedFile) stages() []adoptedStageView {
	all := []adoptedStageView{{"load." + f.Dataset.Name, &f.Reference, f.Dataset.Class}}
	for i := range f.Steps {
		s := &f.Steps[i]
		all = append(all, adoptedStageView{s.Block + "." + s.Name, &s.Reference, s.Text})
	}
	batch := adoptedStageView{Address: "batch", Reference: f.loader().Collate, Text: "default_collate"}
	if batch.Reference != nil {
		batch.Text = *batch.Reference
	}
	step := adoptedStageView{Address: "train.step", Text: "emulated, " + languageDuration(f.stepTime)}
	if f.Step != nil {
		step.Reference, step.Text = &f.Step.Reference, f.Step.Reference
	}
	return append(all, batch, step)
}

// notes returns what the user should know of what was found, in sentences.
func (f *adoptedFile) notes() []string {
	var notes []string
	for _, o := range f.Opaque {
		notes = append(notes, fmt.Sprintf("%s, %s, was not taken apart: %s.", o.Path, o.Text, o.Reason))
	}
	switch {
	case f.Note != nil:
		notes = append(notes, strings.ToUpper((*f.Note)[:1])+(*f.Note)[1:]+".")
	case len(f.Steps) == 0 && len(f.Opaque) == 0:
		notes = append(notes, fmt.Sprintf("No transforms were found in the attributes of the %s, so load.%s is all that makes a sample.", f.Dataset.Class, f.Dataset.Name))
	}
	switch l := f.loader(); {
	case f.Loader == nil:
		notes = append(notes, "No DataLoader was named: workers, size and shuffle are DataLoader's defaults. Set them as yours has them.")
	case l.Batching == "none":
		notes = append(notes, "The loader has batch_size=None: each of the dataset's samples is handed on as if it were a batch.")
	case l.Batching == "batch_sampler" && l.Batch == nil:
		notes = append(notes, fmt.Sprintf("The loader's %s makes the batches: size = 1 only stands for the size that isn't known.", *l.Sampler))
	}
	if c := f.loader().Context; c != nil && *c != "fork" {
		notes = append(notes, fmt.Sprintf("The loader starts its workers by %s.", *c))
	}
	return notes
}

// inForce lists settings of the loader that the language has no words for.
func (f *adoptedFile) inForce() string {
	l := f.loader()
	var settings []string
	add := func(set bool, name string, value any) {
		if set {
			settings = append(settings, fmt.Sprintf("%s=%v", name, value))
		}
	}
	switch {
	case f.Loader == nil || l.Sampler == nil:
	case l.Shuffle != nil:
		add(*l.Shuffle, "shuffle", "True")
	case l.Batching == "batch_sampler":
		add(true, "batch_sampler", *l.Sampler)
	default:
		add(true, "sampler", *l.Sampler)
	}
	add(l.PinMemory, "pin_memory", "True")
	if l.WorkerInit != nil {
		add(true, "worker_init_fn", *l.WorkerInit)
	}
	add(l.PersistentWorkers, "persistent_workers", "True")
	add(l.Generator, "generator", "…")
	add(l.Timeout != 0, "timeout", l.Timeout)
	if l.Context != nil {
		add(true, "multiprocessing_context", *l.Context)
	}
	return strings.Join(settings, ", ")
}

// render returns the file in the canonical layout.
func (f *adoptedFile) render() ([]byte, error) {
	var w hclText
	w.comment("The input pipeline " + f.Reference + ", as it is, part by part. This file was written by")
	w.comment("")
	w.comment("  " + f.command)
	if f.path != "-" {
		w.comment("")
		w.comment("To find the part that starves the training step:")
		w.comment("")
		w.comment("  " + commandLine([]string{"run", f.path}))
	}
	w.line("")
	w.open("experiment", f.name)
	seed := uint64(0)
	note := "the same seed gives the same batches"
	if f.Seed != nil {
		seed, note = *f.Seed, "as the code seeds torch"
	}
	w.attribute("seed", cty.NumberUIntVal(seed), note)
	w.line("")
	f.renderPool(&w)
	w.line("")
	f.renderStep(&w)
	w.close()
	out, diags := config.Format([]byte(w.b.String()), f.path)
	if diags.HasErrors() {
		return nil, fmt.Errorf("the file that would be written is no HCL, which is a mistake in pipectl: %w", diags)
	}
	return out, nil
}

func (f *adoptedFile) renderPool(w *hclText) {
	l := f.loader()
	if l.Workers == 0 {
		w.comment("The main process loads, transforms and collates, as it does for a DataLoader with num_workers=0.")
	} else {
		w.comment("Each worker process loads, transforms and collates whole batches, as the DataLoader's do.")
	}
	if own := f.inForce(); own != "" {
		w.comment("What the loader has besides stays in force: " + own + ".")
	}
	w.open("pool", "loader")
	w.attribute("workers", cty.NumberIntVal(int64(l.Workers)), "num_workers")
	if l.Prefetch != nil {
		w.attribute("prefetch", cty.NumberIntVal(int64(*l.Prefetch)), "prefetch_factor: batches a worker")
	}
	w.line("")
	remarks := f.notes()
	if len(f.Steps) > 0 && f.Note == nil {
		remarks = append(remarks, fmt.Sprintf("What the stages below do is taken out of the dataset. %s compared with the untouched dataset's: they are the same, bit for bit.",
			counted(f.Samples, "sample was", "samples were")))
	}
	for i, remark := range remarks {
		if i > 0 {
			w.comment("")
		}
		w.comment(remark)
	}
	w.open("load", "python", f.Dataset.Name)
	reference := "loader"
	if f.Loader == nil {
		reference = "dataset"
	}
	w.attribute(reference, cty.StringVal(f.Reference), "")
	if len(f.Lift) > 0 {
		w.attribute("lift", stringList(f.Lift), "what the stages below do")
	}
	if f.Loader == nil && !f.Dataset.Iterable {
		w.attribute("shuffle", cty.BoolVal(*l.Shuffle), "")
	}
	if f.python != "" {
		w.attribute("python", cty.StringVal(f.python), "")
	}
	if f.pythonpath != nil {
		w.attribute("pythonpath", stringList(f.pythonpath), "relative to this file")
	}
	w.close()
	w.line("")
	for _, s := range f.Steps {
		if strings.HasSuffix(s.Text, ")") { // else it is but the name
			w.comment(s.Text)
		}
		if s.Part == f.Lift[0] {
			w.single("callable", cty.StringVal(s.Reference), s.Block, "python", s.Name)
			continue
		}
		w.open(s.Block, "python", s.Name)
		w.attribute("callable", cty.StringVal(s.Reference), "")
		w.attribute("part", cty.StringVal(s.Part), "")
		w.close()
	}
	if len(f.Steps) > 0 {
		w.line("")
	}
	w.open("batch")
	w.attribute("size", cty.NumberIntVal(int64(f.batch())), "")
	w.attribute("drop_last", cty.BoolVal(l.DropLast), "")
	if l.Collate != nil {
		w.attribute("collate", cty.StringVal(*l.Collate), "")
	}
	w.close()
	w.close()
}

func (f *adoptedFile) renderStep(w *hclText) {
	if f.Step == nil {
		if f.stepTime == 0 {
			w.comment("No step was named, so this one takes no time: the loader alone is measured. Give yours a time, or name it instead:")
			w.comment("")
			w.comment(`  train "python" "step" { callable = "module:function of a batch" }`)
		}
		w.single("time", cty.StringVal(languageDuration(f.stepTime)), "train", "emulated", "step")
		return
	}
	if !f.Step.Factory {
		w.single("callable", cty.StringVal(f.Step.Reference), "train", "python", "step")
		return
	}
	w.open("train", "python", "step")
	w.attribute("callable", cty.StringVal(f.Step.Reference), "")
	w.attribute("args", cty.EmptyObjectVal, "called without arguments, it makes the step")
	w.close()
}

// languageDuration writes a duration as people would: "0ms", "30ms".
func languageDuration(d time.Duration) string {
	if d == 0 {
		return "0ms"
	}
	return d.String()
}

func stringList(list []string) cty.Value {
	values := make([]cty.Value, len(list))
	for i, s := range list {
		values[i] = cty.StringVal(s)
	}
	return cty.TupleVal(values)
}

// hclText writes HCL, with its comments, without caring for the layout.
type hclText struct{ b strings.Builder }

func (w *hclText) line(text string) { w.b.WriteString(text + "\n") }

// comment writes a comment, in as many lines as it needs.
func (w *hclText) comment(text string) {
	const width = 120
	if strings.HasPrefix(text, "  ") || len(text) == 0 { // as it is
		w.line(strings.TrimRight("# "+ui.Clean(text), " "))
		return
	}
	for line := range strings.Lines(ui.Wrap(ui.Clean(text), "", width)) {
		w.line("# " + strings.TrimSuffix(line, "\n"))
	}
}

func (w *hclText) open(block string, labels ...string) { w.line(blockHeader(block, labels) + "{") }

// single writes a block of one attribute in one line.
func (w *hclText) single(name string, value cty.Value, block string, labels ...string) {
	w.line(fmt.Sprintf("%s{ %s = %s }", blockHeader(block, labels), name, hclValue(value)))
}

func blockHeader(block string, labels []string) string {
	text := block + " "
	for _, label := range labels {
		text += hclValue(cty.StringVal(label)) + " "
	}
	return text
}

func (w *hclText) attribute(name string, value cty.Value, comment string) {
	text := name + " = " + hclValue(value)
	if comment != "" {
		text += " # " + comment
	}
	w.line(text)
}

func (w *hclText) close() { w.line("}") }

func hclValue(v cty.Value) string { return string(hclwrite.TokensForValue(v).Bytes()) }
