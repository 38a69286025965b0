// Command termsvg draws what a program printed to a terminal as an SVG picture: text from the standard input, with the
// colours that pipectl uses, as a dark window to the standard output.
package main

import (
	"bufio"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"

	"github.com/clipperhouse/displaywidth"
)

const (
	cell   = 8.4 // width of a character in px, at 14 px
	line   = 19.0
	margin = 18.0
)

var (
	escape  = regexp.MustCompile("\x1b\\[([0-9;]*)m")
	colours = map[string]string{"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "2": "#8b949e", "1": "#ffffff"}
)

func main() {
	var lines []string
	columns := 0
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		text := strings.TrimRight(in.Text(), "\r")
		lines = append(lines, text)
		columns = max(columns, displaywidth.String(escape.ReplaceAllString(text, "")))
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	w, h := float64(columns)*cell+2*margin, float64(len(lines))*line+2*margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f">`+"\n", w, h, w, h)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="#0d1117"/>`+"\n")
	fmt.Fprintf(out, `<g font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14" fill="#c9d1d9" xml:space="preserve">`+"\n")
	for i, text := range lines {
		draw(out, text, margin+float64(i)*line+14)
	}
	fmt.Fprintln(out, "</g>\n</svg>")
}

// draw writes one line of text. Every run of characters in one style is placed by its column and set to its exact width,
// so that tables stay aligned in any font.
func draw(out *bufio.Writer, text string, y float64) {
	column, style := 0, ""
	emit := func(s string) {
		n := displaywidth.String(s)
		if lead := len(s) - len(strings.TrimLeft(s, " ")); strings.TrimSpace(s) != "" {
			body := strings.TrimRight(s[lead:], " ")
			fmt.Fprintf(out, `<text x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
				margin+float64(column+lead)*cell, y, float64(displaywidth.String(body))*cell, style, html.EscapeString(body))
		}
		column += n
	}
	for _, word := range split(text) {
		if m := escape.FindStringSubmatch(word); m != nil {
			style = ""
			for code := range strings.SplitSeq(m[1], ";") {
				if c, ok := colours[code]; ok {
					style += fmt.Sprintf(` fill="%s"`, c)
				}
				if code == "1" {
					style += ` font-weight="bold"`
				}
			}
			continue
		}
		emit(word)
	}
}

// split cuts text at its escape sequences, which stay as pieces of their own.
func split(text string) []string {
	var pieces []string
	for text != "" {
		at := escape.FindStringIndex(text)
		if at == nil {
			return append(pieces, text)
		}
		if at[0] > 0 {
			pieces = append(pieces, text[:at[0]])
		}
		pieces = append(pieces, text[at[0]:at[1]])
		text = text[at[1]:]
	}
	return pieces
}
