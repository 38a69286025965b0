package cli

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipectl/pipectl/internal/ui"
	"github.com/pipectl/pipectl/python"
)

// photosAdoption is what is found in a script that trains on photos.
func photosAdoption() *python.Adoption {
	return &python.Adoption{
		Reference: `train:loaders["train"]`,
		Seed:      new(uint64(42)),
		Step:      &python.AdoptedStep{Reference: "train:Step", Factory: true},
		Dataset:   python.Dataset{Class: "ImageFolder", Name: "image_folder", Length: new(48)},
		Lift:      []string{"transform", "target_transform"},
		Samples:   6,
		Steps: []python.Transform{
			{Block: "augment", Name: "random_resized_crop", Part: "transform", Reference: `train:loaders["train"].dataset.transform.transforms[0]`, Text: "RandomResizedCrop(size=(64, 64), …)"},
			{Block: "prepare", Name: "to_tensor", Part: "transform", Reference: `train:loaders["train"].dataset.transform.transforms[1]`, Text: "ToTensor()"},
			{Block: "prepare", Name: "lambda", Part: "target_transform", Reference: `train:loaders["train"].dataset.target_transform`, Text: "lambda"},
		},
		Loader: &python.LoaderFacts{
			Class: "DataLoader", Workers: 8, Prefetch: new(2), Batch: new(64), Batching: "batch_size", DropLast: true, Sampler: new("RandomSampler"),
			Shuffle: new(true), Collate: new("train:pad"), PinMemory: true, WorkerInit: new("seed_worker"), PersistentWorkers: true, Generator: true,
		},
		Program: "python3",
	}
}

const photosFile = `# The input pipeline train:loaders["train"], as it is, part by part. This file was written by
#
#   pipectl init --from 'train:loaders["train"]' --step train:Step
#
# To find the part that starves the training step:
#
#   pipectl run loaders_train.hcl

experiment "loaders_train" {
  seed = 42 # as the code seeds torch

  # Each worker process loads, transforms and collates whole batches, as the DataLoader's do.
  # What the loader has besides stays in force: shuffle=True, pin_memory=True, worker_init_fn=seed_worker,
  # persistent_workers=True, generator=….
  pool "loader" {
    workers  = 8 # num_workers
    prefetch = 2 # prefetch_factor: batches a worker

    # What the stages below do is taken out of the dataset. 6 samples were compared with the untouched dataset's: they are the
    # same, bit for bit.
    load "python" "image_folder" {
      loader = "train:loaders[\"train\"]"
      lift   = ["transform", "target_transform"] # what the stages below do
    }

    # RandomResizedCrop(size=(64, 64), …)
    augment "python" "random_resized_crop" { callable = "train:loaders[\"train\"].dataset.transform.transforms[0]" }
    # ToTensor()
    prepare "python" "to_tensor" { callable = "train:loaders[\"train\"].dataset.transform.transforms[1]" }
    prepare "python" "lambda" {
      callable = "train:loaders[\"train\"].dataset.target_transform"
      part     = "target_transform"
    }

    batch {
      size      = 64
      drop_last = true
      collate   = "train:pad"
    }
  }

  train "python" "step" {
    callable = "train:Step"
    args     = {} # called without arguments, it makes the step
  }
}
`

const photosShown = `Wrote loaders_train.hcl for train:loaders["train"]: 48 samples in batches of
64, loaded by 8 workers.

  load.image_folder            ImageFolder
  augment.random_resized_crop  RandomResizedCrop(size=(64, 64), …)
  prepare.to_tensor            ToTensor()
  prepare.lambda               lambda
  batch                        train:pad
  train.step                   train:Step

Find the stage that starves the step:

  pipectl run loaders_train.hcl
`

// numbersFile is written for a dataset alone that can't be taken apart, in another folder and with another interpreter.
const numbersFile = `# The input pipeline train:Numbers(), as it is, part by part. This file was written by
#
#   pipectl init --from train:Numbers -o -

experiment "Numbers" {
  seed = 0 # the same seed gives the same batches

  # The main process loads, transforms and collates, as it does for a DataLoader with num_workers=0.
  pool "loader" {
    workers = 0 # num_workers

    # transform, "${x}" %{ if } ~, was not taken apart: the dataset uses it.
    #
    # No DataLoader was named: workers, size and shuffle are DataLoader's defaults. Set them as yours has them.
    load "python" "numbers" {
      dataset    = "train:Numbers()"
      shuffle    = false
      python     = "/opt/python"
      pythonpath = ["../src", "$${x}"] # relative to this file
    }

    batch {
      size      = 1
      drop_last = false
    }
  }

  # No step was named, so this one takes no time: the loader alone is measured. Give yours a time, or name it instead:
  #
  #   train "python" "step" { callable = "module:function of a batch" }
  train "emulated" "step" { time = "0ms" }
}
`

const numbersShown = `Found train:Numbers(): samples of unknown number in batches of 1, loaded by the
main process.

  load.numbers  Numbers
  batch         default_collate
  train.step    emulated, 0ms

Note: transform, "${x}" %{ if } ~, was not taken apart: the dataset uses it.

Note: No DataLoader was named: workers, size and shuffle are DataLoader's
defaults. Set them as yours has them.
`

