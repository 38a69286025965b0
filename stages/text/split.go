package text

import (
	"bytes"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// behavior says what becomes of what a splitter's pattern matches.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

// cutter cuts a piece at matches, which it is told in order.
type cutter struct {
	*pieces
	behavior behavior
	invert   bool // what lies between the matches counts as matches

	open   int  // where the piece that isn't added yet starts
	at     int  // up to where the piece has been read
	before bool // whether what was read last matched; what comes before the first doesn't
}

func (c *cutter) begin(piece span) { c.open, c.at, c.before = piece.start, piece.start, false }

// match cuts at a match from start to end.
func (c *cutter) match(start, end int) {
	if start > c.at {
		c.part(start, c.invert)
	}
	c.part(end, !c.invert)
}

// finish adds the rest of a piece.
func (c *cutter) finish(piece span) {
	if piece.end > c.at {
		c.part(piece.end, c.invert)
	}
	c.add(c.open, piece.end)
}

// part takes what lies up to end, which is a match or not. A match may be empty.
func (c *cutter) part(end int, match bool) {
	switch c.behavior {
	case removed:
		c.add(c.open, c.at)
		c.open = c.at
		if match {
			c.open = end
		}
	case isolated:
		c.add(c.open, c.at)
		c.open = c.at
	case contiguous:
		if match != c.before {
			c.add(c.open, c.at)
			c.open = c.at
		}
	case mergedWithPrevious: // a match ends a piece
		if !match || c.before {
			c.add(c.open, c.at)
			c.open = c.at
		}
	case mergedWithNext: // a match starts a piece, and so does what doesn't come after one
		if match || !c.before {
			c.add(c.open, c.at)
			c.open = c.at
		}
	}
	c.at, c.before = end, match
}

// literal splits at a text.
type literal struct {
	text     string
	behavior behavior
	invert   bool
}

func (l literal) apply(p *pieces) {
	c := cutter{pieces: p, behavior: l.behavior, invert: l.invert}
	p.cut(func(p *pieces, piece span) {
		c.begin(piece)
		for at := piece.start; ; {
			i := bytes.Index(p.text[at:piece.end], []byte(l.text))
			if i < 0 {
				break
			}
			c.match(at+i, at+i+len(l.text))
			at += i + len(l.text)
		}
		c.finish(piece)
	})
}

// expression splits at the matches of a regular expression.
type expression struct {
	re       *regexp.Regexp
	spaces   int // the group of spacesAtEnd's white space; 0: the expression doesn't end with it
	behavior behavior
	invert   bool
}

// newExpression returns a splitter at the matches of p.
func newExpression(p pattern, b behavior, invert bool) (expression, error) {
	x := expression{behavior: b, invert: invert}
	whole := p.Regex
	var ends bool
	if whole != nil {
		var before string
		if before, ends = strings.CutSuffix(greedy(*whole), spacesAtEnd); ends {
			before = "(?:" + before + `)|(\s+)`
		}
		p.Regex = &before
	}
	var err error
	if x.re, err = p.compile(); err != nil && whole != nil {
		return x, unsupported("the regular expression " + *whole)
	}
	if ends {
		x.spaces = x.re.NumSubexp()
	}
	return x, err
}

func (x expression) apply(p *pieces) {
	c := cutter{pieces: p, behavior: x.behavior, invert: x.invert}
	p.cut(func(p *pieces, piece span) {
		c.begin(piece)
		last := -1 // where the last match ended
		for at := piece.start; at <= piece.end; {
			m := x.re.FindSubmatchIndex(p.text[at:piece.end])
			if m == nil {
				break
			}
			start, end := at+m[0], at+m[1]
			if x.spaces > 0 && m[2*x.spaces] >= 0 && end < piece.end {
				if _, n := utf8.DecodeLastRune(p.text[start:end]); end-n > start {
					end -= n
				}
			}
			if start == end && end == last { // nothing, which is there after every match too
				_, n := utf8.DecodeRune(p.text[at:piece.end])
				at += max(n, 1)
				continue
			}
			c.match(start, end)
			at, last = end, end
		}
		c.finish(piece)
	})
}

// runs splits where the class of the characters changes.
type runs struct{ class func(r rune) class }

// class says how a character is split off.
type class int8

const (
	dropped class = iota // it belongs to no piece
	single               // it is a piece of its own
	wordClass
	otherClass
)

func (s runs) apply(p *pieces) {
	p.cut(func(p *pieces, piece span) {
		start, before := piece.start, dropped
		for at := piece.start; at < piece.end; {
			r, n := utf8.DecodeRune(p.text[at:piece.end])
			cl := s.class(r)
			if cl != before || cl == single {
				if before != dropped {
					p.add(start, at)
				}
				start, before = at, cl
			}
			at += n
		}
		if before != dropped {
			p.add(start, piece.end)
		}
	})
}

// either returns the class yes for the characters that f reports, and no for others.
func either(f func(rune) bool, yes, no class) runs {
	return runs{func(r rune) class {
		if f(r) {
			return yes
		}
		return no
	}}
}

// whitespace keeps what \w+|[^\w\s]+ matches.
func whitespace(r rune) class {
	switch {
	case isWord(r):
		return wordClass
	case unicode.IsSpace(r):
		return dropped
	}
	return otherClass
}

// isWord reports whether \w matches a character: letters, marks, digits and connectors (Unicode TS 18).
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic, unicode.Join_Control)
}

func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7F && !isWord(r) || r == '_'
	}
	return unicode.IsPunct(r)
}
