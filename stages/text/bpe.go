package text

import (
	"fmt"
	"unicode/utf8"
)

// bpe is a byte-pair encoding (Sennrich et al., 2016): of the neighbouring tokens in a word, the pair that comes first in
// the list of merges becomes one token, until no pair is in the list. It is read only, and serves all workers.
type bpe struct {
	vocab  map[string]int32
	merges map[pair]merge

	// bytes are the tokens of single bytes, where words are sequences of bytes; -1 for a byte without one.
	byteLevel   bool
	bytes       [2][2][256]int32 // by whether it isn't a word's first, and whether it is its last
	chars       [256]rune        // what stands for them in the vocabulary
	fallback    *[256]int32      // the tokens of bytes of characters that have none, where the model has them
	unknown     int32            // -1: there is none
	fuseUnknown bool             // several unknown characters in a row are one token
	whole       bool             // a word that is a token isn't split
	prefix      string           // what tokens within a word start with
	suffix      string           // what tokens at a word's end end with
}

type pair struct{ left, right int32 }

type merge struct {
	rank  int32 // place in the list
	token int32
}

// setMerges lists the merges of a model whose other fields are set. lines are the two tokens of each.
func (m *bpe) setMerges(lines []mergeLine) error {
	m.merges = make(map[pair]merge, len(lines))
	for rank, line := range lines {
		left, ok := m.vocab[line[0]]
		right, ok2 := m.vocab[line[1]]
		if !ok || !ok2 {
			return fmt.Errorf("merge %d joins %q and %q, which aren't both in the vocabulary", rank+1, line[0], line[1])
		}
		if len(line[1]) < len(m.prefix) {
			return fmt.Errorf("merge %d joins %q, which is shorter than the prefix %q", rank+1, line[1], m.prefix)
		}
		joined := line[0] + line[1][len(m.prefix):]
		token, ok := m.vocab[joined]
		if !ok {
			return fmt.Errorf("merge %d makes %q, which isn't in the vocabulary", rank+1, joined)
		}
		if _, dup := m.merges[pair{left, right}]; !dup {
			m.merges[pair{left, right}] = merge{int32(rank), token}
		}
	}
	return nil
}

// encoder splits words into tokens. It serves one goroutine at a time.
type encoder struct {
	*bpe
	symbols []symbol
	queue   queue
	key     []byte // of a character with prefix or suffix

	cache map[string]span // the tokens of words met before, in kept
	kept  []int32
}

type span struct{ start, end int }

const (
	// cachedWords and cachedTokens bound the cache. Once it is full it stays as it is: common words are met early.
	cachedWords  = 1 << 16
	cachedTokens = 1 << 18
	cachedBytes  = 64 // of a word; longer ones don't come back
)

// symbol is a token of a word that is being merged, in a doubly linked list.
type symbol struct {
	token      int32 // gone if it was merged into the one before
	prev, next int32 // -1 at the ends
}

const gone = -1

// encode appends the tokens of a word.
func (e *encoder) encode(dst []int32, word []byte) ([]int32, error) {
	if s, ok := e.cache[string(word)]; ok {
		return append(dst, e.kept[s.start:s.end]...), nil
	}
	start := len(dst)
	if token, ok := e.vocabOf(word); ok {
		dst = append(dst, token)
	} else {
		if err := e.split(word); err != nil {
			return dst, err
		}
		e.merge()
		for i := int32(0); i >= 0 && int(i) < len(e.symbols); i = e.symbols[i].next {
			dst = append(dst, e.symbols[i].token)
		}
	}
	if len(word) <= cachedBytes && len(e.cache) < cachedWords && len(e.kept)+len(dst)-start <= cachedTokens {
		if e.cache == nil {
			e.cache = map[string]span{}
		}
		e.cache[string(word)] = span{len(e.kept), len(e.kept) + len(dst) - start}
		e.kept = append(e.kept, dst[start:]...)
	}
	return dst, nil
}

