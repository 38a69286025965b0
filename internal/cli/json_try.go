package cli

import (
	"maps"
	"slices"

	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/engine/improve"
)

// tryStartedEvent says that a changed pipeline begins to be measured beside the one that it was.
type tryStartedEvent struct {
	header
	Run       string           `json:"run"`
	Number    int              `json:"number"` // from 1; 0: all that was kept, beside the pipeline as it was
	Changes   []editView       `json:"changes"`
	Predicted *bisect.Estimate `json:"predicted_speedup"`
	Original  string           `json:"original_run"`
	Changed   string           `json:"changed_run"`
}

// tryEvent says what came of it.
type tryEvent struct {
	header
	Run string `json:"run"`
	triedView
}

// triedView is a set of changes and what came of it.
type triedView struct {
	Number     *int             `json:"number"` // null where it wasn't measured
	Bottleneck *string          `json:"bottleneck"`
	Changes    []editView       `json:"changes"`
	Predicted  *bisect.Estimate `json:"predicted_speedup"`
	Original   *rateView        `json:"original"`
	Changed    *rateView        `json:"changed"`
	Speedup    *bisect.Estimate `json:"speedup"`
	Rounds     int              `json:"rounds"`
	Outcome    improve.Outcome  `json:"outcome"`
	Reason     string           `json:"reason"`
	OriginalID *string          `json:"original_run"`
	ChangedID  *string          `json:"changed_run"`
}

// editView is a change of an experiment.
type editView struct {
	Address   string  `json:"address"`
	Attribute *string `json:"attribute"` // null: the block is taken out
	Value     *string `json:"value"`     // as HCL
	Was       *string `json:"was"`
	Into      *string `json:"into"`
}

// triesEvent is the last line of a run with --try.
type triesEvent struct {
	header
	Run        string           `json:"run"`
	Tries      []triedView      `json:"tries"`
	Changes    []editView       `json:"changes"`
	Ended      improve.Ending   `json:"ended"`
	Original   *rateView        `json:"original"`
	Changed    *rateView        `json:"changed"`
	Speedup    *bisect.Estimate `json:"speedup"`
	Verdict    bisect.Verdict   `json:"verdict"`
	Bottleneck *string          `json:"bottleneck"`
	Diff       string           `json:"diff"`
	Files      []string         `json:"files"`
	ByHand     []byHandView     `json:"by_hand"`
	Written    bool             `json:"written"`
	Store      *storeView       `json:"store"`
}

// byHandView is a change that its author must make.
type byHandView struct {
	Change editView `json:"change"`
	File   *string  `json:"file"`
	Line   *int     `json:"line"`
	Why    string   `json:"why"`
}

// storeView is what storing a stage's output would take and give. It is computed.
type storeView struct {
	Address   string  `json:"address"`
	Bytes     *int64  `json:"bytes"`
	Epoch     float64 `json:"epoch_seconds"`
	Stored    float64 `json:"stored_epoch_seconds"`
	Fill      float64 `json:"fill_seconds"`
	BreakEven float64 `json:"break_even_epochs"`
	Read      *int64  `json:"read_bytes_per_second"`
}

func newTryStartedEvent(run string, t improve.Try, ids [2]string) tryStartedEvent {
	return tryStartedEvent{newHeader("try_started"), run, t.Number, newEditViews(t.Changes), t.Predicted, ids[0], ids[1]}
}

func newTryEvent(run string, t improve.Try, runs map[int][2]string) tryEvent {
	return tryEvent{newHeader("try"), run, newTriedView(t, runs)}
}

func newTriedView(t improve.Try, runs map[int][2]string) triedView {
	v := triedView{nil, orNull(t.Bottleneck), newEditViews(t.Changes), t.Predicted, newRateView(t.Before), newRateView(t.After), t.Speedup, t.Rounds,
		t.Outcome, t.Reason, nil, nil}
	if t.Number > 0 {
		v.Number = &t.Number
		if ids, ok := runs[t.Number]; ok {
			v.OriginalID, v.ChangedID = &ids[0], &ids[1]
		}
	}
	return v
}

func newEditViews(changes []improve.Change) []editView {
	views := []editView{}
	for _, c := range changes {
		views = append(views, newEditView(c))
	}
	return views
}

func newEditView(c improve.Change) editView {
	return editView{c.Address, orNull(c.Attribute), orNull(c.Value), orNull(c.Was), orNull(c.Into)}
}

func newTriesEvent(run string, o *outcome) triesEvent {
	v := triesEvent{newHeader("tries"), run, []triedView{}, newEditViews(o.Changes), o.Ended, newRateView(o.First), newRateView(o.Last), o.Speedup,
		o.Report.Verdict, orNull(o.Report.Bottleneck), o.diff, append([]string{}, slices.Sorted(maps.Keys(o.files))...), []byHandView{}, o.written, nil}
	for _, t := range o.Tries {
		v.Tries = append(v.Tries, newTriedView(t, o.runs))
	}
	for _, h := range o.byHand {
		b := byHandView{Change: newEditView(h.Change), Why: h.Why}
		if h.Place != nil {
			b.File, b.Line = &h.Place.Filename, &h.Place.Start.Line
		}
		v.ByHand = append(v.ByHand, b)
	}
	if s := o.Store; s != nil {
		v.Store = &storeView{Address: s.Address, Epoch: s.Epoch.Seconds(), Stored: s.Stored.Seconds(), Fill: s.Fill.Seconds(), BreakEven: s.BreakEven}
		if s.Bytes > 0 {
			read := int64(s.Read)
			v.Store.Bytes, v.Store.Read = &s.Bytes, &read
		}
	}
	return v
}
