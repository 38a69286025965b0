package storage

import "testing"

func TestRedacted(t *testing.T) {
	for path, want := range map[string]string{
		"https://user:secret@host/a{0..3} é%20.tar?sig=secret": "https://user:xxxxx@host/a{0..3} é%20.tar?…",
		"https://user:se@cret@host:80":                         "https://user:xxxxx@host:80",
		"https://token@host/a.tar":                             "https://xxxxx@host/a.tar",
		"https://host?sig=secret#part":                         "https://host?…",
		"https://host/a@b.tar":                                 "https://host/a@b.tar",
		"https://user:se/cret@host/a.tar":                      "a URL that can't be read",
		"s3://bucket/a?b@c":                                    "s3://bucket/a?b@c",
		"data/a?b@c":                                           "data/a?b@c",
	} {
		if got := Redacted(path); got != want || Redacted(got) != got {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	const text, want = `--var=urls=["http://u:secret@host/a?b","http://host/{c,d}?e"] a`, `--var=urls=["http://u:xxxxx@host/a?…","http://host/{c,d}?…"] a`
	if got := RedactedText(text); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
