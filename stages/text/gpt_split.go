package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// gptSplit splits as the regular expressions of GPT-2 and its successors do, which no engine without look-ahead takes:
//
//	GPT-2:            's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//	GPT-4 (cl100k):   (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
//
// Every character is in a match, so that a text falls apart into them.
type gptSplit struct {
	modern bool // as GPT-4's, not as GPT-2's
	digits int  // the most numerals in a piece of a modern one
}

// gptPattern returns what an expression stands for: GPT-2's, GPT-4's, which is Llama 3's too, or Qwen 2's, which has one
// numeral in a piece.
func gptPattern(expression string) (gptSplit, bool) {
	const start, end = `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}`, `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	switch greedy(expression) {
	case `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`:
		return gptSplit{}, true
	case `(?i:'s|'t|'re|'ve|'m|'ll|'d)|` + start + `{1,3}` + end:
		return gptSplit{modern: true, digits: 3}, true
	case `(?i:'s|'t|'re|'ve|'m|'ll|'d)|` + start + end:
		return gptSplit{modern: true, digits: 1}, true
	}
	return gptSplit{}, false
}

// greedy writes an expression of GPT-4 or a descendant as Llama 3's file has it, which matches the same: what comes after
// its possessive quantifiers starts with nothing that they match, and before a line end \s* takes all others.
func greedy(expression string) string {
	return strings.NewReplacer(
		`'(?i:[sdmt]|ll|ve|re)`, `(?i:'s|'t|'re|'ve|'m|'ll|'d)`,
		`[^\r\n\p{L}\p{N}]?+\p{L}+`, `[^\r\n\p{L}\p{N}]?\p{L}+`,
		`[^\s\p{L}\p{N}]++[\r\n]*`, `[^\s\p{L}\p{N}]+[\r\n]*`,
		`|\s*[\r\n]|\s+`, `|\s*[\r\n]+|\s+`,
	).Replace(expression)
}

func (g gptSplit) apply(p *pieces) {
	p.cut(func(p *pieces, piece span) {
		for at := piece.start; at < piece.end; {
			n := g.next(p.text[at:piece.end])
			p.add(at, at+n)
			at += n
		}
	})
}

// kinds of character in the expressions
type kind uint8

const (
	letter kind = iota
	number
	space
	other
)

func kindOf(text []byte) (kind, int) {
	if b := text[0]; b < utf8.RuneSelf {
		switch {
		case b|0x20 >= 'a' && b|0x20 <= 'z':
			return letter, 1
		case b == ' ' || b >= '\t' && b <= '\r':
			return space, 1
		case b >= '0' && b <= '9':
			return number, 1
		}
		return other, 1
	}
	r, n := utf8.DecodeRune(text)
	switch {
	case unicode.IsLetter(r):
		return letter, n
	case unicode.IsNumber(r):
		return number, n
	case unicode.IsSpace(r):
		return space, n
	}
	return other, n
}

// run returns where a run of a kind that starts at the byte at ends, after at most limit characters.
func run(text []byte, at int, k kind, limit int) int {
	for at < len(text) && limit > 0 {
		found, n := kindOf(text[at:])
		if found != k {
			break
		}
		at += n
		limit--
	}
	return at
}

const unlimited = int(^uint(0) >> 1)

// next returns the length of the match at the start of text, which isn't empty.
func (g gptSplit) next(text []byte) int {
	if text[0] == '\'' {
		if n := contraction(text, g.modern); n > 0 {
			return n
		}
	}
	first, n := kindOf(text)
	// What a run of letters, numerals or other characters may start with: a space, and for letters in a modern one
	// everything but numerals and line ends.
	second, after := first, 0
	newline := text[0] == '\n' || text[0] == '\r'
	if (text[0] == ' ' || g.modern && first != letter && first != number && !newline) && n < len(text) {
		second, _ = kindOf(text[n:])
		after = n
	}
	switch {
	case first == letter:
		return run(text, 0, letter, unlimited)
	case after > 0 && second == letter:
		return run(text, after, letter, unlimited)
	case first == number && g.modern:
		return run(text, 0, number, g.digits)
	case first == number:
		return run(text, 0, number, unlimited)
	case !g.modern && text[0] == ' ' && second == number:
		return run(text, after, number, unlimited)
	case first == other, text[0] == ' ' && second == other:
		if first == other {
			after = 0
		}
		end := run(text, after, other, unlimited)
		for g.modern && end < len(text) && (text[end] == '\n' || text[end] == '\r') {
			end++
		}
		return end
	}
	return g.spaces(text)
}

// spaces returns the length of the match at the start of text, which is white space: up to the last line end in a modern
// one, or else all but the last character if something follows and that isn't all.
func (g gptSplit) spaces(text []byte) int {
	end, lastStart, line := 0, 0, 0
	for end < len(text) {
		k, n := kindOf(text[end:])
		if k != space {
			break
		}
		lastStart = end
		end += n
		if text[lastStart] == '\n' || text[lastStart] == '\r' {
			line = end
		}
	}
	switch {
	case g.modern && line > 0:
		return line
	case end < len(text) && lastStart > 0:
		return lastStart
	}
	return end
}

// contraction returns the length of an English contraction at the start of text, an apostrophe, or 0.
func contraction(text []byte, fold bool) int {
	var c [2]byte
	n := 0
	for at := 1; at < len(text) && n < 2; n++ {
		c[n] = text[at]
		if fold && c[n] >= 'A' && c[n] <= 'Z' {
			c[n] |= 0x20
		} else if fold && n == 0 && hasPrefix(text[at:], "ſ") { // the long s, which (?i:s) matches too
			return 1 + len("ſ")
		}
		at++
	}
	switch {
	case n > 0 && (c[0] == 's' || c[0] == 't' || c[0] == 'm' || c[0] == 'd'):
		return 2
	case n == 2 && (string(c[:]) == "re" || string(c[:]) == "ve" || string(c[:]) == "ll"):
		return 3
	}
	return 0
}
