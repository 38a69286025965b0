package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
)

// storeRun stores a finished run with six rounds of the baseline, and returns its id.
func storeRun(t *testing.T, path, experiment string, rate float64) string {
	t.Helper()
	ctx := context.Background()
	store, err := results.Create(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e := &engine.Experiment{Name: experiment, Seed: 42, Stages: []engine.Stage{{Address: "load.photos"}, {Address: "batch"}, {Address: "train.step"}}}
	run, err := store.Begin(ctx, results.Start{Experiment: e, Kind: results.Session, Version: "v0.1.0"})
	if err != nil {
		t.Fatal(err)
	}
	for _, iv := range intervals(6, rate, "load.photos", "batch", "train.step") {
		if err := run.AddInterval(engine.Probe{}, iv); err != nil {
			t.Fatal(err)
		}
	}
	report := stepBoundReport()
	report.Experiment = experiment
	if err := run.Finish(report, results.Done, nil); err != nil {
		t.Fatal(err)
	}
	return run.ID()
}

// TestStoredRuns tries the commands that read the database, from outside. Words of the output stand for the whole of it,
// which the views' own tests look at.
func TestStoredRuns(t *testing.T) {
	dir := t.TempDir()
	db := filepath.Join(dir, "results.db")
	fast, slow := storeRun(t, db, "photos", 3.4), storeRun(t, db, "photos", 3.0)
	other := storeRun(t, db, "words", 3.0)
	single := filepath.Join(dir, "single.db")
	storeRun(t, single, "photos", 3.4)
	missing := filepath.Join(dir, "missing.db")

	for _, tt := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr []string // what they must hold; nothing where there is nothing in the list
	}{
		{"list", []string{"list", "--db", db}, 0, []string{fast, slow, other}, nil},
		{"list, limited", []string{"list", "-n", "1", "--db", db}, 0, []string{other}, nil},
		{"list, one experiment", []string{"list", "-e", "words", "--db", db}, 0, []string{other}, nil},
		{"list, no such experiment", []string{"list", "-e", "sounds", "--db", db}, 0, nil, []string{`No runs of experiment "sounds"`}},
		{"list, a limit without sense", []string{"list", "-n", "-1", "--db", db}, 2, nil, []string{"-n -1", "pipectl list --help"}},
		{"list, no database", []string{"list", "--db", missing}, 0, nil, []string{"No runs are stored in", "`pipectl run`", "--db"}},
		{"list, no database, JSON", []string{"list", "--json", "--db", missing}, 0, []string{`{"format_version":1,"type":"list","runs":[]}` + "\n"}, []string{"No runs"}},
		{"show", []string{"show", "--db", db}, 0, []string{"Run " + other, "Step-bound:"}, nil},
		{"show, by its id's start", []string{"show", strings.ToUpper(fast[:9]) + fast[9:], "--db", db}, 0, []string{"Run " + fast}, nil},
		{"show, of an experiment", []string{"show", "-e", "photos", "latest~1", "--db", db}, 0, []string{"Run " + fast}, nil},
		{"show, no such run", []string{"show", "zzzz", "--db", db}, 1, nil, []string{"zzzz"}},
		{"show, no database", []string{"show", "--db", missing}, 1, nil, []string{"no results database at", "`pipectl run`"}},
		{"show, too many", []string{"show", "a", "b", "--db", db}, 2, nil, []string{"pipectl show --help"}},
		{"complete a run", []string{"__complete", "compare", fast, "--db", db, ""}, 0, []string{"latest\n", slow + "\tphotos, just now\n", other + "\twords, just now\n"},
			[]string{"ShellCompDirectiveNoFileComp"}},
		{"complete nothing", []string{"__complete", "show", "--db", missing, ""}, 0, []string{":4\n"}, []string{"ShellCompDirectiveNoFileComp"}},
		{"compare", []string{"compare", "--db", db}, 0, []string{"A  " + slow, "B  " + other, "experiments"}, nil},
		{"compare, of an experiment", []string{"compare", "-e", "photos", "--db", db}, 0, []string{"A  " + fast, "B  " + slow, "slower"}, nil},
		{"compare, A alone", []string{"compare", fast, "--db", db}, 0, []string{"A  " + fast, "B  " + other}, nil},
		{"compare, a regression", []string{"compare", fast, slow, "--fail-on-regression", "5%", "--db", db}, 4, []string{"slower"},
			[]string{"by more than the 5.0 % allowed"}},
		{"compare, a regression, JSON", []string{"compare", fast, slow, "--json", "--fail-on-regression", "5%", "--db", db}, 4, []string{`"type":"comparison"`, `"type":"error"`},
			[]string{"by more than the 5.0 % allowed"}},
		{"compare, a regression within what is allowed", []string{"compare", fast, slow, "--fail-on-regression", "20", "--db", db}, 0, []string{"slower"}, nil},
		{"compare, no regression", []string{"compare", slow, fast, "--fail-on-regression", "0", "--db", db}, 0, []string{"faster"}, nil},
		{"compare, a bad percentage", []string{"compare", "--fail-on-regression", "much", "--db", db}, 2, nil, []string{`"much": want a percentage`}},
		{"compare, three", []string{"compare", fast, slow, other, "--db", db}, 0, []string{"B  " + slow, "C  " + other, "experiments, photos and words"}, nil},
		{"compare, with another reference", []string{"compare", fast, slow, other, "--baseline", slow, "--db", db}, 0, []string{"A  " + slow, "B  " + fast, "C  " + other}, nil},
		{"compare, with a reference besides", []string{"compare", slow, "--baseline", "latest~2", "--db", db}, 0, []string{"A  " + fast, "B  " + slow}, nil},
		{"compare, the latest with a reference", []string{"compare", "--baseline", fast, "--db", db}, 0, []string{"A  " + fast, "B  " + other}, nil},
		{"compare, nothing but the reference", []string{"compare", fast, "--baseline", fast, "--db", db}, 2, nil, []string{"nothing else to compare"}},
		{"compare, several runs a column", []string{"compare", fast + "," + slow + "," + fast, "@words", "--db", db}, 0,
			[]string{"  2           just now  photos", "B  @words", other, "With 2+1 runs of A and B"}, nil},
		{"compare, versions", []string{"compare", "@photos", other, "--db", db}, 0, []string{"A  @photos", "2 "}, nil},
		{"compare, no such version", []string{"compare", "@photos~1", "@photos", "--db", db}, 1, nil, []string{`finding the runs of "@photos~1"`, "there is only one version"}},
		{"compare, databases", []string{"compare", db, single}, 0, []string{"A  " + db[:8], "Only A has runs of words"}, nil},
		{"compare, no such database", []string{"compare", db, missing}, 1, nil, []string{"no results database at " + missing}},
		{"compare, CSV", []string{"compare", fast, slow, "--format", "csv", "--db", db}, 0,
			[]string{"experiment,host,column,name,measure,", "\nphotos,,B," + slow + ",baseline,,,,3.39"}, nil},
		{"compare, Markdown", []string{"compare", fast, slow, "--format", "md", "--db", db}, 0, []string{"**Result:** B is 12 % slower than A", "| A  " + fast + " |"}, nil},
		{"compare, JSON by format", []string{"compare", fast, slow, other, "--format", "json", "--db", db}, 0, []string{`"type":"comparisons"`}, nil},
		{"compare, errors in JSON by format", []string{"compare", "zzzz", "--format", "json", "--db", db}, 1, []string{`"type":"error"`}, []string{"zzzz"}},
		{"compare, no such format", []string{"compare", "--format", "xml", "--db", db}, 2, nil, []string{`--format "xml": want text, csv, md, json`}},
		{"compare, two formats", []string{"compare", "--json", "--format", "md", "--db", db}, 2, []string{`"type":"error"`}, []string{"--json and --format md exclude each other"}},
		{"compare, a regression among three", []string{"compare", fast, fast, slow, "--fail-on-regression", "5%", "--db", db}, 4, []string{"slower"},
			[]string{slow + " is slower than " + fast + " by more than the 5.0 % allowed: C is 12 % slower than A"}},
		{"compare, too few runs for a verdict", []string{"compare", fast + "," + slow, slow + "," + fast, "--fail-on-regression", "5%", "--db", db}, 1, []string{"too few runs"},
			[]string{"2 and 2 runs of the baseline are too few to judge a regression"}},
		{"compare, only one", []string{"compare", "--db", single}, 1, nil, []string{"there is only one run"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := Run(context.Background(), tt.args, State{Out: &stdout, Err: &stderr, Registry: stages.Builtin()})
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			for _, stream := range []struct {
				name, got string
				want      []string
			}{{"output", stdout.String(), tt.stdout}, {"error stream", stderr.String(), tt.stderr}} {
				if len(stream.want) == 0 && stream.got != "" {
					t.Errorf("the standard %s is\n%s\nwant nothing", stream.name, stream.got)
				}
				for _, want := range stream.want {
					if !strings.Contains(stream.got, want) {
						t.Errorf("the standard %s is\n%s\nwant %q in it", stream.name, stream.got, want)
					}
				}
			}
		})
	}
}

