package ui

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	names := []Column{{Head: "stage", Min: 8}, {Head: "ms a\nstep", Right: true}, {Head: "busy", Bar: 16, Min: 4}, {Right: true}}
	rows := [][]Cell{
		{{Text: "load.photos"}, {Text: "12.3"}, {Bar: 0.5}, {Text: "50 %"}},
		{{Text: "prepare.décode_写真_very_long"}, {Text: Unknown, Style: Faint}, {Text: Unknown}, {Text: Unknown}},
		{{Text: "train.step\x1b[31m\nx", Style: Bad}, {Text: "1000"}, {Bar: 1}},
	}
	for _, tt := range []struct {
		name    string
		columns []Column
		rows    [][]Cell
		term    Terminal
		want    string
	}{
		{"wide enough", names, rows, Terminal{Width: 80}, `
                               ms a
stage                          step  busy
load.photos                    12.3  ████████          50 %
prepare.décode_写真_very_long     –  –                    –
train.step�[31m x              1000  ████████████████
`},
		{"names shortened", names, rows, Terminal{Width: 40}, `
                        ms a
stage                   step  busy
load.photos             12.3  ██    50 %
prepare.déc…_very_long     –  –        –
train.step�[31m x       1000  ████
`},
		{"no narrower than it can be", names, rows, Terminal{Width: 10}, `
          ms a
stage     step  busy
load…tos  12.3  ██    50 %
prep…ong     –  –        –
trai…m x  1000  ████
`},
		{"ASCII", names, rows[:1], Terminal{Width: 34, ASCII: true}, `
             ms a
stage        step  busy
load.photos  12.3  #####      50 %
`},
		{"colour", names, rows, Terminal{Width: 40, Color: true}, "\n" +
			"                        \x1b[2mms a\x1b[m\n" +
			"\x1b[2mstage\x1b[m                   \x1b[2mstep\x1b[m  \x1b[2mbusy\x1b[m\n" +
			"load.photos             12.3  ██    50 %\n" +
			"prepare.déc…_very_long     \x1b[2m–\x1b[m  –        –\n" +
			"\x1b[31mtrain.step�[31m x\x1b[m       1000  ████\n"},
		{"no heads", []Column{{}, {}}, [][]Cell{{{Text: "a"}, {Text: "b"}}, {{Text: "ccc"}, {Text: "d"}}}, Terminal{Width: 80}, `
a    b
ccc  d
`},
		{"empty", []Column{{Head: "a"}}, nil, Terminal{Width: 80}, "\na\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := Table{Columns: tt.columns}
			for _, row := range tt.rows {
				table.Row(append([]Cell(nil), row...)...)
			}
			if got := table.Render(tt.term); got != tt.want[1:] {
				t.Errorf("got\n%s\nwant\n%s\n%q", got, tt.want[1:], got)
			}
		})
	}
}

func TestSection(t *testing.T) {
	table := Table{Columns: []Column{{Min: 4}, {}}}
	table.Section("a line that is wider than the table", Strong)
	table.Row(Cell{Text: "  abcdefgh"}, Cell{Text: "x"})
	want := "\x1b[1ma line that is wider than the table\x1b[m\n  a…gh  x\n"
	if got := table.Render(Terminal{Width: 9, Color: true}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestBar(t *testing.T) {
	for _, tt := range []struct {
		share float64
		width int
		ascii bool
		want  string
	}{
		{0, 10, false, ""},
		{-1, 10, false, ""},
		{nan, 10, false, ""},
		{0.5, 0, false, ""},
		{1e-9, 10, false, "▏"},
		{0.5, 10, false, "█████"},
		{0.53, 10, false, "█████▎"},
		{1, 10, false, "██████████"},
		{7, 10, false, "██████████"},
		{1e-9, 10, true, "#"},
		{0.53, 10, true, "######"},
	} {
		if got := Bar(tt.share, tt.width, tt.ascii); got != tt.want {
			t.Errorf("Bar(%v, %d, %v) = %q, want %q", tt.share, tt.width, tt.ascii, got, tt.want)
		}
	}
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		s     string
		width int
		want  string
	}{
		{"prepare.decode", 14, "prepare.decode"},
		{"prepare.decode", 13, "prepar…decode"},
		{"prepare.decode", 2, "p…"},
		{"prepare.decode", 1, "…"},
		{"prepare.decode", 0, ""},
		{"写真写真写真", 7, "写…写真"},
		{"e\u0301e\u0301e\u0301e\u0301", 3, "e\u0301…e\u0301"},
	} {
		if got := Shorten(tt.s, tt.width); got != tt.want {
			t.Errorf("Shorten(%q, %d) = %q, want %q", tt.s, tt.width, got, tt.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		name, text, first string
		width             int
		want              string
	}{
		{"one line", "It waits 74 % of the time.", "", 80, "It waits 74 % of the time.\n"},
		{"number and unit", "The step waits for data 74 % of the time.", "", 26, "The step waits for data\n74 % of the time.\n"},
		{"interval", "It is (3.40 … 3.51) or 3.45 ± 2 % so", "", 16, "It is\n(3.40 … 3.51) or\n3.45 ± 2 % so\n"},
		{"indent", "Give it more workers than it has.", "1. ", 20, "1. Give it more\n   workers than it\n   has.\n"},
		{"end of a sentence", "The ceiling is 3.5. Stop here", "", 20, "The ceiling is 3.5.\nStop here\n"},
		{"too long a word", "a prepare.decode b", "  ", 8, "  a\n  prepare.decode\n  b\n"},
		{"control characters", "a\x1b[2Jb\nc", "", 80, "a�[2Jb c\n"},
		{"empty", "", "- ", 80, "- \n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Wrap(tt.text, tt.first, tt.width); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestDetect(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  string
		want Terminal
	}{
		{"nothing known", "", Terminal{Width: 80}},
		{"columns", "COLUMNS=132", Terminal{Width: 132}},
		{"columns without sense", "COLUMNS=-4", Terminal{Width: 80}},
		{"dumb", "TERM=dumb", Terminal{Width: 80, ASCII: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			key, value, _ := strings.Cut(tt.env, "=")
			got := Detect(new(strings.Builder), func(k string) string {
				if k == key {
					return value
				}
				return ""
			})
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}
