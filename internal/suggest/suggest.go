// Package suggest finds the name that was meant by a mistyped one.
package suggest

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// Sentence returns the sentence ` Did you mean "x"?`, to follow another one, for the known name closest to a mistyped
// one. It is "" where none is close.
func Sentence(name string, known []string) string {
	best, least := "", min(len(name), 2+len(name)/4) // two swapped letters count as two edits, in a short name too
	for _, k := range known {
		if d := levenshtein.Distance(strings.ToLower(name), strings.ToLower(k), nil); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean %q?", best)
}
