package sources

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
	"github.com/pipectl/pipectl/stages/storage"
)

// formats returns the path of a file that testdata/formats/make.py or its like made.
func formats(name string) stages.Path { return stages.Path(filepath.Join("testdata", "formats", name)) }

// written writes a file and returns its path.
func written(tb testing.TB, name, content string) stages.Path {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
	return stages.Path(path)
}

// opened opens a source for the time of the test.
func opened(tb testing.TB, spec stages.SourceSpec) stages.Source {
	tb.Helper()
	src, err := spec.Open(tb.Context(), 1)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := src.Close(); err != nil {
			tb.Error(err)
		}
	})
	return src
}

// item is what a source gives.
type item struct {
	Name  string
	Label int32
	Type  string
	U8    string
	F32   []float32
	I32   []int32
}

// items reads all of a source.
func items(tb testing.TB, src stages.Source) []item {
	tb.Helper()
	var all []item
	for i := range src.Len() {
		out := new(stages.Element)
		label, err := src.Read(&stages.Call{Context: tb.Context()}, i, out)
		if err != nil {
			tb.Fatalf("item %d: %v", i, err)
		}
		e := out.Result()
		it := item{Name: src.Name(i), Label: label, Type: e.Type.String()}
		switch e.Type.Kind {
		case stages.Tensor:
			it.F32 = append(it.F32, e.F32...)
		case stages.Tokens:
			it.I32 = append(it.I32, e.I32...)
		default:
			it.U8 = string(e.U8)
		}
		all = append(all, it)
	}
	return all
}

// readError returns what is wrong with item i, "" if nothing is.
func readError(tb testing.TB, src stages.Source, i int) string {
	tb.Helper()
	_, err := src.Read(&stages.Call{Context: tb.Context()}, i, new(stages.Element))
	return text(err)
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// problems returns a spec's problems, the folder of the files in it written DIR.
func problems(spec stages.Validator, dir string) []stages.Problem {
	all := spec.Validate()
	for i := range all {
		all[i].Detail = strings.ReplaceAll(all[i].Detail, dir, "DIR")
	}
	return all
}

// folder makes a folder of files, by name.
func folder(tb testing.TB, files map[string]string) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// in returns paths in a folder.
func in(dir string, names ...string) []stages.Path {
	var paths []stages.Path
	for _, n := range names {
		if !storage.Remote(n) {
			n = filepath.Join(dir, n)
		}
		paths = append(paths, stages.Path(n))
	}
	return paths
}

// benchmarkSource measures how fast items are read one after the other.
func benchmarkSource(b *testing.B, spec stages.SourceSpec) {
	b.Helper()
	src := opened(b, spec)
	c, out := &stages.Call{Context: b.Context()}, new(stages.Element)
	if _, err := src.Read(c, 0, out); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Size()))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := src.Read(c, i%src.Len(), out); err != nil {
			b.Fatal(err)
		}
	}
}

func TestExpand(t *testing.T) {
	dir := folder(t, map[string]string{"b-1.bin": "", "b-0.bin": "", "a.bin": "", "sub/b-2.bin": "", "odd[1].bin": "", "b-3.txt": ""})
	for _, tt := range []struct {
		patterns []string
		want     []string
		err      string
	}{
		{[]string{"b-*.bin", "a.bin"}, []string{"DIR/b-0.bin", "DIR/b-1.bin", "DIR/a.bin"}, ""},
		{[]string{"b-[13].*"}, []string{"DIR/b-1.bin", "DIR/b-3.txt"}, ""},
		{[]string{"odd[1].bin"}, []string{"DIR/odd[1].bin"}, ""},
		{[]string{"sub/?-2.bin", "none.bin"}, []string{"DIR/sub/b-2.bin", "DIR/none.bin"}, ""},
		{[]string{"https://host.example/a[1].bin?key=*"}, []string{"https://host.example/a[1].bin?key=*"}, ""},
		{[]string{"c*.bin"}, nil, "match DIR/c*.bin: no file matches this pattern"},
		{[]string{"none/*.bin"}, nil, "stat DIR/none/: no such file or directory"},
		{[]string{"b[.bin"}, nil, `the pattern DIR/b[.bin is malformed: close its brackets, or write \[ for a bracket`},
	} {
		got, err := expand(context.Background(), storage.New(), in(dir, tt.patterns...))
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], dir, "DIR")
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || strings.ReplaceAll(text(err), dir, "DIR") != tt.err {
			t.Errorf("%q: error %v, %s", tt.patterns, err, diff)
		}
	}
}

func TestNoSuch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		known []string
		want  string
	}{
		{"lable", []string{"image", "label"}, `There is no column "lable". Did you mean "label"? There are: image, label.`},
		{"Image", []string{"image"}, `There is no column "Image". Did you mean "image"? There are: image.`},
		{"other", []string{"image", "label"}, `There is no column "other". There are: image, label.`},
		{"other", nil, `There is no column "other": there are none at all.`},
		{"x", strings.Split("a b c d e f g h i j k l m n o p q r s t u", " "), `There is no column "x". There are: a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, ….`},
	} {
		if got := noSuch("column", tt.name, tt.known); got != tt.want {
			t.Errorf("noSuch(%q) = %q, want %q", tt.name, got, tt.want)
		}
	}
}
