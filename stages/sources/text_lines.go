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
	Shuffle   bool          `hcl:"shuffle,optional" doc:"Give each epoch's items in a new order, drawn from the experiment's seed."`
}

func textLinesOperator() stages.Operator {
	return stages.Operator{
		Block:   stages.Load,
		Type:    "text_lines",
		Summary: "Reads the lines of text files.",
		Doc: `An item is a line as opaque bytes, without its end, which is LF or CRLF. Lines that are not UTF-8 are errors; a byte order mark at a
file's start is left out. Files are read once when they are opened, to find the lines (12 bytes of memory for each), and then line by line, so
that they may be larger than the memory. Compressed files can't be read at any place: unpack them first.`,
		New: func() any { return new(TextLines) },
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
	src := new(linesSource)
	var err error
	src.fileSet, err = openFiles(ctx, s.Files, func(set *fileSet, path string, _ storage.File) (int, error) {
		r, err := set.client.Stream(ctx, path)
		if err != nil {
			return 0, err
		}
		defer r.Close()
		lines, err := findLines(r, s.KeepEmpty)
		src.lines = append(src.lines, lines)
		return len(lines.starts), err
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
}

// lineGap says how many empty lines in all were left out before an item.
type lineGap struct{ item, skipped int }

// number returns the number of an item's line, from 1.
func (x *lineIndex) number(item int) int {
	n := sort.Search(len(x.gaps), func(n int) bool { return x.gaps[n].item > item })
	if n == 0 {
		return item + 1
	}
	return item + x.gaps[n-1].skipped + 1
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
		if item := len(x.starts); skipped > 0 && (len(x.gaps) == 0 || x.gaps[len(x.gaps)-1].skipped != skipped) {
			x.gaps = append(x.gaps, lineGap{item, skipped})
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
	lines []lineIndex // of each file
}

func (s *linesSource) Classes() int { return 0 }

// Name returns the file and the line's number.
func (s *linesSource) Name(i int) string {
	file, item := s.locate(i)
	return fmt.Sprintf("%s, line %d", s.names[file], s.lines[file].number(item))
}

// Read gives line i.
func (s *linesSource) Read(c *stages.Call, i int, out *stages.Element) (int32, error) {
	file, item := s.locate(i)
	start := s.lines[file].starts[item]
	line := out.Bytes(stages.Type{Kind: stages.Opaque}, int(s.lines[file].sizes[item]))
	if len(line) == 0 {
		return 0, nil
	}
	if err := readAt(c.Context, s.files[file], line, start); err != nil {
		return 0, err
	}
	if bad := notUTF8(line); bad >= 0 {
		return 0, fmt.Errorf("byte %d of the file, 0x%02x, is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8", start+int64(bad), line[bad])
	}
	return 0, nil
}
