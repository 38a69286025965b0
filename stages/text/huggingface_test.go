package text

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
)

// The ids are those of Hugging Face's library, whatever parts a tokenizer.json has. testdata/make_ids.mjs made them.
func TestHuggingFace(t *testing.T) {
	var want struct {
		Texts []string
		Cases []struct {
			Name    string
			Model   string         // the file whose model it has,
			Options map[string]any // with these
			File    map[string]any // the other parts
			IDs     [][]int32      // of each text
		}
	}
	if err := json.Unmarshal(file(t, "ids.json"), &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Texts) != 13 || len(want.Cases) != 80 {
		t.Fatalf("%d texts, %d cases", len(want.Texts), len(want.Cases))
	}
	for _, c := range want.Cases {
		var base struct{ Model map[string]any }
		if err := json.Unmarshal(file(t, c.Model+".json"), &base); err != nil {
			t.Fatal(err)
		}
		maps.Copy(base.Model, c.Options)
		c.File["model"] = base.Model
		data, err := json.Marshal(c.File)
		if err != nil {
			t.Fatal(err)
		}
		tok, err := parseTokenizer(data, true)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		w := newWorker(tok)
		for i, text := range want.Texts {
			ids, err := w.encode(nil, []byte(text))
			if ids = slices.Concat(tok.before, ids, tok.after); err != nil || !slices.Equal(ids, c.IDs[i]) {
				t.Errorf("%s of %q: error %v\n got %v\nwant %v", c.Name, text, err, ids, c.IDs[i])
			}
		}
	}
}

// What isn't supported is refused by its name.
func TestUnsupported(t *testing.T) {
	const cls = `{"type":"BertProcessing","sep":["b",1],"cls":["a",0]}`
	tests := []struct{ file, want string }{
		{`"normalizer":{"type":"ByteLevel"}`, "the normalizer ByteLevel"},
		{`"normalizer":{"type":"Nmt"}`, "the normalizer Nmt"},
		{`"normalizer":{"type":"Precompiled","precompiled_charsmap":""}`, "the normalizer Precompiled"},
		{`"normalizer":{"type":"Replace","pattern":{"Regex":"\\bx"},"content":""}`, `the regular expression \bx`},
		{`"pre_tokenizer":{"type":"BertPreTokenizer"}`, "the pre_tokenizer BertPreTokenizer"},
		{`"pre_tokenizer":{"type":"CharDelimiterSplit","delimiter":"x"}`, "the pre_tokenizer CharDelimiterSplit"},
		{`"pre_tokenizer":{"type":"Punctuation","behavior":"MergedWithNext"}`, "the pre_tokenizer Punctuation with the behavior MergedWithNext"},
		{`"pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Gone"}`, "the pre_tokenizer Split with the behavior Gone"},
		{`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"(?<=x)y|\\s+(?!\\S)|\\s+"},"behavior":"Isolated"}`, `the regular expression (?<=x)y|\s+(?!\S)|\s+`},
		{`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Digits"}]}`, "the pre_tokenizer Digits after ByteLevel"},
		{`"post_processor":{"type":"Sequence","processors":[` + cls + `,` + cls + `]}`, "a second post_processor that adds special tokens"},
		{`"post_processor":{"type":"Other"}`, "the post_processor Other"},
	}
	for _, tt := range tests {
		data := `{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]},` + tt.file + `}`
		if _, err := parseTokenizer([]byte(data), true); err == nil || err.Error() != tt.want+" isn't supported" {
			t.Errorf("%s: error %v, want %s isn't supported", tt.file, err, tt.want)
		}
	}
	fallback := `{"model":{"byte_fallback":true,"vocab":{"a":0,"<0x00>":1},"merges":[]}}`
	if _, err := parseTokenizer([]byte(fallback), true); err == nil || !strings.Contains(err.Error(), "byte_fallback with 1 of the tokens") {
		t.Errorf("error %v", err)
	}
}
