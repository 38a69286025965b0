package text

import (
	"bytes"
	"regexp"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalizer appends to dst what it makes of text.
type normalizer func(dst, text []byte) []byte

// form is one of Unicode's normalisation forms.
func form(f norm.Form) normalizer {
	return func(dst, text []byte) []byte { return f.Append(dst, text...) }
}

// lowercase maps characters one by one.
func lowercase(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if text = text[n:]; r == 'İ' { // the one that becomes two
			dst = append(dst, "i̇"...)
		} else {
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
	}
	return dst
}

// stripAccents leaves out combining marks.
func stripAccents(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if !unicode.Is(unicode.M, r) {
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return dst
}

// strip leaves out white space at the ends.
func strip(left, right bool) normalizer {
	return func(dst, text []byte) []byte {
		if left {
			text = bytes.TrimLeftFunc(text, unicode.IsSpace)
		}
		if right {
			text = bytes.TrimRightFunc(text, unicode.IsSpace)
		}
		return append(dst, text...)
	}
}

// prepend puts something before a text that isn't empty.
func prepend(prefix string) normalizer {
	return func(dst, text []byte) []byte {
		if len(text) == 0 {
			return dst
		}
		return append(append(dst, prefix...), text...)
	}
}

// replace replaces every occurrence of a text that isn't empty.
func replace(old, new string) normalizer {
	return func(dst, text []byte) []byte {
		for {
			i := bytes.Index(text, []byte(old))
			if i < 0 {
				return append(dst, text...)
			}
			dst = append(append(dst, text[:i]...), new...)
			text = text[i+len(old):]
		}
	}
}

// replaceAll replaces every match.
func replaceAll(re *regexp.Regexp, new string) normalizer {
	return func(dst, text []byte) []byte {
		return append(dst, re.ReplaceAllLiteral(text, []byte(new))...)
	}
}
