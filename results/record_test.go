package results

import (
	"errors"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/gpu/nvml"
)

func ptr[T any](v T) *T { return &v }

// wholeInterval has every field set.
var wholeInterval = engine.Interval{
	Start: time.Date(2026, 3, 1, 12, 1, 30, 123456789, time.UTC), Steps: 20, Samples: 1275, Elapsed: 4*time.Second + 1,
	FirstBatch: 70 * time.Millisecond, Starved: 3 * time.Second, Skipped: 5, CPU: 1.5,
	Others: 0.5, Throttled: 3 * time.Millisecond, Swapped: 4096,
	Resident: 0.25, Frequency: 3.2e9, Overheats: 2,
	Stages: []engine.Account{
		{Address: "load.photos", Workers: 2, Items: 1280, Busy: time.Second, WaitIn: 2, WaitOut: 7 * time.Second, Queue: 0.97},
		{Address: "prepare.decode", Workers: 4, Items: 1275, Busy: 15 * time.Second, WaitIn: 4, WaitOut: 6, Queue: 0},
		{Address: "batch", Workers: 1, Items: 1275, Busy: 8, WaitIn: 9, WaitOut: 10, Queue: 0.25},
		{Address: "train.step", Workers: 1, Items: 20, Busy: time.Second, WaitIn: 3 * time.Second, WaitOut: 0, Queue: -1},
	},
}

var wholeStart = Start{
	Experiment: experiment("Fotos – 写真"),
	Kind:       Session,
	Args:       []string{"run", "-e", "Fotos – 写真", "fotos.hcl"},
	Version:    "1.0.0",
	Path:       "fotos.hcl",
	File:       "experiment \"Fotos – 写真\" {\n\t# …\n}\n",
	Part:       &Part{Session: "d6j2my0000", Change: "prepare.decode.workers = 4"},
	Host: Host{
		Hostname: "gänse", OS: "linux, debian 12.5", Kernel: "6.1.0", Arch: "amd64", CPU: "EPYC", Cores: 32, CPUs: 64, GOMAXPROCS: 8,
		CPUQuota: ptr(7.5), Governor: "performance", NUMANodes: 2, Affinity: "0-7,32-39", CPUCache: 1 << 28, Memory: 1 << 38, Go: "go1.26", Device: "cuda", DeviceName: "H200", DeviceMemory: 1 << 37,
		GPU:    &nvml.Facts{Name: "H200", Driver: "550.54.15", MemoryUsed: 1 << 29, Power: ptr(75.5)},
		GPUEnd: &nvml.Facts{Name: "H200", Driver: "550.54.15", MemoryUsed: 1 << 33, Power: ptr(512.25), Utilization: ptr(0.0)},
	},
}

// wholeReport has numbers that JSON has no words for, and lacks some that a session may lack.
var wholeReport = bisect.Report{
	Experiment: "Fotos – 写真", Verdict: bisect.InputBound, Bottleneck: "prepare.decode", Confidence: 0.95,
	Starvation:     &bisect.Estimate{Median: 0.75, Low: 0.7, High: 0.8},
	Baseline:       &bisect.Estimate{Median: 5, Low: math.Inf(-1), High: 5.5},
	SpeedupIfFixed: &bisect.Estimate{Median: 4, Low: math.Inf(-1), High: math.Inf(1)},
	Next:           "load.photos",
	Probes: []bisect.ProbeResult{
		{Rate: bisect.Estimate{Median: 5, Low: math.Inf(-1), High: 5.5}, Rounds: []engine.Interval{wholeInterval, interval(5)}},
		{Probe: engine.Probe{To: 3}, After: "batch", Stages: []string{"load.photos", "prepare.decode", "batch"},
			Rate: bisect.Estimate{Median: 20, Low: 19, High: 21}, Rounds: []engine.Interval{interval(20)}},
	},
	Isolated: []bisect.ProbeResult{{Probe: engine.Probe{From: 1, To: 2}, After: "prepare.decode", Stages: []string{"prepare.decode"},
		Rate: bisect.Estimate{Median: 19, Low: 18, High: 20}, Rounds: []engine.Interval{interval(19)}}},
	Stages:    []bisect.StageResult{{Address: "prepare.decode", Workers: 4, StepMS: &bisect.Estimate{Median: 190, Low: 180, High: 200}, Busy: ptr(0.99)}},
	PageCache: bisect.Cold,
	Control: &bisect.Control{BurnMS: 7.5, BurnedMS: 7, Rate: bisect.Estimate{Median: 18, Low: 17, High: math.Inf(1)},
		WaitingMS: &bisect.Estimate{Median: 140, Low: 130, High: 150}, InterferenceMS: &bisect.Estimate{Median: 5, Low: 4, High: 6},
		Probe: engine.Probe{To: 3, Burn: 7500 * time.Microsecond}, Rounds: []engine.Interval{interval(18)}},
	Notes:  []bisect.Note{{Code: "not_monotone", Text: "R(2) is below R(1)."}},
	Advice: []bisect.Advice{{Code: "more_workers", Address: "prepare.decode", Text: "Give it 8 workers."}},
}

