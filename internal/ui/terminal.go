// Package ui sets text for people: it finds out what a terminal can show, aligns tables, draws bars, and words numbers
// alike everywhere.
package ui

import (
	"io"
	"strconv"

	"charm.land/lipgloss/v2"
	"golang.org/x/term"
)

// DefaultWidth is the width of text that goes elsewhere than to a terminal.
const DefaultWidth = 80

// Terminal says what the place that text is written to can show.
type Terminal struct {
	Width       int  // columns
	Interactive bool // it is a terminal, so that what was written can be written over
	Color       bool
	ASCII       bool // bars are drawn with ASCII characters
}

// Detect finds out what w can show, given a function that reads the environment, such as os.Getenv. There is no colour
// where w isn't a terminal, TERM is "dumb", or NO_COLOR is set to anything but "" (https://no-color.org).
func Detect(w io.Writer, getenv func(string) string) Terminal {
	t := Terminal{Width: DefaultWidth}
	if columns, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns > 0 {
		t.Width = columns
	}
	dumb := getenv("TERM") == "dumb"
	t.ASCII = dumb
	file, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return t
	}
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		t.Width = columns
	}
	t.Interactive = !dumb
	t.Color = !dumb && getenv("NO_COLOR") == ""
	return t
}

// Style is a way to set text off. Text must be as clear without it: there may be no colour.
type Style int

// The styles. They are of the 16 colours that the user's own theme defines, so that they can be read on any background.
const (
	Plain  Style = iota
	Strong       // heads, names, verdicts
	Faint        // explanations
	Good
	Bad
	Caution
)

// Paint returns text, which has no line breaks, in a style.
func (t Terminal) Paint(s Style, text string) string {
	if !t.Color || s == Plain || text == "" {
		return text
	}
	style := lipgloss.NewStyle()
	switch s {
	case Strong:
		style = style.Bold(true)
	case Faint:
		style = style.Faint(true)
	case Good:
		style = style.Foreground(lipgloss.Green)
	case Bad:
		style = style.Foreground(lipgloss.Red)
	case Caution:
		style = style.Foreground(lipgloss.Yellow)
	}
	return style.Render(text)
}
