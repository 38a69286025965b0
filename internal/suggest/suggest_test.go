package suggest

import "testing"

func TestSentence(t *testing.T) {
	known := []string{"size", "scale", "shuffle", "p", "workers"}
	for name, want := range map[string]string{
		"siez":     ` Did you mean "size"?`,
		"SIZE":     ` Did you mean "size"?`,
		"shufle":   ` Did you mean "shuffle"?`,
		"worker":   ` Did you mean "workers"?`,
		"x":        "",
		"prefetch": "",
		"":         "",
		"cale":     ` Did you mean "scale"?`,
	} {
		if got := Sentence(name, known); got != want {
			t.Errorf("Sentence(%q) = %q, want %q", name, got, want)
		}
	}
}
