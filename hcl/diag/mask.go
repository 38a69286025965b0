package diag

import (
	"regexp"
	"strings"
)

// mask puts x in the place of passwords in URLs, and of their queries, in which signatures stand, since messages end up in logs. All bytes keep
// their places, and what is put in by ${…} is none of these.
func mask(text string) string {
	secret := regexp.MustCompile(`(https?://)([^/?#\s"']*@)?([^?\s"']*)(\?[^\s"']*)?`)
	return secret.ReplaceAllStringFunc(text, func(url string) string {
		m := secret.FindStringSubmatch(url)
		user, password, protected := strings.Cut(strings.TrimSuffix(m[2], "@"), ":")
		if protected {
			m[2] = user + ":" + hide(password) + "@"
		}
		if m[4] != "" {
			m[4] = "?" + hide(m[4][1:])
		}
		return strings.Join(m[1:], "")
	})
}

func hide(s string) string {
	if strings.Contains(s, "${") {
		return s
	}
	return strings.Repeat("x", len(s))
}
