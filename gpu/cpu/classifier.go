package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"gonum.org/v1/gonum/blas"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// maxShards is the number of parts in which a batch is worked on, if it has as many samples. Each part sums its own
// gradient, and the sums are added up in order, so that rounding doesn't depend on the number of cores.
const maxShards = 16

// chunk is the number of parameters, or columns of them, that one round of the team updates: few, so that no member
// waits long for the last one.
const chunk = 1024

// maxMemory limits what a network's parameters take, with their momentum and gradients.
const maxMemory = 4 << 30

// classifier is a network in training. It works sample by sample, forward and back, so that a core's share of the
// work stays in its cache; only the linear layer's gradient and the update are done for the batch as a whole.
type classifier struct {
	net            *gpu.Net
	in             gpu.Input
	rate, momentum float32

	team     *team
	members  []*member
	initial  []float32 // params before the first step
	params   []float32
	velocity []float32   // the momentum's running sum of gradients, laid out as params
	grads    [][]float32 // each shard's gradient by the blocks' parameters, laid out as params

	// Of each sample in the batch:
	features []float32 // Batch × Features: the linear layer's input
	dLogits  []float32 // Batch × Classes: gradient of the mean loss by the linear layer's output
	losses   []float64

	steps int
	loss  float64

	// What the team's rounds work on, and the functions they call, which are made once.
	ctx                     context.Context
	batch                   *gpu.Batch
	predicted               []int32
	learn, update, classify func(member, round int)
}

// member is the scratch memory of one member of the team.
type member struct {
	blocks []*block
	logits []float32
}

func newClassifier(c *gpu.CNN, in gpu.Input) (*classifier, error) {
	net, err := c.Net(in)
	if err != nil {
		return nil, err
	}
	if c.Precision == "tf32" {
		return nil, errors.New("precision = \"tf32\" is for a GPU's tensor cores, and the step runs on the CPU: set it to \"float32\", or leave it out")
	}
	if need := 4 * (float64(net.Weights)*(2+maxShards) + 2*float64(net.Params-net.Weights)); need > maxMemory {
		return nil, fmt.Errorf("the network has %d parameters and would take %v to train: lower width, depth or classes, raise stride, or make the pictures smaller",
			net.Params, stages.Bytes(need))
	}
	s := &classifier{
		net:      net,
		in:       in,
		rate:     float32(c.LearningRate),
		momentum: float32(c.Momentum),
		params:   net.Init(in.Seed),
		velocity: make([]float32, net.Params),
		features: make([]float32, in.Batch*net.Features),
		dLogits:  make([]float32, in.Batch*net.Classes),
		losses:   make([]float64, in.Batch),
		grads:    make([][]float32, min(maxShards, in.Batch)),
	}
	s.initial = slices.Clone(s.params)
	for i := range s.grads {
		s.grads[i] = make([]float32, net.Weights)
	}
	s.members = make([]*member, min(runtime.GOMAXPROCS(0), len(s.grads)))
	for i := range s.members {
		m := &member{logits: make([]float32, net.Classes)}
		var out, dOut []float32
		for _, conv := range net.Blocks {
			b := newBlock(conv, out, dOut)
			m.blocks = append(m.blocks, b)
			out, dOut = b.out, b.dOut
		}
		s.members[i] = m
	}
	oneThread()
	s.team = newTeam(len(s.members))
	s.learn, s.update, s.classify = s.learnShard, s.updateChunk, s.classifyShard
	return s, nil
}

// Restart gives the network its initial parameters again.
func (s *classifier) Restart() error {
	copy(s.params, s.initial)
	clear(s.velocity)
	s.steps = 0
	return nil
}

