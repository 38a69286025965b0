package cli

import (
	"fmt"
	"strings"

	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// verdictText says in plain sentences what was found: a few words that name the verdict, and the rest.
func verdictText(r *bisect.Report, a about) (lead, text string) {
	switch {
	case r.Verdict == bisect.InputBound:
		return "Input-bound:", join(inputBoundText(r), endedText(a))
	case r.Verdict == bisect.StepBound:
		return "Step-bound:", join(stepBoundText(r), endedText(a))
	case a.Status == results.Failed:
		return "Failed:", sentence(a.Error)
	case a.Status == results.Interrupted:
		return "Interrupted:", "the run was stopped before it came to a verdict. Shown is what it had measured by then."
	case a.Status == results.Running:
		return "Running:", "there is no verdict yet. Shown is what has been measured so far."
	case a.Kind == results.OneProbe:
		return "No verdict:", "one probe was measured alone, so there is nothing to compare it with. `pipectl run` without --probe finds the bottleneck."
	case a.Kind == results.Epochs:
		return "No verdict:", "the pipeline was run as it is, without looking for its bottleneck. `pipectl run` without --epochs finds it."
	}
	return "Undecided:", undecidedText(r)
}

func inputBoundText(r *bisect.Report) string {
	s := []string{r.Bottleneck + " holds the training step back.", starvationText(r)}
	if r.Baseline != nil && r.SpeedupIfFixed != nil {
		gain := r.SpeedupIfFixed
		text := fmt.Sprintf("If %s cost nothing, the pipeline would run at %s steps/s instead of %s: %s times as fast", r.Bottleneck,
			ui.Number(r.Baseline.Median*gain.Median), ui.Number(r.Baseline.Median), ui.Number(gain.Median))
		if interval := intervalText(gain, r.Confidence); interval != "" {
			text += " (" + interval + ")"
		}
		if r.Ceiling != nil {
			text += fmt.Sprintf("; the ceiling, the step alone, is %s", ui.Number(r.Ceiling.Median))
		}
		s = append(s, text+".")
	}
	switch {
	case r.Next == "":
	case len(r.Stages) > 0 && r.Next == r.Stages[len(r.Stages)-1].Address:
		s = append(s, "After that, the step itself would be the slowest.")
	default:
		s = append(s, fmt.Sprintf("After that, %s would hold it back.", r.Next))
	}
	return join(s...)
}

func stepBoundText(r *bisect.Report) string {
	s := []string{fmt.Sprintf("the training step itself, %s, is the slowest.", r.Bottleneck), starvationText(r)}
	if r.Baseline != nil && r.Ceiling != nil {
		s = append(s, fmt.Sprintf("The pipeline runs at %s steps/s, and the step alone at %s.", plusMinus(r.Baseline), plusMinus(r.Ceiling)))
	}
	return join(append(s, "There is nothing to gain in the input pipeline: stop here.")...)
}

// undecidedText says why there is no verdict, and what would lead to one.
func undecidedText(r *bisect.Report) string {
	var why, what []string
	for _, n := range r.Notes {
		if remedy := remedy(n.Code); remedy != "" {
			why, what = append(why, n.Text), append(what, remedy)
		}
	}
	if len(why) == 0 {
		return "the session ended before it could tell. Run it again."
	}
	return join("no stage can be named.", starvationText(r), join(why...), "To decide:", join(what...))
}

// remedy says what to do about a reason for being undecided; "" for a note that is none.
func remedy(code string) string {
	switch code {
	case bisect.BudgetUsed:
		return "Give the session more time with budget in the bisect block."
	case bisect.Disturbed:
		return "Measure on a machine with nothing else to do."
	case bisect.MergedStages:
		return `Where a checkpoint between them has mode = "off", take it out; where one has a limit, raise it. Stages on the device can be tried on the host.`
	case bisect.NearMinEffect:
		return "Set min_effect in the bisect block to what would be worth your work, or raise rounds."
	case bisect.NoStageAlone:
		return "Make the stages that are equally busy faster together, for example with more workers for each, and run again."
	case bisect.NotSeparated:
		return "Raise rounds in the bisect block, on a machine with nothing else to do; stages that are equally slow stay undecided, and speeding up either helps little."
	}
	return ""
}

func starvationText(r *bisect.Report) string {
	if r.Starvation == nil {
		return ""
	}
	return fmt.Sprintf("The step waits for data %s of the time.", ui.Percent(r.Starvation.Median))
}

// endedText tells of a run that ended badly after its verdict.
func endedText(a about) string {
	switch a.Status {
	case results.Interrupted:
		return "The run was interrupted after this was proven."
	case results.Failed:
		return "The run failed after this was proven: " + sentence(a.Error)
	}
	return ""
}

// intervalText words a confidence interval; "" where it isn't bounded.
func intervalText(e *bisect.Estimate, confidence float64) string {
	if !bounded(e) {
		return ""
	}
	return fmt.Sprintf("%s interval %s … %s", confidenceText(confidence), ui.Number(e.Low), ui.Number(e.High))
}

// confidenceText words a confidence: "95 %", "99.9 %".
func confidenceText(confidence float64) string {
	return fmt.Sprintf("%.4g %%", 100*confidence)
}

// sentence ends text with a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// join puts sentences in a row, leaving out empty ones.
func join(sentences ...string) string {
	var list []string
	for _, s := range sentences {
		if s != "" {
			list = append(list, s)
		}
	}
	return strings.Join(list, " ")
}
