package bisect

import (
	"fmt"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

// The codes of a report's advice.
const (
	MoreWorkers     = "more_workers"     // its workers are at their limit and the CPU isn't
	CheaperOperator = "cheaper_operator" // the CPU is at its limit
	CheaperHandover = "cheaper_handover" // batches of a fused pool take long to reach the main process
	KeepCheckpoint  = "keep_checkpoint"  // what it makes is the same in every epoch and can be stored
	Pinned          = "pinned"           // the transfer starts from pageable memory
	NothingToGain   = "nothing_to_gain"  // the step is the slowest
)

// mostlyIdle is the share of busy cores below which a stage with a worker for each of them must be waiting rather than
// computing, so that still more workers help.
const mostlyIdle = 0.5

// waiting is the share of a stage's busy time up to which what all of the pipeline computes makes the stage one that waits. Others' work on
// the machine makes computing look like waiting, hardly by so much.
const waiting = 0.2

func (s *session) advise(code string, stage int, format string, args ...any) {
	s.report.Advice = append(s.report.Advice, Advice{Code: code, Address: s.address(stage), Text: fmt.Sprintf(format, args...)})
}

// adviseOn adds what follows from the evidence about the named stage.
func (s *session) adviseOn(named int) {
	st := s.plan.Experiment.Stages[named]
	load := s.load(s.baseline().intervals)
	used, known := s.cpu(load)
	switch busy := s.utilisation(load, named); {
	case named == s.train():
		s.advise(NothingToGain, named, "No change before the step is worth the effort: make the step faster, or stop here.")
	case st.Block == engine.TransferBlock:
		if spec, ok := st.Spec.(*engine.TransferSpec); ok && !spec.Pinned {
			s.advise(Pinned, named, "Set pinned = true: a copy from pinned memory needs no detour through a staging buffer.")
		}
	case st.Block == engine.BatchBlock && s.plan.Fused && s.handsOver(load, named):
		s.advise(CheaperHandover, named, "Little of it is collating: most is handing batches over to the main process. Hand over fewer bytes: samples as uint8 "+
			"rather than float32, normalised on the device, or smaller ones.")
	case known && used < fullyBusy && busy < fullyBusy && !s.plan.Fused: // it is no matter of workers
	case known && used < fullyBusy && (s.segmentOf(named).Workers < s.options.Cores || used < mostlyIdle):
		s.advise(MoreWorkers, named, "%s busy %.0f %% of the time, while %s at most %.0f %% busy: %s.",
			s.crew(named), 100*busy, s.cores(), 100*used, s.reinforce(named))
	case s.waits(load, named) && !s.plan.Fused:
		s.advise(MoreWorkers, named, "%s busy %.0f %% of the time, and little of that is computing: it waits, for storage or something else. More workers wait side by side: %s.",
			s.crew(named), 100*busy, s.reinforce(named))
	default:
		s.adviseCheaper(named, used, known)
	}
}

// waits reports whether a stage is busy without computing: all of the pipeline takes less of the CPU than a small part of its busy time.
func (s *session) waits(load []float64, stage int) bool {
	var share []float64
	for _, iv := range s.baseline().intervals {
		if iv.CPU >= 0 {
			share = append(share, iv.CPU/max(load[stage]*float64(max(s.segmentOf(stage).Workers, 1)), 1e-9))
		}
	}
	return len(share) > 0 && median(share) < waiting
}

// handsOver reports whether most of what a fused pool's batch stage costs is not its work: then it is the handing over.
func (s *session) handsOver(load []float64, batch int) bool {
	x := s.find(engine.Probe{From: batch, To: batch + 1})
	return x != nil && load[batch]*s.baseTime() < s.gain(x)/2
}

// crew calls a stage's workers by name, as the start of a sentence about them.
func (s *session) crew(stage int) string {
	g := s.segmentOf(stage)
	whose, workers, are := "Its", fmt.Sprintf("%d workers", g.Workers), "are"
	if g.Workers == 1 {
		workers, are = "one worker", "is"
	}
	switch {
	case g.Workers == 0:
		return fmt.Sprintf("The main process, which does the work of pool %s between the steps, is", g.Pool)
	case g.Pool != "":
		whose, workers = "The", workers+" of pool "+g.Pool
	case g.First < g.Last:
		whose, workers = "The", fmt.Sprintf("%s of %s to %s", workers, s.address(g.First), s.address(g.Last))
	}
	return whose + " " + workers + " " + are
}

// reinforce says how to add a worker to those of a stage.
func (s *session) reinforce(stage int) string {
	g := s.segmentOf(stage)
	whom := "it"
	switch {
	case g.Pool != "":
		whom = "the pool"
	case g.First < g.Last:
		whom = "them"
	}
	more := "one more"
	switch g.Workers {
	case 0:
		more = "a worker"
	case 1:
		more = "a second worker"
	}
	return fmt.Sprintf("give %s %s (workers = %d)", whom, more, g.Workers+1)
}

// cores starts a statement about the CPU.
func (s *session) cores() string {
	if s.options.Cores == 1 {
		return "the one core is"
	}
	return fmt.Sprintf("the %d cores are", s.options.Cores)
}

// adviseCheaper adds the ways to make a stage cost less CPU.
func (s *session) adviseCheaper(named int, used float64, known bool) {
	why := "More workers help only if cores are free."
	if known {
		why = fmt.Sprintf("As %s %.0f %% busy, more workers would hardly help.", s.cores(), 100*used)
	}
	s.advise(CheaperOperator, named, "%s Make the stage cheaper: smaller inputs, a fused or faster operator.", why)
	for _, st := range s.plan.Experiment.Stages[:named+1] {
		if st.Block != stages.Load && st.Block != stages.Prepare {
			return
		}
	}
	if s.plan.Experiment.Stages[named].Block != stages.Prepare || len(s.plan.Experiment.Loads()) > 1 {
		return
	}
	size := ""
	if n := s.plan.Types[named+1].Size(); n > 0 {
		size = fmt.Sprintf(", %s a sample,", stages.Bytes(n))
	}
	s.advise(KeepCheckpoint, named, "Its output is the same in every epoch: storing it%s saves the work after the first.", size)
}

// cpu returns the share of the cores that the baseline kept busy: measured where the intervals tell, or else at most, as
// if all workers computed whenever they were busy; known is false where that is no bound below 1.
func (s *session) cpu(load []float64) (used float64, known bool) {
	if s.options.Cores <= 0 {
		return 0, false
	}
	var measured []float64
	for _, iv := range s.baseline().intervals {
		if iv.CPU >= 0 { // cores that others use aren't free either
			measured = append(measured, min((iv.CPU+max(iv.Others, 0))/float64(s.options.Cores), 1))
		}
	}
	if len(measured) > 0 {
		return median(measured), true
	}
	for i, v := range load {
		used += v * float64(max(s.segmentOf(i).Workers, 1)) / float64(s.options.Cores)
	}
	return used, used < fullyBusy
}
