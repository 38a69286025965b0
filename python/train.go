package python

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// Train holds the attributes of `train "python"`.
type Train struct {
	Callable string        `hcl:"callable" doc:"The callable on one batch, as \"module:path\"."`
	Args     stages.Values `hcl:"args,optional" doc:"Keyword arguments for the class or function that the callable is then made by."`
	Interpreter
}

// Apart returns a copy with processes of its own.
func (t *Train) Apart(name string) any {
	own := *t
	own.apart = name
	return &own
}

// Inherit takes over from the load block what is left out.
func (t *Train) Inherit(load any) { t.inherit(load) }

// Validate reports an interpreter that isn't there.
func (t *Train) Validate() []stages.Problem { return t.validate() }

// Accepts returns nil: only the user's code knows.
func (t *Train) Accepts(stages.Type) error { return nil }

// Want returns "cpu": batches stay on the host until the callable moves them.
func (t *Train) Want() string { return "cpu" }

func (t *Train) reference() reference { return reference{"step", t.Callable, t.Args} }

// Start starts the interpreter and finds the callable.
func (t *Train) Start(ctx context.Context) (stages.Processes, error) {
	h, err := t.resolved(ctx, t.reference(), nil)
	if err != nil {
		return nil, err // and no nil *Hold, which would not be nil
	}
	return h, nil
}

// NewStep makes the step. It needs no device.
func (t *Train) NewStep(_ gpu.Device, in gpu.Input) (gpu.Step, error) {
	if in.Mixed {
		return nil, errors.New("the training function gets samples of one label, and batch mixes them: remove mixup and cutmix there, and mix the samples in the function")
	}
	ctx := context.Background()
	h, err := t.start(ctx)
	if err != nil {
		return nil, err
	}
	if err := h.Call(ctx, 10*t.timeout(), "step.open", t.reference(), nil); err != nil {
		h.Close()
		return nil, err
	}
	return &Step{hold: h, timeout: t.timeout(), room: room{arena: h.manager.arena}}, nil
}

// batchHandle is how a pool's batches are known: by the process that has them, and their number there.
type batchHandle struct {
	main *Main
	id   int64
}

// Step is a training step of the user's Python code, done in the main process.
type Step struct {
	hold    *Hold
	timeout time.Duration
	room    room
	labels  []byte // a region for labels
	mu      sync.Mutex
	timed   string
}

// Timed says what the last step was timed by: "cpu", by the clock, or "cuda" and the device's name, by CUDA events. It is "" before the
// first.
func (s *Step) Timed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.timed
}

// stepRequest says where a step's batch is: an offset and a length are those of bytes in the arena.
type stepRequest struct {
	Batch   *int64  `json:"batch,omitempty"`   // of this process's pool
	Object  []int   `json:"object,omitempty"`  // offset, length
	Objects [][]int `json:"objects,omitempty"` // samples: label, offset, length
	Data    [][]any `json:"data,omitempty"`    // kind, shape, offset, length
	Labels  []int   `json:"labels,omitempty"`  // offset, length
	Dense   bool    `json:"dense"`             // Data is one array of all samples
	Len     int     `json:"len"`
}

// Submit has the callable take a batch. It returns when the callable has: where that leaves work to CUDA, the event is its end.
func (s *Step) Submit(ctx context.Context, b *gpu.Batch) (gpu.Event, error) {
	if err := b.Ready.Wait(ctx); err != nil {
		return nil, err
	}
	request, err := s.request(b.Batch)
	if err != nil {
		return nil, err
	}
	var reply struct {
		Took  float64 `json:"took"`
		Event int     `json:"event"`
		Timed string  `json:"timed"`
	}
	if err := s.hold.Call(ctx, s.timeout, "step.run", request, &reply); err != nil {
		if ctx.Err() != nil { // the step may yet look at its batch
			s.room.lose(s.labels, &stages.Element{})
			s.labels = nil
		}
		return nil, err
	}
	s.room.found()
	s.mu.Lock()
	s.timed = reply.Timed
	s.mu.Unlock()
	return &stepEvent{step: s, event: reply.Event, took: seconds(reply.Took)}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// request says where the process finds a batch.
func (s *Step) request(b *stages.Batch) (stepRequest, error) {
	switch h, pooled := b.Handle.(batchHandle); {
	case pooled && h.main != s.hold.Main:
		return stepRequest{}, errors.New("the step runs in another interpreter than the pool that makes its batches: leave out python, pythonpath and env, or give both the same")
	case pooled:
		return stepRequest{Batch: &h.id}, nil
	case b.Object.Type.Kind == stages.Object:
		object, err := s.room.shared(data(&b.Object))
		return stepRequest{Object: s.at(object)}, err
	}
	samples, err := s.room.samples(b)
	if err != nil {
		return stepRequest{}, err
	}
	r := stepRequest{Len: b.Len}
	if b.Sample.Kind == stages.Object {
		for i, sample := range samples {
			r.Objects = append(r.Objects, append([]int{int(b.Labels[i])}, s.at(sample.data)...))
		}
		return r, nil
	}
	if r.Dense = b.Ragged == nil; r.Dense {
		all := s.at(samples[0].data)
		r.Data = append(r.Data, []any{b.Sample.Kind, append([]int{b.Len}, dims(b.Sample)...), all[0], b.Len * all[1]})
	} else {
		for _, sample := range samples {
			t := sample.typ
			if t.Kind == stages.Encoded || t.Kind == stages.Opaque {
				t.Shape = stages.Shape{len(sample.data)}
			}
			at := s.at(sample.data)
			r.Data = append(r.Data, []any{t.Kind, dims(t), at[0], at[1]})
		}
	}
	labels, err := s.putLabels(b.Labels[:b.Len])
	r.Labels = s.at(labels)
	return r, err
}

// at returns the offset and length of bytes in the arena.
func (s *Step) at(b []byte) []int {
	off, _ := s.room.arena.offset(b)
	return []int{off, len(b)}
}

// dims returns a sample's shape without the dimensions that its kind lacks.
func dims(t stages.Type) []int {
	if t.Kind == stages.Image || t.Kind == stages.Tensor {
		return t.Shape[:]
	}
	return t.Shape[:1]
}

// putLabels writes labels as int64, the type of torch's losses.
func (s *Step) putLabels(labels []int32) ([]byte, error) {
	if n := 8 * len(labels); cap(s.labels) < n {
		var err error
		if s.labels, err = s.room.take(n); err != nil {
			return nil, err
		}
	}
	b := s.labels[:0]
	for _, l := range labels {
		b = binary.LittleEndian.AppendUint64(b, uint64(int64(l)))
	}
	return b, nil
}

// Close lets go of the step.
func (s *Step) Close() error {
	s.room.close()
	return s.hold.Close()
}

// stepEvent is the end of a step.
type stepEvent struct {
	step  *Step
	event int // in the process; 0 where the step is done
	took  time.Duration
}

// Wait waits until CUDA has done the step's work.
func (e *stepEvent) Wait(ctx context.Context) error {
	if e.event == 0 {
		return nil
	}
	var reply struct{ Took float64 }
	if err := e.step.hold.Call(ctx, e.step.timeout, "step.wait", map[string]int{"event": e.event}, &reply); err != nil {
		return err
	}
	e.event, e.took = 0, seconds(reply.Took)
	return nil
}

// Elapsed returns how long the step took: by the device's clock where that timed it, else by the process's.
func (e *stepEvent) Elapsed() (time.Duration, bool) { return e.took, e.event == 0 }
