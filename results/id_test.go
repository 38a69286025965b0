package results

import (
	"strings"
	"testing"
	"time"
)

func TestNewID(t *testing.T) {
	for _, tt := range []struct {
		time   time.Time
		random uint32
		want   string
	}{
		{time.Unix(0, 0), 0, "0000000000"},
		{time.Unix(0, 0), 1 << 14, "0000000001"},
		{time.Unix(1, 999999999), 0, "0000008000"},
		{time.Unix(1<<32-1, 0), 1<<32 - 1, "zzzzzzzzzz"},
	} {
		if got := newID(tt.time, tt.random); got != tt.want {
			t.Errorf("%v, %d: %s, want %s", tt.time, tt.random, got, tt.want)
		}
	}
}

func TestNormalizeID(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"01kz", "01kz"}, {"OIL0", "0110"}, {"1MT3", "1mt3"}, {"", ""}, {"u", ""}, {"0 1", ""}, {"ä", ""}, {"a%", ""}, {"a*", ""},
	} {
		if got := normalizeID(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzNormalizeID checks that what is read as an id, or the start of one, is written in its alphabet, and reads as the same again.
func FuzzNormalizeID(f *testing.F) {
	for _, s := range []string{"01kz", "OIL0", "u", "ä", "İ", "ſK", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := normalizeID(s)
		if strings.Trim(got, crockford) != "" || normalizeID(got) != got || got != "" && len(got) != len([]rune(s)) {
			t.Errorf("%q is read as %q", s, got)
		}
	})
}
