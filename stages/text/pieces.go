package text

import "slices"

// pieces is a text on its way through the pre-tokenisers, cut into pieces in order. It keeps its memory from text to text.
type pieces struct {
	text  []byte
	cuts  []span
	start bool // the text is the beginning of the whole one

	spareText []byte
	spareCuts []span
}

// set makes the whole text the one piece.
func (p *pieces) set(text []byte, start bool) {
	p.text, p.start = append(p.text[:0], text...), start
	p.cuts = p.cuts[:0]
	p.add(0, len(text))
}

// cut replaces each piece by those that f adds, in order.
func (p *pieces) cut(f func(p *pieces, piece span)) {
	old := p.cuts
	p.cuts = p.spareCuts[:0]
	for _, c := range old {
		f(p, c)
	}
	p.spareCuts = old
}

// add adds a piece, unless it is empty.
func (p *pieces) add(start, end int) {
	if start < end {
		p.cuts = append(p.cuts, span{start, end})
	}
}

// rewrite replaces each piece by the text that f appends for it.
func (p *pieces) rewrite(f func(dst, piece []byte, first bool) []byte) {
	dst := p.spareText[:0]
	for i, c := range p.cuts {
		start := len(dst)
		dst = f(dst, p.text[c.start:c.end], p.start && c.start == 0)
		p.cuts[i] = span{start, len(dst)}
	}
	p.text, p.spareText = dst, p.text
	p.cuts = slices.DeleteFunc(p.cuts, func(c span) bool { return c.start == c.end })
}

// preTokenizer cuts pieces into smaller ones, of which no token crosses the boundaries.
type preTokenizer interface{ apply(p *pieces) }

// prefixSpace puts a space before pieces that don't start with one.
type prefixSpace struct{}

func (prefixSpace) apply(p *pieces) {
	p.rewrite(func(dst, piece []byte, _ bool) []byte {
		if piece[0] != ' ' {
			dst = append(dst, ' ')
		}
		return append(dst, piece...)
	})
}

// metaspace writes spaces as a visible mark, puts one before pieces that don't start with one, and cuts before each.
type metaspace struct {
	mark      string
	prefix    bool
	firstOnly bool // put it before the whole text alone
	split     bool
}

func (m metaspace) apply(p *pieces) {
	p.rewrite(func(dst, piece []byte, first bool) []byte {
		if m.prefix && (first || !m.firstOnly) && piece[0] != ' ' && !hasPrefix(piece, m.mark) {
			dst = append(dst, m.mark...)
		}
		for _, b := range piece {
			if b == ' ' {
				dst = append(dst, m.mark...)
			} else {
				dst = append(dst, b)
			}
		}
		return dst
	})
	if m.split {
		literal{text: m.mark, behavior: mergedWithNext}.apply(p)
	}
}

func hasPrefix(b []byte, prefix string) bool {
	return len(b) >= len(prefix) && string(b[:len(prefix)]) == prefix
}
