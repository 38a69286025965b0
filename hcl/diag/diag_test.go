package diag

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
)

// between returns the range of the first occurrence of text in src. Columns
// count bytes: enough here.
func between(file, src, text string) *hcl.Range {
	start := strings.Index(src, text)
	pos := func(b int) hcl.Pos {
		before := src[:b]
		return hcl.Pos{Line: 1 + strings.Count(before, "\n"), Column: b - strings.LastIndex(before, "\n"), Byte: b}
	}
	return &hcl.Range{Filename: file, Start: pos(start), End: pos(start + len(text))}
}

// TestText compares whole outputs for one diagnostic on a source.
func TestText(t *testing.T) {
	long := "  key = [" + strings.Repeat("\"abcdefgh\", ", 20) + "oops, " + strings.Repeat("\"abcdefgh\", ", 20) + "]"
	for _, c := range []struct {
		name, src, subject, detail string
		width                      int
		colour                     bool
		want                       string
	}{
		{
			name: "a word", src: "batch {\n  siez = 4\n}\n", subject: "siez", detail: "Did you mean \"size\"?", width: 80,
			want: `Error: Summary

  x.hcl:2:3 (batch)
  2 |   siez = 4
    |   ^^^^

Did you mean "size"?
`,
		},
		{
			name: "in colour", src: "batch {\n  siez = 4\n}\n", subject: "siez", detail: "Did you mean \"size\"?", width: 80, colour: true,
			want: "\x1b[1;31mError:\x1b[0m \x1b[1mSummary\x1b[0m\n\n" +
				"  \x1b[2mx.hcl:2:3 (batch)\x1b[0m\n" +
				"  \x1b[2m2 |\x1b[0m   \x1b[1;4msiez\x1b[0m = 4\n\n" +
				"Did you mean \"size\"?\n",
		},
		{
			name: "tabs", src: "a {\n\tb = \"x\"\tc\n}", subject: "c\n",
			want: `Error: Summary

  x.hcl:2:10 (batch)
  2 |     b = "x" c
    |             ^
`,
		},
		{
			name: "carriage returns", src: "a = 1\r\nb = c\r\nd = 2\r\n", subject: "c",
			want: `Error: Summary

  x.hcl:2:5 (batch)
  2 | b = c
    |     ^
`,
		},
		{
			name: "wide, combining and joined characters", src: "a = \"写真 e\u0301 👩\u200d🔬\" + wrong + 1", subject: "wrong",
			want: "Error: Summary\n\n" +
				"  x.hcl:1:32 (batch)\n" +
				"  1 | a = \"写真 e\u0301 👩\u200d🔬\" + wrong + 1\n" +
				"    | " + strings.Repeat(" ", 5+4+1+1+1+2+4) + "^^^^^\n",
		},
		{
			name: "a wide subject", src: "a = 写真 + 1", subject: "写真",
			want: `Error: Summary

  x.hcl:1:5 (batch)
  1 | a = 写真 + 1
    |     ^^^^
`,
		},
		{
			name: "several lines", src: "a = [\n    1,\n\n    2,\n]\nb = 1\n", subject: "[\n    1,\n\n    2,\n]",
			want: `Error: Summary

  x.hcl:1:5 (batch)
  1 | a = [
    |     ^
  2 |     1,
    |     ^^
  3 |
    | ^
  4 |     2,
    |     ^^
  5 | ]
    | ^
`,
		},
		{
			name: "many lines", src: strings.Repeat("# before\n", 8) + "a = [" + strings.Repeat("\n1,", 20) + "]\n", subject: "[" + strings.Repeat("\n1,", 20) + "]",
			want: `Error: Summary

  x.hcl:9:5 (batch)
   9 | a = [
     |     ^
  10 | 1,
     | ^^
  11 | 1,
     | ^^
  12 | 1,
     | ^^
  13 | 1,
     | ^^
     | …
`,
		},
		{
			name: "a long line", src: long, subject: "oops", width: 40,
			want: `Error: Summary

  x.hcl:1:250 (batch)
  1 | …gh", "abcdefgh", oops, "abcdefgh…
    |                   ^^^^
`,
		},
		{
			name: "the start of a long line", src: long, subject: "key", width: 40,
			want: `Error: Summary

  x.hcl:1:3 (batch)
  1 |   key = ["abcdefgh", "abcdefgh", …
    |   ^^^
`,
		},
		{
			name: "a very long line and no width", src: strings.Repeat("+", 1000) + "oops" + strings.Repeat("-", 1000), subject: "oops", width: 0,
			want: "Error: Summary\n\n" +
				"  x.hcl:1:1001 (batch)\n" +
				"  1 | …" + strings.Repeat("+", 100) + "oops" + strings.Repeat("-", 94) + "…\n" +
				"    | " + strings.Repeat(" ", 101) + "^^^^\n",
		},
		{
			name: "a very long subject and no width", src: "a = " + strings.Repeat("写", 1000), subject: strings.Repeat("写", 1000), width: 0,
			want: "Error: Summary\n\n" +
				"  x.hcl:1:5 (batch)\n" +
				"  1 | a = " + strings.Repeat("写", 97) + "…\n" +
				"    |     " + strings.Repeat("^", 194) + "\n",
		},
		{
			name: "control characters", src: "a = \x1b[31mred\x00 b\xff + c", subject: "c",
			want: "Error: Summary\n\n" +
				"  x.hcl:1:20 (batch)\n" +
				"  1 | a = \uFFFD[31mred\uFFFD b\uFFFD + c\n" +
				"    |                    ^\n",
		},
		{
			name: "wrapped", src: "x", subject: "x", width: 24,
			detail: "Words of a sentence that is longer than a line.\n\n  an = [\"example that\", \"stays as it is\"]\nAnd averyveryverylongwordindeed at last.",
			want: `Error: Summary

  x.hcl:1:1 (batch)
  1 | x
    | ^

Words of a sentence that
is longer than a line.

  an = ["example that", "stays as it is"]
And
averyveryverylongwordindeed
at last.
`,
		},
		{
			name: "not wrapped", src: "x", subject: "x", width: 0, detail: strings.Repeat("word ", 30) + "end.",
			want: "Error: Summary\n\n  x.hcl:1:1 (batch)\n  1 | x\n    | ^\n\n" + strings.Repeat("word ", 30) + "end.\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := &hcl.Diagnostic{
				Severity: hcl.DiagError, Summary: "Summary", Detail: c.detail, Subject: between("x.hcl", c.src, c.subject), Extra: Address("batch"),
			}
			var got strings.Builder
			if err := Text(&got, hcl.Diagnostics{d}, map[string][]byte{"x.hcl": []byte(c.src)}, c.width, c.colour); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// several are diagnostics in no order, with and without a subject, an address, a detail and a known file.
func several() (hcl.Diagnostics, map[string][]byte) {
	a, b := "one = 1\ntwo = 2\n", "three {\n  four = 4\n}\n"
	end := hcl.Pos{Line: 3, Column: 1, Byte: len(a)}
	return hcl.Diagnostics{
		{Severity: hcl.DiagError, Summary: "In b", Detail: "Second file.", Subject: between("b.hcl", b, "four = 4\n}"), Extra: Address("three")},
		{Severity: hcl.DiagError, Summary: "At the end of a", Subject: &hcl.Range{Filename: "a.hcl", Start: end, End: end}},
		{Severity: hcl.DiagWarning, Summary: "Second in a", Detail: "Take care.", Subject: between("a.hcl", a, "two")},
		{Severity: hcl.DiagError, Summary: "First in a", Detail: "No.", Subject: between("a.hcl", a, "one")},
		{Severity: hcl.DiagError, Summary: "First in a, too", Detail: "No.", Subject: between("a.hcl", a, "one")},
		{Severity: hcl.DiagError, Summary: "Somewhere unknown", Subject: between("lost.hcl", b, "four")},
		{Severity: hcl.DiagError, Summary: "Beyond the file", Subject: &hcl.Range{Filename: "b.hcl", Start: hcl.Pos{Line: 9, Column: 1, Byte: 900}, End: hcl.Pos{Line: 9, Column: 5, Byte: 904}}},
		{Severity: hcl.DiagError, Summary: "Nowhere", Detail: "Without a place."},
	}, map[string][]byte{"a.hcl": []byte(a), "b.hcl": []byte(b)}
}

func TestTextOfSeveral(t *testing.T) {
	diags, files := several()
	var got strings.Builder
	if err := Text(&got, diags, files, 80, false); err != nil {
		t.Fatal(err)
	}
	want := `Error: Nowhere

Without a place.

Error: First in a

  a.hcl:1:1
  1 | one = 1
    | ^^^

No.

Error: First in a, too

  a.hcl:1:1
  1 | one = 1
    | ^^^

No.

Warning: Second in a

  a.hcl:2:1
  2 | two = 2
    | ^^^

Take care.

Error: At the end of a

  a.hcl:3:1
  3 |
    | ^

Error: In b

  b.hcl:2:3 (three)
  2 |   four = 4
    |   ^^^^^^^^
  3 | }
    | ^

Second file.

Error: Beyond the file

  b.hcl:9:1

Error: Somewhere unknown

  lost.hcl:2:3
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diags[0].Summary != "In b" {
		t.Error("Text changed the caller's order")
	}
}

func TestJSON(t *testing.T) {
	diags, files := several()
	var lines []string
	for _, m := range JSON(diags, files) {
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(b))
	}
	want := []string{
		`{"severity":"error","summary":"Nowhere","detail":"Without a place."}`,
		`{"severity":"error","summary":"First in a","detail":"No.","file":"a.hcl",` +
			`"range":{"start":{"line":1,"column":1,"byte":0},"end":{"line":1,"column":4,"byte":3}},"snippet":"one = 1"}`,
		`{"severity":"error","summary":"First in a, too","detail":"No.","file":"a.hcl",` +
			`"range":{"start":{"line":1,"column":1,"byte":0},"end":{"line":1,"column":4,"byte":3}},"snippet":"one = 1"}`,
		`{"severity":"warning","summary":"Second in a","detail":"Take care.","file":"a.hcl",` +
			`"range":{"start":{"line":2,"column":1,"byte":8},"end":{"line":2,"column":4,"byte":11}},"snippet":"two = 2"}`,
		`{"severity":"error","summary":"At the end of a","detail":"","file":"a.hcl",` +
			`"range":{"start":{"line":3,"column":1,"byte":16},"end":{"line":3,"column":1,"byte":16}}}`,
		`{"severity":"error","summary":"In b","detail":"Second file.","file":"b.hcl",` +
			`"range":{"start":{"line":2,"column":3,"byte":10},"end":{"line":3,"column":2,"byte":20}},"snippet":"  four = 4\n}","address":"three"}`,
		`{"severity":"error","summary":"Beyond the file","detail":"","file":"b.hcl",` +
			`"range":{"start":{"line":9,"column":1,"byte":900},"end":{"line":9,"column":5,"byte":904}}}`,
		`{"severity":"error","summary":"Somewhere unknown","detail":"","file":"lost.hcl",` +
			`"range":{"start":{"line":2,"column":3,"byte":10},"end":{"line":2,"column":7,"byte":14}}}`,
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestJSONSnippetIsClipped has lines and ranges that are too long to be repeated with every diagnostic.
func TestJSONSnippetIsClipped(t *testing.T) {
	for _, c := range []struct{ name, src, subject, want string }{
		{"in the middle", strings.Repeat("+", 1000) + "oops" + strings.Repeat("-", 1000), "oops",
			"…" + strings.Repeat("+", 100) + "oops" + strings.Repeat("-", 96) + "…"},
		{"at the start", "oops" + strings.Repeat("写", 1000), "oops", "oops" + strings.Repeat("写", 66) + "…"},
		{"at the end", strings.Repeat("写", 1000) + "oops", "oops", "…" + strings.Repeat("写", 66) + "oops"},
		{"not UTF-8", strings.Repeat("\x80", 500) + "oops" + strings.Repeat("\x80", 500), "oops",
			"…" + strings.Repeat("\x80", 103) + "oops" + strings.Repeat("\x80", 99) + "…"},
		{"many lines", strings.Repeat("1,\n", 100), strings.Repeat("1,\n", 100), "1,\n1,\n1,\n1,\n1,\n…"},
	} {
		d := &hcl.Diagnostic{Subject: between("x.hcl", c.src, c.subject)}
		got := JSON(hcl.Diagnostics{d}, map[string][]byte{"x.hcl": []byte(c.src)})[0].Snippet
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestNoDiagnostics(t *testing.T) {
	if b, err := json.Marshal(JSON(nil, nil)); err != nil || string(b) != "[]" {
		t.Errorf("JSON of none: %s, %v", b, err)
	}
	var s strings.Builder
	if err := Text(&s, nil, nil, 80, true); err != nil || s.String() != "" {
		t.Errorf("text of none: %q, %v", s.String(), err)
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestTextReportsWriteErrors(t *testing.T) {
	diags, files := several()
	if err := Text(brokenPipe{}, diags, files, 80, false); !errors.Is(err, errBroken) {
		t.Errorf("error %v, want %v", err, errBroken)
	}
}
