package cli

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

func TestWriteRun(t *testing.T) {
	whole := stored("6a3f9k2m0x", 6, 0.889, 3.49)
	whole.Tags = []string{"base", "v1"}
	whole.Skipped = []engine.SkippedItem{{Address: "prepare.decode", Index: 3, Item: "photos/cat/cat_03.jpg", Reason: "decoding a JPEG: it ends too early"}}

	// As a kill leaves it: no report, no end.
	killed := stored("6a3f9k2m0y", 3, 0.889, 3.49)
	killed.Report, killed.Verdict, killed.Bottleneck, killed.Baseline = nil, "", "", nil
	killed.Status, killed.Finished = results.Interrupted, time.Time{}
	killed.Notes = []bisect.Note{{Code: bisect.CacheLimit, Text: "The boundary after augment.crop is left out: its cache can't hold one batch."}}

	failed := stored("6a3f9k2m0z", 0, 0, 0)
	failed.Status, failed.Error = results.Failed, errors.New("prepare.decode: photos/cat/cat_03.jpg: decoding a JPEG: it ends too early").Error()
	failed.Host, failed.Args = results.Host{}, nil

	epochs := stored("6a3f9k2m10", 1, 2.5, 1)
	epochs.Kind, epochs.Probes, epochs.Report, epochs.Verdict = results.Epochs, epochs.Probes[:1], nil, ""

	one := stored("6a3f9k2m11", 6, 2.5, 3.5)
	one.Kind, one.Probes, one.Report, one.Verdict, one.Status = results.OneProbe, one.Probes[3:], nil, "", results.Running
	one.Host.Device, one.Host.DeviceName, one.Host.DeviceMemory = "cuda", "NVIDIA T4", 15<<30
	one.Host.GPU, one.Host.GPUEnd = gpuFacts(0, 300, 9.5, 34), gpuFacts(0.97, 1455, 69.6, 81)
	for name, run := range map[string]*results.Stored{"whole": whole, "killed": killed, "failed": failed, "epochs": epochs, "one_probe": one} {
		t.Run(name, func(t *testing.T) {
			goldenViews(t, "show_"+name, func(out *bytes.Buffer, term ui.Terminal) {
				writeRun(out, term, run, name == "whole", began.Add(3*24*time.Hour))
			})
			goldenJSON(t, "show_"+name, newRunView(run))
		})
	}
}

func TestWriteList(t *testing.T) {
	var runs []results.Summary
	add := func(change func(*results.Summary)) {
		r := stored("6a3f9k2m0x", 6, 0.889, 3.49).Summary
		change(&r)
		runs = append(runs, r)
	}
	add(func(r *results.Summary) {
		r.Status, r.Finished, r.Verdict, r.Bottleneck, r.Baseline = results.Running, time.Time{}, "", "", nil
	})
	add(func(r *results.Summary) { r.Tags = []string{"base", "v1"} })
	add(func(r *results.Summary) {
		r.Verdict, r.Bottleneck, r.Baseline.Median = bisect.StepBound, "train.step", 3380
	})
	add(func(r *results.Summary) { r.Verdict, r.Bottleneck = bisect.Undecided, "" })
	add(func(r *results.Summary) {
		r.Status, r.Verdict, r.Bottleneck, r.Finished = results.Interrupted, "", "", time.Time{}
	})
	add(func(r *results.Summary) { r.Status, r.Verdict, r.Error = results.Failed, "", "disk full" })
	add(func(r *results.Summary) { r.Kind, r.Verdict, r.Bottleneck = results.OneProbe, "", "" })
	add(func(r *results.Summary) {
		r.Experiment, r.Bottleneck = "an-experiment-with-a-name-that-never-ends", "prepare.a_stage_with_a_name_that_never_ends_either"
		r.Tags = []string{"a-tag-that-is-long", "another-tag-that-is-long"}
		r.Started = began.Add(-1000 * time.Hour)
		r.Finished = r.Started.Add(3 * time.Hour)
	})
	now := began.Add(5 * time.Minute)
	goldenViews(t, "list", func(out *bytes.Buffer, term ui.Terminal) { writeList(out, term, runs, now) })
	goldenViews(t, "list_untagged", func(out *bytes.Buffer, term ui.Terminal) { writeList(out, term, runs[:1], now) })
	goldenJSON(t, "list", newListView(runs))
	goldenJSON(t, "list_empty", newListView(nil))
}
