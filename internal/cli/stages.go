package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/internal/suggest"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/stages"
)

// stagesView is the output of `pipectl stages`.
type stagesView struct {
	FormatVersion int            `json:"format_version"`
	Type          string         `json:"type"` // "stages"
	Stages        []operatorView `json:"stages"`
}

// operatorView is a type of stage.
type operatorView struct {
	Block      string          `json:"block"`
	Type       string          `json:"type"`
	Summary    string          `json:"summary"`
	Doc        string          `json:"doc"`
	Attributes []attributeView `json:"attributes"`
}

// attributeView is an attribute of a type of stage.
type attributeView struct {
	Name     string  `json:"name"`
	Type     string  `json:"type"`
	Required bool    `json:"required"`
	Default  *string `json:"default"` // as HCL; null where there is none
	Limits   string  `json:"limits"`
	Doc      string  `json:"doc"`
}

func newStagesCommand(s *state) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stages [TYPE]",
		Short: "List the types of stages, or show one with its attributes",
		Args:  atMost(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return s.stageTypes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			operators := s.Registry.Operators()
			if len(args) > 0 {
				operators = slices.DeleteFunc(operators, func(op stages.Operator) bool { return op.Type != args[0] })
				if len(operators) == 0 {
					return usagef("there is no type %q.%s `pipectl stages` lists the types", args[0], suggest.Sentence(args[0], s.stageTypes()))
				}
			}
			switch {
			case s.json:
				view := stagesView{formatVersion, "stages", []operatorView{}}
				for _, op := range operators {
					view.Stages = append(view.Stages, newOperatorView(op))
				}
				return s.writeJSON(view)
			case len(args) > 0:
				for i, op := range operators {
					if i > 0 {
						fmt.Fprintln(s.stdout)
					}
					s.showOperator(newOperatorView(op))
				}
			default:
				s.listOperators(operators)
			}
			return nil
		},
	}
	s.jsonFlag(cmd, "write one JSON object")
	return cmd
}

// stageTypes returns the types of all blocks, each once.
func (s *state) stageTypes() []string {
	var types []string
	for _, op := range s.Registry.Operators() {
		if !slices.Contains(types, op.Type) {
			types = append(types, op.Type)
		}
	}
	return types
}

func newOperatorView(op stages.Operator) operatorView {
	v := operatorView{op.Block, op.Type, op.Summary, op.Doc, []attributeView{}}
	for _, a := range stages.Attributes(op.New()) {
		attr := attributeView{Name: a.Name, Type: a.Type, Required: a.Required, Limits: a.Limits(), Doc: a.Doc}
		if text := config.Literal(a.Default); text != "" {
			attr.Default = &text
		}
		v.Attributes = append(v.Attributes, attr)
	}
	return v
}

// listOperators writes the types by block, in the order in which the data flows.
func (s *state) listOperators(operators []stages.Operator) {
	widest := len("type")
	for _, op := range operators {
		widest = max(widest, len(op.Type))
	}
	head := func(block, typ string) string { return fmt.Sprintf("%-7s  %-*s  ", block, widest, typ) }
	fmt.Fprintln(s.stdout, strings.TrimRight(head("block", "type"), " "))
	for _, block := range []string{stages.Load, stages.Prepare, stages.Augment, stages.Train} {
		for _, op := range operators {
			if op.Block == block {
				fmt.Fprint(s.stdout, ui.Wrap(op.Summary, head(block, op.Type), s.outTerm.Width))
			}
		}
	}
}

// showOperator writes all about one type.
func (s *state) showOperator(op operatorView) {
	width := s.outTerm.Width
	fmt.Fprintln(s.stdout, s.outTerm.Paint(ui.Strong, fmt.Sprintf("%s %q", op.Block, op.Type)))
	fmt.Fprint(s.stdout, ui.Wrap(op.Summary, "", width))
	for _, paragraph := range paragraphs(op.Doc) {
		fmt.Fprintln(s.stdout)
		fmt.Fprint(s.stdout, ui.Wrap(paragraph, "", width))
	}
	for _, a := range op.Attributes {
		facts := []string{a.Type}
		switch {
		case a.Required:
			facts = append(facts, "required")
		case a.Default != nil:
			facts = append(facts, "default "+*a.Default)
		}
		if a.Limits != "" {
			facts = append(facts, a.Limits)
		}
		fmt.Fprintf(s.stdout, "\n%s  %s\n", s.outTerm.Paint(ui.Strong, a.Name), s.outTerm.Paint(ui.Faint, strings.Join(facts, ", ")))
		fmt.Fprint(s.stdout, ui.Wrap(a.Doc, "  ", width))
	}
}

// paragraphs returns the paragraphs of a text, between which there are empty lines.
func paragraphs(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n\n"), func(p string) bool { return strings.TrimSpace(p) == "" })
}
