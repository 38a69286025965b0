package results

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolve(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	if _, err := s.Resolve(t.Context(), "latest", ""); err == nil ||
		err.Error() != "results database "+path+`: finding run "latest": no runs are stored yet` {
		t.Errorf("in an empty database: %v", err)
	}
	ids := map[string]string{}
	for i, name := range []string{"photos", "photos", "fashion", "photos", "photos"} {
		ids[string(rune('a'+i))] = begin(t, s, name).ID()
	}
	for name, runs := range map[string][]string{"vor-dem-Umbau": {ids["b"]}, "two": {ids["c"], ids["a"]}, "five": {ids["e"], ids["d"], ids["c"], ids["b"], ids["a"]}} {
		if _, err := s.Tag(t.Context(), runs, []string{name}, NewTag); err != nil {
			t.Fatal(err)
		}
	}
	part := wholeStart
	part.Experiment, part.Part = experiment("photos"), &Part{Session: ids["e"]}
	if _, err := s.Begin(t.Context(), part); err != nil { // which "latest" passes over
		t.Fatal(err)
	}
	want := map[string]string{"a": "d6j2mz0001", "b": "d6j2ne0002", "c": "d6j2nx0003", "d": "d6j2pc0004", "e": "d6j2pv0005"}
	if d := cmp.Diff(want, ids); d != "" {
		t.Errorf("ids (-want +got):\n%s", d)
	}
	for _, tt := range []struct{ ref, experiment, want, err string }{
		{ref: "latest", want: ids["e"]},
		{ref: "latest~0", want: ids["e"]},
		{ref: "latest~4", want: ids["a"]},
		{ref: "latest", experiment: "fashion", want: ids["c"]},
		{ref: "latest~2", experiment: "photos", want: ids["b"]},
		{ref: "vor-dem-Umbau", want: ids["b"]},
		{ref: "d6j2mz0001", want: ids["a"]},
		{ref: "D6J2MZOOO1", want: ids["a"]},
		{ref: "d6j2pv", want: ids["e"]},
		{ref: "d6j2pc", experiment: "fashion", want: ids["d"]},
		{ref: "latest~5", err: "there are only 5 runs"},
		{ref: "latest~9", experiment: "photos", err: `there are only 4 runs of experiment "photos"`},
		{ref: "latest~1", experiment: "fashion", err: `there is only one run of experiment "fashion"`},
		{ref: "latest", experiment: "fotos", err: `there are no runs of experiment "fotos"; did you mean "photos"?`},
		{ref: "latest", experiment: "speech", err: `there are no runs of experiment "speech"`},
		{ref: "latest~", err: `after "latest~" comes a number, as in latest~1`},
		{ref: "latest~-1", err: `after "latest~" comes a number, as in latest~1`},
		{ref: "latest~99999999999999999999", err: `after "latest~" comes a number, as in latest~1`},
		{ref: "d6j", err: "several runs' ids start so: give more of it (d6j2qa0006, d6j2pv0005, d6j2pc0004, …)"},
		{ref: "lastest", err: `there is no run with this id or tag; did you mean "latest"?`},
		{ref: "vor-dem-umbau", err: `there is no run with this id or tag; did you mean "vor-dem-Umbau"?`},
		{ref: "two", err: "it stands for 2 runs: give one of them (d6j2mz0001, d6j2nx0003)"},
		{ref: "five", err: "it stands for 5 runs: give one of them (d6j2mz0001, d6j2ne0002, d6j2nx0003, …)"},
		{ref: "d6j2mz0011", err: `there is no run with this id or tag; did you mean "d6j2mz0001"?`},
		{ref: "zzzz", err: "there is no run with this id or tag"},
		{ref: "", err: "there is no run with this id or tag"},
		{ref: "%", err: "there is no run with this id or tag"},
		{ref: "'; DROP TABLE runs; --", err: "there is no run with this id or tag"},
	} {
		t.Run(tt.ref+" "+tt.experiment, func(t *testing.T) {
			got, err := s.Resolve(t.Context(), tt.ref, tt.experiment)
			message := ""
			if err != nil {
				message = err.Error()
			}
			if tt.err != "" {
				tt.err = "results database " + path + `: finding run "` + tt.ref + `": ` + tt.err
			}
			if got != tt.want || message != tt.err {
				t.Errorf("got %q, %s\nwant %q, %s", got, message, tt.want, tt.err)
			}
		})
	}
}

