package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/gpu"
	"github.com/pipectl/pipectl/stages"
)

// pictures is a load spec whose items are pictures of pixels that depend on their number.
type pictures struct{ countSource }

func (p *pictures) Output() stages.Type { return stages.ImageType(6, 8) }
func (p *pictures) Open(context.Context, uint64) (stages.Source, error) {
	return openPictures{openCount{&p.countSource}}, nil
}

type openPictures struct{ openCount }

func (s openPictures) Read(_ *stages.Call, i int, out *stages.Element) (int32, error) {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	for k := range out.Image(6, 8) {
		out.U8[k] = byte(r.Uint32())
	}
	return int32(i % 10), nil
}

// fussy fails on some items.
func fussy(c *stages.Call, in, out *stages.Element) error {
	if c.Item.Index%7 == 3 {
		return errors.New("no")
	}
	return pass(c, in, out)
}

// operator is a stage with a spec of package stages.
func operator(block, name string, spec stages.StageSpec) Stage {
	return Stage{Address: block + "." + name, Block: block, Name: name, Spec: spec, Workers: 1, OnError: Fail, MaxSkips: -1}
}

// augmented is an experiment on pictures whose last stages devices can do: the last onDevice of them, or all on the host. Some items
// are skipped.
func augmented(train gpu.TrainSpec, workers, onDevice int, convert string) *Experiment {
	fuss := prepare("fussy", fussy)
	fuss.OnError = Skip
	items := []Stage{fuss,
		operator(stages.Augment, "crop", &stages.RandomResizedCrop{Size: []int{4, 5}, Scale: []float64{0.3, 1}, Ratio: []float64{0.5, 2}, Interpolation: "bilinear"}),
		operator(stages.Augment, "flip", &stages.RandomFlip{P: 0.5}),
		operator(stages.Augment, "again", &stages.RandomFlip{P: 0.5}),
		operator(stages.Augment, "jitter", &stages.ColorJitter{Brightness: []float64{0.4}, Contrast: []float64{0.4}, Saturation: []float64{0.4}, Hue: []float64{0.1}}),
		operator(stages.Prepare, "normalize", &stages.Normalize{Mean: []float64{0.4, 0.5, 0.6}, Std: []float64{0.3}}),
	}
	for i := range items {
		items[i].Workers = workers
	}
	e := chain(&countSource{items: 50, shuffle: true}, 8, nothing, items...)
	e.Stages[0].Spec, e.Stages[0].Workers = &pictures{countSource{items: 50, shuffle: true}}, workers
	batch, step := len(e.Stages)-2, e.Stages[len(e.Stages)-1]
	step.Spec = train
	e.Stages[batch].Spec.(*BatchSpec).DropLast = false
	host, device := e.Stages[:batch-onDevice], slices.Clone(e.Stages[batch-onDevice:batch])
	for i := range device {
		device[i].Device, device[i].Workers = true, 1
	}
	transfer := Stage{Address: "transfer", Block: TransferBlock, Spec: &TransferSpec{Pinned: true, Convert: convert}, Workers: 1, OnError: Fail}
	e.Stages = slices.Concat(host, []Stage{e.Stages[batch], transfer}, device, []Stage{step})
	return e
}

// TestDeviceStages hashes three epochs of batches whose last stages run on the host or on the device, for several numbers of
// workers: where they run may not change a byte.
func TestDeviceStages(t *testing.T) {
	var want []uint64
	for _, tc := range []struct {
		workers, onDevice int
		convert           string
		crosses           stages.Type // the samples that cross to the device
	}{
		{1, 0, ConvertInPlace, stages.TensorType(3, 4, 5)},
		{3, 0, ConvertInPlace, stages.TensorType(3, 4, 5)},
		{1, 0, ConvertOnDevice, stages.ImageType(4, 5)},
		{4, 0, ConvertOnDevice, stages.ImageType(4, 5)},
		{1, 1, ConvertInPlace, stages.ImageType(4, 5)},
		{2, 3, ConvertInPlace, stages.ImageType(4, 5)},
		{1, 5, ConvertInPlace, stages.ImageType(6, 8)},
		{4, 5, ConvertInPlace, stages.ImageType(6, 8)},
	} {
		t.Run(fmt.Sprintf("%+v", tc), func(t *testing.T) {
			var got []uint64
			p := openTest(t, augmented(hashStep(&got), tc.workers, tc.onDevice, tc.convert))
			iv, err := trainAll(t, p, 3)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if len(got) != 21 || !slices.Equal(got, want) {
				t.Errorf("batches %x\nwant    %x", got, want)
			}
			if crosses := p.Plan.Types[p.Plan.batch]; crosses != tc.crosses {
				t.Errorf("%v crosses, want %v", crosses, tc.crosses)
			}
			for i, a := range iv.Stages {
				if a.Busy <= 0 {
					t.Errorf("%s was never busy", a.Address)
				}
				if i > p.Plan.batch && a.Items != 21 {
					t.Errorf("%s did %d batches, want 21", a.Address, a.Items)
				}
			}
		})
	}
	if slices.Equal(want[:7], want[7:14]) {
		t.Error("the second epoch repeats the first")
	}
}

