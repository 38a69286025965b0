package results

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/engine"
)

func TestVersion(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	expect := func(ref, want string) {
		t.Helper()
		ids, err := s.Version(t.Context(), ref)
		got := strings.Join(ids, " ")
		if err != nil {
			got = strings.TrimPrefix(err.Error(), fmt.Sprintf("results database %s: finding the runs of %q: ", s.Path(), "@"+ref))
		}
		if got != want {
			t.Errorf("@%s: %s, want %s", ref, got, want)
		}
	}
	expect("", "no runs are stored yet")
	run := func(experiment string, kind Kind, version, workers string, status Status) string {
		t.Helper()
		e := &engine.Experiment{Name: experiment, Stages: []engine.Stage{{Address: "batch"}, {Address: "train.step"}},
			Settings: []engine.Setting{{Address: "load.x", Attribute: "workers", Value: workers}}}
		r, err := s.Begin(t.Context(), Start{Experiment: e, Kind: kind, Version: version})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(nil, status, nil); err != nil {
			t.Fatal(err)
		}
		return r.ID()
	}
	a := run("photos", Session, "1", "1", Done)
	b := run("photos", OneProbe, "1", "1", Done)
	c := run("photos", Session, "1", "2", Done)
	run("photos", Session, "1", "3", Interrupted)
	d := run("photos", Session, "1", "1", Done) // back to how it was
	run("photos", Epochs, "1", "9", Done)
	x := run("sounds", Session, "1", "1", Done)

	expect("", strings.Join([]string{a, b, d, x}, " "))
	expect("photos", strings.Join([]string{a, b, d}, " "))
	expect("photos~0", strings.Join([]string{a, b, d}, " "))
	expect("photos~1", c)
	expect("~1", c)
	expect("photos~2", "there are only 2 versions")
	expect("sounds~1", "there is only one version")
	expect("~2", "there are only 2 versions")
	expect("photos~-1", `after "~" comes a number, as in @photos~1`)
	expect("photo", `there are no runs of experiment "photo"; did you mean "photos"?`)

	run("unfinished", Session, "1", "1", Failed)
	expect("unfinished", "no runs that are done and measured something are among the latest")

	y := run("sounds", Session, "2", "1", Done)
	expect("sounds", y)
	expect("sounds~1", x)
	var many []string
	for range versionRuns + 3 {
		many = append(many, run("words", Session, "1", "1", Done))
	}
	expect("words", strings.Join(slices.Clone(many[3:]), " "))
}

func BenchmarkVersion(b *testing.B) {
	s := filled(b, 100_000)
	for _, ref := range []string{"experiment 3", ""} {
		b.Run("@"+ref, func(b *testing.B) {
			for b.Loop() {
				if ids, err := s.Version(b.Context(), ref); err != nil || len(ids) == 0 {
					b.Fatal(ids, err)
				}
			}
		})
	}
}
