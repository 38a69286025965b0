package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// TextLines holds the attributes of `load "text_lines"`.
type TextLines struct {
	Files     []stages.Path `hcl:"files" doc:"The text files, or patterns (\x60\"*.txt\"\x60; \x60{0..9}\x60 counts, on web servers too). Their lines count on from one to the next."`
	KeepEmpty bool          `hcl:"keep_empty,optional" doc:"Whether an empty line is an item too."`
	Join      *stages.Bytes `hcl:"join,optional" min:"1B" max:"1GiB" doc:"Make an item of consecutive lines of a file, as many as have this many bytes together. Default: each line is an item."`
	Separator string        `hcl:"separator,optional" doc:"What stands between lines that are joined, such as the token by which a model tells documents apart."`
	Shuffle   bool          `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func textLinesOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "text_lines",
		Summary: "Reads the lines of text files.",
		Doc: `An item is a line as opaque bytes, without its end, which is LF or CRLF. Lines that are not UTF-8 are errors; a byte order mark at a
file's start is left out. Files are read once when they are opened, to find the lines (12 bytes of memory for each), and then line by line, so
that they may be larger than the memory. Compressed files can't be read at any place: unpack them first.

` + "`join`" + ` fills the sequences of a language model, which short lines would leave to padding: with it about as large as the text of a sequence (a token has
four bytes or so in English), ` + "`tokenize` and `pack`" + ` make an item one full sequence. The lines of an item are the same in every epoch, and
` + "`shuffle`" + ` moves it as a whole. No line is left out here: the last item of a file has what is left. But ` + "`pack`" + ` cuts off what an item has beyond its length,
in every epoch, and pads what has less; a larger ` + "`join`" + ` loses more and pads less.`,
		New: func() any { return &TextLines{Separator: "\n"} },
	}
}

// Validate reports files that are missing or no text.
func (s *TextLines) Validate() []stages.Problem {
	return checkFiles("files", s.Files, func(ctx context.Context, _ string, f storage.File) error {
		var start [4]byte
		prefix := start[:min(int64(len(start)), f.Size())]
		if err := readAt(ctx, f, prefix, 0); err != nil {
			return err
		}
		return plainText(prefix)
	})
}

// plainText returns what is wrong with a file that starts with prefix, of 4 bytes where it has as many.
func plainText(prefix []byte) error {
	for magic, what := range map[string]string{
		"\x1f\x8b":         "it is compressed by gzip; unpack it: gunzip --keep",
		"\x28\xb5\x2f\xfd": "it is compressed by zstd; unpack it: zstd --decompress",
		"\xff\xfe":         "it is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
		"\xfe\xff":         "it is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8",
	} {
		if bytes.HasPrefix(prefix, []byte(magic)) {
			return errors.New(what)
		}
	}
	if len(prefix) == 4 && (prefix[0] == 0) != (prefix[1] == 0) && (prefix[0] == 0) == (prefix[2] == 0) && (prefix[1] == 0) == (prefix[3] == 0) {
		return errors.New("it is in UTF-16, as every other byte is zero; convert it: iconv -f UTF-16LE (or UTF-16BE) -t UTF-8")
	}
	return nil
}

// Output returns the type of a line.
func (s *TextLines) Output() stages.Type { return stages.Type{Kind: stages.Opaque} }

// Shuffled reports whether each epoch's items come in a new order.
func (s *TextLines) Shuffled() bool { return s.Shuffle }

// Open finds the lines.
func (s *TextLines) Open(ctx context.Context, _ uint64) (stages.Source, error) {
	src := &linesSource{separator: s.Separator}
	var err error
	src.fileSet, err = openFiles(ctx, s.Files, func(set *fileSet, path string, _ storage.File) (int, error) {
		r, err := set.client.Stream(ctx, path)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		lines, err := findLines(r, s.KeepEmpty)
		if s.Join != nil {
			lines.join(int64(*s.Join))
		}
		src.lines = append(src.lines, lines)
		return lines.items(), err
	})
	if err != nil {
		return nil, err
	}
	return src, nil
}

// lineIndex says where a file's lines are, without their ends.
type lineIndex struct {
	starts []int64
	sizes  []int32
	gaps   []lineGap
	firsts []int // the first line of each item, where lines are joined
}

// lineGap says how many empty lines in all were left out before a line.
type lineGap struct{ line, skipped int }

// number returns a line's number, from 1, with those that were left out.
func (x *lineIndex) number(line int) int {
	n := sort.Search(len(x.gaps), func(n int) bool { return x.gaps[n].line > line })
	if n == 0 {
		return line + 1
	}
	return line + x.gaps[n-1].skipped + 1
}

// join makes items of lines that have size bytes together.
func (x *lineIndex) join(size int64) {
	x.firsts = []int{}
	have := size
	for line, n := range x.sizes {
		if have >= size {
			x.firsts = append(x.firsts, line)
			have = 0
		}
		have += int64(n)
	}
}

// items returns how many there are.
func (x *lineIndex) items() int {
	if x.firsts != nil {
		return len(x.firsts)
	}
	return len(x.starts)
}

// item returns the first line of item i, and the one after its last.
func (x *lineIndex) item(i int) (from, to int) {
	switch {
	case x.firsts == nil:
		return i, i + 1
	case i+1 < len(x.firsts):
		return x.firsts[i], x.firsts[i+1]
	}
	return x.firsts[i], len(x.starts)
}

// mostLine is the size in bytes from which a line is taken for no text.
const mostLine = 1 << 30

// findLines reads a file to its end.
func findLines(r io.Reader, keepEmpty bool) (lineIndex, error) {
	var x lineIndex
	start, pos, skipped := int64(0), int64(0), 0
	last := byte(0) // before pos, where that is after start
	add := func() error {
		size := pos - start
		if size > 0 && last == '\r' {
			size--
		}
		switch {
		case size > mostLine:
			return fmt.Errorf("line %d, from byte %d, is longer than %s: it is no text", len(x.starts)+skipped+1, start, stages.Bytes(mostLine))
		case size == 0 && !keepEmpty:
			skipped++
			return nil
		}
		if line := len(x.starts); skipped > 0 && (len(x.gaps) == 0 || x.gaps[len(x.gaps)-1].skipped != skipped) {
			x.gaps = append(x.gaps, lineGap{line, skipped})
		}
		x.starts, x.sizes = append(x.starts, start), append(x.sizes, int32(size))
		return nil
	}

	buffer := make([]byte, 1<<20)
	n, err := io.ReadAtLeast(r, buffer, 4)
	if bad := plainText(buffer[:min(n, 4)]); bad != nil {
		return x, bad
	}
	chunk, mark := bytes.CutPrefix(buffer[:n], []byte("\xef\xbb\xbf"))
	if mark {
		start, pos = 3, 3
	}
	for {
		for len(chunk) > 0 {
			k := bytes.IndexByte(chunk, '\n')
			if k < 0 {
				pos += int64(len(chunk))
				last = chunk[len(chunk)-1]
				break
			}
			if k > 0 {
				pos += int64(k)
				last = chunk[k-1]
			}
			if err := add(); err != nil {
				return x, err
			}
			pos++
			start, chunk = pos, chunk[k+1:]
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return x, fmt.Errorf("looking for lines from byte %d: %w", pos, withoutPath(err))
		}
		n, err = r.Read(buffer)
		chunk = buffer[:n]
	}
	if pos > start {
		return x, add()
	}
	return x, nil
}

// linesSource reads lines.
type linesSource struct {
	*fileSet
	lines     []lineIndex // of each file
	separator string      // between joined ones
}

func (s *linesSource) Classes() int { return 0 }

// Name returns the file and the line's number, or those of the first and the last.
func (s *linesSource) Name(i int) string {
	file, i := s.locate(i)
	x := &s.lines[file]
	from, to := x.item(i)
	if to-from == 1 {
		return fmt.Sprintf("%s, line %d", s.names[file], x.number(from))
	}
	return fmt.Sprintf("%s, lines %d to %d", s.names[file], x.number(from), x.number(to-1))
}

// Read gives the lines of item i.
func (s *linesSource) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	file, i := s.locate(i)
	x := &s.lines[file]
	from, to := x.item(i)
	start, end := x.starts[from], x.starts[to-1]+int64(x.sizes[to-1])
	size := 0 // of the item, if it is made of several lines
	if to-from > 1 {
		size = (to - from - 1) * len(s.separator)
		for _, n := range x.sizes[from:to] {
			size += int(n)
		}
	}
	buffer := out.Bytes(stages.Type{Kind: stages.Opaque}, size+int(end-start))
	joined, text := buffer[:0:size], buffer[size:]
	if len(text) == 0 {
		return 0, nil
	}
	if err := readAt(c.Context, s.files[file], text, start); err != nil {
		return 0, err
	}
	for k := from; k < to; k++ {
		line := text[x.starts[k]-start:][:x.sizes[k]]
		if bad := notUTF8(line); bad >= 0 {
			return 0, fmt.Errorf("byte %d of the file, 0x%02x, is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8", x.starts[k]+int64(bad), line[bad])
		}
		if size > 0 {
			if k > from {
				joined = append(joined, s.separator...)
			}
			joined = append(joined, line...)
		}
	}
	if size > 0 {
		out.U8 = buffer[:size]
	}
	return 0, nil
}
