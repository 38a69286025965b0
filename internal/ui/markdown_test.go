package ui

import "testing"

func TestMarkdownTable(t *testing.T) {
	table := Table{Columns: []Column{{Head: "stage"}, {Head: "ms a\nstep", Right: true}, {}}}
	table.Section("on <box>", Faint)
	table.Row(Cell{Text: "  augment.random_flip", Style: Strong}, Cell{Text: "12.3 ± 4 %"}, Cell{Text: "~"})
	table.Row(Cell{Text: "a|b\n**c**"})
	want := `| stage | ms a step |  |
| --- | --: | --- |
| **on \<box\>** |  |  |
| augment.random\_flip | 12.3 ± 4 % | \~ |
| a\|b \*\*c\*\* |  |  |
`
	if got := table.Markdown(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"plain, 3.4 % and 1–2":     "plain, 3.4 % and 1–2",
		"<img src=x> &lt; [a](b)":  `\<img src=x\> \&lt; \[a\](b)`,
		"back\\slash `code` ~~x~~": "back\\\\slash \\`code\\` \\~\\~x\\~\\~",
		"two\nlines\x1b":           "two lines\uFFFD",
	} {
		if got := Markdown(text); got != want {
			t.Errorf("Markdown(%q) = %q, want %q", text, got, want)
		}
	}
}