func TestAdoptedFile(t *testing.T) {
	numbers := &python.Adoption{
		Reference: "train:Numbers()",
		Dataset:   python.Dataset{Class: "Numbers", Name: "numbers"},
		Opaque:    []python.Opaque{{Path: "transform", Text: "\"${x}\" %{ if }\n~", Reason: "the dataset uses it"}},
	}
	for _, tc := range []struct {
		file        adoptedFile
		text, shown string
	}{
		{adoptedFile{Adoption: photosAdoption(), path: "loaders_train.hcl", command: commandLine([]string{"init", "--from", `train:loaders["train"]`, "--step", "train:Step"})}, photosFile, photosShown},
		{adoptedFile{Adoption: numbers, path: "-", command: "pipectl init --from train:Numbers -o -", python: "/opt/python", pythonpath: []string{"../src", "${x}"}}, numbersFile, numbersShown},
	} {
		tc.file.name = experimentName(tc.file.Reference)
		got, err := tc.file.render()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(tc.text, string(got)); d != "" {
			t.Errorf("%s: the file (-want +got):\n%s", tc.file.name, d)
		}
		var shown strings.Builder
		tc.file.show(&shown, ui.Terminal{Width: 80})
		if d := cmp.Diff(tc.shown, shown.String()); d != "" {
			t.Errorf("%s: what is shown (-want +got):\n%s", tc.file.name, d)
		}
	}
}

func TestAdoptedNotes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*python.Adoption)
		want   []string
	}{
		{"all well", func(*python.Adoption) {}, nil},
		{"no transforms", func(a *python.Adoption) { a.Steps, a.Lift = nil, nil },
			[]string{"No transforms were found in the attributes of the ImageFolder, so load.image_folder is all that makes a sample."}},
		{"a remark", func(a *python.Adoption) { a.Note = new("the samples differ") }, []string{"The samples differ."}},
		{"unbatched", func(a *python.Adoption) { a.Loader.Batching = "none" },
			[]string{"The loader has batch_size=None: each of the dataset's samples is handed on as if it were a batch."}},
		{"batch sampler", func(a *python.Adoption) {
			a.Loader.Batching, a.Loader.Batch, a.Loader.Sampler = "batch_sampler", nil, new("Buckets")
		}, []string{"The loader's Buckets makes the batches: size = 1 only stands for the size that isn't known."}},
		{"spawned", func(a *python.Adoption) { a.Loader.Context = new("spawn") }, []string{"The loader starts its workers by spawn."}},
	} {
		a := photosAdoption()
		tc.change(a)
		if d := cmp.Diff(tc.want, (&adoptedFile{Adoption: a}).notes()); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

func TestExperimentName(t *testing.T) {
	for reference, want := range map[string]string{
		"train:loader":               "loader",
		"a.b:get_loaders()[0]":       "get_loaders_0",
		`train:loaders["träin set"]`: "loaders_tr_in_set",
		"train:_loader":              "loader",
		"train:ладер":                "loader",
		"train:été.x2":               "t_x2",
		"train:_1":                   "loader_1",
	} {
		if got := experimentName(reference); got != want {
			t.Errorf("%s becomes %q, want %q", reference, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	got := commandLine([]string{"init", "--from=a:b", "", "it's", "x[0]", "$HOME"})
	if want := `pipectl init --from=a:b '' 'it'\''s' 'x[0]' '$HOME'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestRelativeTo(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		file    string
		folders []string
		want    []string
	}{
		{"a.hcl", []string{"."}, nil},
		{"-", []string{"."}, nil},
		{"sub/a.hcl", []string{"sub"}, nil},
		{"sub/a.hcl", []string{"."}, []string{".."}},
		{"a.hcl", []string{"src", "."}, []string{"src", "."}},
		{filepath.Join(dir, "a.hcl"), []string{filepath.Join(dir, "x")}, []string{"x"}},
	} {
		got, err := relativeTo(tc.file, tc.folders)
		if d := cmp.Diff(tc.want, got); err != nil || d != "" {
			t.Errorf("%s %v: %v (-want +got):\n%s", tc.file, tc.folders, err, d)
		}
	}
}

func TestAdopterReferences(t *testing.T) {
	type result struct {
		From, Step string
		Folders    []string
	}
	for _, tc := range []struct {
		adopter adopter
		want    result
	}{
		{adopter{from: "train:loader"}, result{"train:loader", "", []string{"."}}},
		{adopter{from: "src/train.py:loader", step: "src/train.py:step"}, result{"train:loader", "train:step", []string{"src"}}},
		{adopter{from: "data.py", step: "src/train.py:step"}, result{"data", "train:step", []string{".", "src"}}},
		{adopter{from: "testdata.x:loader", pythonpath: []string{"testdata/"}}, result{"testdata.x:loader", "", []string{"testdata", "."}}},
		{adopter{from: "train:loader", step: "train:step", pythonpath: []string{"testdata"}}, result{"train:loader", "train:step", []string{"testdata"}}},
	} {
		from, step, folders, err := tc.adopter.references()
		if d := cmp.Diff(tc.want, result{from, step, folders}); err != nil || d != "" {
			t.Errorf("%s: %v (-want +got):\n%s", tc.adopter.from, err, d)
		}
	}
	for _, a := range []adopter{{from: "a:b", step: "train"}, {from: "a:b", pythonpath: []string{"nowhere"}}} {
		var usage *usageError
		if _, _, _, err := a.references(); !errors.As(err, &usage) {
			t.Errorf("%+v: %v, want wrong usage", a, err)
		}
	}
}

func TestLanguageDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0ms", 30 * time.Millisecond: "30ms", 90 * time.Second: "1m30s"} {
		if got := languageDuration(d); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
