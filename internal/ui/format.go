package ui

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unknown stands for what isn't known, which is not the same as 0.
const Unknown = "–"

// Number words a quantity with three significant digits, or more where its whole part has more.
func Number(v float64) string {
	switch {
	case math.IsNaN(v):
		return Unknown
	case math.IsInf(v, 0):
		return strings.TrimPrefix(sign(v)+"∞", "+")
	case v == 0:
		return "0"
	}
	// The exponent after rounding, so that 9.996 is 10.0.
	rounded := strconv.FormatFloat(math.Abs(v), 'e', 2, 64)
	exponent, err := strconv.Atoi(rounded[strings.IndexByte(rounded, 'e')+1:])
	if err != nil {
		panic(err) // FormatFloat writes a number there
	}
	return strings.TrimPrefix(sign(v), "+") + strconv.FormatFloat(math.Abs(v), 'f', max(0, 2-exponent), 64)
}

// sign returns "+" or a minus.
func sign(v float64) string {
	if v < 0 {
		return "−"
	}
	return "+"
}

// Percent words a share: 0.743 is "74 %", 0.0123 is "1.2 %".
func Percent(share float64) string {
	switch p := math.Abs(100 * share); {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return Unknown
	case p == 0:
		return "0 %"
	case p < 0.05:
		return "<0.1 %"
	case p < 9.95:
		return fmt.Sprintf("%s%.1f %%", strings.TrimPrefix(sign(share), "+"), p)
	default:
		return fmt.Sprintf("%s%.0f %%", strings.TrimPrefix(sign(share), "+"), p)
	}
}

// Change words a relative difference with its sign: "+92 %", "−4.8 %".
func Change(share float64) string {
	text := Percent(share)
	if share > 0 && '0' <= text[0] && text[0] <= '9' {
		return "+" + text
	}
	return text
}

// Times words a ratio: "3.78×".
func Times(ratio float64) string {
	if math.IsNaN(ratio) || math.IsInf(ratio, 0) {
		return Unknown
	}
	return Number(ratio) + "×"
}

// PlusMinus words a median with its interval, as the larger of the two distances in percent: "3.45 ± 2 %". Where the
// interval has no end on one side it is "3.45 ± ∞".
func PlusMinus(median, low, high float64) string {
	text := Number(median)
	if text == Unknown {
		return text
	}
	d := max(high-median, median-low)
	switch p := d / math.Abs(median); {
	case math.IsInf(d, 0) || math.IsNaN(p):
		return text + " ± ∞"
	case p < 0.0095:
		return text + " ± " + Percent(p)
	default:
		return fmt.Sprintf("%s ± %.0f %%", text, 100*p)
	}
}

// Duration words a duration with three significant digits below a minute, and with its two largest units above.
func Duration(d time.Duration) string {
	switch s := d.Seconds(); {
	case d < 0:
		return Unknown
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case s < 999.5e-6:
		return Number(s*1e6) + " µs"
	case s < 999.5e-3:
		return Number(s*1e3) + " ms"
	case s < 59.95:
		return Number(s) + " s"
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%dm %02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh %02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// Ago words a time in the past by its distance from now, or by its date where that is over 30 days.
func Ago(t, now time.Time) string {
	const day = 24 * time.Hour
	switch d := now.Sub(t); {
	case d < -time.Minute || d >= 30*day:
		return t.In(now.Location()).Format(time.DateOnly)
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	default:
		return fmt.Sprintf("%d d ago", d/day)
	}
}
