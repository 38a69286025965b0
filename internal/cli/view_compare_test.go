package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

// stored returns a run of the photos' pipeline with n rounds of each probe, the baseline's and the ceiling's step rates
// among them. Without rounds there is no report.
func stored(id string, n int, baseline, ceiling float64) *results.Stored {
	var addresses []string
	run := &results.Stored{
		Summary: results.Summary{
			ID: id, Experiment: "photos", Kind: results.Session, Status: results.Done, Started: began, Finished: began.Add(92 * time.Second),
			Verdict: bisect.InputBound, Bottleneck: "prepare.decode", Hostname: "box", HostKey: "k", Version: "v0.1.0",
		},
		Args: []string{"run", "photos.hcl"}, Seed: 42, Path: "/home/ada/photos/photos.hcl", Fingerprint: "3f29ab01",
		Host: results.Host{
			Hostname: "box", OS: "linux, debian 12.5", Kernel: "6.1.0", Arch: "amd64", CPU: "Example CPU 9000", Cores: 8, CPUs: 16, GOMAXPROCS: 8,
			CPUQuota: pointer(8.0), Governor: "performance", NUMANodes: 2, Affinity: "0-7,16-19", CPUCache: 32 << 20, Memory: 32 << 30, Go: "go1.26.8", Device: "cpu", DeviceName: "Example CPU 9000",
		},
		Settings: []engine.Setting{
			{Attribute: "seed", Value: "42"}, {Address: "load.photos", Attribute: "path", Value: `"./photos"`},
			{Address: "prepare.decode", Attribute: "workers", Value: "1"}, {Address: "batch", Attribute: "size", Value: "64"},
		},
		Report: inputBoundReport(),
	}
	for _, s := range photos {
		addresses = append(addresses, s.address)
		run.Stages = append(run.Stages, results.Stage{Address: s.address, Checkpoint: s.checkpoint})
	}
	if n == 0 {
		run.Report, run.Verdict, run.Bottleneck = nil, "", ""
		return run
	}
	run.Baseline = &bisect.Estimate{Median: baseline, Low: 0.99 * baseline, High: 1.01 * baseline}
	run.Probes = []results.Probe{
		{Role: results.Baseline, Rounds: intervals(n, baseline, addresses...)},
		{Probe: engine.Probe{To: 7}, Role: results.Ceiling, After: "transfer", Frees: addresses[:7], Rounds: intervals(n, ceiling)},
		{Probe: engine.Probe{From: 1, To: 2}, Role: results.Isolated, After: "prepare.decode", Checkpoint: "decoded", Frees: addresses[1:2],
			Rounds: intervals(n, 0.97*ceiling)},
		{Probe: engine.Probe{To: 2}, Role: results.Cached, After: "prepare.decode", Checkpoint: "decoded", Frees: addresses[:2],
			Rounds: intervals(n, 0.98*ceiling)},
	}
	return run
}

func TestWriteComparison(t *testing.T) {
	faster := stored("6a3f9k2m1z", 6, 3.38, 3.49)
	faster.Tags = []string{"more-workers"}
	faster.Verdict, faster.Bottleneck = bisect.StepBound, "train.step"
	faster.Host.Hostname, faster.Host.Cores = "bigger-box", 64
	faster.Settings[2].Value = "8"
	faster.Settings = append(faster.Settings[:3], faster.Settings[2:]...)
	faster.Settings[3] = engine.Setting{Address: "prepare.decode", Attribute: "prefetch", Value: "32"}
	faster.Settings = append(faster.Settings, engine.Setting{Address: "bisect", Attribute: "rounds", Value: "6"})
	faster.Probes = faster.Probes[:3]
	few := stored("6a3f9k2m1y", 2, 0.9, 3.5)
	few.Status, few.Report, few.Verdict = results.Interrupted, nil, ""
	for _, tt := range []struct {
		name string
		a, b *results.Stored
	}{
		{"faster", stored("6a3f9k2m0x", 6, 0.889, 3.49), faster},
		{"slower", faster, stored("6a3f9k2m0x", 6, 0.889, 3.49)},
		{"alike", stored("6a3f9k2m0x", 6, 0.889, 3.49), stored("6a3f9k2m0y", 6, 0.8891, 3.49)},
		{"few_rounds", stored("6a3f9k2m0x", 6, 0.889, 3.49), few},
		{"nothing_measured", stored("6a3f9k2m0x", 6, 0.889, 3.49), stored("6a3f9k2m0y", 0, 0, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := results.Compare([]results.Column{{Runs: []*results.Stored{tt.a}}, {Runs: []*results.Stored{tt.b}}}, 0.95)
			goldenViews(t, "compare_"+tt.name, func(out *bytes.Buffer, term ui.Terminal) {
				writeComparison(out, term, c, began.Add(2*time.Hour))
			})
			goldenJSON(t, "compare_"+tt.name, newComparisonView(c))
		})
	}
}

func TestParsePercent(t *testing.T) {
	for text, want := range map[string]float64{"5%": 0.05, "5": 0.05, " 2.5 % ": 0.025, "0": 0, "": -1, "-1": -1, "100%": -1, "nan": -1, "5%%": -1, "inf": -1} {
		got, err := parsePercent(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("parsePercent(%q) = %v (%v), want %v", text, got, err, want)
		}
	}
}