func TestStoredRunsJSON(t *testing.T) {
	db := filepath.Join(t.TempDir(), "results.db")
	fast, slow := storeRun(t, db, "photos", 3.4), storeRun(t, db, "photos", 3.0)
	decode := func(v any, args ...string) {
		t.Helper()
		var stdout bytes.Buffer
		if code := Run(context.Background(), append(args, "--json", "--db", db), State{Out: &stdout, Err: t.Output(), Registry: stages.Builtin()}); code != 0 {
			t.Fatalf("%v: exit code %d", args, code)
		}
		if err := json.Unmarshal(stdout.Bytes(), v); err != nil {
			t.Fatalf("%v: %v in %s", args, err, stdout.String())
		}
		if n := bytes.Count(stdout.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("%v: %d lines, want one", args, n)
		}
	}
	var list listView
	decode(&list, "list")
	if len(list.Runs) != 2 || list.Runs[0].ID != slow || list.Runs[1].ID != fast {
		t.Errorf("list: %+v", list.Runs)
	}
	var run runView
	decode(&run, "show", fast)
	if run.Run.ID != fast || run.Report.Run != fast || *run.Report.Verdict != bisect.StepBound || len(run.Report.Probes[0].Rounds) != 6 {
		t.Errorf("show: %+v", run)
	}
	var c comparisonView
	decode(&c, "compare", fast, slow)
	if c.A.ID != fast || c.B.ID != slow || *c.Probes[0].Change > -0.1 || !*c.Probes[0].Significant || c.Probes[0].A.N != 6 {
		t.Errorf("compare: %+v", c)
	}
}
