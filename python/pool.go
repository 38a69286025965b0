package python

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pipectl/pipectl/stages"
)

// Fuses returns nil if all stages are of Python code in the load block's interpreter.
func (l *Load) Fuses(list []stages.PoolStage) error {
	for i, s := range list {
		var in *Interpreter
		switch spec := s.Spec.(type) {
		case *Load:
			in = &spec.Interpreter
		case *Callable:
			in = &spec.Interpreter
			if spec.Part != "" && !slices.Contains(l.Lift, spec.Part) {
				return errors.New(s.Address + " has part = " + strconv.Quote(spec.Part) + ", which isn't in the load block's lift. Add it there, or leave out part.")
			}
		case *Collate:
			in = &spec.in
		case nil:
			if i == len(list)-1 {
				continue
			}
		}
		switch {
		case in == nil:
			return errors.New(s.Address + " is a stage of pipectl's own, and the processes of a python pool only run Python code. " +
				"Take the pool block away, so that each stage gets its own workers, or do this stage's work in Python.")
		case in.key() != l.key():
			return errors.New(s.Address + " runs in another interpreter than the load block, and a pool's processes are of one. Leave out python, pythonpath and env there.")
		}
	}
	return nil
}

// poolRequest asks for a pool.
type poolRequest struct {
	reference
	Lift     []string    `json:"lift"`
	Shuffle  *bool       `json:"shuffle"`
	Stages   []poolStage `json:"stages"`
	Workers  int         `json:"workers"`
	Prefetch int         `json:"prefetch"`
	Batch    int         `json:"batch"`
	DropLast bool        `json:"drop_last"`
	Seed     uint64      `json:"seed"`
	Control  int         `json:"control"` // offset in the arena
}

type poolStage struct {
	Ref  string        `json:"ref"` // "" for load, and for a batch that is made as the loader does
	Args stages.Values `json:"args"`
	Part string        `json:"part"`
	Skip bool          `json:"skip"`
}

// poolFailure is what a reply says of a stage that failed.
type poolFailure struct {
	Error
	Stage int `json:"stage"`
	Item  int `json:"index"`
}

func (f *poolFailure) poolError() *stages.PoolError {
	e := f.Error
	return &stages.PoolError{Stage: f.Stage, Item: f.Item, Err: &e}
}

// OpenPool makes the pool and tries the first batch.
func (l *Load) OpenPool(ctx context.Context, setup stages.PoolSetup) (_ stages.Pool, err error) {
	p := &pool{spec: l, setup: setup, interrupted: ctx.Err}
	p.closed = sync.OnceValue(p.close)
	if p.hold, err = l.resolved(ctx, l.reference(), &p.info); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	n := len(setup.Stages)
	request := poolRequest{
		reference: l.reference(), Lift: append([]string{}, l.Lift...), Shuffle: l.Shuffle, Stages: make([]poolStage, n),
		Workers: setup.Workers, Prefetch: setup.Prefetch, Batch: setup.Batch, DropLast: setup.DropLast, Seed: setup.Seed,
	}
	p.output = l.Output()
	for i, s := range setup.Stages {
		request.Stages[i].Skip = s.Skip
		switch spec := s.Spec.(type) {
		case *Callable:
			request.Stages[i] = poolStage{spec.Callable, spec.Args, spec.Part, s.Skip}
			p.output = outputType(spec.Kind, spec.Shape)
		case *Collate:
			request.Stages[i].Ref = spec.Collate
		}
	}
	p.control, err = p.hold.manager.arena.alloc(controlWords(setup.Workers, n) * 8)
	if err != nil {
		return nil, err
	}
	clear(p.control)
	request.Control, _ = p.hold.manager.arena.offset(p.control)
	var reply struct {
		Items, Steps int
		Failure      *poolFailure
	}
	if err := p.call(ctx, "pool.open", request, &reply); err != nil {
		return nil, err
	}
	if reply.Failure != nil {
		return nil, p.failed(reply.Failure)
	}
	p.items, p.steps, p.kept = reply.Items, reply.Steps, make([]int64, n+1)
	return p, nil
}

