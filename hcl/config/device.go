package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

// hostAttributes are the common attributes that say how the host executes a stage.
func hostAttributes() []string { return []string{"workers", "prefetch", "on_error", "max_skips"} }

// onDevice reports whether the device does the stage's work.
func (b *block) onDevice() bool {
	return b.shipped && b.device.Device && !b.byName["device"].faulty
}

// checkDevice checks the stages behind the transfer and those on the device, which should be the same, and where checkpoints want
// their caches. It needs the values of all blocks.
func (l *loader) checkDevice(e *experiment) {
	for _, b := range e.stages {
		if b.device == nil || b.outOfOrder {
			continue
		}
		able := b.spec == nil || stages.OnDevice(b.spec)
		switch {
		case b.byName["device"].faulty:
			e.disordered = e.disordered || b.shipped
		case b.device.Device:
			l.checkOnDevice(b, able)
		case b.shipped:
			e.disordered = true
			detail := "Below the transfer, batches are on the device. Move this block above batch"
			if able {
				detail += ", or let the device do its work with device = true"
			}
			l.failIn(b, b.syntax.DefRange(), title(b.kind)+" after transfer", detail+".")
		}
	}
	for i, b := range e.stages {
		if b.checkpoint != nil && !e.disordered {
			l.checkStore(e, i)
		}
	}
}

// checkOnDevice checks a block with device = true. able says whether devices can do its work.
func (l *loader) checkOnDevice(b *block, able bool) {
	report := func(summary, detail string) { l.failIn(b, b.byName["device"].subject, summary, detail) }
	switch {
	case !able:
		var types []string
		for _, op := range l.Registry.Operators() {
			if stages.OnDevice(op.New()) {
				types = append(types, op.Type)
			}
		}
		detail := "No type here can be."
		if len(types) > 0 {
			detail = "Those that can be are " + strings.Join(types, ", ") + "."
		}
		report("Not for the device", fmt.Sprintf("%s %q can't be done on the device. %s Move the block above batch, without device.", b.kind, b.typ, detail))
	case b.pool != nil:
		report("Not for the device", "The stages in a pool are run by its workers, on the host. Move this block out of the pool, between transfer and train.")
	case !b.shipped && b.experiment.single[engine.TransferBlock] == nil:
		report("Device stage without a transfer", "The device works on batches that were copied to it. Put a transfer block below batch, and this block below that.")
	case !b.shipped:
		report("Device stage above the transfer", "The device works on batches that were copied to it. Move this block between transfer and train, or remove device.")
	default:
		for _, name := range hostAttributes() {
			if f := b.byName[name]; f.syntax != nil {
				l.failIn(b, f.syntax.NameRange, "Misplaced attribute", fmt.Sprintf("The device does the stage's work on whole batches, as the transfer "+
					"brings them, so it has no %s. Remove it.", name))
			}
		}
	}
}

// checkStore checks whether the checkpoint behind stage i can have its cache where it wants it.
func (l *loader) checkStore(e *experiment, i int) {
	c := e.stages[i].checkpoint
	if c.byName["store"].faulty || c.byName["mode"].faulty {
		return
	}
	if s := c.spec.(*checkpointAttributes); s.Store == engine.DiskStore && s.Mode != engine.OffMode {
		l.checkDisk(e.stages[:i+1], c, s.Mode == engine.KeepMode)
		return
	}
	report := func(summary, detail string) {
		l.problem(c, stages.Problem{Attribute: "store", Summary: summary, Detail: detail})
	}
	transfer := e.single[engine.TransferBlock]
	switch c.spec.(*checkpointAttributes).Store {
	case engine.PinnedStore:
		if e.stages[i].kind != engine.BatchBlock {
			report("Misplaced store", `store = "pinned" keeps whole batches on the host: it is for a checkpoint right below batch. Use "memory".`)
		} else if transfer != nil && !transfer.byName["pinned"].faulty && !transfer.spec.(*transferAttributes).Pinned {
			report("Batches aren't pinned", `With pinned = false at the transfer, batches aren't in page-locked memory. Remove that, or use store = "memory".`)
		}
	case engine.DeviceStore:
		if transfer == nil || i < slices.Index(e.stages, transfer) || e.stages[i+1].kind != stages.Train {
			report("Misplaced store", `store = "device" keeps batches as the step gets them: it is for a checkpoint right above train, behind a transfer. Use "memory".`)
		}
	}
}