// TestProbesWithDeviceStages compares what the step eats under every probe with the baseline, as TestProbesFeedTheSameBatches does: a
// cache in front of the transfer leaves the device's stages their draws, one behind them freezes what they drew.
func TestProbesWithDeviceStages(t *testing.T) {
	var got []uint64
	e := augmented(hashStep(&got), 2, 3, ConvertInPlace)
	e.Stages[1].Spec = &stageFunc{f: pass}
	e.Bisect.CacheBatches = 7
	p := openTest(t, e)
	eat := func(probe Probe) []uint64 {
		got = nil
		clear(p.next)
		if _, err := p.Measure(context.Background(), probe, 1, 13); err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := eat(Probe{})
	train := len(e.Stages) - 1
	for k := 1; k <= train; k++ {
		if p.Plan.Points[k] != (k <= train-4 || k == train) {
			t.Errorf("boundary %d may be probed: %v", k, p.Plan.Points[k])
		}
		if !p.Plan.Points[k] {
			continue
		}
		if got := eat(Probe{To: k}); !slices.Equal(got[:7], want[:7]) || slices.Equal(got[7:14], want[:7]) != (k == train) {
			t.Errorf("the cache at %d gives other batches than the baseline, or freezes them", k)
		}
		for j := 1; j < k; j++ {
			if !p.Plan.Points[j] {
				continue
			}
			if got := eat(Probe{From: j, To: k}); !slices.Equal(got[:7], want[:7]) {
				t.Errorf("without %d…%d the step gets other batches than the baseline", j, k-1)
			}
		}
	}
}

// TestArrange checks what convert = "device" makes of the stages, and of what it can't work with.
func TestArrange(t *testing.T) {
	addresses := func(e *Experiment) (list []string) {
		for _, s := range e.Stages {
			list = append(list, s.Address)
		}
		return list
	}
	e := augmented(stepFunc(nothing), 1, 1, ConvertOnDevice)
	_, problems := Check(e)
	want := []Problem{{Address: "transfer", Attribute: "convert", Summary: "No conversion above batch",
		Detail: `With convert = "device" the stage right above batch is done on the device, which must be a prepare "normalize" or "to_float" that takes images. ` +
			`Right above it stands augment.jitter. Move the conversion there, or leave convert out.`}}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Error(diff)
	}

	e = augmented(stepFunc(nothing), 1, 0, ConvertOnDevice)
	e.Stages[6].Pool, e.Pools = "loader", []Pool{{Name: "loader", Workers: 2}}
	e.Stages[5].Checkpoint, e.Stages[8].Checkpoint = &Checkpoint{Name: "above"}, &Checkpoint{Name: "copied"}
	written := addresses(e)
	plan, problems := Compile(e, Dataset{Items: 50, Classes: 10}, 0)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	order := []string{"load.items", "prepare.fussy", "augment.crop", "augment.flip", "augment.again", "augment.jitter", "batch", "transfer", "prepare.normalize", "train.step"}
	if diff := cmp.Diff(order, addresses(plan.Experiment)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(written, addresses(e)); diff != "" {
		t.Errorf("the experiment was changed: %s", diff)
	}
	moved := plan.Experiment.Stages[8]
	if !moved.Device || moved.Pool != "" || moved.Checkpoint == nil || moved.Checkpoint.Name != "copied" || plan.Experiment.Stages[7].Checkpoint != nil {
		t.Errorf("moved: %+v", moved)
	}

	e.Stages[6].Checkpoint = &Checkpoint{Name: "tensors"}
	if _, problems = Check(e); len(problems) != 1 || problems[0].Address != "checkpoint.tensors" || problems[0].Summary != "Checkpoint at a boundary that isn't there" {
		t.Errorf("%+v", problems)
	}
	e.Stages[6].Checkpoint.Mode = "off"
	if _, problems = Check(e); len(problems) > 0 {
		t.Errorf("a checkpoint that is off: %+v", problems)
	}
	e.Stages[6].Spec = nil
	if _, problems = Check(e); len(problems) > 0 {
		t.Errorf("a faulty stage above batch: %+v", problems)
	}
}

// TestDeviceTakes checks that a stage on the device isn't given what devices can't work on.
func TestDeviceTakes(t *testing.T) {
	e := augmented(stepFunc(nothing), 1, 1, ConvertInPlace)
	e.Stages[1].Spec = new(stages.ToFloat)
	e.Stages = slices.Delete(e.Stages, 2, 6)
	_, problems := Check(e)
	if len(problems) != 1 || problems[0].Address != "prepare.normalize" {
		t.Fatalf("%+v", problems)
	}
	want := "On the device normalize makes tensors of images, in one pass, and it gets float32 3×6×8. Remove the to_float above it, or let it work on the host, above the batch."
	if problems[0].Detail != want {
		t.Errorf("got  %s\nwant %s", problems[0].Detail, want)
	}
}

// clockedDevice is a device that takes its time and knows by its own clock how long it worked.
type clockedDevice struct {
	hostDevice
	copying, applying, late time.Duration
	err                     error // of Apply
}

func (d *clockedDevice) Upload(ctx context.Context, b *stages.Batch) (*gpu.Batch, error) {
	copied, err := d.hostDevice.Upload(ctx, b)
	copied.Ready = clocked{d.copying, d.late}
	return copied, err
}

func (d *clockedDevice) Apply(ctx context.Context, b *gpu.Batch, spec stages.StageSpec, draws func(int) *rand.Rand) (*gpu.Batch, error) {
	if d.err != nil {
		return nil, d.err
	}
	made, err := d.hostDevice.Apply(ctx, b, spec, draws)
	if err == nil {
		made.Ready = clocked{d.applying, d.late}
	}
	return made, err
}

// clocked is the end of work that began late.
type clocked struct{ took, late time.Duration }

func (c clocked) Wait(ctx context.Context) error {
	var w stages.Waiter
	return w.Wait(ctx, c.late+c.took)
}
func (c clocked) Elapsed() (time.Duration, bool) { return c.took, true }

func openOn(t *testing.T, e *Experiment, d gpu.Device) *Pipeline {
	t.Helper()
	p, problems, err := Open(context.Background(), e, Options{OpenDevice: func(string) (gpu.Device, error) { return d, nil }})
	if err != nil || len(problems) > 0 {
		t.Fatalf("Open: %v, %v", problems, err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestDeviceClock checks that copies and stages are accounted by the device's clock, and the time that they came late as waiting to
// hand over.
func TestDeviceClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := augmented(napStep(ms), 1, 2, ConvertInPlace)
		p := openOn(t, e, &clockedDevice{copying: 2 * ms, applying: 3 * ms, late: ms})
		const steps = 20
		iv, err := p.Measure(context.Background(), Probe{}, 5, steps)
		if err != nil {
			t.Fatal(err)
		}
		var got []time.Duration
		for _, a := range iv.Stages[p.Plan.transfer:p.Plan.train] {
			got = append(got, a.Busy/steps, a.WaitIn/steps, a.WaitOut/steps)
		}
		// Eleven milliseconds a batch: one copy, two stages, each a millisecond late.
		if want := []time.Duration{2 * ms, 0, 0, 3 * ms, 0, 0, 3 * ms, 0, 3 * ms}; !slices.Equal(got, want) {
			t.Errorf("busy, waiting for input and output a step: %v, want %v", got, want)
		}
	})
}

// TestDeviceFails checks that a failure on the device is its stage's, and that nothing is held afterwards.
func TestDeviceFails(t *testing.T) {
	e := augmented(stepFunc(nothing), 2, 2, ConvertInPlace)
	d := &clockedDevice{err: errors.New("no such kernel")}
	p := openOn(t, e, d)
	for range 2 {
		err := p.Train(context.Background(), 1, nil, nil)
		if failure, ok := errors.AsType[*StageError](err); !ok || failure.Address != "augment.jitter" || failure.Error() != "augment.jitter: no such kernel" {
			t.Errorf("error %v", err)
		}
	}
	if _, err := p.Measure(context.Background(), Probe{To: p.Plan.train}, 0, 3); err == nil {
		t.Error("filling the caches fails, and nothing is said")
	}
	if err := p.Close(); err != nil || d.taken != 0 {
		t.Errorf("closing: %v; %d batches' memory was not given back", err, d.taken)
	}
}

// gpuDevice is a device that says it is a GPU.
type gpuDevice struct {
	hostDevice
	free uint64
}

func (d *gpuDevice) Info() gpu.Info {
	return gpu.Info{Kind: "cuda", Name: "GPU 9", Why: "It is a test."}
}
func (d *gpuDevice) FreeMemory() (uint64, error) { return d.free, nil }

// TestPlaceCaches checks which caches a device can keep, and that what is free there bounds them.
func TestPlaceCaches(t *testing.T) {
	// A batch holds 8 × 60 B as it crosses, and 8 × 240 B as tensors; four are under way.
	const batch = 8*60 + 8*240
	need := stages.Bytes(4 * batch)
	for _, tc := range []struct {
		name   string
		device gpu.Device
		after  int // the boundary of the checkpoint
		cache  Checkpoint
		memory int64
		limit  int64 // of the cache behind the transfer
		want   []Problem
	}{
		{"pinned, without a GPU", new(hostDevice), 7, Checkpoint{Name: "c", Store: PinnedStore}, 0, 1 << 30, []Problem{{Address: "checkpoint.c", Attribute: "store",
			Summary: "No CUDA device", Detail: `Caches in store = "pinned" need a CUDA device, and the experiment runs on test: It is a test. Leave store out.`}}},
		{"on the device, without a GPU", new(hostDevice), 9, Checkpoint{Name: "c", Store: DeviceStore}, 0, 1 << 30, []Problem{{Address: "checkpoint.c", Attribute: "store",
			Summary: "No CUDA device", Detail: `Caches in store = "device" need a CUDA device, and the experiment runs on test: It is a test. Leave store out.`}}},
		{"off", new(hostDevice), 9, Checkpoint{Name: "c", Store: DeviceStore, Mode: "off"}, 0, 1 << 30, nil},
		{"pinned", &gpuDevice{}, 7, Checkpoint{Name: "c", Store: PinnedStore, Limit: 1 << 20}, 1 << 21, 1 << 17, nil},
		{"pinned, too much", &gpuDevice{}, 7, Checkpoint{Name: "c", Store: PinnedStore, Limit: 1 << 22}, 1 << 21, 1 << 17, []Problem{{Address: "checkpoint.c",
			Attribute: "limit", Summary: "Not enough memory", Detail: "The cache may take 4.00 MiB of page-locked memory, and the machine has 2.00 MiB to spare. Set a lower limit."}}},
		{"no checkpoint", &gpuDevice{free: 1 << 20}, 0, Checkpoint{}, 0, (1<<20 - 4*batch) / 2, nil},
		{"a GPU with nothing free", &gpuDevice{free: 1}, 0, Checkpoint{}, 0, 1, nil},
		{"on the device", &gpuDevice{free: 1 << 20}, 9, Checkpoint{Name: "c", Store: DeviceStore, Limit: 1 << 19}, 0, 1 << 19, nil},
		{"on the device, too much", &gpuDevice{free: 1 << 20}, 9, Checkpoint{Name: "c", Store: DeviceStore, Limit: 1 << 20}, 0, 1 << 20, []Problem{{Address: "checkpoint.c",
			Attribute: "limit", Summary: "Not enough device memory", Detail: "The cache may take 1.00 MiB, and of the 1.00 MiB that are free on GPU 9 the batches under way need " + need.String() +
				". Set a limit of " + stages.Bytes(1<<20-need).String() + " or less, or leave it out."}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := augmented(stepFunc(nothing), 1, 1, ConvertInPlace)
			if tc.after > 0 {
				e.Stages[tc.after-1].Checkpoint = &tc.cache
			}
			plan, problems := Compile(e, Dataset{Items: 50, Classes: 10}, tc.memory)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			got, err := plan.placeCaches(tc.device, tc.memory)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
			if got := plan.CacheLimit[plan.train]; got != tc.limit {
				t.Errorf("the cache behind the transfer may take %d bytes, want %d", got, tc.limit)
			}
		})
	}
}
