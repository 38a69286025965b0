package engine

import (
	"fmt"
	"slices"

	"github.com/pipectl/pipectl/stages"
)

// arrange returns the experiment with its stages in the order in which they run: with convert = "device" the stage that makes
// tensors of images stands behind the transfer. e itself stays as it is.
func arrange(e *Experiment) (*Experiment, []Problem) {
	transfer := slices.IndexFunc(e.Stages, func(s Stage) bool {
		spec, ok := s.Spec.(*TransferSpec)
		return ok && spec.Convert == ConvertOnDevice
	})
	if transfer < 2 {
		return e, nil
	}
	moved := e.Stages[transfer-2]
	switch moved.Spec.(type) {
	case nil: // faulty: what it would do isn't known
		return e, nil
	case *stages.ToFloat, *stages.Normalize:
	default:
		return e, []Problem{{
			Address: TransferBlock, Attribute: "convert",
			Summary: "No conversion above batch",
			Detail: fmt.Sprintf(`With convert = "device" the stage right above batch is done on the device, which must be a prepare "normalize" or "to_float" that `+
				`takes images. Right above it stands %s. Move the conversion there, or leave convert out.`, moved.Address),
		}}
	}
	if c := moved.Checkpoint; c != nil && c.Mode != "off" {
		return e, []Problem{{
			Address: c.Address(),
			Summary: "Checkpoint at a boundary that isn't there",
			Detail: fmt.Sprintf(`With convert = "device" %s is done behind the transfer, so nothing lies between it and batch. Move the checkpoint above it, or `+
				`below the transfer.`, moved.Address),
		}}
	}
	moved.Device, moved.Pool, moved.Workers, moved.Prefetch, moved.OnError = true, "", 1, 0, Fail
	// What stands below the transfer keeps what comes out of it, converted.
	shipped := e.Stages[transfer]
	moved.Checkpoint, shipped.Checkpoint = shipped.Checkpoint, nil
	arranged := *e
	arranged.Stages = slices.Concat(e.Stages[:transfer-2], []Stage{e.Stages[transfer-1], shipped, moved}, e.Stages[transfer+1:])
	return &arranged, nil
}

// unreachable reports checkpoints between the transfer and the last stage on the device: a batch goes through all of them in one
// go, so that no cache can stand there.
func unreachable(e *Experiment) []Problem {
	var problems []Problem
	for i, s := range e.Stages {
		if c := s.Checkpoint; c != nil && c.Mode != "off" && i+1 < len(e.Stages) && e.Stages[i+1].Device {
			problems = append(problems, Problem{
				Address: c.Address(),
				Summary: "Checkpoint between stages on the device",
				Detail: fmt.Sprintf("Behind the transfer a batch goes through all stages on the device in one go, %s next, so nothing can be kept here. Move the "+
					"checkpoint right above train or above transfer, or set mode = \"off\".", e.Stages[i+1].Address),
			})
		}
	}
	return problems
}
