package config_test

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// registry returns the tests' own operators.
func registry() *stages.Registry {
	r := new(stages.Registry)
	r.Add(
		stages.Operator{Block: stages.Load, Type: "folder", Summary: "Files.", New: func() any { return &folder{Buffer: 1 << 20} }},
		stages.Operator{Block: stages.Prepare, Type: "decode", Summary: "Decodes.", New: func() any { return new(decode) }},
		stages.Operator{Block: stages.Prepare, Type: "scale", Summary: "Scales.", New: func() any { return &scale{Mean: []float64{0.5}} }},
		stages.Operator{Block: stages.Prepare, Type: "wait", Summary: "Waits.", New: func() any { return &wait{Mode: "sleep"} }},
		stages.Operator{Block: stages.Augment, Type: "flip", Summary: "Flips.", New: func() any { return &flip{P: 0.5} }},
		stages.Operator{Block: stages.Prepare, Type: "float", Summary: "Makes tensors.", New: func() any { return new(stages.ToFloat) }},
		stages.Operator{Block: stages.Augment, Type: "mirror", Summary: "Mirrors.", New: func() any { return &stages.RandomFlip{P: 0.5} }},
		stages.Operator{Block: stages.Train, Type: "step", Summary: "Steps.", New: func() any { return &step{Device: "auto", Rate: 0.1} }},
	)
	return r
}

type folder struct {
	Path    stages.Path   `hcl:"path" doc:"Folder."`
	Extra   []stages.Path `hcl:"extra,optional" doc:"More folders."`
	Shuffle bool          `hcl:"shuffle,optional" doc:"Shuffle."`
	Buffer  stages.Bytes  `hcl:"buffer,optional" min:"1KiB" max:"1GiB" doc:"Buffer."`
}

func (f *folder) Output() stages.Type { return stages.Type{Kind: stages.Encoded} }
func (f *folder) Shuffled() bool      { return f.Shuffle }
func (f *folder) Open(context.Context, uint64) (stages.Source, error) {
	return nil, errors.New("not in tests")
}
func (f *folder) Validate() []stages.Problem {
	if filepath.Base(string(f.Path)) == "missing" {
		return []stages.Problem{{Attribute: "path", Summary: "Folder not found", Detail: "There is no folder missing."}}
	}
	return nil
}

type decode struct{}

type scale struct {
	Size  int       `hcl:"size" min:"1" max:"4096" doc:"Edge."`
	Mean  []float64 `hcl:"mean,optional" min:"0" max:"1" doc:"Mean."`
	Names []string  `hcl:"names,optional" enum:"r,g,b" doc:"Channels."`
	Seed  uint64    `hcl:"seed,optional" doc:"Seed."`
}

type wait struct {
	Time   time.Duration `hcl:"time" max:"1h" doc:"Time."`
	Jitter stages.Jitter `hcl:"jitter,optional" doc:"Jitter."`
	Mode   string        `hcl:"mode,optional" enum:"sleep,spin" doc:"How."`
}

type flip struct {
	P float64 `hcl:"p,optional" min:"0" max:"1" doc:"Probability."`
}

type step struct {
	Device string  `hcl:"device,optional" enum:"auto,cuda,cpu" doc:"Device."`
	Rate   float64 `hcl:"rate,optional" moremin:"0" doc:"Rate."`
}

func (s *step) Accepts(stages.Type) error { return nil }
func (s *step) Want() string              { return s.Device }
func (s *step) NewStep(gpu.Device, gpu.Input) (gpu.Step, error) {
	return nil, errors.New("not in tests")
}