// vocabOf returns the token that a word is, for models that don't split such.
func (e *encoder) vocabOf(word []byte) (int32, bool) {
	if !e.whole {
		return 0, false
	}
	e.key = e.key[:0]
	for _, b := range word {
		if e.byteLevel {
			e.key = utf8.AppendRune(e.key, e.chars[b])
		} else {
			e.key = append(e.key, b)
		}
	}
	token, ok := e.vocab[string(e.key)]
	return token, ok
}

// split makes symbols of a word's bytes or characters.
func (e *encoder) split(word []byte) error {
	e.symbols = e.symbols[:0]
	if e.byteLevel {
		for i, b := range word {
			inner, last := 1, 0
			if i == 0 {
				inner = 0
			}
			if i == len(word)-1 {
				last = 1
			}
			token := e.bytes[inner][last][b]
			if token < 0 {
				if token = e.unknown; token < 0 {
					return fmt.Errorf("the byte %#02x isn't in the vocabulary, and there is no unk_token", b)
				}
			}
			e.add(token)
		}
		return nil
	}
	fused := false
	for i := 0; i < len(word); {
		r, n := utf8.DecodeRune(word[i:])
		char := word[i : i+n]
		e.key = e.key[:0]
		if i > 0 {
			e.key = append(e.key, e.prefix...)
		}
		e.key = append(e.key, char...)
		if i += n; i == len(word) {
			e.key = append(e.key, e.suffix...)
		}
		if token, ok := e.vocab[string(e.key)]; ok {
			e.add(token)
			fused = false
			continue
		}
		if e.fallback != nil {
			for _, b := range char {
				e.add(e.fallback[b])
			}
			fused = false
			continue
		}
		if e.unknown < 0 {
			return fmt.Errorf("the character %q isn't in the vocabulary, and there is no unk_token", r)
		}
		if !fused {
			e.add(e.unknown)
		}
		fused = e.fuseUnknown
	}
	return nil
}

func (e *encoder) add(token int32) {
	i := int32(len(e.symbols))
	if i > 0 {
		e.symbols[i-1].next = i
	}
	e.symbols = append(e.symbols, symbol{token, i - 1, -1})
}

// merge merges the symbols, in O(n log n) for n of them.
func (e *encoder) merge() {
	e.queue = e.queue[:0]
	for i := 1; i < len(e.symbols); i++ {
		e.consider(int32(i-1), int32(i))
	}
	for len(e.queue) > 0 {
		c := e.queue.pop()
		left := &e.symbols[c.at]
		if left.token != c.pair.left || left.next < 0 || e.symbols[left.next].token != c.pair.right {
			continue // one of them has been merged meanwhile
		}
		right := &e.symbols[left.next]
		left.token, left.next = c.token, right.next
		right.token = gone
		if left.prev >= 0 {
			e.consider(left.prev, c.at)
		}
		if left.next >= 0 {
			e.symbols[left.next].prev = c.at
			e.consider(c.at, left.next)
		}
	}
}

// consider queues the merge of two neighbours, if there is one.
func (e *encoder) consider(left, right int32) {
	p := pair{e.symbols[left].token, e.symbols[right].token}
	if m, ok := e.merges[p]; ok {
		e.queue.push(candidate{m, left, p})
	}
}

// candidate is a merge that may be done at the symbol at.
type candidate struct {
	merge
	at   int32
	pair pair
}

func (a candidate) before(b candidate) bool {
	return a.rank < b.rank || a.rank == b.rank && a.at < b.at
}

// queue is a binary heap whose first candidate is the next to be done.
type queue []candidate

func (q *queue) push(c candidate) {
	h := append(*q, c)
	i := len(h) - 1
	for i > 0 && c.before(h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		i = (i - 1) / 2
	}
	h[i] = c
	*q = h
}

func (q *queue) pop() candidate {
	h := *q
	first, c := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(c) {
			break
		}
		h[i] = h[child]
		i = child
	}
	if len(h) > 0 {
		h[i] = c
	}
	*q = h
	return first
}
