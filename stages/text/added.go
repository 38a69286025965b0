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

// next finds the first token in text from the byte at on. Without one it returns an id of -1.
func (a *addedTokens) next(text []byte, at int) (start, end int, id int32) {
	if !a.some {
		return len(text), len(text), -1
	}
	for i := at; i < len(text); i++ {
		candidates := a.byFirst[text[i]]
		for t := range candidates {
			token := &candidates[t]
			if !hasPrefix(text[i:], token.Content) {
				continue
			}
			start, end := i, i+len(token.Content)
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
			return start, end, token.ID
		}
	}
	return len(text), len(text), -1
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
