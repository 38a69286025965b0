//go:build cuda

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/gpu/cuda/driver"
	"github.com/pipectl/pipectl/gpu/cuda/kernels"
)

// maxSteps is the number of steps that may be under way. Each has its place for the loss on the host.
const maxSteps = 64

// classifier is a network in training on the GPU. A step is some twenty kernels on the stream of the steps, then the copy of
// the loss to the host; nothing waits for them here. A loss that isn't finite is seen by the kernels that change the
// parameters, which then don't, and by whoever waits for the step.
type classifier struct {
	d              *Device
	in             gpu.Input
	rate, momentum float32
	net            *gpu.Net
	network        *network
	memory         cu.DevicePtr // all of the network's
	host           []byte       // page-locked, the following:
	losses         []float32    // maxSteps
	predicted      []int32      // in.Batch

	mu    sync.Mutex
	steps [maxSteps]*step // the last ones: step i at i modulo maxSteps
	count int             // of all steps so far
}

// NewClassifier makes the step of `train "cnn"`.
func (d *Device) NewClassifier(c *gpu.CNN, in gpu.Input) (gpu.Classifier, error) {
	net, err := c.Net(in)
	if err != nil {
		return nil, err
	}
	s := &classifier{d: d, in: in, rate: float32(c.LearningRate), momentum: float32(c.Momentum), net: net}
	need := arena{samples: in.Batch}
	if err := layOut(net, &need).fits(); err != nil {
		return nil, err
	}
	err = d.do(func() error {
		if c.Precision == "tf32" {
			if err := d.loadTF32(); err != nil {
				return err
			}
		}
		each := need.perSample
		memory, err := d.alloc("the network's parameters and activations", int(need.next)-each*in.Batch, each, in.Batch)
		if err != nil {
			return err
		}
		s.memory = memory
		s.network = layOut(net, &arena{samples: in.Batch, next: memory})
		if err := s.network.find(d, c.Precision); err != nil {
			return err
		}
		if s.host, err = driver.HostAlloc(4 * (maxSteps + in.Batch)); err != nil {
			return failed(err, "taking page-locked host memory")
		}
		s.losses = unsafe.Slice((*float32)(unsafe.Pointer(&s.host[0])), maxSteps)
		s.predicted = unsafe.Slice((*int32)(unsafe.Pointer(&s.host[4*maxSteps])), in.Batch)
		return s.initialize()
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// loadTF32 loads the kernels for tensor cores, once. Called on the main thread.
func (d *Device) loadTF32() error {
	if _, err := d.kernel("conv_forward_tf32_64"); !errors.Is(err, driver.NotFound) {
		return err
	}
	major, err := d.device.Attribute(cu.ComputeCapabilityMajor)
	if err != nil {
		return failed(err, "asking for the GPU's compute capability")
	}
	if major < 8 {
		return fmt.Errorf("precision = \"tf32\" needs a GPU of compute capability 8.0, and %s has less: set it to \"float32\", or leave it out", d.info.Name)
	}
	return d.load(kernels.TF32)
}

// initialize gives the network its initial parameters and velocities of 0. Called on the main thread.
func (s *classifier) initialize() error {
	params := s.net.Init(s.in.Seed)
	host := map[*layer][]float32{}
	for _, l := range s.network.layers() {
		host[l] = make([]float32, l.size)
	}
	s.network.runs(s.net, func(l *layer, at, padded, count int) { copy(host[l][padded:], params[at:at+count]) })
	for _, l := range s.network.layers() {
		if err := cu.MemsetD32(l.velocity, 0, int64(l.size)); err != nil {
			return failed(err, "clearing the velocities")
		}
		if err := cu.MemcpyHtoD(l.params, unsafe.Pointer(&host[l][0]), int64(4*l.size)); err != nil {
			return failed(err, "copying the initial parameters to the GPU")
		}
	}
	// Both may be under way still, on a stream that the steps' doesn't wait for.
	return failed(cu.Synchronize(), "giving the network its initial parameters")
}

// Restart waits for the steps and gives the network its initial parameters again.
func (s *classifier) Restart() error {
	return s.d.do(func() error {
		if err := s.d.compute.Synchronize(); err != nil {
			return failed(err, "waiting for the steps")
		}
		return s.initialize()
	})
}

// Submit starts a step on b. Labels are looked at here, where they are; a loss that isn't finite is the error of the event's
// Wait, and such a step leaves the parameters as they were.
func (s *classifier) Submit(ctx context.Context, b *gpu.Batch) (gpu.Event, error) {
	buf, err := s.check(ctx, b)
	if err != nil {
		return nil, err
	}
	for i, label := range b.Labels[:b.Len] {
		if label < 0 || int(label) >= s.net.Classes {
			return nil, fmt.Errorf("sample %d of batch %d has label %d, and the classifier has %d classes, counted from 0: set classes, or leave it out to have as many as the data",
				i, b.Index, label, s.net.Classes)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.count % maxSteps
	if old := s.steps[slot]; old != nil { // its place for the loss is the new one's
		if err := old.event.Wait(ctx); err != nil {
			return nil, err
		}
		old.read()
	}
	e, err := s.run("a training step", b, buf, func(p *pass) error {
		own := float32(1)
		if b.Mixed {
			own = b.Own
		}
		p.learn(buf.labels, own)
		p.update(s.rate, s.momentum)
		if p.err != nil {
			return p.err
		}
		err := cu.MemcpyDtoHAsync(unsafe.Pointer(&s.losses[slot]), p.loss, 4, p.stream)
		return failed(err, "copying the loss to the host")
	})
	if err != nil {
		return nil, err
	}
	s.count++
	s.steps[slot] = &step{event: e, number: s.count, rate: s.rate, from: &s.losses[slot]}
	return s.steps[slot], nil
}

// run starts the forward pass on a batch, then what then does, as one stretch of work.
func (s *classifier) run(what string, b *gpu.Batch, buf *buffer, then func(*pass) error) (*event, error) {
	var e *event
	err := s.d.do(func() error {
		stream := s.d.compute
		if err := buf.await(stream); err != nil {
			return err
		}
		var err error
		if e, err = s.d.begin(what, stream); err != nil {
			return err
		}
		p := &pass{network: s.network, d: s.d, stream: stream, samples: b.Len}
		p.forward(buf.now)
		if err := errors.Join(then(p), buf.release(stream)); err != nil {
			e.recycle()
			return err
		}
		return e.finish(stream)
	})
	return e, err
}

// check returns the buffer of b, if it is a batch that the classifier was made for.
func (s *classifier) check(ctx context.Context, b *gpu.Batch) (*buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	switch {
	case b.Sample != s.in.Sample:
		return nil, fmt.Errorf("batch %d holds %v, and the classifier takes %v", b.Index, b.Sample, s.in.Sample)
	case b.Len < 1 || b.Len > s.in.Batch:
		return nil, fmt.Errorf("batch %d has %d samples, and the classifier takes 1 to %d", b.Index, b.Len, s.in.Batch)
	case len(b.Labels) < b.Len: // Upload has looked at the values
		return nil, fmt.Errorf("batch %d has %d values and %d labels for its %d samples of %v", b.Index, len(b.F32), len(b.Labels), b.Len, b.Sample)
	}
	return bufferOf(b)
}

// Loss returns the mean loss of the last step that has ended, of those whose loss is finite. Where none is known to have
// ended it waits for the oldest.
func (s *classifier) Loss() (float64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var unknown *step
	for i := s.count; i > max(0, s.count-maxSteps); i-- {
		step := s.steps[(i-1)%maxSteps]
		if _, ended := step.Elapsed(); !ended {
			unknown = step
		} else if loss, err := step.read(); err == nil {
			return loss, nil
		}
	}
	if unknown == nil {
		return 0, errors.New("no step has been done yet")
	}
	if err := unknown.Wait(context.Background()); err != nil {
		return 0, err
	}
	return unknown.read()
}

// Predict stores the likeliest class of each sample in classes.
func (s *classifier) Predict(ctx context.Context, b *gpu.Batch, classes []int32) error {
	buf, err := s.check(ctx, b)
	if err != nil {
		return err
	}
	if len(classes) < b.Len {
		return fmt.Errorf("there is room for %d classes, and batch %d has %d samples", len(classes), b.Index, b.Len)
	}
	e, err := s.run("a prediction", b, buf, func(p *pass) error {
		p.predict()
		if p.err != nil {
			return p.err
		}
		err := cu.MemcpyDtoHAsync(unsafe.Pointer(&s.predicted[0]), p.predicted, int64(4*b.Len), p.stream)
		return failed(err, "copying the classes to the host")
	})
	if err != nil {
		return err
	}
	if err := e.Wait(ctx); err != nil {
		return err
	}
	copy(classes, s.predicted[:b.Len])
	return nil
}

// Params returns the parameters after all steps that were submitted.
func (s *classifier) Params(ctx context.Context) ([]float32, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	host := map[*layer][]float32{}
	err := s.d.do(func() error {
		if err := s.d.compute.Synchronize(); err != nil {
			return failed(err, "waiting for the steps")
		}
		for _, l := range s.network.layers() {
			host[l] = make([]float32, l.size)
			if err := cu.MemcpyDtoH(unsafe.Pointer(&host[l][0]), l.params, int64(4*l.size)); err != nil {
				return failed(err, "copying the parameters to the host")
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	params := make([]float32, s.net.Params)
	s.network.runs(s.net, func(l *layer, at, padded, count int) { copy(params[at:at+count], host[l][padded:]) })
	return params, nil
}

// Close waits for the steps and frees what the classifier holds.
func (s *classifier) Close() error {
	return s.d.do(func() error {
		var errs []error
		if s.host != nil || s.memory != 0 {
			errs = append(errs, failed(s.d.compute.Synchronize(), "waiting for the steps"))
		}
		if s.memory != 0 {
			errs = append(errs, failed(cu.MemFree(s.memory), "freeing the network's memory"))
		}
		if s.host != nil {
			errs = append(errs, failed(driver.FreeHost(s.host), "freeing page-locked host memory"))
		}
		s.memory, s.host = 0, nil
		return errors.Join(errs...)
	})
}

// step is the event of one training step.
type step struct {
	*event
	number int // counted from 1
	rate   float32
	from   *float32 // the loss, in page-locked memory, until another step has the place

	once sync.Once
	loss float64
	err  error
}

// Wait returns when the step is done, with an error if its loss isn't a finite number.
func (s *step) Wait(ctx context.Context) error {
	if err := s.event.Wait(ctx); err != nil {
		return err
	}
	_, err := s.read()
	return err
}

// read returns the loss, or an error if it isn't finite. Called after the step has ended, first before its place is another
// step's.
func (s *step) read() (float64, error) {
	s.once.Do(func() {
		s.loss = float64(*s.from)
		if math.IsNaN(s.loss) || math.IsInf(s.loss, 0) {
			s.err = fmt.Errorf("the loss of step %d is %v: the training diverges; lower learning_rate (it is %v), or scale the data to around 0 with prepare \"normalize\"",
				s.number, s.loss, s.rate)
		}
	})
	return s.loss, s.err
}
