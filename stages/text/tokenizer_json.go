package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// unsupported names something in a tokenizer.json that isn't supported.
type unsupported string

func (u unsupported) Error() string { return string(u) + " isn't supported" }

// tokenizerFile is a tokenizer.json of Hugging Face's library tokenizers, as far as it matters for encoding. What it says
// about truncation and padding doesn't: transformers replaces it by the arguments of each call, and so do attributes.
type tokenizerFile struct {
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Model         struct {
		Type         string          `json:"type"`
		Vocab        json.RawMessage `json:"vocab"`
		Merges       json.RawMessage `json:"merges"`
		Dropout      *float64        `json:"dropout"`
		UnkToken     *string         `json:"unk_token"`
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
	if err := t.addNormalizer(f.Normalizer); err != nil {
		return nil, err
	}
	if err := t.addPreTokenizer(f.PreTokenizer); err != nil {
		return nil, err
	}
	if special {
		if err := t.addPostProcessor(f.PostProcessor); err != nil {
			return nil, err
		}
	}
	var raw, normalized []addedToken
	for _, a := range f.AddedTokens {
		if a.ID < 0 {
			return nil, fmt.Errorf("the added token %q has the id %d", a.Content, a.ID)
		}
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
	if m.UnkToken != nil {
		id, ok := t.model.vocab[*m.UnkToken]
		if !ok {
			return fmt.Errorf("the unk_token %q isn't in the vocabulary", *m.UnkToken)
		}
		t.model.unknown = id
	}
	if m.ByteFallback {
		t.model.setFallback()
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

// setFallback finds the tokens <0x00> to <0xFF>. Hugging Face's library falls back to them for a character if it has all
// of the character's; here all must be there.
func (m *bpe) setFallback() {
	var tokens [256]int32
	for b := range tokens {
		id, ok := m.vocab[fmt.Sprintf("<0x%02X>", b)]
		if !ok {
			return
		}
		tokens[b] = id
	}
	m.fallback = &tokens
}

// component is a normaliser, pre-tokeniser or post-processor.
type component struct {
	Type string `json:"type"`

	Normalizers   []json.RawMessage `json:"normalizers"`
	Pretokenizers []json.RawMessage `json:"pretokenizers"`
	Processors    []json.RawMessage `json:"processors"`

	Left       bool    `json:"strip_left"`
	Right      bool    `json:"strip_right"`
	Prepend    string  `json:"prepend"`
	Content    string  `json:"content"`
	Pattern    pattern `json:"pattern"`
	Behavior   string  `json:"behavior"`
	Invert     bool    `json:"invert"`
	Individual bool    `json:"individual_digits"`

	AddPrefixSpace *bool   `json:"add_prefix_space"`
	UseRegex       *bool   `json:"use_regex"`
	Replacement    string  `json:"replacement"`
	PrependScheme  string  `json:"prepend_scheme"`
	Split          *bool   `json:"split"`
	Single         []piece `json:"single"`
	Cls            token   `json:"cls"`
	Sep            token   `json:"sep"`
	SpecialTokens  map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

// pattern is what is looked for in a text.
type pattern struct {
	String *string
	Regex  *string
}

// token is a token's text and id.
type token struct {
	text string
	id   int32
}

// UnmarshalJSON reads ["text", id].
func (t *token) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&t.text, &t.id})
}

// piece is a part of a template: a special token, or the sequence itself.
type piece struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

// read reads a component; null is one without a type.
func read(raw json.RawMessage) (component, error) {
	var c component
	if len(raw) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, jsonError(err)
	}
	if c.Type == "" && string(raw) != "null" {
		return c, errors.New("a normalizer, pre_tokenizer or post_processor has no type")
	}
	return c, nil
}

func (t *tokenizer) addNormalizer(raw json.RawMessage) error {
	c, err := read(raw)
	if err != nil {
		return err
	}
	switch c.Type {
	case "":
	case "Sequence":
		for _, raw := range c.Normalizers {
			if err := t.addNormalizer(raw); err != nil {
				return err
			}
		}
	case "NFC":
		t.normalize = append(t.normalize, form(norm.NFC))
	case "NFD":
		t.normalize = append(t.normalize, form(norm.NFD))
	case "NFKC":
		t.normalize = append(t.normalize, form(norm.NFKC))
	case "NFKD":
		t.normalize = append(t.normalize, form(norm.NFKD))
	case "Lowercase":
		t.normalize = append(t.normalize, lowercase)
	case "StripAccents":
		t.normalize = append(t.normalize, stripAccents)
	case "Strip":
		t.normalize = append(t.normalize, strip(c.Left, c.Right))
	case "Prepend":
		t.normalize = append(t.normalize, prepend(c.Prepend))
	case "Replace":
		if s := c.Pattern.String; s != nil && *s != "" {
			t.normalize = append(t.normalize, replace(*s, c.Content))
			return nil
		}
		re, err := c.Pattern.compile()
		if err != nil {
			return err
		}
		t.normalize = append(t.normalize, replaceAll(re, c.Content))
	default:
		return unsupported("the normalizer " + c.Type)
	}
	return nil
}

func (t *tokenizer) addPreTokenizer(raw json.RawMessage) error {
	c, err := read(raw)
	if err != nil {
		return err
	}
	if t.model.byteLevel && c.Type != "" {
		return unsupported("the pre_tokenizer " + c.Type + " after ByteLevel")
	}
	add := func(s preTokenizer) { t.split = append(t.split, s) }
	is := func(b *bool, otherwise bool) bool { return b == nil && otherwise || b != nil && *b }
	switch c.Type {
	case "":
	case "Sequence":
		for _, raw := range c.Pretokenizers {
			if err := t.addPreTokenizer(raw); err != nil {
				return err
			}
		}
	case "ByteLevel":
		if is(c.AddPrefixSpace, true) {
			add(prefixSpace{})
		}
		if is(c.UseRegex, true) {
			add(gptSplit{})
		}
		t.model.setBytes()
	case "Whitespace":
		add(runs{whitespace})
	case "WhitespaceSplit":
		add(either(unicode.IsSpace, dropped, wordClass))
	case "Digits":
		if c.Individual {
			add(either(unicode.IsNumber, single, otherClass))
		} else {
			add(either(unicode.IsNumber, wordClass, otherClass))
		}
	case "Punctuation":
		switch behavior(c.Behavior) {
		case isolated, "":
			add(either(isPunctuation, single, otherClass))
		case contiguous:
			add(either(isPunctuation, wordClass, otherClass))
		case removed:
			add(either(isPunctuation, dropped, otherClass))
		default:
			return unsupported("the pre_tokenizer Punctuation with the behavior " + c.Behavior)
		}
	case "Metaspace":
		scheme := c.PrependScheme
		if scheme == "" && !is(c.AddPrefixSpace, true) {
			scheme = "never"
		}
		add(metaspace{mark: c.Replacement, prefix: scheme != "never", firstOnly: scheme == "first", split: is(c.Split, true)})
	case "Split":
		s, err := c.splitter()
		if err != nil {
			return err
		}
		add(s)
	default:
		return unsupported("the pre_tokenizer " + c.Type)
	}
	return nil
}

// splitter returns what a Split stands for.
func (c *component) splitter() (preTokenizer, error) {
	b := behavior(c.Behavior)
	switch b {
	case removed, isolated, mergedWithPrevious, mergedWithNext, contiguous:
	default:
		return nil, unsupported("the pre_tokenizer Split with the behavior " + c.Behavior)
	}
	if s := c.Pattern.String; s != nil && *s != "" {
		return literal{*s, b, c.Invert}, nil
	}
	if c.Pattern.Regex != nil {
		// Its matches are all of a text, so that they are the pieces, isolated or not removed.
		if g, ok := gptPattern(*c.Pattern.Regex); ok && (b == isolated || b == removed && c.Invert) {
			return g, nil
		}
	}
	re, err := c.Pattern.compile()
	if err != nil {
		return nil, err
	}
	return expression{re, b, c.Invert}, nil
}

// addPostProcessor adds the special tokens that stand around every sequence.
func (t *tokenizer) addPostProcessor(raw json.RawMessage) error {
	c, err := read(raw)
	if err != nil {
		return err
	}
	switch c.Type {
	case "", "ByteLevel": // it changes where tokens are said to lie alone
	case "Sequence":
		for _, raw := range c.Processors {
			if err := t.addPostProcessor(raw); err != nil {
				return err
			}
		}
	case "BertProcessing", "RobertaProcessing":
		t.before = append([]int32{c.Cls.id}, t.before...)
		t.after = append(t.after, c.Sep.id)
	case "TemplateProcessing":
		var before, after []int32
		sequences := 0
		for _, p := range c.Single {
			switch {
			case p.Sequence != nil:
				sequences++
			case p.SpecialToken == nil:
				return errors.New("the template has a part that is neither a special token nor a sequence")
			default:
				special, ok := c.SpecialTokens[p.SpecialToken.ID]
				if !ok {
					return fmt.Errorf("the template's special token %q isn't among its special_tokens", p.SpecialToken.ID)
				}
				if sequences == 0 {
					before = append(before, special.IDs...)
				} else {
					after = append(after, special.IDs...)
				}
			}
		}
		if sequences != 1 {
			return fmt.Errorf("the template has the sequence %d times, not once", sequences)
		}
		t.before = append(before, t.before...)
		t.after = append(t.after, after...)
	default:
		return unsupported("the post_processor " + c.Type)
	}
	return nil
}
