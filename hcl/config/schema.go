package config

import (
	"maps"
	"slices"
	"time"

	"github.com/pipectl/pipectl/engine"
	"github.com/pipectl/pipectl/stages"
)

// The blocks of an experiment besides the operators' and the engine's.
const (
	experimentBlock = "experiment"
	poolBlock       = "pool"
	checkpointBlock = "checkpoint"
	bisectBlock     = engine.BisectBlock
	expectBlock     = "expect"
)

// blockKind is what is known about a block of an experiment.
type blockKind struct {
	labels int // 2: type and name; 1: name
	rank   int // place in the order of the stages; 0 for blocks that aren't stages
}

// blockKinds are the blocks that may stand in an experiment. A stage of a lower rank stands above those of a higher one.
var blockKinds = map[string]*blockKind{
	stages.Load:          {2, 1},
	stages.Prepare:       {2, 2},
	stages.Augment:       {2, 2},
	engine.BatchBlock:    {0, 3},
	engine.TransferBlock: {0, 4},
	stages.Train:         {2, 5},
	poolBlock:            {1, 0},
	checkpointBlock:      {1, 0},
	bisectBlock:          {0, 0},
	expectBlock:          {0, 0},
}

// The structs below are the attributes of the blocks that aren't operators, and those that all operators have, with the
// tags described at stages.Operator.

type experimentAttributes struct {
	Description string `hcl:"description,optional" doc:"What the experiment is, in one line."`
	Seed        uint64 `hcl:"seed,optional" doc:"Where shuffling, augmentation and initial weights are drawn from. The same seed gives the same batches."`
}

type workerAttributes struct {
	Workers  stages.Count `hcl:"workers,optional" min:"1" max:"4096" doc:"Workers that run at a time. With \"auto\" the planner decides, and may let the same workers run neighbouring stages."`
	Prefetch stages.Count `hcl:"prefetch,optional" min:"1" max:"1000000" doc:"Items that its output queue holds. With \"auto\" the planner decides."`
}

type loadAttributes struct {
	Weight *float64 `hcl:"weight,optional" moremin:"0" doc:"With several load blocks: how many items come from this one, in proportion to the weights of the others; 1 if it isn't set. What comes next is drawn from the seed and the epoch alone. An epoch is over when one block has given all its items; the others go on from there in the next."`
}

type poolAttributes struct {
	Workers  stages.Count `hcl:"workers,optional" min:"0" max:"4096" doc:"Workers that run at a time, each of them all of the pool's stages. With \"auto\" the planner decides. 0, for a pool of Python stages from load to batch: the main process does their work, between the steps."`
	Prefetch stages.Count `hcl:"prefetch,optional" min:"1" max:"1000000" doc:"Items that its output queue holds, batches where the pool goes up to batch; for a pool of Python stages from load to batch: batches a worker. With \"auto\" the planner decides."`
}

type errorAttributes struct {
	OnError  string `hcl:"on_error,optional" enum:"fail,skip" doc:"What becomes of an item that the stage can't process: \"fail\" ends the run, \"skip\" leaves the item out, counts it and lists it with the reason."`
	MaxSkips *int   `hcl:"max_skips,optional" min:"0" doc:"Items that may be skipped before the run ends with an error, with on_error = \"skip\". Any number if it isn't set."`
}

type deviceAttributes struct {
	Device bool `hcl:"device,optional" doc:"The device does the stage's work, on whole batches and with the same results. The block then stands between transfer and train, and has no workers, prefetch, on_error and max_skips. Devices can do to_float, normalize of images, random_flip, random_resized_crop and color_jitter."`
}

