package text

import (
	"fmt"
	"unicode/utf8"
)

// tokenizer is what a tokenizer's files say. It is read only, and serves all workers.
//
// It is our own because no library in Go does it: github.com/sugarme/tokenizer (0.3.0) drops runs of white space,
// github.com/tiktoken-go/tokenizer has OpenAI's vocabularies alone, and github.com/daulet/tokenizers links a library in Rust
// that has to be fetched first.
type tokenizer struct {
	raw        *addedTokens // looked for in the text as it is
	normalized *addedTokens // looked for in the normalised text
	normalize  []normalizer
	split      []preTokenizer
	model      *bpe
	// before and after are the special tokens of every sequence.
	before, after []int32
}

// worker tokenises texts, one at a time. It keeps memory from text to text, and the tokens of words.
type worker struct {
	*tokenizer
	encoder encoder
	pieces  pieces
	text    []byte // normalised
	spare   []byte
}

func newWorker(t *tokenizer) *worker {
	return &worker{tokenizer: t, encoder: encoder{bpe: t.model}}
}

// encode appends the tokens of text, without those of every sequence.
func (w *worker) encode(dst []int32, text []byte) ([]int32, error) {
	if at := invalid(text); at >= 0 {
		return dst, fmt.Errorf("the text isn't UTF-8 at byte %d: convert it, or load text", at)
	}
	var err error
	for at, from := 0, 0; ; {
		found := w.raw.next(text, at, from)
		if found.start > at {
			if dst, err = w.part(dst, text[at:found.start], at == 0); err != nil {
				return dst, err
			}
		}
		if found.id < 0 {
			return dst, nil
		}
		dst = append(dst, found.id)
		at, from = found.end, found.resume
	}
}

// invalid returns where text stops being UTF-8, or -1.
func invalid(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	at := 0
	for {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n <= 1 {
			return at
		}
		at += n
	}
}

// part appends the tokens of what lies between added tokens. start says that nothing comes before it.
func (w *worker) part(dst []int32, text []byte, start bool) ([]int32, error) {
	if len(w.normalize) > 0 {
		w.text = append(w.text[:0], text...)
		for _, n := range w.normalize {
			w.text, w.spare = n(w.spare[:0], w.text), w.text
		}
		text = w.text
	}
	var err error
	for at, from := 0, 0; ; {
		found := w.normalized.next(text, at, from)
		if found.start > at {
			if dst, err = w.words(dst, text[at:found.start], start && at == 0); err != nil {
				return dst, err
			}
		}
		if found.id < 0 {
			return dst, nil
		}
		dst = append(dst, found.id)
		at, from = found.end, found.resume
	}
}

// words appends the tokens of a text's words.
func (w *worker) words(dst []int32, text []byte, start bool) ([]int32, error) {
	w.pieces.set(text, start)
	for _, s := range w.split {
		s.apply(&w.pieces)
	}
	var err error
	for _, c := range w.pieces.cuts {
		if dst, err = w.encoder.encode(dst, w.pieces.text[c.start:c.end]); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
