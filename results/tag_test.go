package results

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckTag(t *testing.T) {
	const looks, odd = "it looks like a run's id", "a tag's name can't have "
	for name, want := range map[string]string{
		"main": "", "v1.2.0-rc.1+build": "", "feature/faster": "", "größer": "", "日本": "", "7": "", "benchmarks": "", "2026-11-30": "", "3f2a91b": "",
		"deadbeef00dd": "", strings.Repeat("ä", 80): "",
		"":                       "a tag's name can't be empty",
		"latest":                 "latest stands for the latest run",
		"Latest":                 "latest stands for the latest run",
		"latest~1":               odd + "'~' in it: take letters, digits and . _ + / -",
		"a b":                    odd + "' ' in it: take letters, digits and . _ + / -",
		"a,b":                    odd + "',' in it: take letters, digits and . _ + / -",
		"@photos":                odd + "'@' in it: take letters, digits and . _ + / -",
		"a\nb":                   odd + `'\n' in it: take letters, digits and . _ + / -`,
		"a\xff":                  odd + "'�' in it: take letters, digits and . _ + / -",
		"-d":                     "a tag's name begins with a letter or a digit",
		".hidden":                "a tag's name begins with a letter or a digit",
		"main.db":                "what ends in .db is taken for a database",
		"d6j2mz0001":             looks,
		"D6J2MZOOOI":             looks,
		"dc6vde92rx":             looks,
		strings.Repeat("ä", 81):  "a tag's name has 80 characters at most",
		strings.Repeat("x", 500): "a tag's name has 80 characters at most",
	} {
		got := ""
		if err := CheckTag(name); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestTag(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	a, b, c := begin(t, s, "photos").ID(), begin(t, s, "photos").ID(), begin(t, s, "fashion").ID()
	refused := "results database " + path + ": "
	for _, tt := range []struct {
		name    string
		do      func() ([]Tag, error)
		want    []Tag
		err     string
		taken   bool
		allTags []Tag
	}{
		{name: "two names", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{a}, []string{"v1", "base"}, NewTag) },
			want: []Tag{{"v1", []string{a}}, {"base", []string{a}}}, allTags: []Tag{{"base", []string{a}}, {"v1", []string{a}}}},
		{name: "the same again", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{a}, []string{"v1"}, NewTag) },
			want: []Tag{{"v1", []string{a}}}, allTags: []Tag{{"base", []string{a}}, {"v1", []string{a}}}},
		{name: "taken", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{b}, []string{"new", "v1"}, NewTag) }, taken: true,
			err: refused + `tagging runs: "v1": the tag names other runs (` + a + ")", allTags: []Tag{{"base", []string{a}}, {"v1", []string{a}}}},
		{name: "moved", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{b}, []string{"v1"}, MoveTag) },
			want: []Tag{{"v1", []string{b}}}, allTags: []Tag{{"base", []string{a}}, {"v1", []string{b}}}},
		{name: "added", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{c, a, c}, []string{"v1"}, AddTag) },
			want: []Tag{{"v1", []string{a, b, c}}}, allTags: []Tag{{"base", []string{a}}, {"v1", []string{a, b, c}}}},
		{name: "no such run", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{a, "d6j2mz9999"}, []string{"new"}, NewTag) },
			err: refused + `tagging runs: "new": there is no run d6j2mz9999 any more`, allTags: []Tag{{"base", []string{a}}, {"v1", []string{a, b, c}}}},
		{name: "no name", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{a}, []string{"new", "a b"}, NewTag) },
			err: refused + `tagging runs: "a b": a tag's name can't have ' ' in it: take letters, digits and . _ + / -`, allTags: []Tag{{"base", []string{a}}, {"v1", []string{a, b, c}}}},
		{name: "the start of an id", do: func() ([]Tag, error) { return s.Tag(t.Context(), []string{a}, []string{a[:3]}, NewTag) },
			err:     refused + `tagging runs: "` + a[:3] + `": it could be taken for run ` + c + `, whose id begins so: take another name`,
			allTags: []Tag{{"base", []string{a}}, {"v1", []string{a, b, c}}}},
		{name: "removed, one unknown", do: func() ([]Tag, error) { return s.Untag(t.Context(), []string{"v1", "bas"}) },
			err: refused + `removing tags: there is no tag "bas"; did you mean "base"?`, allTags: []Tag{{"base", []string{a}}, {"v1", []string{a, b, c}}}},
		{name: "removed", do: func() ([]Tag, error) { return s.Untag(t.Context(), []string{"v1"}) },
			want: []Tag{{"v1", []string{a, b, c}}}, allTags: []Tag{{"base", []string{a}}}},
	} {
		got, err := tt.do()
		message := ""
		if err != nil {
			message = err.Error()
		}
		if d := cmp.Diff(tt.want, got); d != "" || message != tt.err || errors.Is(err, ErrTagged) != tt.taken {
			t.Errorf("%s: %s\nwant %s\n(-want +got):\n%s", tt.name, message, tt.err, d)
		}
		all, err := s.Tags(t.Context())
		if d := cmp.Diff(tt.allTags, all); d != "" || err != nil {
			t.Errorf("%s: %v, tags (-want +got):\n%s", tt.name, err, d)
		}
	}
}

// A tag of several runs stands for all of them, and a run is still known as it was sealed.
func TestSelectTag(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	whole := writeWhole(t, s)
	other := begin(t, s, "photos")
	if err := other.Finish(nil, Done, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tag(t.Context(), []string{other.ID(), whole.ID()}, []string{"both"}, NewTag); err != nil {
		t.Fatal(err)
	}
	got, err := s.Select(t.Context(), "both", "")
	if d := cmp.Diff([]string{whole.ID(), other.ID()}, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	if run, err := s.Load(t.Context(), whole.ID()); err != nil || !cmp.Equal(run.Tags, []string{"both"}) {
		t.Errorf("%v, %v", run, err)
	}
}