type batchAttributes struct {
	Size     int      `hcl:"size" min:"1" max:"16777216" doc:"Samples in a batch."`
	DropLast bool     `hcl:"drop_last,optional" doc:"Leave out an epoch's last batch where it is short of samples. It is kept where it is the only one."`
	Mixup    *float64 `hcl:"mixup,optional" moremin:"0" max:"1000" doc:"Mix each sample of a batch with the one before it, and their labels too, as torchvision's MixUp: λ of a sample and 1 - λ of the other, with one λ a batch, drawn from Beta(mixup, mixup). It takes tensors of one size. Of the training steps, \"cnn\" learns from mixed samples, \"emulated\" doesn't look at them, and \"python\" refuses them."`
	Cutmix   *float64 `hcl:"cutmix,optional" moremin:"0" max:"1000" doc:"Put a rectangle of the sample before it in each sample's place, and mix their labels by its share of the area, as torchvision's CutMix: the share is 1 - λ but for what would lie outside, with λ drawn from Beta(cutmix, cutmix). With mixup too, each batch is mixed in one of the two ways, both as likely. It takes images or tensors of one size."`
}

type batchWorkerAttributes struct {
	Workers  stages.Count `hcl:"workers,optional" min:"1" max:"4096" doc:"Workers that collate. With \"auto\" the workers of the stage before write their samples straight into the batch."`
	Prefetch stages.Count `hcl:"prefetch,optional" min:"1" max:"1000000" doc:"Batches that its output queue holds. With \"auto\" the planner decides."`
}

type transferAttributes struct {
	Pinned   bool         `hcl:"pinned,optional" doc:"Keep batches in page-locked memory, from which a device copies faster."`
	Convert  string       `hcl:"convert,optional" enum:"none,device" doc:"\"device\": the stage right above batch, a normalize or to_float that takes images, is done on the device behind the transfer, so that batches cross as bytes, a quarter of what they are as float32. Its workers, prefetch and on_error mean nothing then."`
	Prefetch stages.Count `hcl:"prefetch,optional" min:"1" max:"1000000" doc:"Batches on the device that wait for the step. With \"auto\" the planner decides."`
}

type checkpointAttributes struct {
	Store    string        `hcl:"store,optional" enum:"memory,disk,pinned,device" doc:"Where its cache is kept. \"memory\": in the host's memory, or behind a transfer wherever that leaves batches. \"disk\", above batch: in a file. \"pinned\", right below batch: in page-locked memory. \"device\", right above train behind a transfer: in the device's. These two need a CUDA device."`
	Limit    *stages.Bytes `hcl:"limit,optional" min:"1B" doc:"Bytes of samples that its cache may hold; the index of a file comes on top. If it isn't set, the engine decides by the machine's memory, and on disk there is no limit. With mode = \"keep\" it keeps the first items in the source's order, as many as fit; the others are made in every epoch."`
	Path     *stages.Path  `hcl:"path,optional" doc:"The folder of a cache on disk. If it isn't set, .pipectl/cache beside the file."`
	Compress string        `hcl:"compress,optional" enum:"none,zstd" doc:"How a cache on disk that is kept is compressed. What is compressed takes less room and more CPU time: of encoded pictures nothing is gained."`
	Mode     string        `hcl:"mode,optional" enum:"probe,keep,off" doc:"\"probe\": used only when bisecting, and gone afterwards. \"off\": not a probe point. \"keep\", with store = \"disk\": a permanent cache, filled in the first epoch and served afterwards, in later runs and other processes too, for as long as nothing above it changes: no stage's type or attributes, no file, and not the program. Stages above it don't run for what it holds. So a bisection, which fills it before it measures anything, is about the pipeline with its cache full. What an augment stage above it draws in the first epoch is frozen."`
}

