package ui

import (
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// Clean makes a name or message from elsewhere fit to be shown in one line: line breaks and tabs become spaces, and other
// control characters, which could command the terminal, U+FFFD.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t':
			return ' '
		case unicode.IsControl(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// Shorten cuts the middle out of s where it is wider than width columns, because both the start of an address and its
// end tell it from others.
func Shorten(s string, width int) string {
	w := ansi.StringWidth(s)
	if w <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	head := width / 2
	tail := width - 1 - head
	return ansi.Truncate(s, head, "") + "…" + ansi.TruncateLeft(s, w-tail, "")
}

// Wrap breaks text into lines of width columns, where it can, and starts the first with first and the others with as many
// spaces. A number stays on one line with the word after it, its unit.
func Wrap(text, first string, width int) string {
	indent := strings.Repeat(" ", ansi.StringWidth(first))
	var b strings.Builder
	b.WriteString(first)
	at := len(indent)
	for i, chunk := range chunks(text) {
		w := ansi.StringWidth(chunk)
		switch {
		case i == 0:
		case at+1+w > width:
			b.WriteString("\n" + indent)
			at = len(indent)
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(chunk)
		at += w
	}
	b.WriteByte('\n')
	return b.String()
}

// chunks returns the parts of text between which lines may break.
func chunks(text string) []string {
	var list []string
	glue := false
	for _, word := range strings.Fields(Clean(text)) {
		if glue {
			list[len(list)-1] += " " + word
		} else {
			list = append(list, word)
		}
		start := strings.TrimLeft(word, "(<+−")
		glue = word == "±" || word == "…" || start != "" && '0' <= start[0] && start[0] <= '9' && !strings.HasSuffix(word, ".")
	}
	return list
}
