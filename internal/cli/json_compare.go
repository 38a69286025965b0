package cli

import (
	"github.com/pipectl/pipectl/internal/stats"
	"github.com/pipectl/pipectl/results"
)

// comparisonView is the output of `pipectl compare` for two single runs.
type comparisonView struct {
	FormatVersion int                 `json:"format_version"`
	Type          string              `json:"type"` // "comparison"
	A             summaryView         `json:"a"`
	B             summaryView         `json:"b"`
	Confidence    float64             `json:"confidence"`
	Probes        []probeChangeView   `json:"probes"` // steps/s
	Stages        []stageChangeView   `json:"stages"` // ms of work a step
	Settings      []settingChangeView `json:"settings"`
	Warnings      []noteView          `json:"warnings"`
}

type probeChangeView struct {
	Role       results.Role `json:"role"`
	After      *string      `json:"after"`
	Checkpoint *string      `json:"checkpoint"`
	Frees      []string     `json:"frees"`
	changeView
}

type stageChangeView struct {
	Address string `json:"address"`
	changeView
}

// changeView compares one measure of two runs. What needs both is null where one doesn't have it.
type changeView struct {
	A           *sampleView `json:"a"`
	B           *sampleView `json:"b"`
	Change      *float64    `json:"change"` // of B against A, as a share of A
	ChangeLow   *float64    `json:"change_low"`
	ChangeHigh  *float64    `json:"change_high"`
	P           *float64    `json:"p"`
	Significant *bool       `json:"significant"`
	Detectable  *bool       `json:"detectable"` // so many rounds could show a difference
}

type sampleView struct {
	Median *float64 `json:"median"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	N      int      `json:"n"`
}

type settingChangeView struct {
	Address   string  `json:"address"`
	Attribute string  `json:"attribute"`
	A         *string `json:"a"` // as HCL
	B         *string `json:"b"`
}

func newComparisonView(c *results.Comparison) comparisonView {
	pair := newPairView(&c.Groups[0].Pairs[0])
	return comparisonView{
		formatVersion, "comparison", newSummaryView(&c.Columns[0].Runs[0].Summary), newSummaryView(&c.Columns[1].Runs[0].Summary), c.Confidence,
		pair.Probes, pair.Stages, pair.Settings, newWarningViews(c.Warnings),
	}
}

// comparisonsView is the output of `pipectl compare` for other than two single runs.
type comparisonsView struct {
	FormatVersion int           `json:"format_version"`
	Type          string        `json:"type"` // "comparisons"
	Confidence    float64       `json:"confidence"`
	Columns       []columnView  `json:"columns"` // the reference first
	Groups        []groupView   `json:"groups"`
	Geomeans      []geomeanView `json:"geomeans"`
	Warnings      []noteView    `json:"warnings"`
}

type columnView struct {
	Label string        `json:"label"`
	Name  string        `json:"name"`
	Runs  []summaryView `json:"runs"`
}

type groupView struct {
	Experiments []string     `json:"experiments"`
	Hosts       []string     `json:"hosts"`
	Unit        results.Unit `json:"unit"`
	Pairs       []pairView   `json:"pairs"`
}

type pairView struct {
	A        string              `json:"a"` // the columns' labels
	B        string              `json:"b"`
	Probes   []probeChangeView   `json:"probes"`   // steps/s
	Stages   []stageChangeView   `json:"stages"`   // ms of work a step
	Settings []settingChangeView `json:"settings"` // that differ
}

type geomeanView struct {
	Label       string  `json:"column"`
	Change      float64 `json:"change"`
	Groups      int     `json:"groups"`
	Significant bool    `json:"significant"`
}

func newComparisonsView(c *results.Comparison) comparisonsView {
	v := comparisonsView{formatVersion, "comparisons", c.Confidence, []columnView{}, []groupView{}, []geomeanView{}, newWarningViews(c.Warnings)}
	for _, column := range c.Columns {
		runs := []summaryView{}
		for _, run := range column.Runs {
			runs = append(runs, newSummaryView(&run.Summary))
		}
		v.Columns = append(v.Columns, columnView{column.Label, column.Name, runs})
	}
	for _, g := range c.Groups {
		group := groupView{append([]string{}, g.Experiments...), append([]string{}, g.Hosts...), g.Unit, []pairView{}}
		for i := range g.Pairs {
			group.Pairs = append(group.Pairs, newPairView(&g.Pairs[i]))
		}
		v.Groups = append(v.Groups, group)
	}
	for _, m := range c.Geomeans {
		v.Geomeans = append(v.Geomeans, geomeanView(m))
	}
	return v
}

func newPairView(pair *results.Pair) pairView {
	v := pairView{pair.A.Label, pair.B.Label, []probeChangeView{}, []stageChangeView{}, []settingChangeView{}}
	for i := range pair.Probes {
		r := &pair.Probes[i]
		v.Probes = append(v.Probes, probeChangeView{r.Role, orNull(r.Address), orNull(r.Checkpoint), append([]string{}, r.Frees...), newChangeView(r)})
	}
	for i := range pair.Stages {
		v.Stages = append(v.Stages, stageChangeView{pair.Stages[i].Address, newChangeView(&pair.Stages[i])})
	}
	for _, s := range pair.Settings {
		v.Settings = append(v.Settings, settingChangeView(s))
	}
	return v
}

func newWarningViews(warnings []results.Warning) []noteView {
	list := []noteView{}
	for _, w := range warnings {
		list = append(list, noteView(w))
	}
	return list
}

func newChangeView(r *results.Row) changeView {
	sample := func(s *stats.Summary) *sampleView {
		if s == nil {
			return nil
		}
		return &sampleView{finite(s.Median), finite(s.Low), finite(s.High), s.N}
	}
	v := changeView{A: sample(r.A), B: sample(r.B)}
	if r.Change != nil {
		v.Change = finite(*r.Change)
		if v.ChangeHigh = finite(r.High); v.ChangeHigh != nil {
			v.ChangeLow = finite(r.Low)
		}
	}
	if d := r.Difference; d != nil {
		v.P, v.Significant, v.Detectable = finite(d.P), &d.Significant, &d.Detectable
	}
	return v
}
