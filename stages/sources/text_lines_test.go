package sources

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

func TestTextLines(t *testing.T) {
	dir := folder(t, map[string]string{
		"unix":    "one\ntwo\n",
		"windows": "one\r\n\r\ntwo\r\n",
		"no end":  "one\n\n\n two\n\nné",
		"mark":    "\xef\xbb\xbfone\r\rtwo\r",
		"short":   "a",
		"empty":   "",
	})
	for _, tt := range []struct {
		files []string
		keep  bool
		want  []string // line number, text
	}{
		{[]string{"unix"}, false, []string{"unix 1: one", "unix 2: two"}},
		{[]string{"windows"}, false, []string{"windows 1: one", "windows 3: two"}},
		{[]string{"windows"}, true, []string{"windows 1: one", "windows 2: ", "windows 3: two"}},
		{[]string{"no end"}, false, []string{"no end 1: one", "no end 4:  two", "no end 6: né"}},
		{[]string{"no end"}, true, []string{"no end 1: one", "no end 2: ", "no end 3: ", "no end 4:  two", "no end 5: ", "no end 6: né"}},
		{[]string{"mark", "empty", "short"}, false, []string{"mark 1: one\r\rtwo", "short 1: a"}},
		{[]string{"unix", "windows"}, false, []string{"unix 1: one", "unix 2: two", "windows 1: one", "windows 3: two"}},
	} {
		t.Run(strings.Join(tt.files, " ")+fmt.Sprint(tt.keep), func(t *testing.T) {
			spec := &TextLines{Files: in(dir, tt.files...), KeepEmpty: tt.keep}
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v", got)
			}
			var want []item
			for _, w := range tt.want {
				place, text, _ := strings.Cut(w, ": ")
				cut := strings.LastIndex(place, " ")
				want = append(want, item{Name: filepath.Join(dir, place[:cut]) + ", line" + place[cut:], Type: "opaque bytes [?]", U8: text})
			}
			if diff := cmp.Diff(want, items(t, opened(t, spec))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Lines are joined within their file up to the line that reaches a size, and none is left out.
func TestTextLinesJoin(t *testing.T) {
	dir := folder(t, map[string]string{
		"poem":  "\xef\xbb\xbfone\r\ntwo\n\nthree\r\n\n\nfour!\nn\xc3\xa9\nx",
		"short": "a",
		"bad":   "one\r\nn\xe9\n",
	})
	for _, tt := range []struct {
		join      stages.Bytes
		separator string
		keep      bool
		want      []string // lines, text
	}{
		{1, "\n", false, []string{"poem, line 1: one", "poem, line 2: two", "poem, line 4: three", "poem, line 7: four!", "poem, line 8: né", "poem, line 9: x", "short, line 1: a"}},
		{6, "\n", false, []string{"poem, lines 1 to 2: one\ntwo", "poem, lines 4 to 7: three\nfour!", "poem, lines 8 to 9: né\nx", "short, line 1: a"}},
		{7, "<|end|>", false, []string{"poem, lines 1 to 4: one<|end|>two<|end|>three", "poem, lines 7 to 8: four!<|end|>né", "poem, line 9: x", "short, line 1: a"}},
		{7, "", true, []string{"poem, lines 1 to 4: onetwothree", "poem, lines 5 to 8: four!né", "poem, line 9: x", "short, line 1: a"}},
		{100, " ", true, []string{"poem, lines 1 to 9: one two  three   four! né x", "short, line 1: a"}},
	} {
		spec := textLinesOperator().New().(*TextLines)
		spec.Files, spec.Join, spec.Separator, spec.KeepEmpty = in(dir, "poem", "short"), &tt.join, tt.separator, tt.keep
		var want []item
		for _, w := range tt.want {
			place, text, _ := strings.Cut(w, ": ")
			want = append(want, item{Name: filepath.Join(dir, place), Type: "opaque bytes [?]", U8: text})
		}
		if diff := cmp.Diff(want, items(t, opened(t, spec))); diff != "" {
			t.Errorf("join = %d: %s", tt.join, diff)
		}
	}
	size := stages.Bytes(100)
	src := opened(t, &TextLines{Files: in(dir, "bad"), Join: &size})
	if got, want := readError(t, src, 0), "byte 6 of the file, 0xe9, is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8"; got != want {
		t.Errorf("Read: %q, want %q", got, want)
	}
}

// TestFindLines reads a file in pieces of every size, so that each line end is cut somewhere.
func TestFindLines(t *testing.T) {
	text := "ab\r\n\r\n\nc\r\rd\r\n" + strings.Repeat("x", 3000) + "\r\nend"
	want, err := findLines(strings.NewReader(text), false)
	if err != nil {
		t.Fatal(err)
	}
	got, err := findLines(iotest.OneByteReader(strings.NewReader(text)), false)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(lineIndex{}, lineGap{})); diff != "" || err != nil {
		t.Errorf("byte by byte: error %v, %s", err, diff)
	}
	if diff := cmp.Diff(lineIndex{[]int64{0, 7, 13, 3015}, []int32{2, 4, 3000, 3}, []lineGap{{1, 2}}, nil}, want, cmp.AllowUnexported(lineIndex{}, lineGap{})); diff != "" {
		t.Error(diff)
	}
	if _, err := findLines(iotest.TimeoutReader(strings.NewReader(text)), false); err == nil {
		t.Error("a reader's error is lost")
	}
}

func TestTextLinesProblems(t *testing.T) {
	dir := folder(t, map[string]string{"a.gz": "\x1f\x8b\x08", "a.zst": "\x28\xb5\x2f\xfd", "le": "\xff\xfea\x00", "be": "\xfe\xff\x00a", "latin1": "one\nn\xe9\n"})
	var want []stages.Problem
	for _, w := range [][2]string{
		{"a.gz", "it is compressed by gzip; unpack it: gunzip --keep"},
		{"a.zst", "it is compressed by zstd; unpack it: zstd --decompress"},
		{"le", "it is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
		{"be", "it is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8"},
	} {
		spec := &TextLines{Files: in(dir, w[0])}
		want = []stages.Problem{{Attribute: "files", Summary: "Unusable file", Detail: `The file "DIR/` + w[0] + `" can't be used: ` + w[1] + "."}}
		if diff := cmp.Diff(want, problems(spec, dir)); diff != "" {
			t.Error(diff)
		}
		if _, err := spec.Open(t.Context(), 1); strings.ReplaceAll(text(err), dir, "DIR") != "reading DIR/"+w[0]+": "+w[1] {
			t.Errorf("Open: %v", err)
		}
	}
	want = []stages.Problem{{Attribute: "files", Summary: "File not found", Detail: `There is no file "DIR/none".`}}
	if diff := cmp.Diff(want, problems(&TextLines{Files: in(dir, "none")}, dir)); diff != "" {
		t.Error(diff)
	}

	src := opened(t, &TextLines{Files: in(dir, "latin1")})
	if got, want := readError(t, src, 1), "byte 5 of the file, 0xe9, is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8"; got != want {
		t.Errorf("Read: %q, want %q", got, want)
	}
	empty := written(t, "empty", "\n\n")
	if _, err := (&TextLines{Files: []stages.Path{empty}}).Open(t.Context(), 1); text(err) != "there are no items in "+string(empty) {
		t.Errorf("Open: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "latin1"), 2); err != nil {
		t.Fatal(err)
	}
	if got, want := readError(t, src, 0), "the file ends at byte 2, within the 3 bytes from 0 that should be there: it is truncated"; got != want {
		t.Errorf("Read: %q, want %q", got, want)
	}
}

func FuzzTextLines(f *testing.F) {
	for _, seed := range []string{"a\nb\r\n\nc", "\xef\xbb\xbf\r", "\xff\xfe", "\n\n", "a\r\r\n\xe9"} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, data string, keep bool) {
		x, err := findLines(strings.NewReader(data), keep)
		if err != nil {
			return
		}
		var want []string
		numbers := strings.Split(strings.TrimPrefix(data, "\xef\xbb\xbf"), "\n")
		for i, line := range numbers {
			last := i == len(numbers)-1
			if last && line == "" {
				continue
			}
			if line = strings.TrimSuffix(line, "\r"); keep || line != "" {
				want = append(want, fmt.Sprintf("%d %s", i+1, line))
			}
		}
		var got []string
		for i, start := range x.starts {
			got = append(got, fmt.Sprintf("%d %s", x.number(i), data[start:][:x.sizes[i]]))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkTextLines(b *testing.B) {
	path := written(b, "lines.txt", strings.Repeat(strings.Repeat("x", 99)+"\n", 10000))
	b.Run("read", func(b *testing.B) { benchmarkSource(b, &TextLines{Files: []stages.Path{path}}) })
	join := stages.Bytes(4096)
	b.Run("join", func(b *testing.B) {
		benchmarkSource(b, &TextLines{Files: []stages.Path{path}, Join: &join, Separator: "\n"})
	})
	b.Run("open", func(b *testing.B) {
		b.SetBytes(1e6)
		for b.Loop() {
			src, err := (&TextLines{Files: []stages.Path{path}}).Open(b.Context(), 1)
			if err != nil {
				b.Fatal(err)
			}
			src.Close()
		}
	})
}
