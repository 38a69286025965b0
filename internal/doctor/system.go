package doctor

import (
	"fmt"
	"time"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/stages"
)

// openFiles tells how many files this process may have open.
func openFiles(m *Machine) Finding {
	return m.limit("Max open files", func(limit float64) Finding {
		if limit < 1024 {
			return of(Note, limit, "files", "%.0f at a time: many workers may run out.", limit).
				fix("`ulimit -n 4096`, \"nofile 4096\" in /etc/security/limits.conf, or docker run --ulimit nofile=4096.")
		}
		return of(OK, limit, "files", "%.0f at a time", limit)
	})
}

// slowClock is what a read of the clock may take: workers read it at every hand-over.
const slowClock = 250 * time.Nanosecond

// clock tells where the time comes from, and what reading it takes.
func clock(m *Machine) Finding {
	const folder = "sys/devices/system/clocksource/clocksource0/"
	source, err := m.read(folder + "current_clocksource")
	if err != nil || source == "" {
		source = "source unknown"
	}
	cost := float64(m.ClockRead.Nanoseconds())
	if m.ClockRead <= slowClock {
		return of(OK, cost, "ns", "%s, read in %s", source, ui.Duration(m.ClockRead))
	}
	f := of(Note, cost, "ns", "%s, read in %s. Workers read it at every hand-over, so fast stages get slower.", source, ui.Duration(m.ClockRead))
	if others, err := m.read(folder + "available_clocksource"); err == nil && others != "" {
		return f.fix(fmt.Sprintf("The kernel offers %s: as root, write one to /%scurrent_clocksource; tsc is the fastest.", others, folder))
	}
	return f
}

// jpegDecoder tells which decoder this program was built with.
func jpegDecoder(m *Machine) Finding {
	if m.JPEGDecoder == "libjpeg-turbo" {
		return Finding{State: OK, Text: m.JPEGDecoder}
	}
	return Finding{State: Note, Text: m.JPEGDecoder + ", two to three times as slow as libjpeg-turbo"}.
		fix("Install libjpeg-turbo's headers (`make deps`) and build anew with `make build`.")
}

// blas tells which BLAS the CPU's training step was built with.
func blas(m *Machine) Finding { return Finding{State: OK, Text: m.BLAS} }

// results tells whether runs can be stored.
func results(m *Machine) Finding {
	r := &m.Results
	const elsewhere = "Choose another place with --db or PIPECTL_DB"
	switch {
	case r.Err != nil:
		return Finding{State: Problem, Text: fmt.Sprintf("%s can't be written: %v.", r.Path, r.Err)}.fix(elsewhere + ".")
	case r.Space == nil:
		return Finding{State: OK, Text: r.Path + " can be written"}
	case r.Space.Free < gib:
		return of(Note, float64(r.Space.Free), "bytes", "%s can be written; %s are free.", r.Path, stages.Bytes(r.Space.Free)).
			fix("Free some disk space. " + elsewhere + ".")
	}
	return of(OK, float64(r.Space.Free), "bytes", "%s can be written; %s are free", r.Path, stages.Bytes(r.Space.Free))
}
