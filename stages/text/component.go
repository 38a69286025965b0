package text

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// component is a normaliser, pre-tokeniser or post-processor.
type component struct {
	Type string `json:"type"`

	Normalizers   []component `json:"normalizers"`
	Pretokenizers []component `json:"pretokenizers"`
	Processors    []component `json:"processors"`

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

// unsupported reports a component of a kind by its type.
func (c *component) unsupported(kind string) error {
	if c.Type == "" {
		return errors.New("a " + kind + " has no type")
	}
	return unsupported("the " + kind + " " + c.Type)
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

func (t *tokenizer) addNormalizer(c component) error {
	switch c.Type {
	case "Sequence":
		for _, part := range c.Normalizers {
			if err := t.addNormalizer(part); err != nil {
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
		return c.unsupported("normalizer")
	}
	return nil
}

func (t *tokenizer) addPreTokenizer(c component) error {
	if t.model.byteLevel {
		return unsupported("the pre_tokenizer " + c.Type + " after ByteLevel")
	}
	add := func(s preTokenizer) { t.split = append(t.split, s) }
	is := func(b *bool, otherwise bool) bool { return b == nil && otherwise || b != nil && *b }
	switch c.Type {
	case "Sequence":
		for _, part := range c.Pretokenizers {
			if err := t.addPreTokenizer(part); err != nil {
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
		return c.unsupported("pre_tokenizer")
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
	return newExpression(c.Pattern, b, c.Invert)
}

// addPostProcessor adds the special tokens that stand around every sequence.
func (t *tokenizer) addPostProcessor(c component) error {
	switch c.Type {
	case "ByteLevel": // it changes where tokens are said to lie alone
	case "Sequence":
		for _, part := range c.Processors {
			if err := t.addPostProcessor(part); err != nil {
				return err
			}
		}
	case "BertProcessing", "RobertaProcessing":
		return t.surround([]int32{c.Cls.id}, []int32{c.Sep.id})
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
		return t.surround(before, after)
	default:
		return c.unsupported("post_processor")
	}
	return nil
}

// surround sets the special tokens of every sequence. A second post-processor would treat those of the first as sequences.
func (t *tokenizer) surround(before, after []int32) error {
	if len(t.before)+len(t.after) > 0 {
		return unsupported("a second post_processor that adds special tokens")
	}
	t.before, t.after = before, after
	return nil
}
