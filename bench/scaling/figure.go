package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// table returns a figure as a Markdown table: medians, and half the width of their 95 % intervals.
func (f *figure) table() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s:\n\n| %s |", f.title, f.axis)
	for _, p := range f.places {
		fmt.Fprintf(&s, " %s |", p)
	}
	fmt.Fprintf(&s, "\n|---|%s\n", strings.Repeat("---|", len(f.places)))
	for _, l := range f.lines {
		fmt.Fprintf(&s, "| %s |", l.name)
		for _, r := range l.rates {
			fmt.Fprintf(&s, " %s |", r)
		}
		s.WriteString("\n")
	}
	return s.String()
}

func (r rate) String() string {
	s := fmt.Sprintf("%.3g", r.Median)
	if r.Median >= 1000 {
		s = fmt.Sprintf("%.3g k", r.Median/1000)
	}
	if r.Median >= 1e6 {
		s = fmt.Sprintf("%.3g M", r.Median/1e6)
	}
	if r.Low != nil && r.High != nil {
		s += fmt.Sprintf(" ± %.0f %%", 50*(*r.High-*r.Low)/r.Median)
	}
	return s
}

const (
	panelWidth, panelHeight = 470.0, 300.0
	left, right, top, foot  = 62.0, 118.0, 40.0, 44.0
)

var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7"}

// draw returns figures side by side as an SVG picture, on logarithmic scales of samples/s.
func draw(figures ...*figure) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="11">`+"\n", panelWidth*float64(len(figures)), panelHeight)
	s.WriteString(`<rect width="100%" height="100%" fill="#ffffff"/>` + "\n")
	for i, f := range figures {
		fmt.Fprintf(&s, `<g transform="translate(%.0f 0)">`+"\n", panelWidth*float64(i))
		f.draw(&s)
		s.WriteString("</g>\n")
	}
	s.WriteString("</svg>\n")
	return s.String()
}

func (f *figure) draw(s *strings.Builder) {
	low, high := math.Inf(1), 0.0
	for _, l := range f.lines {
		for _, r := range l.rates {
			low, high = min(low, r.Median), max(high, r.Median)
		}
	}
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	x := func(i int) float64 { return left + float64(i)*(panelWidth-left-right)/float64(len(f.places)-1) }
	y := func(v float64) float64 {
		return top + (last-math.Log10(v))/max(last-first, 1)*(panelHeight-top-foot)
	}
	fmt.Fprintf(s, `<text x="%.0f" y="20" font-size="12" font-weight="bold">%s</text>`+"\n", 8.0, f.title)
	for p := first; p <= last; p++ {
		at := y(math.Pow(10, p))
		fmt.Fprintf(s, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, panelWidth-right, at, at, left-6, at+4, rate{Median: math.Pow(10, p)})
	}
	for i, name := range f.places {
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", x(i), panelHeight-foot+18, strings.ReplaceAll(name, " ", "&#160;"))
	}
	fmt.Fprintf(s, `<text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n", (left+panelWidth-right)/2, panelHeight-8, f.axis)
	for n, l := range f.lines {
		var points []string
		for i, r := range l.rates {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), y(r.Median)))
		}
		fmt.Fprintf(s, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(points, " "), colours[n%len(colours)])
	}
	end := func(l line) float64 { return l.rates[len(l.rates)-1].Median }
	order := make([]int, len(f.lines))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(end(f.lines[b]), end(f.lines[a])) })
	at := 0.0
	for _, n := range order { // names stand at the lines' ends, one below the other
		at = max(y(end(f.lines[n]))+4, at+13)
		fmt.Fprintf(s, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", panelWidth-right+8, at, colours[n%len(colours)], f.lines[n].name)
	}
}
