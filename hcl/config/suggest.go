package config

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// suggest returns the sentence ` Did you mean "x"?` for the known name closest to a mistyped one, or "" where none is close.
func suggest(name string, known []string) string {
	best, least := "", 2+len(name)/4 // two letters swapped in a short name count as two edits
	for _, k := range known {
		if d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(k), nil); d < least && d < len(name) {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}

// enumerate joins words for a sentence: a, b and c.
func enumerate(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
