package ui

import (
	"math"
	"testing"
	"time"
)

var nan, inf = math.NaN(), math.Inf(1)

func check[T comparable](t *testing.T, name string, f func(T) string, want map[T]string) {
	t.Helper()
	for in, want := range want {
		if got := f(in); got != want {
			t.Errorf("%s(%v) = %q, want %q", name, in, got, want)
		}
	}
}

func TestFormat(t *testing.T) {
	check(t, "Number", Number, map[float64]string{
		0: "0", nan: "–", inf: "∞", -inf: "−∞", 0.888888: "0.889", 3.45: "3.45", 9.996: "10.0", 34.567: "34.6", 999.6: "1000",
		345.4: "345", 123456.7: "123457", 0.000123456: "0.000123", -2.5: "−2.50", 1e-12: "0.00000000000100",
	})
	check(t, "Percent", Percent, map[float64]string{
		0: "0 %", 1e-5: "<0.1 %", 0.0023: "0.2 %", 0.0995: "10 %", 0.0994: "9.9 %", 0.743: "74 %", 0.997: "100 %", 12: "1200 %", -0.483: "−48 %",
		nan: "–", inf: "–",
	})
	check(t, "Change", Change, map[float64]string{0: "0 %", 0.92: "+92 %", -0.048: "−4.8 %", nan: "–", 1e-5: "<0.1 %", -1e-5: "<0.1 %"})
	check(t, "Times", Times, map[float64]string{3.781: "3.78×", 1: "1.00×", nan: "–", inf: "–"})
	check(t, "Duration", Duration, map[time.Duration]string{
		-1: "–", 0: "0 s", 850: "850 ns", 12345: "12.3 µs", 999_600: "1.00 ms", 12_345_678: "12.3 ms", 999_600_000: "1.00 s",
		1_234_567_890: "1.23 s", 59_960_000_000: "1m 00s", 92 * time.Second: "1m 32s", 3*time.Hour + 5*time.Minute + 7*time.Second: "3h 05m",
	})
}

func TestPlusMinus(t *testing.T) {
	for _, tt := range []struct {
		median, low, high float64
		want              string
	}{
		{3.45, 3.40, 3.51, "3.45 ± 2 %"},
		{3.45, 3.45, 3.45, "3.45 ± 0 %"},
		{3.45, 3.44, 3.46, "3.45 ± 0.3 %"},
		{3.45, 2, 3.5, "3.45 ± 42 %"},
		{3.45, -inf, 3.5, "3.45 ± ∞"},
		{0, 0, 0, "0 ± ∞"},
		{nan, -inf, inf, "–"},
	} {
		if got := PlusMinus(tt.median, tt.low, tt.high); got != tt.want {
			t.Errorf("PlusMinus(%v, %v, %v) = %q, want %q", tt.median, tt.low, tt.high, got, tt.want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)
	check(t, "Ago", func(d time.Duration) string { return Ago(now.Add(-d), now) }, map[time.Duration]string{
		0: "just now", 59 * time.Second: "just now", -30 * time.Second: "just now", -time.Hour: "2026-03-31", time.Minute: "1 min ago",
		59 * time.Minute: "59 min ago", time.Hour: "1 h ago", 24 * time.Hour: "1 d ago", 47 * time.Hour: "1 d ago",
		48 * time.Hour: "2 d ago", 29 * 24 * time.Hour: "29 d ago", 30 * 24 * time.Hour: "2026-03-01",
	})
}
