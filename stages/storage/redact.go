package storage

import (
	"net/url"
	"regexp"
	"strings"
)

// Redacted returns a path as messages may show it: without a password, and without a query, in which signatures stand. The rest is as it was
// written.
func Redacted(path string) string {
	if !Remote(path) || strings.HasPrefix(path, "s3") {
		return path
	}
	if _, err := url.Parse(path); err != nil {
		return "a URL that can't be read"
	}
	scheme, rest, _ := strings.Cut(path, "://")
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	host, name := rest[:end], rest[end:]
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		user, _, protected := strings.Cut(host[:i], ":")
		if protected {
			user += ":"
		} else {
			user = "" // a token may stand there alone
		}
		host = user + "xxxxx" + host[i:]
	}
	if name, query, _ := strings.Cut(name, "?"); query != "" {
		return scheme + "://" + host + name + "?…"
	}
	return scheme + "://" + host + name
}

// RedactedText returns a text in which all URLs are as Redacted shows them.
func RedactedText(text string) string {
	return regexp.MustCompile(`https?://[^\s"'\\]+`).ReplaceAllStringFunc(text, Redacted)
}
