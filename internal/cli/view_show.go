package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/internal/doctor"
	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/results"
	"github.com/pipectl/pipectl/stages"
)

// writeRun shows a stored run: its facts, and its report. now is the time that the reader sees it at.
func writeRun(w io.Writer, term ui.Terminal, run *results.Stored, settings bool, now time.Time) {
	p := page{w, term}
	fmt.Fprintln(w, term.Paint(ui.Strong, "Run "+run.ID), "of", ui.Clean(run.Experiment))
	p.facts(run, now)
	p.blank()
	if settings {
		p.settings(run.Settings)
		p.blank()
	}
	writeReport(w, term, reportOf(run), about{Kind: run.Kind, Status: run.Status, Error: run.Error, Skipped: run.Skipped})
}

// facts writes what is known of a run besides its measurements.
func (p page) facts(run *results.Stored, now time.Time) {
	started := fmt.Sprintf("%s (%s)", run.Started.In(now.Location()).Format(time.DateTime), ui.Ago(run.Started, now))
	if d, ok := run.Duration(); ok {
		started += ", took " + ui.Duration(d)
	}
	command := ""
	if len(run.Args) > 0 {
		command = "pipectl " + strings.Join(run.Args, " ")
	}
	for _, fact := range []struct{ name, value string }{
		{"started", started},
		{"status", statusText(&run.Summary)},
		{"tags", strings.Join(run.Tags, ", ")},
		{"part of", partText(run.Part)},
		{"file", run.Path},
		{"command", command},
		{"host", hostText(&run.Host)},
		{"device", deviceText(&run.Host)},
		{"GPU before", doctor.GPUText(run.Host.GPU)},
		{"GPU after", doctor.GPUText(run.Host.GPUEnd)},
		{"pipectl", strings.TrimSuffix(run.Version+", "+run.Host.Go, ", ")},
		{"seed", fmt.Sprint(run.Seed)},
		{"fingerprint", run.Fingerprint},
	} {
		if fact.value != "" {
			p.prose(ui.Plain, fmt.Sprintf("  %-12s", fact.name), fact.value)
		}
	}
}

// partText words which session a run is a part of, and what is different in it.
func partText(p *results.Part) string {
	switch {
	case p == nil:
		return ""
	case p.Change == "":
		return p.Session + ", unchanged"
	}
	return p.Session + ", with " + p.Change
}

// statusText words how a run ended, and why it failed.
func statusText(run *results.Summary) string {
	if run.Error != "" {
		return string(run.Status) + ": " + run.Error
	}
	return string(run.Status)
}

// hostText words what is known of a host.
func hostText(h *results.Host) string {
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(h.Hostname != "", "%s", h.Hostname)
	add(h.CPU != "", "%s", h.CPU)
	add(h.Cores > 0, "%d cores", h.Cores)
	add(h.CPUs > 0, "%d logical CPUs", h.CPUs)
	if h.CPUQuota != nil {
		add(true, "of which %s may be used", ui.Number(*h.CPUQuota))
	}
	add(h.GOMAXPROCS > 0 && h.GOMAXPROCS != h.CPUs, "GOMAXPROCS %d", h.GOMAXPROCS)
	add(h.Governor != "", "CPU governor %s", h.Governor)
	add(h.Affinity != "", "bound to CPUs %s", h.Affinity)
	add(h.NUMANodes > 0, "%s", count(h.NUMANodes, "NUMA node"))
	add(h.CPUCache > 0, "%s of last-level cache", stages.Bytes(h.CPUCache))
	add(h.Memory > 0, "%s of memory", stages.Bytes(h.Memory))
	add(h.OS != "", "%s", h.OS)
	add(h.Kernel != "", "kernel %s", h.Kernel)
	add(h.Arch != "", "%s", h.Arch)
	return strings.Join(parts, ", ")
}

