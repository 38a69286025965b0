package engine

import (
	"math/rand/v2"
	"time"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// deviceStage is a stage whose work the device does, on whole batches.
type deviceStage struct {
	index int
	spec  stages.StageSpec
	draws *draws // nil but for augment
}

// deviceStages returns the stages on the device, in their order.
func (p *Plan) deviceStages() []deviceStage {
	var list []deviceStage
	for i := p.transfer + 1; i < p.train; i++ {
		st := p.Experiment.Stages[i]
		s := deviceStage{index: i, spec: st.Spec.(stages.StageSpec)}
		if st.Block == stages.Augment {
			d := newDraws(p.Experiment.Seed, st.Address)
			s.draws = &d
		}
		list = append(list, s)
	}
	return list
}

// transferLoop is the transfer stage, with the stages on the device behind it.
func (r *run) transferLoop() {
	defer r.uploads.done()
	free := r.probe.From > 0 && r.probe.From <= r.plan.transfer && r.plan.transfer < r.probe.To
	items, split := make([]int64, 1+len(r.device)), make([]time.Duration, 1+len(r.device))
	for {
		d, ok := r.hostBatch(r.transfer)
		if !ok {
			return
		}
		switch {
		case d.copy != nil: // the whole of batch and transfer is made free
		case free:
			r.exchange(&d)
		default:
			timed, ok := r.ship(&d, split)
			if !ok {
				r.finish(d)
				return
			}
			for i := range items {
				items[i] = 1
			}
			r.transfer.add(items, split, timed)
		}
		if r.uploads.push([]delivery{d}, r.transfer) == 0 {
			r.finish(d)
			return
		}
	}
}

// ship takes a batch to the device and through the stages there. It leaves in split, unless that is nil, how long the copy and each
// stage took, and returns 1 where all of that is by the device's clock.
func (r *run) ship(d *delivery, split []time.Duration) (timed int64, ok bool) {
	timed = 1
	note := func(stage int, took time.Duration, byDevice bool) {
		if split != nil {
			split[stage] = took
		}
		if !byDevice {
			timed = 0
		}
	}
	took, byDevice, ok := r.upload(d, r.plan.transfer)
	note(0, took, byDevice)
	for i := 0; ok && i < len(r.device); i++ {
		s := &r.device[i]
		took, byDevice, ok = r.onDevice(d, s.index, func() (*gpu.Batch, error) { return r.p.device.Apply(r.ctx, d.copy, s.spec, s.drawsFor(d)) })
		note(i+1, took, byDevice)
	}
	return timed, ok
}

// drawsFor returns what gives each sample of a batch the random numbers that it would get on the host, nil for a stage that takes none.
func (s *deviceStage) drawsFor(d *delivery) func(sample int) *rand.Rand {
	if s.draws == nil {
		return nil
	}
	return func(sample int) *rand.Rand {
		s.draws.seed(d.epoch, d.copy.Items[sample].Index)
		return s.draws.rand
	}
}

// upload copies a batch to the device on behalf of a stage.
func (r *run) upload(d *delivery, stage int) (took time.Duration, byDevice, ok bool) {
	return r.onDevice(d, stage, func() (*gpu.Batch, error) { return r.p.device.Upload(r.ctx, &d.host.Batch) })
}

// onDevice starts work of a stage on a batch and waits until it is done. It returns how long the work took, and whether that is by the
// device's own clock; false last where it ended the run.
func (r *run) onDevice(d *delivery, stage int, start func() (*gpu.Batch, error)) (took time.Duration, byDevice, ok bool) {
	began := time.Now()
	err := func() (err error) {
		defer catch(&err)
		b, err := start()
		if err != nil {
			return err
		}
		d.copy = b // from here on to be freed, whatever becomes of the work
		return b.Ready.Wait(r.ctx)
	}()
	if err != nil {
		r.fail(&StageError{Address: r.address(stage), Err: err})
		return 0, false, false
	}
	if took, byDevice = d.copy.Ready.Elapsed(); !byDevice {
		took = time.Since(began)
	}
	return took, byDevice, true
}
