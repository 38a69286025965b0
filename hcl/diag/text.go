package diag

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/clipperhouse/displaywidth"
	"github.com/hashicorp/hcl/v2"
)

// The terminal's escape sequences for what is shown in colour.
const (
	reset   = "\x1b[0m"
	bold    = "\x1b[1m"
	dim     = "\x1b[2m"
	red     = "\x1b[1;31m"
	yellow  = "\x1b[1;33m"
	subject = "\x1b[1;4m"
)

const (
	maxLines = 5   // source lines shown of a subject
	maxWidth = 200 // of a source line, in columns, where the output has no width
	tabStop  = 4
	minWidth = 20 // a narrower output is treated as one without a width
)

// Text writes the diagnostics for people to read, sorted by file and position. files holds the contents of the files they
// point to. Details are wrapped and source lines cut at width columns; 0 leaves details as long as they are, and cuts source
// lines that are very long. The subject is underlined with carets, or by the terminal if colour is set.
func Text(w io.Writer, diags hcl.Diagnostics, files map[string][]byte, width int, colour bool) error {
	p := &printer{w: bufio.NewWriter(w), width: width, colour: colour}
	for i, d := range sorted(diags) {
		if i > 0 {
			p.w.WriteByte('\n')
		}
		p.diagnostic(d, files)
	}
	return p.w.Flush()
}

type printer struct {
	w      *bufio.Writer
	width  int
	colour bool
}

func (p *printer) style(style, s string) string {
	if !p.colour || s == "" {
		return s
	}
	return style + s + reset
}

func (p *printer) diagnostic(d *hcl.Diagnostic, files map[string][]byte) {
	label := p.style(red, "Error:")
	if d.Severity == hcl.DiagWarning {
		label = p.style(yellow, "Warning:")
	}
	fmt.Fprintf(p.w, "%s %s\n", label, p.style(bold, clean(d.Summary)))
	if d.Subject != nil {
		place := fmt.Sprintf("%s:%d:%d", clean(d.Subject.Filename), d.Subject.Start.Line, d.Subject.Start.Column)
		if a := address(d); a != "" {
			place += " (" + a + ")"
		}
		fmt.Fprintf(p.w, "\n  %s\n", p.style(dim, place))
		p.snippet(files[d.Subject.Filename], *d.Subject)
	}
	if d.Detail != "" {
		p.w.WriteByte('\n')
		for _, l := range strings.Split(strings.TrimRight(d.Detail, "\n"), "\n") {
			p.w.WriteString(wrap(clean(l), p.width) + "\n")
		}
	}
}

// snippet writes the lines of the subject r, each with its number.
func (p *printer) snippet(src []byte, r hcl.Range) {
	all := lines(src, r)
	shown := all[:min(len(all), maxLines)]
	gutter := len(strconv.Itoa(r.Start.Line + len(shown)))
	width := p.width - gutter - 5
	if width < minWidth {
		width = maxWidth
	}
	for i, l := range shown {
		from, to := max(r.Start.Byte-l.start, 0), r.End.Byte-l.start
		if i > 0 { // a subject that goes on has no use for the indentation
			from = len(l.text) - len(strings.TrimLeft(l.text, " \t"))
		}
		cells := crop(layOut(l.text, from, max(to, from+1)), width)
		p.row(fmt.Sprintf("%*d", gutter, r.Start.Line+i), p.source(cells))
		if !p.colour {
			p.row(strings.Repeat(" ", gutter), carets(cells))
		}
	}
	if len(all) > len(shown) {
		p.row(strings.Repeat(" ", gutter), "…")
	}
}

func (p *printer) row(number, text string) {
	p.w.WriteString(strings.TrimRight("  "+p.style(dim, number+" |")+" "+text, " ") + "\n")
}

// source joins the cells, with the marked ones underlined in colour.
func (p *printer) source(cells []cell) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		j := i
		var run strings.Builder
		for j < len(cells) && cells[j].marked == cells[i].marked {
			run.WriteString(cells[j].text)
			j++
		}
		if cells[i].marked {
			b.WriteString(p.style(subject, run.String()))
		} else {
			b.WriteString(run.String())
		}
		i = j
	}
	return b.String()
}

// carets returns the line to stand under the cells.
func carets(cells []cell) string {
	var b strings.Builder
	for _, c := range cells {
		mark := " "
		if c.marked {
			mark = "^"
		}
		b.WriteString(strings.Repeat(mark, c.width))
	}
	return strings.TrimRight(b.String(), " ")
}

// cell is what a terminal shows of one character (grapheme cluster).
type cell struct {
	text   string
	width  int // columns
	marked bool
}

// layOut splits a source line into cells, and marks those of the bytes from … to. Where these lie behind the line's end,
// a blank is appended to carry the mark. Tabs become blanks, control characters what can be shown safely.
func layOut(text string, from, to int) []cell {
	var cells []cell
	column, at, found := 0, 0, false
	g := displaywidth.StringGraphemes(text)
	for g.Next() {
		s := g.Value()
		c := cell{clean(s), g.Width(), at < to && at+len(s) > from}
		switch {
		case s == "\t":
			c.width = tabStop - column%tabStop
			c.text = strings.Repeat(" ", c.width)
		case c.text != s || c.width == 0:
			c.width = displaywidth.String(c.text)
		}
		at += len(s)
		column += c.width
		found = found || c.marked
		cells = append(cells, c)
	}
	if !found {
		cells = append(cells, cell{" ", 1, true})
	}
	return cells
}

// crop cuts cells to width columns around the first marked one, with an ellipsis where something is left out.
func crop(cells []cell, width int) []cell {
	if columns(cells) <= width {
		return cells
	}
	mark := slices.IndexFunc(cells, func(c cell) bool { return c.marked })
	ellipsis := cell{"…", 1, false}
	var out []cell
	first, room := 0, width-1 // for the ellipsis at the end
	for before := columns(cells[:mark]); before > width/2 && first < mark; first++ {
		before -= cells[first].width
	}
	if first > 0 {
		out = append(out, ellipsis)
		room--
	}
	for _, c := range cells[first:] {
		if room -= c.width; room < 0 {
			return append(out, ellipsis)
		}
		out = append(out, c)
	}
	return out
}

func columns(cells []cell) int {
	n := 0
	for _, c := range cells {
		n += c.width
	}
	return n
}

// clean makes s harmless on a terminal: what isn't UTF-8 or would move the cursor becomes U+FFFD.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// wrap breaks a line between words so that it keeps within width columns where its words allow. An indented line is
// an example, and stays as it is.
func wrap(line string, width int) string {
	if width < minWidth || strings.HasPrefix(line, " ") {
		return line
	}
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(line) {
		n := displaywidth.String(word)
		switch {
		case column == 0:
		case column+1+n > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
