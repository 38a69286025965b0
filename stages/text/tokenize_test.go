package text

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pipectl/pipectl/stages"
)

// expected is what testdata/make_goldens.py computed.
type expected struct {
	Texts  []string
	IDs    map[string][][]int32 // by tokenizer
	O200K  string               // the expression of OpenAI's vocabulary of this name
	Splits [][]any              // a text, and the lengths of its pieces by GPT-2's, Llama 3's and Qwen 2's expressions and o200k's
}

func golden(tb testing.TB) (e expected) {
	tb.Helper()
	if err := json.Unmarshal(file(tb, "expected.json"), &e); err != nil {
		tb.Fatal(err)
	}
	return e
}

func file(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func path(name string) *stages.Path {
	p := stages.Path(filepath.Join("testdata", name))
	return &p
}

// spec returns the defaults for a tokenizer of testdata.
func spec(name string) *Tokenize {
	s := tokenizeOperator().New().(*Tokenize)
	if name == "gpt2" {
		s.Vocab, s.Merges = path("vocab.json"), path("merges.txt")
	} else {
		s.Tokenizer = path(name + ".json")
	}
	return s
}

func newStage(tb testing.TB, spec stages.StageSpec) stages.Stage {
	tb.Helper()
	s, err := spec.New()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func line(text string) *stages.Element {
	return &stages.Element{Type: stages.Type{Kind: stages.Opaque}, U8: []byte(text)}
}

func TestTokenize(t *testing.T) {
	want := golden(t)
	if len(want.IDs) != 6 {
		t.Fatalf("%d tokenizers", len(want.IDs))
	}
	for name, ids := range want.IDs {
		s := spec(name)
		if p := s.Validate(); p != nil {
			t.Fatal(name, p)
		}
		stage, out := newStage(t, s), new(stages.Element)
		for range 2 { // the second time from the cache
			for i, text := range want.Texts {
				if err := stage.Process(new(stages.Call), line(text), out); err != nil {
					t.Fatalf("%s of %q: %v", name, text, err)
				}
				if out.Type != (stages.Type{Kind: stages.Tokens, Shape: stages.Shape{len(ids[i])}}) || !slices.Equal(out.I32, ids[i]) {
					t.Errorf("%s of %q: %v\n got %v\nwant %v", name, text, out.Type, out.I32, ids[i])
				}
			}
		}
	}
}

// Special tokens can be left out, and they count for the greatest length.
func TestTokenizeLength(t *testing.T) {
	three, ten := 3, 10
	const text = "Alice was beginning"
	for _, tt := range []struct {
		name    string
		special bool
		length  *int
	}{
		{"clip", true, nil}, {"clip", false, nil}, {"clip", true, &three}, {"clip", false, &three}, {"clip", true, &ten}, {"llama3", true, &three}, {"gpt2", true, &three},
	} {
		whole := spec(tt.name)
		whole.AddSpecialTokens = false
		all := new(stages.Element)
		if err := newStage(t, whole).Process(new(stages.Call), line(text), all); err != nil {
			t.Fatal(err)
		}
		s := spec(tt.name)
		s.AddSpecialTokens, s.MaxLength = tt.special, tt.length
		var before, after []int32
		if tt.special && tt.name == "clip" {
			before, after = []int32{573}, []int32{572}
		} else if tt.special && tt.name == "llama3" {
			before = []int32{377}
		}
		want := all.I32
		if tt.length != nil {
			want = want[:min(len(want), *tt.length-len(before)-len(after))]
		}
		want = slices.Concat(before, want, after)
		out := new(stages.Element)
		if err := newStage(t, s).Process(new(stages.Call), line(text), out); err != nil || !slices.Equal(out.I32, want) {
			t.Errorf("%s with special tokens %v and length %v: %v with error %v, want %v", tt.name, tt.special, tt.length, out.I32, err, want)
		}
	}
}

func TestTokenizeValidate(t *testing.T) {
	one, none := 1, stages.Path("testdata/none.json")
	write := func(content string) *stages.Path {
		p := stages.Path(filepath.Join(t.TempDir(), "tokenizer.json"))
		if err := os.WriteFile(string(p), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return &p
	}
	clip := spec("clip")
	clip.MaxLength = &one
	with := func(vocab, merges, tokenizer *stages.Path) *Tokenize {
		s := tokenizeOperator().New().(*Tokenize)
		s.Vocab, s.Merges, s.Tokenizer = vocab, merges, tokenizer
		return s
	}
	model := func(rest string) *stages.Path {
		return write(`{"model":{"type":"BPE","vocab":{"a":0,"b":1},"merges":[]},` + rest + `}`)
	}
	tests := []struct {
		spec *Tokenize
		want string
	}{
		{with(nil, nil, nil), "{ No tokenizer Give tokenizer, the path of a tokenizer.json, or vocab and merges, those of GPT-2's files. false}"},
		{with(path("vocab.json"), nil, nil), "{ No tokenizer Give tokenizer, the path of a tokenizer.json, or vocab and merges, those of GPT-2's files. false}"},
		{with(path("vocab.json"), path("merges.txt"), path("clip.json")), "{tokenizer Two tokenizers Give tokenizer, or vocab and merges, but not both. false}"},
		{clip, "{max_length No place for text With add_special_tokens max_length = 1 leaves no place beside 2 special tokens. false}"},
		{with(nil, nil, &none), "{tokenizer File not found It can't be used: stat testdata/none.json: no such file or directory. false}"},
		{with(&none, path("merges.txt"), nil), "{vocab File not found It can't be used: stat testdata/none.json: no such file or directory. false}"},
		{with(path("merges.txt"), path("merges.txt"), nil), "{vocab Unreadable tokenizer It can't be used: reading vocab: the vocabulary: it isn't JSON, at byte 1: invalid character '#' looking for beginning of value. false}"},
		{with(path("vocab.json"), path("corpus.txt"), nil), `{vocab Unreadable tokenizer It can't be used: reading merges: line 1: "Alice was`},
		{with(nil, nil, write(`{"model":{"type":"Unigram","vocab":[["a",-1]]}}`)), "{tokenizer Unsupported tokenizer It can't be used: reading FOLDER: the model Unigram isn't supported. false}"},
		{with(nil, nil, write(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`)), `{tokenizer Unreadable tokenizer It can't be used: reading FOLDER: merge 1 joins "a" and "b", which aren't both in the vocabulary. false}`},
		{with(nil, nil, write(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`)), `{tokenizer Unreadable tokenizer It can't be used: reading FOLDER: merge 1 makes "aa", which isn't in the vocabulary. false}`},
		{with(nil, nil, write(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}}`)), "{tokenizer Unsupported tokenizer It can't be used: reading FOLDER: dropout, which makes a tokenizer random, isn't supported. false}"},
		{with(nil, nil, model(`"normalizer":{"type":"BertNormalizer"}`)), "{tokenizer Unsupported tokenizer It can't be used: reading FOLDER: the normalizer BertNormalizer isn't supported. false}"},
		{with(nil, nil, model(`"normalizer":{}`)), "{tokenizer Unreadable tokenizer It can't be used: reading FOLDER: a normalizer has no type. false}"},
		{with(nil, nil, model(`"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"UnicodeScripts"}]}`)), "{tokenizer Unsupported tokenizer It can't be used: reading FOLDER: the pre_tokenizer UnicodeScripts isn't supported. false}"},
		{with(nil, nil, model(`"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a(?=b)"},"behavior":"Isolated"}`)), "{tokenizer Unsupported tokenizer It can't be used: reading FOLDER: the regular expression a(?=b) isn't supported. false}"},
		{with(nil, nil, model(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}}]}`)), `{tokenizer Unreadable tokenizer It can't be used: reading FOLDER: the template's special token "x" isn't among its special_tokens. false}`},
	}
	for _, tt := range tests {
		got := tt.spec.Validate()
		if len(got) != 1 {
			t.Errorf("%v, want %s", got, tt.want)
			continue
		}
		text := fmt.Sprint(got[0])
		if tt.spec.Tokenizer != nil {
			text = strings.ReplaceAll(text, string(*tt.spec.Tokenizer), "FOLDER")
			tt.want = strings.ReplaceAll(tt.want, "testdata/none.json", "FOLDER")
		}
		if !strings.HasPrefix(text, tt.want) {
			t.Errorf("\n got %s\nwant %s", text, tt.want)
		}
	}
}

func TestTokenizeErrors(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"gpt2", "ok \xff", "the text isn't UTF-8 at byte 3: convert it, or load text"},
		{"gpt2", "\xe4\xbd", "the text isn't UTF-8 at byte 0: convert it, or load text"},
	}
	for _, tt := range tests {
		err := newStage(t, spec(tt.name)).Process(new(stages.Call), line(tt.text), new(stages.Element))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s of %q: error %v, want %s", tt.name, tt.text, err, tt.want)
		}
	}
	small, err := parseTokenizer([]byte(`{"model":{"dropout":null,"unk_token":"","end_of_word_suffix":null,"vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}}`), true)
	if err != nil {
		t.Fatal(err)
	}
	const want = `the character 'é' isn't in the vocabulary, and there is no unk_token`
	if _, err := newWorker(small).encode(nil, []byte("abé")); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTokenizeOutput(t *testing.T) {
	s := spec("gpt2")
	for in, want := range map[stages.Type]string{
		{Kind: stages.Encoded}: "int32 tokens [?] <nil>",
		{Kind: stages.Opaque}:  "int32 tokens [?] <nil>",
		{}:                     "int32 tokens [?] <nil>",
		stages.ImageType(2, 3): "unknown It takes text, and gets uint8 image 2×3×3. Remove it, or load text.",
	} {
		out, err := s.Output(in)
		if got := fmt.Sprint(out, " ", err); got != want {
			t.Errorf("of %v: %s, want %s", in, got, want)
		}
	}
}

// Unknown characters are a token, each or in a row.
func TestUnknown(t *testing.T) {
	for fuse, want := range map[string][]int32{"false": {2, 0, 0, 1, 0}, "true": {2, 0, 1, 0}} {
		tok, err := parseTokenizer([]byte(`{"model":{"unk_token":"?","fuse_unk":`+fuse+`,"vocab":{"?":0,"b":1,"ab":2,"a":3},"merges":[["a","b"]]}}`), true)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := newWorker(tok).encode(nil, []byte("abéxbß")); err != nil || !slices.Equal(got, want) {
			t.Errorf("fuse_unk = %s: %v with error %v, want %v", fuse, got, err, want)
		}
	}
}

// A worker gives the same whatever it did before, doesn't change the text, and allocates nothing for words it knows.
func TestTokenizeSteady(t *testing.T) {
	for _, name := range []string{"gpt2", "llama3", "qwen2", "llama2"} {
		stage, out := newStage(t, spec(name)), new(stages.Element)
		in := line(string(file(t, "corpus.txt")))
		run := func() {
			if err := stage.Process(new(stages.Call), in, out); err != nil {
				t.Fatal(err)
			}
		}
		run()
		first := slices.Clone(out.I32)
		run()
		if !slices.Equal(out.I32, first) || string(in.U8) != string(file(t, "corpus.txt")) {
			t.Errorf("%s isn't the same the second time", name)
		}
		if n := testing.AllocsPerRun(5, run); n > 1 { // the Call
			t.Errorf("%s allocates %v times an item", name, n)
		}
	}
}

// Stages of one registry share what they read.
func TestTokenizeShared(t *testing.T) {
	op := tokenizeOperator()
	var read []*tokenizer
	for range 2 {
		s := op.New().(*Tokenize)
		s.Tokenizer = path("clip.json")
		read = append(read, newStage(t, s).(*tokenizing).tokenizer)
	}
	if read[0] != read[1] {
		t.Error("the file is read twice")
	}
}

// Merging by a queue gives what merging by definition does, for words of any length.
func TestMerge(t *testing.T) {
	tok, err := parseGPT2(file(t, "vocab.json"), file(t, "merges.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SliceOfN(rapid.SampledFrom([]byte(" theandisigr")), 1, 200).Draw(t, "word")
		e := encoder{bpe: tok.model}
		got, err := e.encode(nil, word)
		if err != nil {
			t.Fatal(err)
		}
		var want []int32
		for _, b := range word {
			want = append(want, tok.model.bytes[0][0][b])
		}
		for {
			best, at := merge{rank: 1 << 30}, -1
			for i := 1; i < len(want); i++ {
				if m, ok := tok.model.merges[pair{want[i-1], want[i]}]; ok && m.rank < best.rank {
					best, at = m, i
				}
			}
			if at < 0 {
				break
			}
			want = slices.Replace(want, at-1, at+1, best.token)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

// A file that doesn't fit is an error, and text that isn't one too; neither ends in a panic.
func FuzzTokenizer(f *testing.F) {
	for _, name := range []string{"clip", "llama2", "llama3", "qwen2"} {
		var small map[string]any // with short models, for the fuzzer's speed
		if err := json.Unmarshal(file(f, name+".json"), &small); err != nil {
			f.Fatal(err)
		}
		m := small["model"].(map[string]any)
		m["vocab"], m["merges"] = map[string]int{"a": 0, "b": 1, "ab": 2, "<unk>": 3, "Ġ": 4}, []string{"a b"}
		data, err := json.Marshal(small)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, "ab <|end|> 'S  12\n x")
	}
	f.Fuzz(func(t *testing.T, tokenizer []byte, text string) {
		tok, err := parseTokenizer(tokenizer, true)
		if err != nil {
			return
		}
		_, _ = newWorker(tok).encode(nil, []byte(text))
	})
}

func FuzzEncode(f *testing.F) {
	for _, text := range golden(f).Texts {
		f.Add([]byte(text))
	}
	f.Add([]byte("a\xff"))
	workers := map[string]*worker{}
	for name := range golden(f).IDs {
		t, err := spec(name).load()
		if err != nil {
			f.Fatal(err)
		}
		workers[name] = newWorker(t)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, w := range workers {
			ids, err := w.encode(nil, text)
			if err != nil {
				if invalid(text) < 0 {
					t.Errorf("%s of %q: %v", name, text, err)
				}
				continue
			}
			if name == "gpt2" { // where the tokens are the text's bytes
				var back []byte
				for _, id := range ids {
					back = append(back, bytesOf(w.model, id)...)
				}
				if string(back) != string(text) {
					t.Errorf("%q became %q", text, back)
				}
			}
		}
	})
}

// bytesOf returns the bytes that a token of a byte-level model stands for.
func bytesOf(m *bpe, id int32) (out []byte) {
	for token, i := range m.vocab {
		if i != id {
			continue
		}
		if token == endOfText {
			return []byte(token)
		}
		for _, r := range token {
			out = append(out, byte(slices.Index(m.chars[:], r)))
		}
	}
	return out
}

func BenchmarkTokenize(b *testing.B) {
	corpus := string(file(b, "corpus.txt"))
	for _, bb := range []struct{ name, tokenizer, text string }{
		{"gpt2", "gpt2", corpus}, {"llama3", "llama3", corpus}, {"llama2", "llama2", corpus},
		{"word of 10 kB", "gpt2", strings.Repeat("conversation", 833)}, {"word of 1 MB", "gpt2", strings.Repeat("conversation", 83_333)},
	} {
		b.Run(bb.name, func(b *testing.B) {
			stage, out, in := newStage(b, spec(bb.tokenizer)), new(stages.Element), line(bb.text)
			c := new(stages.Call)
			b.SetBytes(int64(len(in.U8)))
			b.ReportAllocs()
			for b.Loop() {
				if err := stage.Process(c, in, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
