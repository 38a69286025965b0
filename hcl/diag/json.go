package diag

import (
	"strings"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// Message is a diagnostic as a JSON value.
type Message struct {
	Severity string `json:"severity"` // "error" or "warning"
	Summary  string `json:"summary"`
	Detail   string `json:"detail"`
	File     string `json:"file,omitempty"`
	Range    *Range `json:"range,omitempty"`
	Snippet  string `json:"snippet,omitempty"` // the source lines of the range, clipped where they are long
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
			for i, l := range lines(files[r.Filename], *r) {
				if i == maxLines {
					snippet = append(snippet, "…")
					break
				}
				snippet = append(snippet, clip(l.text, r.Start.Byte-l.start))
			}
			m.Snippet = strings.Join(snippet, "\n")
		}
		messages = append(messages, m)
	}
	return messages
}

// clip cuts a line that is very long to the part around a byte of it, with an ellipsis where something is left out.
func clip(text string, at int) string {
	if len(text) <= maxWidth {
		return text
	}
	from := min(max(at-maxWidth/2, 0), len(text)-maxWidth)
	to := from + maxWidth
	// No further than a character goes: what isn't UTF-8 may have no start.
	for range utf8.UTFMax - 1 {
		if from > 0 && !utf8.RuneStart(text[from]) {
			from--
		}
		if to < len(text) && !utf8.RuneStart(text[to]) {
			to++
		}
	}
	out := text[from:to]
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

func position(p hcl.Pos) Position { return Position{p.Line, p.Column, p.Byte} }
