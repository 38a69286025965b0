package config

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/internal/suggest"
	"github.com/pipectl/pipectl/stages"
)

// honestRounds is how many intervals a 95 % confidence interval of a median needs.
const honestRounds = 6

// problem reports a problem with an attribute of b, "" for the whole block.
func (l *loader) problem(b *block, p stages.Problem) {
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: p.Summary, Detail: p.Detail, Extra: diag.Address(b.address)}
	if p.Warning {
		d.Severity = hcl.DiagWarning
	}
	r := b.syntax.DefRange()
	if f := b.byName[p.Attribute]; f != nil {
		r = f.subject
	}
	d.Subject = &r
	l.report(d)
}

// checkRules checks the rules between the attributes of the blocks that aren't operators.
func (l *loader) checkRules(b *block) {
	// written reports whether an attribute is in the file, without a mistake.
	written := func(name string) bool {
		f := b.byName[name]
		return f != nil && f.syntax != nil && !f.faulty
	}
	switch s := b.spec.(type) {
	case *checkpointAttributes:
		for _, p := range s.problems() {
			if written(p.Attribute) && !b.byName["store"].faulty && !b.byName["mode"].faulty {
				l.problem(b, p)
			}
		}
	case *bisectAttributes:
		if written("rounds") && s.Rounds < honestRounds {
			l.problem(b, stages.Problem{
				Attribute: "rounds",
				Summary:   "Few rounds",
				Detail:    fmt.Sprintf("An honest 95 %% confidence interval needs at least %d rounds.", honestRounds),
				Warning:   true,
			})
		}
	case *expectAttributes:
		if written("bottleneck") {
			l.checkBottleneck(b, *s.Bottleneck)
		}
	}
	if b.errors != nil && !b.onDevice() && written("max_skips") && b.errors.OnError == string(engine.Fail) && !b.byName["on_error"].faulty {
		l.problem(b, stages.Problem{
			Attribute: "max_skips",
			Summary:   "max_skips without skipping",
			Detail:    `No item is skipped with on_error = "fail". Set on_error = "skip", or remove max_skips.`,
		})
	}
}

// checkBottleneck checks that an address is that of a stage.
func (l *loader) checkBottleneck(b *block, address string) {
	var known []string
	for _, s := range b.experiment.stages {
		if s.address == address {
			return
		}
		known = append(known, s.address)
	}
	if !l.partial {
		l.problem(b, stages.Problem{
			Attribute: "bottleneck",
			Summary:   "Unknown stage",
			Detail:    fmt.Sprintf("The experiment has no stage %q.%s Its stages are %s.", address, suggest.Sentence(address, known), strings.Join(known, ", ")),
		})
	}
}