type bisectAttributes struct {
	Strategy     string         `hcl:"strategy,optional" enum:"bisect,ladder" doc:"\"bisect\" measures the boundaries that narrow the bottleneck down, \"ladder\" every one."`
	Warmup       int            `hcl:"warmup,optional" min:"0" max:"1000000" doc:"Steps dropped at the start of each interval."`
	Steps        stages.Count   `hcl:"steps,optional" min:"1" max:"1000000000" doc:"Steps in an interval. With \"auto\" as many as fill about half a second."`
	Rounds       int            `hcl:"rounds,optional" min:"4" max:"1000" doc:"Intervals measured of each probe. An honest 95 % confidence interval needs at least 6."`
	Confidence   float64        `hcl:"confidence,optional" moremin:"0.5" lessmax:"1" doc:"The confidence of all intervals and decisions."`
	MinEffect    float64        `hcl:"min_effect,optional" moremin:"0" lessmax:"1" doc:"The smallest part of the time of a step that counts as a difference."`
	CacheBatches stages.Count   `hcl:"cache_batches,optional" min:"1" max:"1000000" doc:"Batches that a probe's cache holds. With \"auto\" 256 samples in at least 8 batches, more where up to 32 batches take less than 256 MiB, and fewer, but 8, where they would take more than 3 s to make. Never more than an epoch."`
	Budget       *time.Duration `hcl:"budget,optional" min:"1ms" doc:"How long the whole session may take. No limit if it isn't set."`
	Cold         bool           `hcl:"cold,optional" doc:"Drop the data set's files from the page cache before each interval that reads them, so that reading is measured as on the first epoch of data that doesn't fit into memory. The report says how well that worked. It is for load blocks that read files as the pipeline runs."`
	Control      bool           `hcl:"control,optional" doc:"Measure the step alone once more beside a burner of CPU time that takes as much as the stages do. The report then says how much of what the pipeline is slower is waiting for data, and how much is fighting for the CPU."`
}

type expectAttributes struct {
	StepsPerSecond *float64 `hcl:"steps_per_second,optional" moremin:"0" doc:"The least step rate of the baseline."`
	MaxStarvation  *float64 `hcl:"max_starvation,optional" min:"0" max:"1" doc:"The largest share of the baseline's time for which the step may wait for data."`
	Bottleneck     *string  `hcl:"bottleneck,optional" doc:"The address of the stage that must be the bottleneck."`
}

func newWorkerAttributes() *workerAttributes { return &workerAttributes{Workers: 1} }

func newPoolAttributes() *poolAttributes { return &poolAttributes{Workers: 1} }

func newErrorAttributes() *errorAttributes { return &errorAttributes{OnError: string(engine.Fail)} }

func newBatchAttributes() *batchAttributes { return &batchAttributes{DropLast: true} }

func newTransferAttributes() *transferAttributes {
	return &transferAttributes{Pinned: true, Convert: engine.ConvertInPlace}
}

func newCheckpointAttributes() *checkpointAttributes {
	return &checkpointAttributes{Store: engine.MemoryStore, Compress: "none", Mode: "probe"}
}

func newBisectAttributes() *bisectAttributes {
	return &bisectAttributes{Strategy: "bisect", Warmup: 2, Rounds: 6, Confidence: 0.95, MinEffect: 0.05}
}

func (a *bisectAttributes) engine() engine.Bisect {
	b := engine.Bisect{
		Strategy:     a.Strategy,
		Warmup:       a.Warmup,
		Steps:        int(a.Steps),
		Rounds:       a.Rounds,
		Confidence:   a.Confidence,
		MinEffect:    a.MinEffect,
		CacheBatches: int(a.CacheBatches),
	}
	b.Cold, b.Control = a.Cold, a.Control
	if a.Budget != nil {
		b.Budget = *a.Budget
	}
	return b
}

func (a *expectAttributes) engine() engine.Expect {
	e := engine.Expect{StepsPerSecond: a.StepsPerSecond, MaxStarvation: a.MaxStarvation}
	if a.Bottleneck != nil {
		e.Bottleneck = *a.Bottleneck
	}
	return e
}

// experimentBlocks returns the names of the blocks in an experiment.
func experimentBlocks() []string { return slices.Sorted(maps.Keys(blockKinds)) }
