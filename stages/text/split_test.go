package text

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The hand-written splitters split random texts as the expressions that they stand for, and Go's expressions as others'.
func TestGPTSplit(t *testing.T) {
	splits, o200k := golden(t).Splits, golden(t).O200K
	other, err := newExpression(pattern{Regex: &o200k}, isolated, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(splits) != 300 {
		t.Fatalf("%d texts", len(splits))
	}
	for _, row := range splits {
		text := row[0].(string)
		for i, g := range []preTokenizer{gptSplit{}, gptSplit{modern: true, digits: 3}, gptSplit{modern: true, digits: 1}, other} {
			var p pieces
			p.set([]byte(text), true)
			g.apply(&p)
			var got, want []int
			for _, c := range p.cuts {
				got = append(got, c.end-c.start)
			}
			for _, n := range row[1+i].([]any) {
				want = append(want, int(n.(float64)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v of %q: %v, want %v", g, text, got, want)
			}
		}
	}
}

func parse(t *testing.T, text string) (c component) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(text, err)
	}
	return c
}

// The pre-tokenizers as their documentation shows them.
func TestPreTokenizers(t *testing.T) {
	split := func(pattern string, behavior string, invert bool) string {
		return fmt.Sprintf(`{"type":"Split","pattern":%s,"behavior":%q,"invert":%v}`, pattern, behavior, invert)
	}
	const dash = `{"String":"-"}`
	tests := []struct{ json, text, want string }{
		{`{"type":"Whitespace"}`, "Hello there, it's_2 é!?  ", "Hello|there|,|it|'|s_2|é|!?"},
		{`{"type":"WhitespaceSplit"}`, " Hello there!\tx", "Hello|there!|x"},
		{`{"type":"Digits","individual_digits":true}`, "Call 123 now½", "Call |1|2|3| now|½"},
		{`{"type":"Digits","individual_digits":false}`, "Call 123 now", "Call |123| now"},
		{`{"type":"Punctuation"}`, "Hey!? friend_s", "Hey|!|?| friend|_|s"},
		{`{"type":"Punctuation","behavior":"Contiguous"}`, "Hey!? friend", "Hey|!?| friend"},
		{`{"type":"Punctuation","behavior":"Removed"}`, "Hey!? friend", "Hey| friend"},
		{`{"type":"Metaspace","replacement":"_","add_prefix_space":true}`, "Hey my  friend", "_Hey|_my|_|_friend"},
		{`{"type":"Metaspace","replacement":"_","prepend_scheme":"never","split":false}`, "Hey my", "Hey_my"},
		{split(dash, "Removed", false), "the-final--countdown", "the|final|countdown"},
		{split(dash, "Isolated", false), "the-final--countdown", "the|-|final|-|-|countdown"},
		{split(dash, "MergedWithPrevious", false), "the-final--countdown", "the-|final-|-|countdown"},
		{split(dash, "MergedWithNext", false), "the-final--countdown", "the|-final|-|-countdown"},
		{split(dash, "Contiguous", false), "the-final--countdown", "the|-|final|--|countdown"},
		{split(`{"Regex":"\\w+|[^\\w\\s]+"}`, "Removed", true), "it's 2é, ½", "it|'|s|2é|,|½"},
		{split(`{"Regex":"\\d{2}"}`, "Isolated", false), "12345 ٣٤", "12|34|5 |٣٤"},
		{`{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},{"type":"Punctuation"}]}`, "a. b", "a|.|b"},
	}
	for _, tt := range tests {
		tok := &tokenizer{model: new(bpe)}
		if err := tok.addPreTokenizer(parse(t, tt.json)); err != nil {
			t.Errorf("%s: %v", tt.json, err)
			continue
		}
		var p pieces
		p.set([]byte(tt.text), true)
		for _, s := range tok.split {
			s.apply(&p)
		}
		var got []string
		for _, c := range p.cuts {
			got = append(got, string(p.text[c.start:c.end]))
		}
		if joined := strings.Join(got, "|"); joined != tt.want {
			t.Errorf("%s of %q: %s, want %s", tt.json, tt.text, joined, tt.want)
		}
	}
}

func TestNormalizers(t *testing.T) {
	tests := []struct{ json, text, want string }{
		{`{"type":"NFC"}`, "e\u0301ﬁ", "éﬁ"},
		{`{"type":"NFD"}`, "é", "e\u0301"},
		{`{"type":"NFKC"}`, "e\u0301ﬁ", "éfi"},
		{`{"type":"NFKD"}`, "éﬁ", "e\u0301fi"},
		{`{"type":"Lowercase"}`, "ÀİΣ", "ài̇σ"},
		{`{"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"StripAccents"}]}`, "naïve", "naive"},
		{`{"type":"Strip","strip_left":true,"strip_right":false}`, " \u00a0x ", "x "},
		{`{"type":"Strip","strip_left":true,"strip_right":true}`, "\tx\n", "x"},
		{`{"type":"Prepend","prepend":"▁"}`, "x", "▁x"},
		{`{"type":"Prepend","prepend":"▁"}`, "", ""},
		{`{"type":"Replace","pattern":{"String":"ab"},"content":"$1"}`, "xabab", "x$1$1"},
		{`{"type":"Replace","pattern":{"Regex":"\\s+"},"content":" "}`, "a\u2003\v b", "a b"},
	}
	for _, tt := range tests {
		tok := new(tokenizer)
		if err := tok.addNormalizer(parse(t, tt.json)); err != nil {
			t.Errorf("%s: %v", tt.json, err)
			continue
		}
		text := []byte(tt.text)
		for _, n := range tok.normalize {
			text = n(nil, text)
		}
		if string(text) != tt.want {
			t.Errorf("%s of %q: %q, want %q", tt.json, tt.text, text, tt.want)
		}
	}
}

func TestAddedTokens(t *testing.T) {
	a := newAddedTokens([]addedToken{
		{ID: 1, Content: "<a>"}, {ID: 2, Content: "<a><b>"}, {ID: 3, Content: "cat", SingleWord: true},
		{ID: 4, Content: "<l>", LStrip: true}, {ID: 5, Content: "<r>", RStrip: true}, {ID: 6, Content: "\t"},
	})
	for text, want := range map[string]string{
		"":                 "",
		"x<a>y":            "x 1 y",
		"<a><b><a>":        "2 1",
		"cat concat cats,": "3 ( concat cats,)",
		"(cat)":            "( 3 )",
		"x  <l> y":         "x 4 ( y)",
		"x <r>  y":         "(x ) 5 y",
		"<a> <l>":          "1 4",
		"<r> \t.":          "5 6 .",
	} {
		var parts []string
		for at, from := 0, 0; at < len(text) || from < len(text); {
			found := a.next([]byte(text), at, from)
			if part := text[at:max(at, found.start)]; strings.Contains(part, " ") {
				parts = append(parts, "("+part+")")
			} else if part != "" {
				parts = append(parts, part)
			}
			if found.id >= 0 {
				parts = append(parts, fmt.Sprint(found.id))
			}
			at, from = found.end, found.resume
		}
		if got := strings.Join(parts, " "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Expressions that Go's package would take, with another meaning, are refused.
func TestTranslate(t *testing.T) {
	tests := []struct {
		expression, want string
		ok               bool
	}{
		{`\s+`, `[\t-\r\x{85}\p{Z}]+`, true},
		{`[^\d\s.]\S`, `[^\p{Nd}\t-\r\x{85}\p{Z}.][^\t-\r\x{85}\p{Z}]`, true},
		{`(?i:ab)\p{Han}\.\+?`, `(?i:ab)\p{Han}\.\+?`, true},
		{`\++`, `\++`, true},
		{`a++`, "", false},
		{`a?+`, "", false},
		{`\bx`, "", false},
		{`[\S]`, "", false},
		{`[^(\s|[.,])]`, `[^(\t-\r\x{85}\p{Z}|.,)]`, true},
		{`[a[[b]c]]\w`, `[abc]` + "[" + wordChars + wordsAlone + `]`, true},
		{`\p{L}+ \p{N}{1,3}?`, `\p{L}+ \p{N}{1,3}?`, true},
		{`(?i:a(b))\p{Lu}]`, `(?i:a(b))\p{Lu}]`, true},
		{`(?i:a(\p{Lu}))`, "", false},
		{`[a[^b]]`, "", false},
		{`[[:alpha:]]`, "", false},
		{`[a-[b]]`, "", false},
		{`[[a]-b]`, "", false},
		{`[a[-b]]`, "", false},
		{`[a[b-]c]`, "", false},
		{`[a`, "", false},
		{`\pL`, "", false},
		{`a{,3}`, "", false},
		{`a{2}?`, "", false},
		{`a{2}+`, "", false},
		{`[a&&b]`, "", false},
		{`[]a]`, "", false},
		{`^a`, "", false},
		{`(?m:.)`, "", false},
		{`(?=a)`, "", false},
		{`\h`, "", false},
	}
	for _, tt := range tests {
		if got, ok := translate(tt.expression); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: %s, %v, want %s, %v", tt.expression, got, ok, tt.want, tt.ok)
		}
	}
}
