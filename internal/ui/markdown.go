package ui

import "strings"

// Markdown returns text with whatever Markdown would read as markup escaped, on one line.
func Markdown(text string) string {
	var b strings.Builder
	for _, r := range Clean(text) {
		if strings.ContainsRune("\\`*_[]<>|&~", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Markdown returns the table as GitHub's Markdown has it (https://github.github.com/gfm/#tables-extension-). A section is a row
// with its line in bold; bars and styles are left out.
func (t *Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	heads, rule := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i], rule[i] = Markdown(c.Head), "---"
		if c.Right {
			rule[i] = "--:"
		}
	}
	line(heads)
	line(rule)
	for _, row := range t.rows {
		cells := make([]string, len(t.Columns))
		for i, cell := range row.cells {
			cells[i] = Markdown(strings.TrimSpace(cell.Text))
		}
		if row.section {
			cells[0] = "**" + cells[0] + "**"
		}
		line(cells)
	}
	return b.String()
}
