package text

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sync"
	"time"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// Tokenize holds the attributes of `prepare "tokenize"`.
type Tokenize struct {
	Tokenizer        *stages.Path `hcl:"tokenizer,optional" doc:"A tokenizer.json of Hugging Face. Give it, or \x60vocab\x60 and \x60merges\x60."`
	Vocab            *stages.Path `hcl:"vocab,optional" doc:"A vocabulary as GPT-2's vocab.json (encoder.json), a JSON object of tokens with their ids."`
	Merges           *stages.Path `hcl:"merges,optional" doc:"The merges that belong to it, as GPT-2's merges.txt (vocab.bpe), two tokens a line."`
	AddSpecialTokens bool         `hcl:"add_special_tokens,optional" doc:"Add the special tokens that \x60tokenizer\x60 puts around every sequence, such as that of its beginning."`
	MaxLength        *int         `hcl:"max_length,optional" min:"1" doc:"Cut off the end of what is longer, so that it has as many tokens with the special ones that are added. Default: no limit."`

	files *tokenizers // that stages of the same registry have read
}

func tokenizeOperator() stages.Operator {
	files := new(tokenizers)
	return stages.Operator{
		Block:   stages.Prepare,
		Type:    "tokenize",
		Summary: "Splits text into tokens by byte-pair encoding.",
		Doc: `The ids are those of Hugging Face's tokenizers for the same file. Of a tokenizer.json it takes the model BPE with all its options but dropout; the
normalizers NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace and Sequence; the pre-tokenizers ByteLevel, Split, Whitespace,
WhitespaceSplit, Digits, Punctuation, Metaspace and Sequence; the post-processors TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and
Sequence; and added tokens with all their options. That covers GPT-2 and 4, RoBERTa, CLIP, BLOOM, Llama 2 and 3, Qwen 2 and 3 and their like. Whatever else a file has is refused before the run, by its
name. Regular expressions may be any that Go has too, and may end with ` + "`|\\s+(?!\\S)|\\s+`" + ` as these models' do; other look-around, boundaries and possessive
quantifiers but GPT-4's are refused. Truncation and padding that a tokenizer.json states don't count; ` + "`max_length` and `pack`" + ` do the same. Characters are
classed and normalised as in Unicode 15. The library has older and newer versions for its parts, so that ids may differ for characters that came after Unicode 8.

` + "`vocab` and `merges`" + ` are read as GPT-2's: byte by byte, split by its regular expression, with ` + "`<|endoftext|>`" + ` as a special token.

It takes text in UTF-8 from any source of bytes, and gives int32 tokens, as many as the text has: ` + "`pack`" + ` makes sequences of one length of them. Text
that isn't UTF-8 is an error, and so is a character that the vocabulary lacks where it has no token for unknown ones. Each worker remembers the tokens of
up to 65,536 words.`,
		New: func() any { return &Tokenize{AddSpecialTokens: true, files: files} },
	}
}

// Validate reports files that are missing or no tokenizer's, and what isn't supported in them.
func (s *Tokenize) Validate() []stages.Problem {
	switch {
	case s.Tokenizer != nil && (s.Vocab != nil || s.Merges != nil):
		return []stages.Problem{{Attribute: "tokenizer", Summary: "Two tokenizers", Detail: "Give tokenizer, or vocab and merges, but not both."}}
	case s.Tokenizer == nil && (s.Vocab == nil || s.Merges == nil):
		return []stages.Problem{{Summary: "No tokenizer", Detail: "Give tokenizer, the path of a tokenizer.json, or vocab and merges, those of GPT-2's files."}}
	}
	t, err := s.load()
	if err == nil {
		if _, err := s.limit(t); err != nil {
			return []stages.Problem{{Attribute: "max_length", Summary: "No place for text", Detail: "With add_special_tokens " + err.Error() + "."}}
		}
		return nil
	}
	p := stages.Problem{Attribute: "tokenizer", Summary: "Unreadable tokenizer", Detail: fmt.Sprintf("It can't be used: %v.", err)}
	if s.Tokenizer == nil {
		p.Attribute = "vocab"
	}
	if u := unsupported(""); errors.As(err, &u) {
		p.Summary = "Unsupported tokenizer"
	}
	if errors.Is(err, fs.ErrNotExist) {
		p.Summary = "File not found"
	}
	return []stages.Problem{p}
}