// pool is a pool of the main process's.
type pool struct {
	spec         *Load
	setup        stages.PoolSetup
	hold         *Hold
	interrupted  func() error // not nil once the run is to end
	info         dataInfo
	output       stages.Type // of a sample, before it is collated
	items, steps int
	control      []byte // words that pool.py's processes share with this one
	kept         []int64
	notes        []stages.PoolNote
	closed       func() error // close, once

	mu    sync.Mutex
	freed []int64 // batches that the process may let go of
}

// The words of the control region, as class Control of control.py lays them out: first the generation, then the workers' status, then
// two modes.
const (
	controlHead   = 8
	controlWorker = 8 // stage, item, since when, process
	controlMode   = 3 // and one for each stage
)

func controlWords(workers, stages int) int {
	return controlHead + controlWorker*max(workers, 1) + 2*(controlMode+stages)
}

// status is what a worker is at.
type status struct {
	worker, stage, item int // stage -1: it waits
	since               time.Duration
	pid                 int
}

// atWork returns the statuses of the workers that are at a stage.
func (p *pool) atWork() []status {
	var list []status
	for w := range max(p.setup.Workers, 1) {
		words := p.control[8*(controlHead+controlWorker*w):]
		word := func(i int) int { return int(binary.NativeEndian.Uint64(words[8*i:])) }
		s := status{w, word(0), word(1), time.Duration(word(2)), word(3)}
		if s.pid != 0 && s.stage >= 0 && s.stage < len(p.setup.Stages) {
			list = append(list, s)
		}
	}
	return list
}

// longest returns the status of the worker that has been at its stage for the longest time; false if none is at one.
func (p *pool) longest() (status, bool) {
	list := p.atWork()
	if len(list) == 0 {
		return status{stage: -1, item: -1}, false
	}
	return slices.MinFunc(list, func(a, b status) int { return cmp.Compare(a.since, b.since) }), true
}

// flooding returns the stage and the item at which too much was printed, as far as can be told: the worker at fault is at one item for
// long, or all are at one stage. It returns the first stage elsewhere.
func (p *pool) flooding() (stage, item int) {
	list := p.atWork()
	slices.SortFunc(list, func(a, b status) int { return cmp.Compare(a.since, b.since) })
	const long = 100 * time.Millisecond
	switch {
	case len(list) == 0:
		return 0, -1
	case len(list) == 1 || list[1].since-list[0].since > long:
		return list[0].stage, list[0].item
	case slices.ContainsFunc(list, func(s status) bool { return s.stage != list[0].stage }):
		return 0, -1
	}
	return list[0].stage, -1
}

// failed returns the error of a stage that failed. Where a process has ended, what it printed last is part of it.
func (p *pool) failed(f *poolFailure) error {
	if f.Kind == ExitError {
		time.Sleep(printing)
		f.Output = p.lastPrinted()
	}
	return f.poolError()
}

// printing is how long the last that a process printed may take to get here.
const printing = 20 * time.Millisecond

func (p *pool) lastPrinted() string {
	last, _ := p.hold.printed.last()
	return withoutHelper(last)
}

