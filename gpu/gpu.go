// Package gpu holds what a training step is and where it runs: the Device and Step interfaces, and the specs of the
// train operators. Package gpu/cpu has the reference device; gpu/devices picks one.
package gpu

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// Info describes a device in reports.
type Info struct {
	Kind   string // "cpu" or "cuda"
	Name   string // the model's name, as the driver or the kernel gives it
	Memory uint64 // bytes in all; 0 if unknown
	PCI    string // a GPU's PCI address, "0000:65:00.0"; "" if it has none
	Why    string // why this device was taken, as a sentence: "device = \"auto\": built without CUDA, so the CPU"
}

// Device is where training steps run. Alloc may be called from any goroutine. The calls of Upload and Apply come from one
// goroutine, those of a Step from one, which may be another.
type Device interface {
	Info() Info
	// Alloc returns n zeroed bytes of host memory to collate batches in, aligned to 64 bytes, page-locked where pinned is
	// asked for and the device copies from such memory faster. free gives it back.
	Alloc(n int, pinned bool) (mem []byte, free func(), err error)
	// Upload starts the copy of b to the device and returns without waiting for it. b must stay as it is until Ready has
	// passed; on the CPU the result is b itself.
	Upload(ctx context.Context, b *stages.Batch) (*Batch, error)
	// Apply starts to do to a batch of Upload what a stage's workers do to each item on the host, and returns without waiting for
	// it. The results are theirs bit for bit. draws returns what the stage draws sample i's random numbers from, until it is called
	// again; stages that aren't random don't call it. The batch that Apply returns takes the place of b: only one of them is freed.
	// After an error that is b. It is for the stages that stages.OnDevice accepts.
	Apply(ctx context.Context, b *Batch, spec stages.StageSpec, draws func(sample int) *rand.Rand) (*Batch, error)
	// FreeMemory returns how many bytes of the device's own memory are free; 0 if that is unknown, or it has none of its own.
	FreeMemory() (uint64, error)
	// NewClassifier makes the step of `train "cnn"`. Its initial weights are c.Net's, the same on every device.
	NewClassifier(c *CNN, in Input) (Classifier, error)
	Close() error
}

// Batch is a batch on the device.
type Batch struct {
	*stages.Batch       // the host's batch it was copied from: its Len, Labels and Sample hold for the copy too
	Ready         Event // the end of the copy
	Free          func()
	Memory        any // the device's own handle of the copy
}

// Step is one training step, done again and again.
type Step interface {
	// Submit starts one step on b and returns without waiting for it where the device works asynchronously. The device
	// orders the step after b.Ready. b must stay as it is until the returned event has passed.
	Submit(ctx context.Context, b *Batch) (Event, error)
	Close() error
}

// Restarter is implemented by steps that learn. Measuring isn't learning: intervals over the same few batches, thousands of them, would
// end where the network does, and what an interval takes must not depend on those before it.
type Restarter interface {
	// Restart makes the step what it was before its first batch.
	Restart() error
}

// Classifier is a step that learns to tell classes apart.
type Classifier interface {
	Step
	Losser
	// Predict stores in classes, for each of the b.Len samples, the class that the classifier finds the likeliest after
	// the steps so far. It learns nothing from them.
	Predict(ctx context.Context, b *Batch, classes []int32) error
	// Params returns a copy of the network's parameters after the steps so far, laid out as Net says.
	Params(ctx context.Context) ([]float32, error)
}

// Event is a point in a device's work.
type Event interface {
	// Wait returns when the work before the event is done, with the first error in it.
	Wait(ctx context.Context) error
	// Elapsed returns how long the work took by the device's own clock; ok is false before it is done and where the
	// device has no such clock.
	Elapsed() (d time.Duration, ok bool)
}

// Passed is the event of work that was done before anyone could wait for it, by a device without a clock of its own.
type Passed struct{}

// Wait returns at once.
func (Passed) Wait(context.Context) error { return nil }

// Elapsed returns false.
func (Passed) Elapsed() (time.Duration, bool) { return 0, false }

// Losser is implemented by steps that learn.
type Losser interface {
	// Loss returns the mean loss over the samples of the last step that has ended; an error before the first.
	Loss() (float64, error)
}

// Timed is implemented by steps that can be timed in several ways.
type Timed interface {
	// Timed says what the last step was timed by: "cpu", the host's clock, or "cuda" and the device's name, events on the device. It is
	// "" before the first.
	Timed() string
}

// Input is what a step is told about the batches it will get.
type Input struct {
	Sample  stages.Type
	Batch   int // samples at most
	Classes int // classes that the source counts; 0 if it has no labels
	Seed    uint64
	Mixed   bool // samples are mixed with each other, and their labels with them, as the batches say
}

// TrainSpec is implemented by a pointer to the attributes of a train operator.
type TrainSpec interface {
	// Accepts returns nil if the step can eat batches of such samples, or an error that says, in full sentences for the
	// file's author, why not and what to do.
	Accepts(sample stages.Type) error
	// Want returns the device it asks for: "auto", "cpu", "cuda".
	Want() string
	NewStep(d Device, in Input) (Step, error)
}

// Add adds the train operators to r.
func Add(r *stages.Registry) {
	r.Add(cnnOperator(), emulatedOperator())
}
