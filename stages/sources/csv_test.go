package sources

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/stages"
)

// newCSV returns a spec with its defaults.
func newCSV(path stages.Path) *CSV {
	s := csvOperator().New().(*CSV)
	s.Path = path
	return s
}

func TestCSV(t *testing.T) {
	python, err := os.ReadFile(string(formats("python.csv")))
	if err != nil {
		t.Fatal(err)
	}
	dir := folder(t, map[string]string{
		"a,b.txt": "1", `say "x".txt`: "2", "two\nlines.txt": "3", "né.txt": "4", "sub/a.txt": "5",
		"python.csv": string(python),
		"plain.csv":  "path,label\n\nsub/a.txt,10\nné.txt,9\n",
		"names.csv":  "path,label\nné.txt,10\nné.txt,9\nsub/../né.txt,B\nné.txt,a",
		"bare.tsv":   "name\nwhole\n" + "né.txt\t1\n",
		"tabs.tsv":   "path\tlabel\nné.txt\t2\n",
		"abs.csv":    "path\nROOT/né.txt\n",
	})
	if err := os.WriteFile(filepath.Join(dir, "abs.csv"), []byte("path\n"+dir+"/né.txt\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const encoded = "encoded bytes"
	for _, tt := range []struct {
		file    string
		set     func(*CSV)
		want    []item
		classes int
	}{
		{"python.csv", func(s *CSV) { s.PathColumn, s.LabelColumn = "file", "class" }, []item{
			{"DIR/a,b.txt (DIR/python.csv, line 2)", 0, encoded, "1", nil, nil},
			{`DIR/say "x".txt (DIR/python.csv, line 3)`, 1, encoded, "2", nil, nil},
			{"DIR/two\nlines.txt (DIR/python.csv, line 4)", 0, encoded, "3", nil, nil},
			{"DIR/né.txt (DIR/python.csv, line 6)", 1, encoded, "4", nil, nil},
		}, 2},
		{"plain.csv", func(*CSV) {}, []item{
			{"DIR/sub/a.txt (DIR/plain.csv, line 3)", 10, encoded, "5", nil, nil},
			{"DIR/né.txt (DIR/plain.csv, line 4)", 9, encoded, "4", nil, nil},
		}, 11},
		{"plain.csv", func(s *CSV) { s.Labels = "names" }, []item{
			{"DIR/sub/a.txt (DIR/plain.csv, line 3)", 0, encoded, "5", nil, nil},
			{"DIR/né.txt (DIR/plain.csv, line 4)", 1, encoded, "4", nil, nil},
		}, 2},
		{"names.csv", func(s *CSV) { s.Labels = "names" }, []item{
			{"DIR/né.txt (DIR/names.csv, line 2)", 0, encoded, "4", nil, nil},
			{"DIR/né.txt (DIR/names.csv, line 3)", 1, encoded, "4", nil, nil},
			{"DIR/né.txt (DIR/names.csv, line 4)", 2, encoded, "4", nil, nil},
			{"DIR/né.txt (DIR/names.csv, line 5)", 3, encoded, "4", nil, nil},
		}, 4},
		{"tabs.tsv", func(s *CSV) { s.Delimiter = "\t" }, []item{{"DIR/né.txt (DIR/tabs.tsv, line 2)", 2, encoded, "4", nil, nil}}, 3},
		{"abs.csv", func(s *CSV) { s.LabelColumn, s.Root = "", "/nowhere" }, []item{{"DIR/né.txt (DIR/abs.csv, line 2)", 0, encoded, "4", nil, nil}}, 0},
	} {
		t.Run(tt.file, func(t *testing.T) {
			spec := newCSV(in(dir, tt.file)[0])
			tt.set(spec)
			if got := spec.Validate(); got != nil {
				t.Errorf("Validate() = %v", got)
			}
			src := opened(t, spec)
			got := items(t, src)
			for i := range got {
				got[i].Name = strings.ReplaceAll(got[i].Name, dir, "DIR")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || src.Classes() != tt.classes {
				t.Errorf("%d classes, want %d: %s", src.Classes(), tt.classes, diff)
			}
			if n := len(slices.Collect(src.(stages.FileLister).Files())); n != len(tt.want) {
				t.Errorf("%d files, want %d", n, len(tt.want))
			}
		})
	}
}

// TestCSVJoin tells where rows' paths start from.
func TestCSVJoin(t *testing.T) {
	for _, tt := range []struct{ path, root, name, want string }{
		{"/data/list.csv", "", "a/b.jpg", "/data/a/b.jpg"},
		{"/data/list.csv", "/images", "a/../b.jpg", "/images/b.jpg"},
		{"/data/list.csv", "/root", "/a/b.jpg", "/a/b.jpg"},
		{"/data/list.csv", "s3://bucket/images/", "a/b.jpg", "s3://bucket/images/a/b.jpg"},
		{"s3://bucket/data/list.csv", "", "a/../b.jpg", "s3://bucket/data/a/../b.jpg"},
		{"https://host/list.csv", "/root", "s3://bucket/b.jpg", "s3://bucket/b.jpg"},
	} {
		s := &CSV{Path: stages.Path(tt.path), Root: stages.Path(tt.root)}
		if got := s.join(tt.name); got != tt.want {
			t.Errorf("%q in %q, root %q: %q, want %q", tt.name, tt.path, tt.root, got, tt.want)
		}
	}
}

func TestCSVProblems(t *testing.T) {
	for _, tt := range []struct {
		name, content string
		set           func(*CSV)
		want          stages.Problem
	}{
		{"ragged", "path,label\na\nb,1\nc,2,3\n", nil, unusable("line 2 has 1 fields, where the header has 2; line 4 has 3 fields, where the header has 2")},
		{"many", "path,label\na\nb\nc\nd\ne\nf\ng\n", nil, unusable("line 2 has 1 fields, where the header has 2; line 3 has 1 fields, where the header has 2; line 4 has 1 fields, where the header has 2; line 5 has 1 fields, where the header has 2; line 6 has 1 fields, where the header has 2; and 2 more")},
		{"open quote", "path,label\n\"a,1\nb,2\n", nil, unusable("line 3, column 5: a quote is missing, or stands within a quoted field without being doubled; the field starts on line 2")},
		{"ragged, then a stray quote", "path,label\na\na\"b,1\n", nil, unusable("line 2 has 1 fields, where the header has 2; line 3, column 2: a quote stands within a field that isn't quoted")},
		{"stray quote", "path,label\na\"b,1\n", nil, unusable("line 2, column 2: a quote stands within a field that isn't quoted")},
		{"text after quote", "path,label\n\"a\"b,1\n", nil, unusable("line 2, column 3: a quote is missing, or stands within a quoted field without being doubled; the field starts on line 2")},
		{"empty", "", nil, unusable("it is empty")},
		{"header alone", "path,label\n", nil, unusable("it has no rows below its header")},
		{"no path", "path,label\n,1\n", nil, unusable("line 2 has no path")},
		{"no label", "path,label\na,1\na,\n", nil, unusable("line 3 has no label")},
		{"mixed", "path,label\na,1\na,cat\n", nil, unusable(`some labels are numbers (line 2: 1) and some are names (line 3: cat); set labels to "names" if all are names`)},
		{"negative", "path,label\na,-1\n", nil, unusable(`line 2 has the label "-1", which is no whole number from 0`)},
		{"no numbers", "path,label\na,cat\n", func(s *CSV) { s.Labels = "numbers" }, unusable(`line 2 has the label "cat", which is no whole number from 0`)},
		{"too large", "path,label\na,3000000000\n", func(s *CSV) { s.Labels = "numbers" }, unusable(`line 2 has the label "3000000000", which is no whole number from 0`)},
		{"gzip", "\x1f\x8b\x08\x00", nil, unusable("it is compressed by gzip; unpack it: gunzip --keep")},
		{"UTF-16", "\xff\xfep\x00", nil, unusable("it is in UTF-16; convert it: iconv -f UTF-16 -t UTF-8")},
		{"UTF-16 without a mark", "p\x00a\x00", nil, unusable("it is in UTF-16, as every other byte is zero; convert it: iconv -f UTF-16LE (or UTF-16BE) -t UTF-8")},
		{"Latin-1", "path,label\r\né,1\r\n\"n\né, b\xe9\",1\r\n", nil, unusable("line 4, column 5: the byte 0xe9 is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8")},
		{"Latin-1 header", "\xef\xbb\xbfp\xe4th,label\n", nil, unusable("line 1, column 2: the byte 0xe4 is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8")},
		{"cut character", "path,label\na,1\n" + strings.Repeat("é", 1<<20) + "\xc3", nil, unusable("line 3, column 1048577: the byte 0xc3 is not UTF-8; convert the file, as by iconv -f LATIN1 -t UTF-8")},
		{"other scheme", "path,label\nfile:///a,1\n", nil, unusable("line 2 has a path that is a URL of a file on this machine: write its path alone, without file://")},
		{"other column", "paths,label\na,1\n", nil, stages.Problem{Attribute: "path_column", Summary: "No such column", Detail: `There is no column "path". Did you mean "paths"? There are: paths, label.`}},
		{"no label column", "path,class\na,1\n", nil, stages.Problem{Attribute: "label_column", Summary: "No such column", Detail: `There is no column "label". There are: path, class. Where items have no labels, set label_column = "".`}},
		{"other delimiter", "path;label\na;1\n", nil, stages.Problem{Attribute: "path_column", Summary: "No such column", Detail: `There is no column "path". There are: path;label. If they are several, set delimiter = ";".`}},
		{"twice", "path,label,path\na,1,b\n", nil, stages.Problem{Attribute: "path_column", Summary: "Column not unique", Detail: `Several columns have the name "path". Rename all but one.`}},
		{"delimiter", "path,label\na,1\n", func(s *CSV) { s.Delimiter = ", " }, stages.Problem{Attribute: "delimiter", Summary: "Not a delimiter", Detail: "A delimiter is one character, neither a quote nor the end of a line."}},
		{"no delimiter", "path,label\na,1\n", func(s *CSV) { s.Delimiter = "" }, stages.Problem{Attribute: "delimiter", Summary: "Not a delimiter", Detail: "A delimiter is one character, neither a quote nor the end of a line."}},
		{"missing", "path,label\na,1\nlist.csv,1\n.,1\n", nil, stages.Problem{Attribute: "path", Summary: "Files not found", Detail: "The CSV file names files that can't be read, 2 of 3. Relative paths start from root. line 2: DIR/a: not found; line 4: DIR: not a regular file."}},
		{"missing in root", "path\n1\n2\n3\n4\n5\n6\n7\n", func(s *CSV) { s.Root, s.LabelColumn = "/nowhere", "" }, stages.Problem{Attribute: "root", Summary: "Files not found", Detail: "The CSV file names files that can't be read, 7 of 7. Relative paths start from root. line 2: /nowhere/1: not found; line 3: /nowhere/2: not found; line 4: /nowhere/3: not found; line 5: /nowhere/4: not found; line 6: /nowhere/5: not found; and 2 more."}},
		{"no file", "", func(s *CSV) { s.Path += "x" }, stages.Problem{Attribute: "path", Summary: "File not found", Detail: `There is no file "DIR/list.csvx".`}},
		{"elsewhere", "path,label\ns3://bucket/none,1\n", nil, stages.Problem{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := written(t, "list.csv", tt.content)
			spec := newCSV(path)
			if tt.set != nil {
				tt.set(spec)
			}
			var want []stages.Problem
			if tt.want != (stages.Problem{}) {
				want = []stages.Problem{tt.want}
			}
			if diff := cmp.Diff(want, problems(spec, filepath.Dir(string(path)))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// unusable is what a CSV file's fault is told as.
func unusable(what string) stages.Problem {
	return stages.Problem{Attribute: "path", Summary: "Unusable file", Detail: `The file "DIR/list.csv" can't be used: ` + what + "."}
}

func TestCSVErrors(t *testing.T) {
	dir := folder(t, map[string]string{"list.csv": "path,label\na,1\n", "bad.csv": "path\n"})
	if _, err := newCSV(in(dir, "bad.csv")[0]).Open(t.Context(), 1); text(err) != "reading "+dir+`/bad.csv: There is no column "label". There are: path. Where items have no labels, set label_column = "".` {
		t.Errorf("Open: %v", err)
	}
	src := opened(t, newCSV(in(dir, "list.csv")[0]))
	if got := readError(t, src, 0); got != "no such file or directory" {
		t.Errorf("a missing file: %s", got)
	}
	big, err := os.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	if err := big.Truncate(mostFile + 1); err != nil {
		t.Fatal(err)
	}
	if got := readError(t, src, 0); got != "a file of 2.00 GiB is too large for an item" {
		t.Errorf("a huge file: %s", got)
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"path,label\na,1\n", "path,label\r\n\"a,b\",cat\r\n\"x\"\"y\",dog", "\xef\xbb\xbfpath,label\n\n\na,b,c\n", "path;label", "\"path", "path,label\na,2147483647", "path,label\né,1\na\xff,2\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		s := newCSV("/list.csv")
		table, err := s.parse(strings.NewReader(data))
		if err != nil {
			return
		}
		for _, it := range table.items {
			if it.path == "" || !utf8.ValidString(it.path) || it.label < 0 || int(it.label) >= table.classes || it.line < 2 {
				t.Errorf("%+v of %d classes", it, table.classes)
			}
		}
	})
}

func BenchmarkCSV(b *testing.B) {
	dir := folder(b, map[string]string{"a.bin": strings.Repeat("x", 100<<10)})
	list := in(dir, "list.csv")[0]
	if err := os.WriteFile(string(list), []byte("path,label\n"+strings.Repeat("a.bin,1\n", 10000)), 0o644); err != nil {
		b.Fatal(err)
	}
	b.Run("read", func(b *testing.B) { benchmarkSource(b, newCSV(list)) })
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			src, err := newCSV(list).Open(b.Context(), 1)
			if err != nil {
				b.Fatal(err)
			}
			src.Close()
		}
	})
}
