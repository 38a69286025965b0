package diag

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Message is a diagnostic as a JSON value.
type Message struct {
	Severity string `json:"severity"` // "error" or "warning"
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	File     string `json:"file,omitempty"`
	Range    *Range `json:"range,omitempty"`
	Snippet  string `json:"snippet,omitempty"` // the whole source lines of the range
	Address  string `json:"address,omitempty"`
}

// Range is a stretch of a file; End is the position after it.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Position is a place in a file. Line and Column count from 1, the column in characters; Byte counts from 0.
type Position struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Byte   int `json:"byte"`
}

// JSON returns the diagnostics as values to marshal, sorted by file and position. files holds the contents of the files
// they point to. The result is never nil.
func JSON(diags hcl.Diagnostics, files map[string][]byte) []Message {
	messages := make([]Message, 0, len(diags))
	for _, d := range sorted(diags) {
		m := Message{Severity: severity(d), Summary: d.Summary, Detail: d.Detail, Address: address(d)}
		if r := d.Subject; r != nil {
			m.File = r.Filename
			m.Range = &Range{position(r.Start), position(r.End)}
			var snippet []string
			for _, l := range lines(files[r.Filename], *r) {
				snippet = append(snippet, l.text)
			}
			m.Snippet = strings.Join(snippet, "\n")
		}
		messages = append(messages, m)
	}
	return messages
}

func position(p hcl.Pos) Position { return Position{p.Line, p.Column, p.Byte} }
