package improve_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/improve"
)

// of makes a change.
func of(address, attribute, value, was string) improve.Change {
	return improve.Change{Address: address, Attribute: attribute, Value: value, Was: was}
}

func TestApply(t *testing.T) {
	e := &engine.Experiment{
		Stages: []engine.Stage{
			{Address: "load.a", Workers: 1}, {Address: "prepare.b", Workers: 2, Pool: "p"}, {Address: "prepare.c", Workers: 2, Pool: "p"},
			{Address: "batch", Spec: &engine.BatchSpec{Size: 2}}, {Address: "transfer", Spec: &engine.TransferSpec{Convert: "none"}}, {Address: "train.d"},
		},
		Pools:    []engine.Pool{{Name: "p", Workers: 2, Prefetch: 4}},
		Settings: []engine.Setting{{Address: "load.a", Attribute: "workers", Value: "1"}, {Address: "pool.p", Attribute: "workers", Value: "2"}, {Address: "prepare.b", Value: `"sleep"`}},
	}
	before := fmt.Sprintf("%+v %+v", e, *e.Stages[4].Spec.(*engine.TransferSpec))
	got := improve.Apply(e, of("load.a", "workers", `"auto"`, "1"), of("load.a", "prefetch", "64", `"auto"`), of("pool.p", "workers", "3", "2"), of("batch", "workers", "1", `"auto"`),
		of("transfer", "pinned", "true", "false"), improve.Change{Address: "prepare.b", Into: "prepare.c"})
	want := &engine.Experiment{
		Stages: []engine.Stage{
			{Address: "load.a", Workers: engine.Auto, Prefetch: 64}, {Address: "prepare.c", Workers: 3, Pool: "p"}, {Address: "batch", Spec: &engine.BatchSpec{Size: 2}, Workers: 1},
			{Address: "transfer", Spec: &engine.TransferSpec{Convert: "none", Pinned: true}}, {Address: "train.d"},
		},
		Pools:    []engine.Pool{{Name: "p", Workers: 3, Prefetch: 4}},
		Settings: []engine.Setting{{Address: "load.a", Attribute: "workers", Value: `"auto"`}, {Address: "pool.p", Attribute: "workers", Value: "3"}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if after := fmt.Sprintf("%+v %+v", e, *e.Stages[4].Spec.(*engine.TransferSpec)); after != before {
		t.Errorf("the experiment itself became\n%s\nfrom\n%s", after, before)
	}
}

func TestMerge(t *testing.T) {
	out := improve.Change{Address: "prepare.b", Into: "prepare.c"}
	for _, tt := range []struct {
		name          string
		changes, want []improve.Change
		text          string
	}{
		{"none", nil, nil, ""},
		{"twice the same", []improve.Change{of("load.a", "workers", "2", "1"), of("batch", "workers", "1", `"auto"`), of("load.a", "workers", "4", "2")},
			[]improve.Change{of("load.a", "workers", "4", "1"), of("batch", "workers", "1", `"auto"`)}, "load.a.workers = 4, batch.workers = 1"},
		{"there and back", []improve.Change{of("load.a", "workers", "2", "1"), of("load.a", "workers", "1", "2")}, []improve.Change{}, ""},
		{"of what is taken out", []improve.Change{of("prepare.b", "workers", "2", "1"), out}, []improve.Change{out}, "prepare.b left to prepare.c"},
		{"alike", []improve.Change{of("load.a", "workers", `"auto"`, "1"), of("prepare.b", "workers", `"auto"`, "1"), of("prepare.c", "workers", `"auto"`, "1")},
			[]improve.Change{of("load.a", "workers", `"auto"`, "1"), of("prepare.b", "workers", `"auto"`, "1"), of("prepare.c", "workers", `"auto"`, "1")},
			`workers = "auto" for all of load.a … prepare.c`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := improve.Merge(tt.changes)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if text := improve.Text(got); text != tt.text {
				t.Errorf("%q, want %q", text, tt.text)
			}
		})
	}
}