// call has the process do op, until a stage has been at an item, or at nothing, for longer than the timeout.
func (p *pool) call(ctx context.Context, op string, request, reply any) error {
	timeout := p.spec.timeout()
	calling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	watching, period := make(chan struct{}), min(max(timeout/4, time.Millisecond), time.Second)
	watch := time.AfterFunc(period, func() {
		defer close(watching)
		for calling.Err() == nil {
			if hung := p.hung(time.Since(began), timeout); hung != nil {
				cancel(hung)
				return
			}
			select {
			case <-calling.Done():
			case <-time.After(period):
			}
		}
	})
	err := p.hold.Call(calling, 0, op, request, reply)
	hung := (*stages.PoolError)(nil)
	if errors.As(context.Cause(calling), &hung) {
		err = hung
		if at, known := p.longest(); known {
			showWhere(at.pid)
		}
		hung.Err.(*Error).Output = p.lastPrinted()
		p.hold.kill()
	}
	cancel(nil)
	if !watch.Stop() {
		<-watching
	}
	var e *Error
	if hung == nil && errors.As(err, &e) && (e.Kind == ExitError || e.Kind == OutputError) {
		stage, item := 0, -1
		if e.Kind == OutputError || p.setup.Workers == 0 {
			stage, item = p.flooding()
		}
		e.Output = withoutHelper(e.Output)
		return &stages.PoolError{Stage: stage, Item: item, Err: e}
	}
	return err
}

// hung returns an error where a worker is at a stage for longer than timeout, or none is at any and a call has taken longer.
func (p *pool) hung(waited, timeout time.Duration) *stages.PoolError {
	at, known := p.longest()
	switch {
	case known && monotonic()-at.since > timeout:
		who := fmt.Sprintf("worker %d", at.worker)
		if p.setup.Workers == 0 {
			who = "the main process"
		}
		return &stages.PoolError{Stage: at.stage, Item: at.item, Err: &Error{Kind: TimeoutError,
			Message: fmt.Sprintf("%s was at it for longer than %s (timeout), and was killed", who, timeout)}}
	case !known && waited > 10*timeout:
		return &stages.PoolError{Stage: len(p.setup.Stages) - 1, Item: -1, Err: &Error{Kind: TimeoutError,
			Message: fmt.Sprintf("no batch came within %s (ten times timeout), though no worker is at a stage: is there something in a batch that can't be handed to another process?", 10*timeout)}}
	}
	return nil
}

// Items returns the number of items in an epoch, 0 where that is unknown.
func (p *pool) Items() int { return p.items }

// Steps returns the number of batches in an epoch, 0 where that is unknown.
func (p *pool) Steps() int { return p.steps }

// Classes returns the number of classes of the data set, 0 where that is unknown.
func (p *pool) Classes() int { return p.info.Classes }

// Name returns the path of the item's file, if the data set lists it, or else its number.
func (p *pool) Name(i int) string { return p.spec.itemName(p.hold, i) }

// Files yields the paths of the items' files, if the data set lists them.
func (p *pool) Files() iter.Seq[string] { return p.spec.files(p.hold) }

// Start makes the pool go on in another mode.
func (p *pool) Start(ctx context.Context, mode stages.PoolMode) error {
	request := struct {
		From   int     `json:"from"`
		To     int     `json:"to"`
		Fill   int     `json:"fill"`
		Limits []int64 `json:"limits"`
		Epochs int     `json:"epochs"`
		Free   []int64 `json:"free"`
	}{mode.From, mode.To, mode.Fill, make([]int64, len(p.setup.Stages)), mode.Epochs, p.toFree()}
	copy(request.Limits, mode.Limits)
	return p.call(ctx, "pool.start", request, nil)
}

// batchReply is what pool.next says of a batch.
type batchReply struct {
	End     bool
	Failure *poolFailure
	ID      int64
	Number  int64
	Epoch   int
	Last    bool
	Len     int
	Bytes   int64
	Worker  int
	Busy    []time.Duration
	Items   []int64
	Wait    time.Duration
	Skipped []poolFailure
	Kept    []int64
	Notes   []struct {
		Code, Text string
		Stages     []int
	}
}

