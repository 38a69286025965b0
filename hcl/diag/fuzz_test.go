package diag

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
)

// FuzzDiagnostic checks that a diagnostic in a file of any bytes can be shown in any width, its subject in its place or out
// of it, and that its JSON form can be read back.
func FuzzDiagnostic(f *testing.F) {
	for _, src := range []string{"experiment \"a\" {\n  batch { size = 0 }\n}\n", "a = 1\r\nb = \"ä\t日本\u0301\"\r\n", "\xff\xfe\x00\x1b[31m\n\xe6\x97", ""} {
		f.Add(src, "Summary", "A detail of \x1b and \xff.", 3, 9, 40)
	}
	f.Fuzz(func(t *testing.T, src, summary, detail string, start, end, width int) {
		at := func(offset int) hcl.Pos {
			return hcl.Pos{Line: 1 + strings.Count(src[:min(max(offset, 0), len(src))], "\n"), Column: 1, Byte: offset}
		}
		files := map[string][]byte{"a.hcl": []byte(src)}
		diags := hcl.Diagnostics{
			{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: &hcl.Range{Filename: "a.hcl", Start: at(start), End: at(end)}},
			{Severity: hcl.DiagWarning, Summary: summary, Detail: detail, Subject: &hcl.Range{Filename: src, Start: at(start), End: at(end)}},
		}
		for _, colour := range []bool{false, true} {
			var out strings.Builder
			if err := Text(&out, diags, files, width%300, colour); err != nil {
				t.Fatal(err)
			}
			if rest := strings.NewReplacer(reset, "", bold, "", dim, "", red, "", yellow, "", subject, "").Replace(out.String()); !utf8.ValidString(rest) ||
				strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
				t.Errorf("what the terminal may take for a command is shown: %q", rest)
			}
		}
		encoded, err := json.Marshal(JSON(diags, files))
		if err != nil {
			t.Fatal(err)
		}
		var messages []Message
		if err := json.Unmarshal(encoded, &messages); err != nil || len(messages) != 2 || !utf8.Valid(encoded) {
			t.Errorf("%d messages from %s: %v", len(messages), encoded, err)
		}
	})
}