// writeWhole stores a run with all that a run can have.
func writeWhole(t *testing.T, s *Store) *Run {
	t.Helper()
	start := wholeStart
	start.Host.GPUEnd, start.Host.Device = nil, "not yet known"
	run, err := s.Begin(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		run.SetHost(wholeStart.Host),
		run.AddInterval(engine.Probe{}, wholeInterval),
		run.AddInterval(engine.Probe{To: 3}, interval(20)),
		run.AddInterval(engine.Probe{To: 1}, interval(6)),
		run.AddInterval(engine.Probe{}, interval(5)),
		run.AddInterval(engine.Probe{From: 1, To: 2}, interval(19)),
		run.AddInterval(engine.Probe{To: 3, Burn: 7500 * time.Microsecond}, interval(18)),
		run.AddSkipped(
			engine.SkippedItem{Address: "prepare.decode", Index: 7, Item: "photos/ä.jpg", Reason: "truncated"},
			engine.SkippedItem{Address: "load.photos", Index: 3, Item: "photos/b.jpg", Reason: "permission denied"}),
		run.AddSkipped(),
		run.AddSkipped(engine.SkippedItem{Address: "prepare.decode", Index: 7, Item: "photos/ä.jpg", Reason: "again"}),
		run.AddNote(bisect.Note{Code: "cold", Text: "The first round was slower."}),
		run.AddNote(bisect.Note{Code: "not_monotone", Text: "R(2) is below R(1)."}),
		run.Finish(&wholeReport, Done, errors.New("this is said to have gone wrong")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return run
}

// wholeStored is what is read back of it.
var wholeStored = Stored{
	Summary: Summary{
		ID: "d6j2mz0001", Experiment: "Fotos – 写真", Kind: Session, Status: Done,
		Started: time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC), Finished: time.Date(2026, 3, 1, 12, 2, 0, 0, time.UTC),
		Error: "this is said to have gone wrong", Verdict: bisect.InputBound, Bottleneck: "prepare.decode",
		Baseline: &bisect.Estimate{Median: 5, Low: math.Inf(-1), High: 5.5}, Hostname: "gänse", HostKey: "f95324a3e6fe5a4d", Version: "1.0.0",
		Part: wholeStart.Part,
	},
	Args: wholeStart.Args, Seed: 1<<63 + 5, Path: wholeStart.Path, File: wholeStart.File, Fingerprint: "41f3d490989f75933a9342229069329edc2b0aa9ba69f55e24409c33813b0bf3",
	Host: wholeStart.Host, Settings: wholeStart.Experiment.Settings,
	Stages: []Stage{{Address: "load.photos", Checkpoint: "raw"}, {Address: "prepare.decode"}, {Address: "batch"}, {Address: "train.step"}},
	Report: &wholeReport,
	Probes: []Probe{
		{Role: Baseline, Rounds: []engine.Interval{wholeInterval, interval(5)}},
		{Probe: engine.Probe{To: 3}, Role: Ceiling, After: "batch", Frees: []string{"load.photos", "prepare.decode", "batch"},
			Rounds: []engine.Interval{interval(20)}},
		{Probe: engine.Probe{To: 1}, Role: Cached, After: "load.photos", Checkpoint: "raw", Frees: []string{"load.photos"},
			Rounds: []engine.Interval{interval(6)}},
		{Probe: engine.Probe{From: 1, To: 2}, Role: Isolated, After: "prepare.decode", Frees: []string{"prepare.decode"},
			Rounds: []engine.Interval{interval(19)}},
		{Probe: engine.Probe{To: 3, Burn: 7500 * time.Microsecond}, Role: Control, After: "batch",
			Frees: []string{"load.photos", "prepare.decode", "batch"}, Rounds: []engine.Interval{interval(18)}},
	},
	Skipped: []engine.SkippedItem{
		{Address: "load.photos", Index: 3, Item: "photos/b.jpg", Reason: "permission denied"},
		{Address: "prepare.decode", Index: 7, Item: "photos/ä.jpg", Reason: "truncated"},
	},
	Notes: []bisect.Note{{Code: "cold", Text: "The first round was slower."}, {Code: "not_monotone", Text: "R(2) is below R(1)."}},
}

func TestRoundTrip(t *testing.T) {
	// A field that is added later must be stored too.
	for _, v := range []any{wholeInterval, wholeInterval.Stages[0], wholeStart, wholeStart.Host, wholeStored.Skipped[1]} {
		for i, r := 0, reflect.ValueOf(v); i < r.NumField(); i++ {
			if r.Field(i).IsZero() {
				t.Errorf("this test leaves %T.%s empty", v, r.Type().Field(i).Name)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	id := writeWhole(t, s).ID()
	s.Close()
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&wholeStored, got); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
	list, err := s.List(t.Context(), Filter{}, 0)
	if d := cmp.Diff([]Summary{wholeStored.Summary}, list); d != "" || err != nil {
		t.Errorf("listed (-want +got):\n%s, %v", d, err)
	}
	if d, ok := got.Duration(); d != time.Minute || !ok {
		t.Errorf("duration %v, %v", d, ok)
	}
	if wholeReport.Probes[0].Rounds == nil || wholeReport.Control.Rounds == nil {
		t.Error("the caller's report lost its rounds")
	}
}

func TestFinish(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	for _, tt := range []struct {
		status  Status
		failure error
	}{{Done, nil}, {Failed, errors.New("disk on fire")}, {Interrupted, nil}} {
		run := begin(t, s, "photos")
		if got, err := s.Load(t.Context(), run.ID()); err != nil || got.Status != Running || !got.Finished.IsZero() {
			t.Errorf("before the end: %+v, %v", got, err)
		}
		if err := run.Finish(nil, tt.status, tt.failure); err != nil {
			t.Error(err)
		}
		got, err := s.Load(t.Context(), run.ID())
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != tt.status || got.Report != nil || got.Baseline != nil || tt.failure != nil && got.Error != tt.failure.Error() {
			t.Errorf("%s: %+v", tt.status, got)
		}
	}
}

// TestBadReport has a report that JSON can't express: the rest is stored.
func TestBadReport(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	run := begin(t, s, "photos")
	err := run.Finish(&bisect.Report{Verdict: bisect.StepBound, Stages: []bisect.StageResult{{Busy: ptr(math.NaN())}}}, Done, nil)
	if err == nil || !strings.HasSuffix(err.Error(), "encoding the report: json: unsupported value: NaN") {
		t.Errorf("got %v", err)
	}
	got, err := s.Load(t.Context(), run.ID())
	if err != nil || got.Status != Done || got.Verdict != bisect.StepBound || got.Report != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAddIntervalErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.db")
	s := create(t, path)
	run := begin(t, s, "photos")
	for _, tt := range []struct {
		probe engine.Probe
		want  string
	}{
		{engine.Probe{To: 4}, "storing an interval of run " + run.ID() + " (cached at 4): the pipeline has no such probe"},
		{engine.Probe{From: -1, To: 1}, "storing an interval of run " + run.ID() + " (without -1…0): the pipeline has no such probe"},
		{engine.Probe{From: 2, To: 1}, "storing an interval of run " + run.ID() + " (without 2…0): the pipeline has no such probe"},
	} {
		if err := run.AddInterval(tt.probe, interval(5)); err == nil || err.Error() != tt.want {
			t.Errorf("%v: got %v, want %s", tt.probe, err, tt.want)
		}
	}
	if _, err := s.db.Exec("DELETE FROM runs"); err != nil {
		t.Fatal(err)
	}
	want := "results database " + path + ": storing an interval of run " + run.ID() +
		" (baseline): FOREIGN KEY constraint failed: the run was removed while it was written"
	if err := run.AddInterval(engine.Probe{}, interval(5)); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestDropIntervals takes out what is measured again, and nothing of other runs.
func TestDropIntervals(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	run, other := begin(t, s, "photos"), begin(t, s, "photos")
	add := func(r *Run, rates ...float64) {
		for _, rate := range rates {
			if err := r.AddInterval(engine.Probe{}, interval(rate)); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(run, 5, 6)
	add(other, 3)
	if err := run.DropIntervals(); err != nil {
		t.Fatal(err)
	}
	add(run, 7)
	for _, tt := range []struct {
		run  *Run
		want float64
	}{{run, 7}, {other, 3}} {
		got, err := s.Load(t.Context(), tt.run.ID())
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Probes) != 1 || len(got.Probes[0].Rounds) != 1 || math.Abs(got.Probes[0].Rounds[0].Rate()-tt.want) > 1e-6 {
			t.Errorf("got %+v, want one interval of %v steps/s", got.Probes, tt.want)
		}
	}
}

func TestCollision(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	s.now = func() time.Time { return time.Date(2026, 3, 1, 12, 1, 0, 0, time.UTC) }
	draws := []uint32{1 << 14, 1 << 14, 1 << 14, 2 << 14}
	s.random = func() uint32 { r := draws[0]; draws = draws[1:]; return r }
	first, second := begin(t, s, "a").ID(), begin(t, s, "b").ID()
	if first != "d6j2mz0001" || second != "d6j2mz0002" || len(draws) != 0 {
		t.Errorf("ids %s and %s, %d draws left", first, second, len(draws))
	}
	s.random = func() uint32 { return 1 << 14 }
	if _, err := s.Begin(t.Context(), Start{Experiment: experiment("c"), Kind: Session}); err == nil {
		t.Error("an id was given twice")
	}
}

// TestGoroutines stores from many goroutines at a time.
func TestGoroutines(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "results.db"))
	run := begin(t, s, "photos")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := errors.Join(
				run.AddInterval(engine.Probe{}, interval(5)),
				run.AddSkipped(engine.SkippedItem{Address: "load.photos", Index: i}),
				run.AddNote(bisect.Note{Code: "same"})); err != nil {
				t.Error(err)
			}
			if _, err := s.Load(t.Context(), run.ID()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := s.Load(t.Context(), run.ID())
	if err != nil || len(got.Probes[0].Rounds) != 8 || len(got.Skipped) != 8 || len(got.Notes) != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestFingerprint(t *testing.T) {
	a := []engine.Setting{{Address: "a", Attribute: "b", Value: "c"}, {Address: "d", Attribute: "e", Value: "f"}}
	base := Fingerprint(a)
	if base != Fingerprint(append([]engine.Setting{}, a...)) || len(base) != 64 {
		t.Errorf("fingerprint %s is not the same for the same settings", base)
	}
	for _, b := range [][]engine.Setting{
		nil, a[:1],
		{a[1], a[0]},
		{{Address: "a", Attribute: "b c"}, a[1]},
		{{Address: "a", Attribute: "b", Value: "c\"\n\"d\" \"e\" \"f"}},
	} {
		if Fingerprint(b) == base {
			t.Errorf("the fingerprint of %v is that of %v", b, a)
		}
	}
}

// TestListSumsUpRounds has runs without a report, whose rate the list takes from the rounds of their baselines.
func TestListSumsUpRounds(t *testing.T) {
	s := create(t, filepath.Join(t.TempDir(), "r.db"))
	begin(t, s, "nothing measured")
	run := begin(t, s, "measured")
	for _, rate := range []float64{4, 5, 10} {
		if err := run.AddInterval(engine.Probe{}, interval(rate)); err != nil {
			t.Fatal(err)
		}
	}
	if err := run.AddInterval(engine.Probe{To: 3}, interval(100)); err != nil {
		t.Fatal(err)
	}
	runs, err := s.List(t.Context(), Filter{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := []*bisect.Estimate{runs[0].Baseline, runs[1].Baseline}
	want := []*bisect.Estimate{{Median: 5, Low: math.Inf(-1), High: math.Inf(1)}, nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
