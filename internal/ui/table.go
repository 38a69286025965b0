package ui

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// gap is the number of columns between two columns of a table.
const gap = 2

// Column is a column of a table.
type Column struct {
	Head  string // "\n" parts its lines
	Right bool   // aligned to the right
	Min   int    // what it may be narrowed to by shortening its cells, or its bars' least width; 0: it may not be narrowed
	Bar   int    // it holds bars, which fill what the other columns leave, to at most Bar columns; 0: it holds text
}

// Cell is a cell of a table.
type Cell struct {
	Text  string
	Style Style
	Bar   float64 // in a column of bars: the share of it to fill, 0 to 1
}

// Table is a table of aligned cells.
type Table struct {
	Columns []Column
	rows    []row
}

// row is a row of cells, or a line of its own, which is its only cell.
type row struct {
	cells   []Cell
	section bool
}

// Row adds a row. Cells that are left out at its end are empty.
func (t *Table) Row(cells ...Cell) {
	for i := range cells {
		cells[i].Text = Clean(cells[i].Text)
	}
	t.rows = append(t.rows, row{cells: cells})
}

// Section adds a line that heads the rows after it and has no part in the columns.
func (t *Table) Section(text string, style Style) {
	t.rows = append(t.rows, row{cells: []Cell{{Text: Clean(text), Style: style}}, section: true})
}

// Render returns the table's lines, each with a line break. It is as wide as the terminal at most, unless its columns
// can't be narrowed so far. Lines have no spaces at their ends.
func (t *Table) Render(term Terminal) string {
	widths := t.widths(term.Width)
	var b strings.Builder
	for _, row := range append(t.heads(), t.rows...) {
		if row.section {
			b.WriteString(term.Paint(row.cells[0].Style, row.cells[0].Text) + "\n")
			continue
		}
		line, pad := "", 0 // pad is what lies between line and the next text
		for i, cell := range row.cells {
			column := t.Columns[i]
			text := Shorten(cell.Text, widths[i])
			if column.Bar > 0 && text == "" {
				text = Bar(cell.Bar, widths[i], term.ASCII)
			}
			rest := widths[i] - ansi.StringWidth(text)
			if column.Right {
				pad, rest = pad+rest, 0
			}
			if text != "" {
				line += strings.Repeat(" ", pad) + term.Paint(cell.Style, text)
				pad = 0
			}
			pad += rest + gap
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// heads returns the rows of the columns' heads, which stand at the bottom; none where no column has one.
func (t *Table) heads() []row {
	var height int
	for _, c := range t.Columns {
		if c.Head != "" {
			height = max(height, strings.Count(c.Head, "\n")+1)
		}
	}
	rows := make([]row, height)
	for i := range rows {
		rows[i].cells = make([]Cell, len(t.Columns))
	}
	for i, c := range t.Columns {
		if c.Head == "" {
			continue
		}
		lines := strings.Split(c.Head, "\n")
		for j, line := range lines {
			rows[height-len(lines)+j].cells[i] = Cell{Text: line, Style: Faint}
		}
	}
	return rows
}

// widths returns the columns' widths, so that the table is no wider than width where that can be had.
func (t *Table) widths(width int) []int {
	widths, least := make([]int, len(t.Columns)), make([]int, len(t.Columns))
	total := -gap
	for i, c := range t.Columns {
		head := 0
		for line := range strings.SplitSeq(c.Head, "\n") {
			head = max(head, ansi.StringWidth(line))
		}
		widths[i] = head
		for _, row := range t.rows {
			if i < len(row.cells) && !row.section {
				widths[i] = max(widths[i], ansi.StringWidth(row.cells[i].Text))
			}
		}
		switch {
		case c.Bar > 0:
			widths[i] = max(widths[i], c.Min)
			least[i] = widths[i]
		case c.Min > 0:
			least[i] = max(head, c.Min)
		default:
			least[i] = widths[i]
		}
		total += gap + widths[i]
	}
	for ; total > width; total-- {
		widest := -1
		for i := range widths {
			if widths[i] > least[i] && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	for i, c := range t.Columns {
		if grow := min(c.Bar-widths[i], width-total); grow > 0 {
			widths[i] += grow
			total += grow
		}
	}
	return widths
}
