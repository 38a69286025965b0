package diag

import "testing"

func TestMask(t *testing.T) {
	for text, want := range map[string]string{
		`a = "https://user:secret@host/a?sig=secret" # ?`:   `a = "https://user:xxxxxx@host/a?xxxxxxxxxx" # ?`,
		`a = ["http://u:p@w@h", "http://h/{a,b}?c=d"]`:      `a = ["http://u:xxx@h", "http://h/{a,b}?xxx"]`,
		`a = "https://u:${var.p}@h/a?sig=${var.s}" ? 1 : 2`: `a = "https://u:${var.p}@h/a?sig=${var.s}" ? 1 : 2`,
		`a = "https://host/a@b" ? "s3://a?b" : "c:d@e"`:     `a = "https://host/a@b" ? "s3://a?b" : "c:d@e"`,
	} {
		if got := mask(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
