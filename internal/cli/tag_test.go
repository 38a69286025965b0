package cli

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
)

func TestWriteTags(t *testing.T) {
	tags := []results.Tag{
		{Name: "before", Runs: []string{"6a3f9k2m0x"}},
		{Name: "feature/a-name-that-somebody-made-of-a-branch-and-that-never-ends", Runs: []string{"6a3f9k2m0w", "6a3f9k2m0x", "6a3f9k2m0y"}},
		{Name: "größer", Runs: []string{"6a3f9k2m0z"}},
	}
	runs := []results.Summary{stored("6a3f9k2m0x", 6, 0.889, 3.49).Summary, stored("6a3f9k2m0y", 6, 0.889, 3.49).Summary}
	runs[1].Experiment, runs[1].Baseline, runs[1].Status = "an-experiment-with-a-name-that-never-ends", nil, results.Failed
	goldenViews(t, "tags", func(out *bytes.Buffer, term ui.Terminal) { writeTags(out, term, tags, runs, began.Add(5*time.Minute)) })
	goldenJSON(t, "tags", newTagsView(tags))
	goldenJSON(t, "tags_none", newTagsView(nil))
}

func TestSomeRuns(t *testing.T) {
	ids := []string{"a", "b", "c", "d", "e", "f"}
	for n, want := range map[int]string{1: "a", 5: "a, b, c, d, e", 6: "6 runs"} {
		if got := someRuns(ids[:n]); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// A tag of several runs is offered once.
func TestCompleteTag(t *testing.T) {
	db := filepath.Join(t.TempDir(), "results.db")
	storeRun(t, db, "photos", 3.4)
	storeRun(t, db, "words", 3.0)
	var out bytes.Buffer
	for _, args := range [][]string{{"tag", "latest,latest~1", "both"}, {"__complete", "compare", ""}} {
		out.Reset()
		if code := Run(context.Background(), append(args[:len(args)-1:len(args)-1], "--db", db, args[len(args)-1]), State{Out: &out, Err: t.Output(), Registry: stages.Builtin()}); code != 0 {
			t.Fatalf("%v: exit code %d", args, code)
		}
	}
	if got := out.String(); strings.Count(got, "both\t") != 1 || !strings.Contains(got, "both\twords, just now\n") {
		t.Errorf("completions:\n%s", got)
	}
}
