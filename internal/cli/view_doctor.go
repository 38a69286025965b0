package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/pipectl/pipectl/internal/doctor"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// writeDoctor shows what the checks found.
func writeDoctor(w io.Writer, term ui.Terminal, findings []doctor.Finding, host *results.Host) {
	p := page{w, term}
	p.prose(ui.Plain, "", hostText(host))
	p.blank()
	counts := map[doctor.State]int{}
	for _, f := range findings {
		counts[f.State]++
		style := map[doctor.State]ui.Style{doctor.OK: ui.Good, doctor.Note: ui.Caution, doctor.Problem: ui.Bad}[f.State]
		first, width := fmt.Sprintf("%-9s%-15s", f.State, f.Title), min(term.Width, proseWidth)
		words := strings.Fields(f.Text)
		for i := range words { // paths, for one, that are longer than a line
			words[i] = ui.Shorten(words[i], max(width-len(first), 20))
		}
		wrapped := ui.Wrap(strings.Join(words, " "), first, width)
		fmt.Fprint(w, term.Paint(style, string(f.State))+strings.TrimPrefix(wrapped, string(f.State)))
		if f.Fix != "" {
			p.prose(ui.Plain, "         Fix: ", f.Fix)
		}
	}
	p.blank()
	p.prose(ui.Strong, "", count(counts[doctor.Problem], "problem")+", "+count(counts[doctor.Note], "note")+".")
}

// doctorView is the output of `pipectl doctor`.
type doctorView struct {
	FormatVersion int          `json:"format_version"`
	Type          string       `json:"type"` // "doctor"
	Checks        []checkView  `json:"checks"`
	Host          results.Host `json:"host"`
}

// checkView is what one check found.
type checkView struct {
	Check string       `json:"check"`
	State doctor.State `json:"state"`
	Text  string       `json:"text"`
	Fix   *string      `json:"fix"`
	Value *float64     `json:"value"` // the number that counts
	Unit  *string      `json:"unit"`
	Error *string      `json:"error"` // why the check itself failed
}

func newDoctorView(findings []doctor.Finding, host results.Host) doctorView {
	v := doctorView{formatVersion, "doctor", []checkView{}, host}
	for _, f := range findings {
		c := checkView{Check: f.Check, State: f.State, Text: f.Text, Fix: orNull(f.Fix), Value: f.Value, Unit: orNull(f.Unit)}
		if f.Err != nil {
			c.Error = orNull(f.Err.Error())
		}
		v.Checks = append(v.Checks, c)
	}
	return v
}
