package cli

import (
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/hcl/config"
	"github.com/pipectl/pipectl/hcl/diag"
	"github.com/pipectl/pipectl/stages"
)

// warnings are what the engine's goroutines say that a run goes on without. They are shown as they come, once that disturbs nothing else.
type warnings struct {
	mu      sync.Mutex
	pending []string
	print   func(text string) // nil before they can be shown
}

func (w *warnings) add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.print == nil {
		w.pending = append(w.pending, text)
		return
	}
	w.print(text)
}

// show shows warnings from now on, those that have come before first.
func (w *warnings) show(print func(text string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.pending {
		print(text)
	}
	w.pending, w.print = nil, print
}

// warned tells of a warning at a block.
func (r *session) warned(address, text string) {
	var s strings.Builder
	diag.Text(&s, hcl.Diagnostics{blockWarning(r.config, r.experiment, address, text)}, r.config.Files, 0, r.errTerm.Color)
	r.warnings.add(strings.TrimRight(s.String(), "\n"))
}

// blockWarning returns a warning at a checkpoint or a load block.
func blockWarning(cfg *config.Config, e *engine.Experiment, address, text string) *hcl.Diagnostic {
	what := "cache"
	if strings.HasPrefix(address, stages.Load+".") {
		what = "data"
	}
	return cfg.Diagnostic(e.Name, address, "", "The "+what+" of "+address, text, hcl.DiagWarning)
}