func TestList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	for _, name := range []string{"a", "b", "a", "ä", "a"} {
		if err := begin(t, s, name).Finish(nil, Done, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.db.Exec("INSERT INTO tags VALUES ('two', 3), ('one', 3), ('first', 1)"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		experiment string
		limit      int
		want       []string
	}{
		{"", 0, []string{"a", "ä", "a one two", "b", "a first"}},
		{"", 2, []string{"a", "ä"}},
		{"a", 0, []string{"a", "a one two", "a first"}},
		{"a", 1, []string{"a"}},
		{"ä", 9, []string{"ä"}},
		{"c", 0, []string{}},
	} {
		runs, err := s.List(t.Context(), Filter{Experiment: tt.experiment}, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, r := range runs {
			line := r.Experiment
			for _, tag := range r.Tags {
				line += " " + tag
			}
			got = append(got, line)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q, %d (-want +got):\n%s", tt.experiment, tt.limit, d)
		}
	}
	if _, err := s.Load(t.Context(), "d6j2mz9999"); err == nil ||
		err.Error() != "results database "+path+": reading run d6j2mz9999: there is no such run" {
		t.Errorf("got %v", err)
	}
}

// TestResolveFarBack counts back through many runs of several experiments.
func TestResolveFarBack(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	begin(t, s, "photos")
	const copies = 5000
	_, err := s.db.Exec(`WITH RECURSIVE copies (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM copies WHERE k <= ?)
		INSERT INTO runs (id, experiment, kind, args, status, started, version, seed, path, file, fingerprint, hostname, host_key, host)
		SELECT printf('%010d', k), 'experiment ' || (k * 7 % 10), kind, args, status, started, version, seed, path, file, fingerprint,
			hostname, host_key, host FROM copies CROSS JOIN runs`, copies)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ ref, want string }{
		{fmt.Sprintf("latest~%d", copies-1), "0000000002"},
		{fmt.Sprintf("latest~%d", copies), "0000000001"},
		{fmt.Sprintf("latest~%d", copies+1), "d6j2mz0001"},
		{fmt.Sprintf("latest~%d", copies+2), ""},
	} {
		got, err := s.Resolve(t.Context(), tt.ref, "")
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: %q, %v; want %q", tt.ref, got, err, tt.want)
		}
	}
}

// FuzzResolve checks that any reference finds a run that there is, or is an error that names it and the database.
func FuzzResolve(f *testing.F) {
	path := filepath.Join(f.TempDir(), "results.db")
	s := create(f, path)
	ids := map[string]bool{}
	for _, name := range []string{"photos", "ä b", "photos"} {
		ids[begin(f, s, name).ID()] = true
	}
	if _, err := s.db.Exec("INSERT INTO tags VALUES ('before', 1), ('d6j', 2)"); err != nil {
		f.Fatal(err)
	}
	for _, ref := range []string{"", "@", "@photos", "@photos~1", "latest", "latest~1", "latest~2147483648", "latest~-0", "latest~ 1", "before", "d6j", "D6J2MZOOO1", "~", "\x00", "\xff%", "İ", "befor"} {
		f.Add(ref, "photos")
		f.Add(ref, "")
	}
	f.Fuzz(func(t *testing.T, ref, experiment string) {
		id, err := s.Resolve(t.Context(), ref, experiment)
		finding := fmt.Sprintf("results database %s: finding run %q: ", path, ref)
		if strings.HasPrefix(ref, "@") {
			finding = fmt.Sprintf("results database %s: finding the runs of %q: ", path, ref)
		}
		if err == nil && !ids[id] || err != nil && (id != "" || !strings.HasPrefix(err.Error(), finding)) {
			t.Errorf("%q, %q: %q, %v", ref, experiment, id, err)
		}
	})
}
