package cli

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/engine/bisect"
	"github.com/pipectl/pipectl/internal/ui"
)

const (
	redraw     = 200 * time.Millisecond // of the live display
	lineEvery  = 10 * time.Second       // a line of progress where there is no terminal
	liveStages = 16                     // stages that the live display shows at most
)

// progress shows how far a run is: on a terminal a few lines that are drawn again and again, elsewhere a line from time to
// time.
type progress struct {
	w    io.Writer
	term ui.Terminal
	live func() (engine.Live, bool)
	// addresses are those of the stages, in the pipeline's order.
	addresses []string

	mu       sync.Mutex
	began    time.Time
	title    string // "probe 3 of about 7"
	unit     string // of done and expected
	done     int
	expected int
	filling  bool        // the first probe with caches has begun, and with it their filling
	filled   bool        // it is over
	last     engine.Live // the latest of the run under way
	drawn    int         // lines of the live display on the terminal

	quit chan struct{}
	wg   sync.WaitGroup
}

// newProgress starts to show the run's progress. It shows nothing where it shall be quiet.
func (r *session) newProgress() *progress {
	p := &progress{w: r.Err, term: r.errTerm, live: r.pipeline.Live, began: time.Now()}
	for _, stage := range r.pipeline.Plan.Experiment.Stages {
		p.addresses = append(p.addresses, stage.Address)
	}
	if r.options.quiet {
		return p
	}
	device := r.pipeline.Device()
	fmt.Fprintf(p.w, "Run %s of experiment %s on %s: %s\n", r.stored.ID(), r.experiment.Name, device.Name, device.Why)
	p.start(r.json && r.outTerm.Interactive)
	return p
}

// start begins to show. Where events go to the same terminal, it is no live display.
func (p *progress) start(events bool) {
	p.term.Interactive = p.term.Interactive && !events
	interval := lineEvery
	if p.term.Interactive {
		interval = redraw
	}
	p.quit = make(chan struct{})
	p.wg.Go(func() { p.loop(interval) })
}

// loop shows the progress until the run ends.
func (p *progress) loop(interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-ticker.C:
			p.mu.Lock()
			p.show()
			p.mu.Unlock()
		}
	}
}

// close ends the display and takes it off the terminal.
func (p *progress) close() {
	if p.quit == nil {
		return
	}
	close(p.quit)
	p.wg.Wait()
	io.WriteString(p.w, p.erase())
}

// probe says that a probe is measured for the first time.
func (p *progress) probe(e bisect.ProbeStarted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.title, p.unit = fmt.Sprintf("probe %d of about %d", e.Number, e.Expected), "interval"
	p.filling = !p.filled && !e.Probe.Baseline()
}

// round says that an interval was measured.
func (p *progress) round(e bisect.RoundDone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.expected = e.Done, e.Expected
	p.filled = p.filled || !e.Probe.Baseline()
	p.filling = p.filling && !p.filled
}

// step says that a step of a training was done.
func (p *progress) step(epoch, epochs, done, expected int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.title, p.unit = fmt.Sprintf("epoch %d of %d", epoch, epochs), "step"
	p.done, p.expected = done, expected
}

// print writes a line elsewhere, above the display where both go to the same terminal.
func (p *progress) print(w io.Writer, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	io.WriteString(p.w, p.erase())
	fmt.Fprintln(w, line)
}

// erase returns what takes the display off the terminal.
func (p *progress) erase() string {
	if p.drawn == 0 {
		return ""
	}
	up := fmt.Sprintf("\x1b[%dA\x1b[J", p.drawn)
	p.drawn = 0
	return up
}

// show writes the state of the run.
func (p *progress) show() {
	if live, ok := p.live(); ok {
		p.last = live
	}
	if p.title == "" {
		return
	}
	if !p.term.Interactive {
		fmt.Fprintf(p.w, "%s: %s\n", p.heading(), p.summary())
		return
	}
	lines := []string{p.heading(), p.bar() + p.summary()}
	lines = append(lines, p.stages()...)
	erase := p.erase()
	p.drawn = len(lines)
	for i, line := range lines {
		lines[i] = ui.Shorten(line, p.term.Width-1)
	}
	io.WriteString(p.w, erase+strings.Join(lines, "\n")+"\n")
}

// heading says what is being measured.
func (p *progress) heading() string {
	probe := p.last.Probe
	switch {
	case p.last.Elapsed == 0 || p.unit != "interval":
		return p.title
	case probe.Baseline() && p.filling:
		return p.title + ", filling the caches"
	case probe.Baseline():
		return p.title + ", the pipeline as it is"
	case probe.Burn > 0:
		return p.title + ", the step alone beside a burner of CPU time"
	}
	return p.title + ", from a cache: " + rangeName(p.addresses[probe.From:probe.To])
}

// summary words how far the run is, its step rate, and the time that is left.
func (p *progress) summary() string {
	parts := []string{"starting"}
	if p.expected > 0 {
		parts = []string{fmt.Sprintf("%d of about %s", p.done, count(p.expected, p.unit))}
	}
	if p.last.Elapsed > 0 && p.last.Steps > 0 {
		parts = append(parts, ui.Number(p.last.Interval.Rate())+" steps/s")
	}
	if p.done > 0 && p.expected > 0 {
		left := time.Since(p.began) / time.Duration(p.done) * time.Duration(p.expected-p.done)
		parts = append(parts, fmt.Sprintf("about %d:%02d min left", int(left.Minutes()), int(left.Seconds())%60))
	}
	return strings.Join(parts, ", ")
}

// bar draws how much of the run is done.
func (p *progress) bar() string {
	const width = 24
	share := 0.0
	if p.expected > 0 {
		share = float64(p.done) / float64(p.expected)
	}
	bar := ui.Bar(share, width, p.term.ASCII)
	return bar + strings.Repeat(" ", width+1-len([]rune(bar)))
}

// stages draws how busy the stages' workers have been since the interval under way began.
func (p *progress) stages() []string {
	t := ui.Table{Columns: []ui.Column{{Min: 12}, {Bar: 40, Min: 8}, {Right: true}}}
	for i, a := range p.last.Stages {
		if i == liveStages {
			break
		}
		busy := a.Busy.Seconds() / (p.last.Elapsed.Seconds() * float64(max(a.Workers, 1)))
		t.Row(ui.Cell{Text: a.Address}, ui.Cell{Bar: min(busy, 1)}, ui.Cell{Text: ui.Percent(min(busy, 1))})
	}
	return strings.Split(strings.TrimSuffix(t.Render(p.term), "\n"), "\n")
}
