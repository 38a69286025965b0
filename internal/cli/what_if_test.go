package cli

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
)

func TestWhatIfView(t *testing.T) {
	v := whatIfView{
		FormatVersion: formatVersion, Type: "what_if", Experiment: "photos", Run: "6a3f9k2m0x", Confidence: 0.95,
		Changes: []whatIfChange{
			{"prepare.decode", "workers", "8", pointer(2.0)}, {"train.step", "cost", "0.5x", pointer(290.3)}, {"batch", "prefetch", "4", nil},
		},
		Baseline: rateView{estimate(0.889, 2)}, Predicted: rateView{estimate(3.41, 4)}, Speedup: estimate(3.84, 4),
		Limit:    limitView{pointer("prepare.decode"), []string{"prepare.decode", "augment.crop"}, 0.98, pointer(0.71)},
		Warnings: []noteView{},
	}
	cpu := v
	cpu.Limit = limitView{nil, []string{"prepare.decode"}, 1, pointer(1.0)}
	for name, v := range map[string]whatIfView{"what_if": v, "what_if_cpu": cpu} {
		goldenViews(t, name, func(out *bytes.Buffer, term ui.Terminal) { page{out, term}.whatIf(&v) })
		goldenJSON(t, name, v)
	}
}

func TestChangedSettings(t *testing.T) {
	set := func(address, attribute, value string) engine.Setting {
		return engine.Setting{Address: address, Attribute: attribute, Value: value}
	}
	a := []engine.Setting{set("", "seed", "1"), set("batch", "size", "8"), set("prepare.x", "", `"sleep"`)}
	for _, tt := range []struct {
		b    []engine.Setting
		want []string
	}{
		{[]engine.Setting{a[1], a[0], a[2]}, []string{"the order of its blocks"}},
		{[]engine.Setting{a[0], set("batch", "size", "9"), a[2]}, []string{"batch.size"}},
		{[]engine.Setting{a[1], a[2], set("prepare.y", "time", "1")}, []string{"prepare.y.time", "seed"}},
	} {
		if got := changedSettings(a, tt.b); !slices.Equal(got, tt.want) {
			t.Errorf("%v, want %v", got, tt.want)
		}
	}
}

func TestCoresOf(t *testing.T) {
	for _, tt := range []struct {
		host results.Host
		want float64
	}{
		{results.Host{}, 0},
		{results.Host{CPUs: 8}, 8},
		{results.Host{CPUs: 8, GOMAXPROCS: 4}, 4},
		{results.Host{GOMAXPROCS: 4, CPUQuota: pointer(1.5)}, 1.5},
	} {
		if got := coresOf(&tt.host); got != tt.want {
			t.Errorf("%+v: %g cores, want %g", tt.host, got, tt.want)
		}
	}
}

// TestWhatIfWithoutRun says what to do where there is nothing to start from.
func TestWhatIfWithoutRun(t *testing.T) {
	db := filepath.Join(t.TempDir(), "results.db")
	storeRun(t, db, "others", 3)
	w, _, _ := world()
	s := &state{State: w, db: db}
	_, err := s.measuredRun(t.Context(), ".", "photos", latestRun)
	if want := `no session of experiment "photos" is stored in ` + db + "; a prediction starts from one: do `pipectl run` first"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if run, err := s.measuredRun(t.Context(), ".", "others", latestRun); err != nil || run.Experiment != "others" {
		t.Errorf("%+v, %v", run, err)
	}
}
