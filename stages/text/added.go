package text

import (
	"cmp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// addedToken is a token that is looked for before a text is split, because it isn't part of the model's vocabulary or has
// a meaning of its own.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no letter or digit is next to it
	LStrip     bool   `json:"lstrip"`      // with the white space before it
	RStrip     bool   `json:"rstrip"`      // with the white space after it
	Normalized bool   `json:"normalized"`  // looked for in the normalised text
}

// addedTokens finds tokens in texts: of those that start at a place, the longest.
type addedTokens struct {
	byFirst [256][]addedToken // by content's first byte, the longest first
	some    bool              // there are any
}

func newAddedTokens(tokens []addedToken) *addedTokens {
	a := new(addedTokens)
	for _, t := range tokens {
		if t.Content != "" {
			a.byFirst[t.Content[0]] = append(a.byFirst[t.Content[0]], t)
			a.some = true
		}
	}
	for _, tokens := range a.byFirst {
		slices.SortStableFunc(tokens, func(a, b addedToken) int { return cmp.Compare(len(b.Content), len(a.Content)) })
	}
	return a
}

// foundToken is where a token is in a text.
type foundToken struct {
	start, end int // with white space that belongs to it
	resume     int // where to look for the next: a token that is white space counts also where another took it
	id         int32
}

// next finds the first token from the byte from on in a text that has been dealt with up to at. Without one it returns an
// id of -1 and the text's end.
func (a *addedTokens) next(text []byte, at, from int) foundToken {
	none := foundToken{len(text), len(text), len(text), -1}
	if !a.some {
		return none
	}
	for i := from; i < len(text); i++ {
		candidates := a.byFirst[text[i]]
		for t := range candidates {
			token := &candidates[t]
			if !hasPrefix(text[i:], token.Content) {
				continue
			}
			start, end := i, i+len(token.Content)
			resume := end
			if token.SingleWord && (endsInWord(text[:start]) || startsWithWord(text[end:])) {
				i = end - 1 // neither is a shorter one looked for, nor one that starts in it
				break
			}
			for token.LStrip && start > at {
				r, n := utf8.DecodeLastRune(text[at:start])
				if !unicode.IsSpace(r) {
					break
				}
				start -= n
			}
			for token.RStrip && end < len(text) {
				r, n := utf8.DecodeRune(text[end:])
				if !unicode.IsSpace(r) {
					break
				}
				end += n
			}
			if token.LStrip && end <= at { // all of it was the one before's
				i = resume - 1
				break
			}
			return foundToken{start, end, resume, token.ID}
		}
	}
	return none
}

func endsInWord(text []byte) bool {
	r, n := utf8.DecodeLastRune(text)
	return n > 0 && isWord(r)
}

func startsWithWord(text []byte) bool {
	r, n := utf8.DecodeRune(text)
	return n > 0 && isWord(r)
}

// number gives added tokens the ids that Hugging Face's library gives them when it reads a file, which may state others:
// those that they have in the vocabulary, or the next. Of several with one content the last counts, with the first one's id.
func (m *bpe) number(tokens []addedToken) []addedToken {
	var numbered []addedToken
	next, places := int32(len(m.vocab)), map[string]int{}
	for _, t := range tokens {
		place, again := places[t.Content]
		if again {
			t.ID = numbered[place].ID
			numbered[place] = t
			continue
		}
		var known bool
		if t.ID, known = m.vocab[t.Content]; !known {
			t.ID = next
		}
		next = max(next, t.ID+1)
		places[t.Content] = len(numbered)
		numbered = append(numbered, t)
	}
	return numbered
}
