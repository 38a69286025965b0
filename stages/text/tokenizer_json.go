package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// unsupported names something in a tokenizer.json that isn't supported.
type unsupported string

func (u unsupported) Error() string { return string(u) + " isn't supported" }

// tokenizerFile is a tokenizer.json of Hugging Face's library tokenizers, as far as it matters for encoding. What it says
// about truncation and padding doesn't: transformers replaces it by the arguments of each call, and so do attributes.
type tokenizerFile struct {
	AddedTokens   []addedToken `json:"added_tokens"`
	Normalizer    *component   `json:"normalizer"`
	PreTokenizer  *component   `json:"pre_tokenizer"`
	PostProcessor *component   `json:"post_processor"`
	Model         struct {
		Type         string          `json:"type"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
		Dropout      *float64        `json:"dropout"`
		UnkToken     string          `json:"unk_token"`
		FuseUnk      bool            `json:"fuse_unk"`
		ByteFallback bool            `json:"byte_fallback"`
		IgnoreMerges bool            `json:"ignore_merges"`
		Prefix       string          `json:"continuing_subword_prefix"`
		Suffix       string          `json:"end_of_word_suffix"`
	} `json:"model"`
}

// parseTokenizer reads a tokenizer.json. special says whether the special tokens of every sequence are wanted.
func parseTokenizer(data []byte, special bool) (*tokenizer, error) {
	var f tokenizerFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, jsonError(err)
	}
	t := &tokenizer{model: new(bpe)}
	if err := t.setModel(&f); err != nil {
		return nil, err
	}
	if c := f.Normalizer; c != nil {
		if err := t.addNormalizer(*c); err != nil {
			return nil, err
		}
	}
	if c := f.PreTokenizer; c != nil {
		if err := t.addPreTokenizer(*c); err != nil {
			return nil, err
		}
	}
	if c := f.PostProcessor; c != nil && special {
		if err := t.addPostProcessor(*c); err != nil {
			return nil, err
		}
	}
	var raw, normalized []addedToken
	for _, a := range t.model.number(f.AddedTokens) {
		if !a.Normalized {
			raw = append(raw, a)
			continue
		}
		text, spare := []byte(a.Content), []byte(nil)
		for _, n := range t.normalize {
			text, spare = n(spare[:0], text), text
		}
		a.Content = string(text)
		normalized = append(normalized, a)
	}
	t.raw, t.normalized = newAddedTokens(raw), newAddedTokens(normalized)
	return t, nil
}

// jsonError says where JSON is wrong.
func jsonError(err error) error {
	if s := (*json.SyntaxError)(nil); errors.As(err, &s) {
		return fmt.Errorf("it isn't JSON, at byte %d: %w", s.Offset, err)
	}
	return fmt.Errorf("it isn't a tokenizer's: %w", err)
}

func (t *tokenizer) setModel(f *tokenizerFile) error {
	m := &f.Model
	if m.Type != "BPE" && m.Type != "" {
		return unsupported("the model " + m.Type)
	}
	if err := t.model.setVocab(m.Vocab); err != nil {
		return err
	}
	if m.Dropout != nil && *m.Dropout != 0 {
		return unsupported("dropout, which makes a tokenizer random,")
	}
	t.model.fuseUnknown, t.model.whole, t.model.unknown = m.FuseUnk, m.IgnoreMerges, -1
	t.model.prefix, t.model.suffix = m.Prefix, m.Suffix
	if id, ok := t.model.vocab[m.UnkToken]; ok && m.UnkToken != "" { // GPT-2's file has it empty
		t.model.unknown = id
	}
	if m.ByteFallback {
		if err := t.model.setFallback(); err != nil {
			return err
		}
	}
	var lines []mergeLine
	if err := json.Unmarshal(m.Merges, &lines); err != nil {
		return fmt.Errorf("its merges: %w", err)
	}
	return t.model.setMerges(lines)
}

// setVocab reads a vocabulary, a JSON object.
func (m *bpe) setVocab(data []byte) error {
	if err := json.Unmarshal(data, &m.vocab); err != nil {
		return fmt.Errorf("the vocabulary: %w", jsonError(err))
	}
	if len(m.vocab) == 0 {
		return errors.New("the vocabulary is empty")
	}
	for token, id := range m.vocab {
		if id < 0 {
			return fmt.Errorf("the token %q has the id %d", token, id)
		}
	}
	return nil
}

// mergeLine is two tokens that become one.
type mergeLine [2]string

// UnmarshalJSON reads "left right" or ["left", "right"].
func (l *mergeLine) UnmarshalJSON(data []byte) error {
	var line string
	if json.Unmarshal(data, &line) == nil {
		return l.parse(line)
	}
	return json.Unmarshal(data, (*[2]string)(l))
}

// parse reads two tokens with a space between them.
func (l *mergeLine) parse(line string) error {
	left, right, ok := strings.Cut(line, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("%q isn't two tokens with a space between them", line)
	}
	*l = mergeLine{left, right}
	return nil
}

// setFallback finds the tokens <0x00> to <0xFF>, unless there are none. With some of them Hugging Face's library puts
// unk_token at another place than the character that has none.
func (m *bpe) setFallback() error {
	var tokens [256]int32
	found := 0
	for b := range tokens {
		if id, ok := m.vocab[fmt.Sprintf("<0x%02X>", b)]; ok {
			tokens[b] = id
			found++
		}
	}
	switch found {
	case 0:
		return nil
	case len(tokens):
		m.fallback = &tokens
		return nil
	}
	return unsupported(fmt.Sprintf("byte_fallback with %d of the tokens <0x00> to <0xFF>", found))
}