// Submit trains on b. It returns when that is done, with an error, and the parameters as they were, where a label is
// not one of the classes, the loss is not finite, or ctx is done.
func (s *classifier) Submit(ctx context.Context, b *gpu.Batch) (gpu.Event, error) {
	if err := s.start(ctx, b); err != nil {
		return nil, err
	}
	for i, label := range b.Labels[:b.Len] {
		if label < 0 || int(label) >= s.net.Classes {
			return nil, fmt.Errorf("sample %d of batch %d has label %d, and the classifier has %d classes, counted from 0: set classes, or leave it out to have as many as the data",
				i, b.Index, label, s.net.Classes)
		}
	}
	s.team.run(s.shards(), s.learn)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	loss := 0.0
	for _, l := range s.losses[:b.Len] {
		loss += l
	}
	loss /= float64(b.Len)
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return nil, fmt.Errorf("the loss of step %d is %v: the training diverges; lower learning_rate (it is %v), or scale the data to around 0 with prepare \"normalize\"",
			s.steps+1, loss, s.rate)
	}
	s.team.run(chunks(s.net.Weights)+chunks(s.net.Features)+1, s.update)
	s.loss = loss
	s.steps++
	return gpu.Passed{}, nil
}

// Loss returns the mean loss of the last step.
func (s *classifier) Loss() (float64, error) {
	if s.steps == 0 {
		return 0, errors.New("no step has been done yet")
	}
	return s.loss, nil
}

// Predict stores the likeliest class of each sample in classes.
func (s *classifier) Predict(ctx context.Context, b *gpu.Batch, classes []int32) error {
	if err := s.start(ctx, b); err != nil {
		return err
	}
	if len(classes) < b.Len {
		return fmt.Errorf("there is room for %d classes, and batch %d has %d samples", len(classes), b.Index, b.Len)
	}
	s.predicted = classes
	s.team.run(s.shards(), s.classify)
	return ctx.Err()
}

// Params returns a copy of the parameters.
func (s *classifier) Params(context.Context) ([]float32, error) { return slices.Clone(s.params), nil }

// Close ends the goroutines.
func (s *classifier) Close() error {
	s.team.close()
	return nil
}

// start checks that b is a batch that the classifier was made for, and makes it the one to work on.
func (s *classifier) start(ctx context.Context, b *gpu.Batch) error {
	if err := b.Ready.Wait(ctx); err != nil {
		return err
	}
	switch {
	case b.Sample != s.in.Sample:
		return fmt.Errorf("batch %d holds %v, and the classifier takes %v", b.Index, b.Sample, s.in.Sample)
	case b.Len < 1 || b.Len > s.in.Batch:
		return fmt.Errorf("batch %d has %d samples, and the classifier takes 1 to %d", b.Index, b.Len, s.in.Batch)
	case len(b.F32) < b.Len*s.in.Sample.Len() || len(b.Labels) < b.Len:
		return fmt.Errorf("batch %d has %d values and %d labels for its %d samples of %v", b.Index, len(b.F32), len(b.Labels), b.Len, b.Sample)
	}
	s.ctx, s.batch = ctx, b
	return nil
}

// shards returns the number of shards that the batch is worked on in.
func (s *classifier) shards() int { return min(maxShards, s.batch.Len) }

// shard returns the samples of one of them.
func (s *classifier) shard(i int) (from, to int) {
	return i * s.batch.Len / s.shards(), (i + 1) * s.batch.Len / s.shards()
}

// learnShard computes the losses and gradients of one shard's samples.
func (s *classifier) learnShard(member, round int) {
	from, to := s.shard(round)
	m, grad := s.members[member], s.grads[round]
	clear(grad)
	classes, features := s.net.Classes, s.net.Features
	for i := from; i < to && s.ctx.Err() == nil; i++ {
		last := s.forward(m, i)
		copy(s.features[i*features:], last.out)
		dLogits := s.dLogits[i*classes:][:classes]
		label, own := s.batch.Labels[i], float32(1)
		other := label
		if s.batch.Mixed {
			other, own = s.batch.Labels[s.batch.Other(i)], s.batch.Own
		}
		s.losses[i] = crossEntropy(m.logits, label, other, own, dLogits)
		library{}.Sscal(classes, 1/float32(s.batch.Len), dLogits, 1)

		gemm(blas.NoTrans, blas.NoTrans, 1, features, classes, dLogits, classes, s.params[s.net.Weights:], features, 0, last.dOut, features)
		for l := len(m.blocks) - 1; l >= 0; l-- {
			m.blocks[l].backward(s.params, grad)
		}
	}
}

