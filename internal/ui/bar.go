package ui

import "strings"

// eighths are the blocks that fill 1 to 7 eighths of a column.
var eighths = [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// Bar draws a share between 0 and 1 as a bar of at most width columns, to an eighth of a column, or with ASCII characters
// to a whole one. A share above 0 is never drawn as nothing.
func Bar(share float64, width int, ascii bool) string {
	if !(share > 0) || width < 1 {
		return ""
	}
	n := max(1, int(min(share, 1)*float64(8*width)+0.5))
	if ascii {
		return strings.Repeat("#", (n+7)/8)
	}
	return strings.Repeat("█", n/8) + eighths[n%8]
}