// Next returns the next batch.
func (p *pool) Next(ctx context.Context) (*stages.PoolBatch, error) {
	var r batchReply
	request := map[string][]int64{"free": p.toFree()}
	if err := p.call(ctx, "pool.next", request, &r); err != nil {
		return nil, err
	}
	switch {
	case r.End:
		return nil, io.EOF
	case r.Failure != nil:
		return nil, p.failed(r.Failure)
	}
	copy(p.kept, r.Kept)
	for _, n := range r.Notes {
		note := stages.PoolNote{Code: n.Code, Text: n.Text}
		for _, k := range n.Stages {
			note.Stages = append(note.Stages, p.setup.Stages[k].Address)
		}
		p.notes = append(p.notes, note)
	}
	b := &stages.PoolBatch{
		Number: r.Number, Epoch: r.Epoch, Last: r.Last, Len: r.Len, Bytes: r.Bytes,
		Handle: batchHandle{p.hold.Main, r.ID},
		Work:   stages.PoolWork{Worker: r.Worker, Busy: r.Busy, Items: r.Items, Wait: r.Wait},
		Release: sync.OnceFunc(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.freed = append(p.freed, r.ID)
		}),
	}
	for _, s := range r.Skipped {
		b.Skipped = append(b.Skipped, *s.poolError())
	}
	if p.output.Kind != stages.Object && p.output.Fixed() {
		b.Copy = func(to *stages.Batch) error { return p.copyBatch(context.WithoutCancel(ctx), r.ID, r.Len, to) }
	}
	return b, nil
}

// toFree returns the batches that were released since it was last called. They are freed with the next request: a request of their
// own would wait for the batch that is being waited for.
func (p *pool) toFree() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	freed := p.freed
	p.freed = nil
	return append([]int64{}, freed...)
}

// copyBatch copies n samples, and their labels, into to.
func (p *pool) copyBatch(ctx context.Context, id int64, n int, to *stages.Batch) error {
	size := n * p.output.Size()
	region, err := p.hold.manager.arena.alloc(aligned(size) + 4*n)
	if err != nil {
		return err
	}
	defer p.hold.manager.arena.release(region)
	at, _ := p.hold.manager.arena.offset(region)
	request := struct {
		ID    int64       `json:"id"`
		Kind  stages.Kind `json:"kind"`
		Shape []int       `json:"shape"`
		At    int         `json:"at"`
		Label int         `json:"label"` // where the labels go
	}{id, p.output.Kind, append([]int{n}, dims(p.output)...), at, at + aligned(size)}
	if err := p.call(ctx, "pool.copy", request, nil); err != nil {
		var e *Error
		if errors.As(err, &e) {
			return &stages.PoolError{Stage: len(p.setup.Stages) - 1, Item: -1, Err: err}
		}
		return err
	}
	from := stages.Element{Type: p.output}
	setMemory(&from, region[:size])
	copy(to.U8, from.U8)
	copy(to.F32, from.F32)
	copy(to.I32, from.I32)
	copy(to.Labels[:n], fromBytes[int32](region[aligned(size):]))
	return nil
}

// Rest stops the workers until the next mode.
func (p *pool) Rest(ctx context.Context) error { return p.call(ctx, "pool.rest", nil, nil) }

// Kept returns how many bytes the caches at boundary k hold.
func (p *pool) Kept(k int) int64 { return p.kept[k] }

// Notes returns remarks on the pool's processes.
func (p *pool) Notes() []stages.PoolNote { return slices.Clone(p.notes) }

// Close ends the pool's workers.
func (p *pool) Close() error { return p.closed() }

func (p *pool) close() error {
	var err error
	if p.interrupted() != nil {
		p.hold.kill() // the user's code may hang, and nobody waits for what it makes
	} else if p.control != nil && p.hold.alive() {
		err = p.hold.Call(context.Background(), min(p.spec.timeout(), 10*time.Second), "pool.close", nil, nil)
	}
	var e *Error
	if errors.As(err, &e) && (e.Kind == ExitError || e.Kind == TimeoutError) {
		err = nil // it is closed, too
	}
	p.hold.manager.arena.release(p.control)
	return errors.Join(err, p.hold.Close())
}