// chunks returns the number of chunks that n parameters or columns make.
func chunks(n int) int { return (n + chunk - 1) / chunk }

// updateChunk does the update of one chunk: velocity = momentum·velocity + gradient, params -= rate·velocity. The
// chunks are those of the blocks' parameters, then those of the linear layer's columns, then its bias.
func (s *classifier) updateChunk(_, round int) {
	net, n := s.net, s.batch.Len
	if round < chunks(net.Weights) {
		from, to := round*chunk, min(round*chunk+chunk, net.Weights)
		library{}.Sscal(to-from, s.momentum, s.velocity[from:], 1)
		for _, grad := range s.grads[:s.shards()] {
			add(1, grad[from:to], s.velocity[from:])
		}
		add(-s.rate, s.velocity[from:to], s.params[from:])
		return
	}
	round -= chunks(net.Weights)
	if round < chunks(net.Features) {
		from, to := round*chunk, min(round*chunk+chunk, net.Features)
		gemm(blas.Trans, blas.NoTrans, net.Classes, to-from, n, s.dLogits, net.Classes, s.features[from:], net.Features,
			s.momentum, s.velocity[net.Weights+from:], net.Features)
		for class := range net.Classes {
			row := net.Weights + class*net.Features
			add(-s.rate, s.velocity[row+from:row+to], s.params[row+from:])
		}
		return
	}
	velocity := s.velocity[net.Bias:]
	library{}.Sscal(net.Classes, s.momentum, velocity, 1)
	for i := range n {
		add(1, s.dLogits[i*net.Classes:][:net.Classes], velocity)
	}
	add(-s.rate, velocity, s.params[net.Bias:])
}

// classifyShard predicts the classes of one shard's samples.
func (s *classifier) classifyShard(member, round int) {
	m := s.members[member]
	from, to := s.shard(round)
	for i := from; i < to && s.ctx.Err() == nil; i++ {
		s.forward(m, i)
		best := 0
		for c, v := range m.logits {
			if v > m.logits[best] {
				best = c
			}
		}
		s.predicted[i] = int32(best)
	}
}

// forward computes m.logits of sample i and returns the last block.
func (s *classifier) forward(m *member, i int) *block {
	first := m.blocks[0]
	sample := s.batch.F32[i*len(first.in):][:len(first.in)]
	for c := range first.In {
		for p, v := range sample[c*first.H*first.W:][:first.H*first.W] {
			first.in[p*first.In+c] = v
		}
	}
	for _, b := range m.blocks {
		b.forward(s.params)
	}
	last := m.blocks[len(m.blocks)-1]
	copy(m.logits, s.params[s.net.Bias:])
	gemm(blas.NoTrans, blas.Trans, 1, s.net.Classes, s.net.Features, last.out, s.net.Features, s.params[s.net.Weights:], s.net.Features, 1, m.logits, s.net.Classes)
	return last
}

// crossEntropy returns the cross-entropy of softmax(logits) and two labels, of which the first has the weight own and both 1 together,
// and stores its gradient by the logits.
func crossEntropy(logits []float32, label, other int32, own float32, gradient []float32) float64 {
	top := logits[0]
	for _, v := range logits {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v) - float64(top))
	}
	for i, v := range logits {
		gradient[i] = float32(math.Exp(float64(v)-float64(top)) / sum)
	}
	gradient[label] -= own
	gradient[other] -= 1 - own
	target := float64(float64(own)*float64(logits[label])) + float64(float64(1-own)*float64(logits[other]))
	return math.Log(sum) - (target - float64(top))
}
