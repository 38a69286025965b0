package engine

import (
	"fmt"

	"github.com/pipectl/pipectl/stages"
)

// tellFaults tells of what the data set is known to lack before any of it is read, and skips the items that can't be read: a probe's few
// batches, or drop_last, might leave these out, and nobody would know.
func (p *Pipeline) tellFaults() error {
	loads := p.Plan.Experiment.Loads()
	sources, first := []stages.Source{p.source}, 0
	if p.interleaved != nil {
		sources = p.interleaved.sources
	}
	for i, src := range sources {
		if inspected, ok := src.(stages.Inspected); ok {
			if text := inspected.Warning(); text != "" {
				p.warn(loads[i].Address, text)
			}
			if err := p.skipFaults(inspected, first); err != nil {
				return err
			}
		}
		if src != nil {
			first += src.Len()
		}
	}
	return nil
}

// skipFaults skips a source's faulty items, which are numbered from first. Its error counts them.
func (p *Pipeline) skipFaults(src stages.Inspected, first int) error {
	var failure error
	others := 0
	for i, fault := range src.Faults() {
		err := p.skip(0, first+i, fault)
		switch {
		case failure != nil:
			others++
		case err != nil:
			failure = err
		}
	}
	if others > 0 {
		failure.(*StageError).Err = fmt.Errorf("%w; so it is with %d more items", failure.(*StageError).Err, others)
	}
	return failure
}
