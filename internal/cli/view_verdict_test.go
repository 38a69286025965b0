package cli

import (
	"testing"

	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/results"
)

func TestVerdictText(t *testing.T) {
	input := &bisect.Report{Verdict: bisect.InputBound, Bottleneck: "prepare.decode", Next: "augment.crop", Confidence: 0.95}
	step := &bisect.Report{Verdict: bisect.StepBound, Bottleneck: "train.step", Confidence: 0.95}
	noted := func(codes ...string) *bisect.Report {
		r := &bisect.Report{Verdict: bisect.Undecided}
		for _, code := range codes {
			r.Notes = append(r.Notes, bisect.Note{Code: code, Text: "This is " + code + "."})
		}
		return r
	}
	done := about{Kind: results.Session, Status: results.Done}
	for _, tt := range []struct {
		name   string
		report *bisect.Report
		about  about
		want   string
	}{
		{"input-bound, little known", input, done,
			"Input-bound: prepare.decode holds the training step back. After that, augment.crop would hold it back."},
		{"input-bound, then interrupted", input, about{Status: results.Interrupted},
			"Input-bound: prepare.decode holds the training step back. After that, augment.crop would hold it back. The run was interrupted after this was proven."},
		{"step-bound, then failed", step, about{Status: results.Failed, Error: "the disk is full"},
			"Step-bound: the training step itself, train.step, is the slowest. There is nothing to gain in the input pipeline: stop here. The run failed after this was proven: the disk is full."},
		{"failed", noted(), about{Status: results.Failed, Error: "the disk is full."}, "Failed: the disk is full."},
		{"no reason", noted(bisect.FewRounds), done, "Undecided: the session ended before it could tell. Run it again."},
		{"budget", noted(bisect.BudgetUsed), done,
			"Undecided: no stage can be named. This is budget_used. To decide: Give the session more time with budget in the bisect block."},
		{"disturbed", noted(bisect.OutsideLoad, bisect.Disturbed), done,
			"Undecided: no stage can be named. This is disturbed. To decide: Measure on a machine with nothing else to do."},
		{"merged", noted(bisect.MergedStages), done,
			`Undecided: no stage can be named. This is merged_stages. To decide: Where a checkpoint between them has mode = "off", take it out; where one has a limit, raise it. Stages on the device can be tried on the host.`},
		{"near min_effect", noted(bisect.NearMinEffect), done,
			"Undecided: no stage can be named. This is near_min_effect. To decide: Set min_effect in the bisect block to what would be worth your work, or raise rounds."},
		{"together", noted(bisect.NoStageAlone), done,
			"Undecided: no stage can be named. This is no_stage_alone. To decide: Make the stages that are equally busy faster together, for example with more workers for each, and run again."},
		{"not separated, and a note that is no reason", noted(bisect.NotMonotone, bisect.NotSeparated), done,
			"Undecided: no stage can be named. This is not_separated. To decide: Raise rounds in the bisect block, on a machine with nothing else to do; " +
				"stages that are equally slow stay undecided, and speeding up either helps little."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lead, text := verdictText(tt.report, tt.about)
			if got := lead + " " + text; got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