// deviceText words what is known of the device that the step ran on.
func deviceText(h *results.Host) string {
	text := h.Device
	if h.DeviceName != "" {
		text += ", " + h.DeviceName
	}
	if h.DeviceMemory > 0 {
		text += ", " + stages.Bytes(h.DeviceMemory).String() + " of memory"
	}
	return strings.TrimPrefix(text, ", ")
}

// settings writes the effective value of each attribute.
func (p page) settings(settings []engine.Setting) {
	fmt.Fprintln(p.w, p.term.Paint(ui.Strong, "Settings"))
	for _, s := range settings {
		p.prose(ui.Plain, "  ", settingName(s.Address, s.Attribute)+" = "+s.Value)
	}
}

// settingName names an attribute, or the block, whose value is its type then.
func settingName(address, attribute string) string {
	return strings.Trim(address+"."+attribute, ".")
}

// runView is a stored run as a JSON object.
type runView struct {
	FormatVersion int           `json:"format_version"`
	Type          string        `json:"type"` // "run"
	Run           storedView    `json:"run"`
	Report        reportView    `json:"report"`
	Settings      []settingView `json:"settings"`
	Skipped       []skippedView `json:"skipped"`
	Host          results.Host  `json:"host"`
}

// summaryView is what a list gives of a run.
type summaryView struct {
	ID         string         `json:"id"`
	Experiment string         `json:"experiment"`
	Kind       results.Kind   `json:"kind"`
	Status     results.Status `json:"status"`
	Error      *string        `json:"error"`
	Tags       []string       `json:"tags"`
	Started    string         `json:"started"`
	Finished   *string        `json:"finished"`
	Seconds    *float64       `json:"seconds"` // it took
	Verdict    *string        `json:"verdict"`
	Bottleneck *string        `json:"bottleneck"`
	Baseline   *rateView      `json:"baseline"`
	Hostname   *string        `json:"hostname"`
	Version    string         `json:"version"` // of pipectl
	Session    *string        `json:"session"` // the run that it is a part of
	Change     *string        `json:"change"`  // what is different from that run's pipeline
}

// storedView is what is known of a run besides its measurements.
type storedView struct {
	summaryView
	Args        []string `json:"args"`
	Path        string   `json:"path"`
	Seed        uint64   `json:"seed"`
	Fingerprint string   `json:"fingerprint"`
}

type settingView struct {
	Address   string `json:"address"` // "" for the experiment's own
	Attribute string `json:"attribute"`
	Value     string `json:"value"` // as HCL
}

type skippedView struct {
	Address string `json:"address"`
	Index   int    `json:"index"`
	Item    string `json:"item"`
	Reason  string `json:"reason"`
}

func newRunView(run *results.Stored) runView {
	v := runView{
		formatVersion, "run",
		storedView{newSummaryView(&run.Summary), append([]string{}, run.Args...), run.Path, run.Seed, run.Fingerprint},
		newReportView(reportOf(run), run.ID), []settingView{}, []skippedView{}, run.Host,
	}
	for _, s := range run.Settings {
		v.Settings = append(v.Settings, settingView(s))
	}
	for _, s := range run.Skipped {
		v.Skipped = append(v.Skipped, skippedView(s))
	}
	return v
}

func newSummaryView(run *results.Summary) summaryView {
	v := summaryView{
		ID:         run.ID,
		Experiment: run.Experiment,
		Kind:       run.Kind,
		Status:     run.Status,
		Error:      orNull(run.Error),
		Tags:       append([]string{}, run.Tags...),
		Started:    timestamp(run.Started),
		Verdict:    orNull(string(run.Verdict)),
		Bottleneck: orNull(run.Bottleneck),
		Baseline:   newRateView(run.Baseline),
		Hostname:   orNull(run.Hostname),
		Version:    run.Version,
	}
	if p := run.Part; p != nil {
		v.Session, v.Change = &p.Session, &p.Change
	}
	if !run.Finished.IsZero() {
		v.Finished = orNull(timestamp(run.Finished))
	}
	if d, ok := run.Duration(); ok {
		v.Seconds = finite(d.Seconds())
	}
	return v
}