// Output returns the type of tokens, as many as there are.
func (s *Tokenize) Output(in stages.Type) (stages.Type, error) {
	switch in.Kind {
	case stages.Encoded, stages.Opaque, stages.Unknown:
		return stages.Type{Kind: stages.Tokens}, nil
	}
	return stages.Type{}, refuse("text", in, "Remove it, or load text.")
}

// New makes an instance for one worker.
func (s *Tokenize) New() (stages.Stage, error) {
	t, err := s.load()
	if err != nil {
		return nil, err
	}
	limit, err := s.limit(t)
	if err != nil {
		return nil, err
	}
	return &tokenizing{worker: newWorker(t), limit: limit}, nil
}

// limit returns how many tokens a text may have without the special ones that are added.
func (s *Tokenize) limit(t *tokenizer) (int, error) {
	if s.MaxLength == nil {
		return math.MaxInt, nil
	}
	special := len(t.before) + len(t.after)
	if special > 0 && *s.MaxLength <= special {
		return 0, fmt.Errorf("max_length = %d leaves no place beside %d special tokens", *s.MaxLength, special)
	}
	return *s.MaxLength - special, nil
}

type tokenizing struct {
	*worker
	limit int // of tokens without the special ones
	ids   []int32
}

func (t *tokenizing) Process(_ *stages.Call, in, out *stages.Element) error {
	var err error
	if t.ids, err = t.encode(t.ids[:0], in.U8); err != nil {
		return err
	}
	ids := t.ids[:min(len(t.ids), t.limit)]
	dst := resize(out, len(t.before)+len(ids)+len(t.after))
	n := copy(dst, t.before)
	n += copy(dst[n:], ids)
	copy(dst[n:], t.after)
	return nil
}

// tokenizers are the tokenizers that have been read, by what they are made of, so that all workers share one.
type tokenizers struct {
	mu   sync.Mutex
	read map[source]*tokenizer
}

// source says what a tokenizer is made of.
type source struct {
	tokenizer, vocab, merges stages.Path
	special                  bool
}

// load reads the files, unless another stage of the same registry did.
func (s *Tokenize) load() (*tokenizer, error) {
	key := source{special: s.AddSpecialTokens}
	if s.Tokenizer != nil {
		key.tokenizer = *s.Tokenizer
	} else {
		key.vocab, key.merges = *s.Vocab, *s.Merges
	}
	s.files.mu.Lock()
	defer s.files.mu.Unlock()
	if t := s.files.read[key]; t != nil {
		return t, nil
	}
	t, err := key.parse()
	if err != nil {
		return nil, err
	}
	if s.files.read == nil {
		s.files.read = map[source]*tokenizer{}
	}
	s.files.read[key] = t
	return t, nil
}

func (s source) parse() (*tokenizer, error) {
	if s.tokenizer == "" {
		vocab, err := readFile(s.vocab)
		if err != nil {
			return nil, err
		}
		merges, err := readFile(s.merges)
		if err != nil {
			return nil, err
		}
		return parseGPT2(vocab, merges)
	}
	data, err := readFile(s.tokenizer)
	if err != nil {
		return nil, err
	}
	t, err := parseTokenizer(data, s.special)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", storage.Redacted(string(s.tokenizer)), err)
	}
	return t, nil
}

// readFile reads a whole file, local or remote.
func readFile(path stages.Path) (data []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for one on a server
	defer cancel()
	c := storage.New()
	defer c.Close()
	err = c.ReadFile(ctx, string(path), func(size int64) ([]byte, error) {
		if size > maxFile {
			return nil, fmt.Errorf("%s is too large for a tokenizer: it has %s", storage.Redacted(string(path)), stages.Bytes(size))
		}
		data = make([]byte, size)
		return data, nil
	})
	return data, err
}

// maxFile is the size in bytes up to which a file may be a tokenizer's.
const maxFile = 1 << 30
