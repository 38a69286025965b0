// Package config reads experiment files: it finds, parses and merges them, works out variables, locals and references,
// and decodes each experiment into the engine's plain data. What an author got wrong comes back as diagnostics, all of
// it at once.
package config

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/stages"
)

// Options says what to load and with which values.
type Options struct {
	Path     string           // a file, or a folder whose *.hcl are merged; "" is the current folder
	Registry *stages.Registry // the operators that experiments may use
	// Assignments are the command line's --var-file and --var in the order given: a later one wins.
	Assignments []Assignment
	Environ     []string // "key=value": PIPECTL_VAR_x gives a variable's value, env("X") reads any
	// Contents are taken in place of what files on disk hold, by the names that Config.Files has.
	Contents map[string][]byte
}

// Assignment is one --var-file or --var.
type Assignment struct {
	File string // a file of values
	Var  string // "name=value"; used where File is ""
}

// Config is what the files say.
type Config struct {
	// Experiments are in the files' order, and the files in the order of their names. Where Load reports errors, faulty
	// experiments are here too as long as their stages stand in a valid order: a faulty stage's Spec is nil.
	Experiments []*engine.Experiment
	// Files holds the contents of all files read, by the names that diagnostics use.
	Files map[string][]byte

	ranges map[position]hcl.Range
}

// position names a block ("" for attribute) or an attribute of an experiment.
type position struct{ experiment, address, attribute string }

// Range returns where an attribute of an experiment stands: the value given to it, or the header of its block where
// the attribute is "" or isn't written, or the experiment's header where there is no such block. It is nil where there
// is no such experiment. Addresses are those of engine.Setting.
func (c *Config) Range(experiment, address, attribute string) *hcl.Range {
	for _, p := range []position{{experiment, address, attribute}, {experiment, address, ""}, {experiment, "", ""}} {
		if r, ok := c.ranges[p]; ok {
			return &r
		}
	}
	return nil
}

// Diagnostic makes a diagnostic of what was found out about an attribute or block of an experiment later, such as a
// failure while it ran. It points where Range does.
func (c *Config) Diagnostic(experiment, address, attribute, summary, detail string, severity hcl.DiagnosticSeverity) *hcl.Diagnostic {
	return &hcl.Diagnostic{
		Severity: severity,
		Summary:  summary,
		Detail:   detail,
		Subject:  c.Range(experiment, address, attribute),
		Extra:    diag.Address(address),
	}
}

// Load reads the experiments at o.Path. The diagnostics, errors and warnings, are sorted by file and position. The Config
// is never nil: with errors it holds what could be read.
func Load(o Options) (*Config, hcl.Diagnostics) {
	l := &loader{
		Options: o,
		config:  &Config{Files: map[string][]byte{}, ranges: map[position]hcl.Range{}},
		vars:    map[string]*variable{},
		locals:  map[string]*node{},
		funcs:   map[string]map[string]function.Function{},
	}
	l.readFiles()
	l.declare()
	l.assignVariables()
	l.evaluateLocals()
	l.checkVariables()
	l.decodeExperiments()
	diag.Sort(l.diags)
	return l.config, l.diags
}

// loader is the state of one Load.
type loader struct {
	Options
	config *Config
	diags  hcl.Diagnostics

	bodies []*hclsyntax.Body
	// partial is set where an experiment file could not be read or parsed to its end: then nothing that it may declare is
	// reported as missing. partialValues says the same of the files of values.
	partial, partialValues bool

	funcs       map[string]map[string]function.Function // by folder
	vars        map[string]*variable
	locals      map[string]*node
	experiments []*experiment
	running     []*node // the values being worked out, outermost first
}

func (l *loader) report(d *hcl.Diagnostic) { l.diags = append(l.diags, d) }

// fail reports an error at r.
func (l *loader) fail(r hcl.Range, summary, detail string) {
	l.report(&hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &r})
}
