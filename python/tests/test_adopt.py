import collections
import functools
import os
import random
import sys
import time
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy
import torch
import torchvision
from PIL import Image
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
    random_split,
)
from torchvision import transforms as T

from pipectl_python import adopt, finding, trial
from pipectl_python.main import Fault

PHOTOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/photos/photos")


def folder(transform=None, **more):
    return torchvision.datasets.ImageFolder(PHOTOS, transform=transform, **more)


def picture(i):
    return Image.fromarray(numpy.random.RandomState(i).randint(0, 255, (20, 24, 3), numpy.uint8))


def training():
    return T.Compose([T.RandomResizedCrop(16), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5] * 3, [0.5] * 3)])


class Pictures(Dataset):
    """Twenty samples, which make(self, i) makes."""

    def __init__(self, make, **attributes):
        self.made_by = (make, None)  # no callable, which could be lifted too
        vars(self).update(attributes)

    def __len__(self):
        return 20

    def __getitem__(self, i):
        return self.made_by[0](self, i)


class Numbers(IterableDataset):
    def __init__(self, transform=None):
        self.transform = transform

    def __iter__(self):
        for i in range(100):
            x = torch.full((3,), float(i))
            yield (x if self.transform is None else self.transform(x)), i


class Flip:
    def __call__(self, image, mask):
        if random.random() < 0.5:
            image, mask = image[:, ::-1], mask[:, ::-1]
        return {"image": image, "mask": mask}


class ToFloat:
    def __call__(self, image, mask):
        return {"image": (image / 255).astype("float32"), "mask": mask}


class Keywords:
    """A Compose that is called as albumentations' are."""

    def __init__(self, transforms, p=1.0):
        self.transforms, self.p = transforms, p

    def __call__(self, **data):
        for t in self.transforms:
            data = t(**data)
        return data


Keywords.__name__ = "Compose"


def segmented(self, i):
    out = self.augment(image=numpy.full((8, 8, 3), i, numpy.uint8), mask=numpy.arange(64).reshape(8, 8))
    return {"image": out["image"], "mask": out["mask"], "id": i}


class TwoViews:
    def __init__(self, base):
        self.base = base

    def __call__(self, image):
        return [self.base(image), self.base(image)]


class Named:
    def __init__(self, base):
        self.base = base

    def __call__(self, image):
        return self.base(image)


class Jitter(Pictures):
    def jitter(self, x):
        return x + torch.rand(3)


class Waits(Dataset):
    """Its file is open in workers only."""

    def __init__(self):
        self.file, self.transform = None, T.Compose([torch.neg, torch.abs])

    def __len__(self):
        return 8

    def __getitem__(self, i):
        return self.transform(self.file[i])


def open_file(worker):
    get_worker_info().dataset.file = torch.arange(8.0).reshape(8, 1)


def exits(self, i):
    raise SystemExit(3)


def dies(self, i):
    os.kill(os.getpid(), 11)


def fails(self, i):
    raise OSError("no such file")


def twice(self, i):
    """The same crop for both, by seeding before each."""
    torch.manual_seed(i)
    image = self.transform(picture(i))
    torch.manual_seed(i)
    return image, self.target_transform(picture(i))


def in_turn(self, i):
    image = picture(i)
    for t in self.tfs:
        image = t(image)
    return image


def drawn_after(self, i):
    return self.transform(torch.zeros(3)), random.random()


def listing(ds, i):
    return ds.a_transform(torch.ones(1)), ds.b_transform(torch.ones(1))


def pad(samples):
    return samples


def described(found, step=None, limit=20):
    """Returns what find and describe say of an object that is `there` in a module."""
    state = state_with(there=found)
    finding.find(state, {"from": "there:there", "step": step})
    return adopt.describe(state, {"limit": limit})


def state_with(**names):
    module = types.ModuleType("there")
    vars(module).update(names)
    return types.SimpleNamespace(objects={"there": module}, python="python3", pythonpath=[])


def stages(d):
    """Returns the steps in short: p or a for the block, name, and reference from the dataset on."""
    at = "there:there.dataset." if d["loader"] else "there:there."
    return [f'{s["block"][0]} {s["name"]} {s["reference"].replace(at, "", 1)}' for s in d["steps"]]


TRAINING = ["a random_resized_crop", "a random_horizontal_flip", "p to_tensor", "p normalize"]


def at(path, steps):
    return [f"{step} {path}.transforms[{i}]" for i, step in enumerate(steps)]


class Describes(unittest.TestCase):
    maxDiff = None

    def test_transforms(self):
        lazy = Pictures(lambda self, i: self.transform(torch.zeros(3)))
        jitter = Jitter(lambda self, i: {"x": self.transform(torch.zeros(3)), "y": i})
        jitter.transform = jitter.jitter
        lazy.transform = T.Compose([functools.partial(torch.add, other=1), T.Lambda(lambda x: x * 2), lambda x: x - 1])
        own = Pictures(lambda self, i: self.transform(numpy.zeros(3)), rng=numpy.random.default_rng(1))
        own.transform = lambda x: x + own.rng.random(3)
        size = T.Compose([T.Resize(8), T.CenterCrop(6)])
        pair = Pictures(
            lambda self, i: (self.image_transform(picture(i)), self.mask_transform(picture(i))),
            image_transform=T.Compose([T.Resize(8), T.ToTensor()]),
            mask_transform=T.Compose([T.Resize(8), numpy.asarray]),
        )
        cases = [
            ("Compose", DataLoader(folder(training())), ["transform"], at("transform", TRAINING)),
            ("dataset alone", folder(training()), ["transform"], at("transform", TRAINING)),
            ("Subset", DataLoader(Subset(folder(training()), [1, 3, 5])), ["dataset.transform"], at("dataset.transform", TRAINING)),
            ("random_split", DataLoader(random_split(folder(training()), [44, 4])[0]), ["dataset.transform"], at("dataset.transform", TRAINING)),
            (
                "nested Compose",
                DataLoader(folder(T.Compose([size, T.Compose([T.ToTensor()])]))),
                ["transform"],
                ["p resize transform.transforms[0].transforms[0]", "p center_crop transform.transforms[0].transforms[1]"]
                + ["p to_tensor transform.transforms[1].transforms[0]"],
            ),
            (
                "Sequential",
                DataLoader(folder(torch.nn.Sequential(T.Resize(8), T.CenterCrop(6))), collate_fn=pad),
                ["transform"],
                ["p resize transform[0]", "p center_crop transform[1]"],
            ),
            (
                "ConcatDataset",
                DataLoader(ConcatDataset([folder(T.ToTensor()), folder(T.Compose([T.Grayscale(), T.ToTensor()]))])),
                ["datasets[0].transform", "datasets[1].transform"],
                ["p to_tensor datasets[0].transform", "p grayscale datasets[1].transform.transforms[0]", "p to_tensor_2 datasets[1].transform.transforms[1]"],
            ),
            (
                "list",
                DataLoader(Pictures(in_turn, tfs=[T.Resize(8), T.RandomHorizontalFlip(), T.ToTensor()])),
                ["tfs"],
                ["p resize tfs[0]", "a random_horizontal_flip tfs[1]", "p to_tensor tfs[2]"],
            ),
            (
                "keywords",
                DataLoader(Pictures(segmented, augment=Keywords([Flip(), ToFloat()]))),
                ["augment"],
                ["a flip augment.transforms[0]", "p to_float augment.transforms[1]"],
            ),
            ("bound method", DataLoader(jitter), ["transform"], ["a jitter transform"]),
            (
                "functions",
                DataLoader(lazy),
                ["transform"],
                ["p add transform.transforms[0]", "p lambda transform.transforms[1]", "p lambda_2 transform.transforms[2]"],
            ),
            ("a generator of its own", DataLoader(own), ["transform"], ["a lambda transform"]),
            (
                "two transforms",
                DataLoader(pair),
                ["image_transform", "mask_transform"],
                ["p resize image_transform.transforms[0]", "p to_tensor image_transform.transforms[1]"]
                + ["p resize_2 mask_transform.transforms[0]", "p asarray mask_transform.transforms[1]"],
            ),
            (
                "in another order than their names'",
                DataLoader(Pictures(listing, b_transform=lambda x: x + torch.rand(1), a_transform=lambda x: x * torch.rand(1))),
                ["a_transform", "b_transform"],
                ["a lambda a_transform", "a lambda_2 b_transform"],
            ),
            (
                "target_transform",
                DataLoader(folder(T.ToTensor(), target_transform=lambda y: y + 1)),
                ["transform", "target_transform"],
                ["p to_tensor transform", "p lambda target_transform"],
            ),
            ("own class around a Compose", DataLoader(folder(Named(training()))), ["transform.base"], at("transform.base", TRAINING)),
            ("two views", DataLoader(folder(TwoViews(training()))), ["transform"], ["a two_views transform"]),
            ("no transform", DataLoader(folder(), collate_fn=pad), ["loader"], ["p default_loader loader"]),
            ("iterable", DataLoader(Numbers(T.Compose([torch.neg, torch.abs]))), ["transform"], ["p neg transform.transforms[0]", "p abs transform.transforms[1]"]),
            ("iterable without", DataLoader(Numbers()), [], []),
            ("tensors", DataLoader(TensorDataset(torch.rand(4))), [], []),
            (
                "file opened in workers",
                DataLoader(Waits(), num_workers=1, worker_init_fn=open_file),
                ["transform"],
                ["p neg transform.transforms[0]", "p abs transform.transforms[1]"],
            ),
        ]
        for name, found, lifted, steps in cases:
            with self.subTest(name):
                d = described(found)
                self.assertEqual((lifted, steps), (d["lift"], stages(d)))
                self.assertIsNone(d["note"])

    def test_transforms_that_stay_inside(self):
        doubled = lambda self, i: self.transform(picture(i)) * 2  # noqa: E731
        shown = "Compose(Resize(size=8, interpolation=bilinear, max_size=None, antialias=None) ToTensor())"
        crop = T.RandomCrop(8)
        cases = [
            (
                Pictures(doubled, transform=T.Compose([T.Resize(8), T.ToTensor()])),
                [],
                [("transform", shown, "the dataset uses __mul__() of what transform returns, before the sample is made")],
            ),
            (
                folder(TwoViews(T.Compose([T.ToTensor(), torch.neg]))),
                ["transform"],
                [("transform.base", "Compose", "the dataset calls transform.base more than once for a sample")],
            ),
            (
                Pictures(twice, transform=crop, target_transform=T.RandomCrop(8)),
                ["target_transform"],
                [("transform", "RandomCrop(size=(8, 8), padding=None)", "the dataset draws random numbers, or seeds, after it has called a lifted callable")],
            ),
            (
                Pictures(drawn_after, transform=abs),
                [],
                [("transform", "abs", "the dataset draws random numbers, or seeds, after it has called a lifted callable")],
            ),
        ]
        for dataset, lifted, opaque in cases:
            d = described(DataLoader(dataset))
            self.assertEqual((lifted, opaque), (d["lift"], [(o["path"], o["text"], o["reason"]) for o in d["opaque"]]))

    def test_datasets_that_fail(self):
        for make, why in [
            (fails, "OSError: no such file"),
            (exits, "the process that fetched a sample called sys.exit(3)"),
            (dies, "the process that fetched a sample was killed by SIGSEGV"),
        ]:
            d = described(DataLoader(Pictures(make, transform=abs)))
            self.assertEqual(([], "the dataset's transforms were not taken apart: " + why), (d["lift"], d["note"]))

    def test_unseeded(self):
        d = described(DataLoader(Pictures(lambda self, i: self.transform(i), transform=lambda i: os.urandom(3))))
        self.assertEqual(["a lambda transform"], stages(d))
        self.assertIn("only their types and shapes were compared", d["note"])

    def test_slow(self):
        """The time that trials may take holds, whatever the dataset does."""
        start = time.monotonic()
        d = described(DataLoader(Pictures(lambda self, i: time.sleep(60), transform=abs)), limit=0.5)
        self.assertLess(time.monotonic() - start, 30)
        self.assertEqual("the dataset's transforms were not taken apart: a sample takes longer than 0.5 s", d["note"])

    def test_nothing_is_left_changed(self):
        transform = training()
        loader = DataLoader(folder(transform), shuffle=True)
        before = trial.generators()
        described(loader)
        self.assertIs(loader.dataset.transform, transform)
        self.assertEqual(before, trial.generators())

    def test_loader(self):
        data = TensorDataset(torch.rand(10))
        usual = {
            "class": "DataLoader",
            "workers": 0,
            "prefetch": None,
            "batch": 1,
            "batching": "batch_size",
            "drop_last": False,
            "sampler": "SequentialSampler",
            "shuffle": False,
            "collate": None,
            "pin_memory": False,
            "worker_init_fn": None,
            "persistent_workers": False,
            "generator": False,
            "timeout": 0,
            "context": None,
        }
        weighted = WeightedRandomSampler([1.0] * 10, 5)
        batches = BatchSampler(SequentialSampler(data), 3, True)
        for loader, differs in [
            (DataLoader(data), {}),
            (DataLoader(data, batch_size=4, shuffle=True, drop_last=True), {"batch": 4, "shuffle": True, "sampler": "RandomSampler", "drop_last": True}),
            (
                DataLoader(data, num_workers=3, prefetch_factor=5, persistent_workers=True, worker_init_fn=open_file, timeout=9),
                {"workers": 3, "prefetch": 5, "persistent_workers": True, "worker_init_fn": "open_file", "timeout": 9},
            ),
            (DataLoader(data, sampler=weighted), {"sampler": "WeightedRandomSampler", "shuffle": None}),
            (DataLoader(data, batch_sampler=batches), {"sampler": "BatchSampler", "shuffle": None, "batch": 3, "batching": "batch_sampler", "drop_last": True}),
            (DataLoader(data, batch_sampler=[[0, 1], [2]]), {"sampler": "list", "shuffle": None, "batch": None, "batching": "batch_sampler"}),
            (DataLoader(data, batch_size=None), {"batch": None, "batching": "none"}),
            (DataLoader(Numbers()), {"sampler": None, "shuffle": None}),
            (DataLoader(data, collate_fn=pad), {"collate": f"{__name__}:pad"}),
            (DataLoader(data, collate_fn=lambda b: b), {"collate": "there:there.collate_fn"}),
        ]:
            self.assertEqual({**usual, **differs}, described(loader)["loader"])


class Finds(unittest.TestCase):
    def test_names(self):
        data = TensorDataset(torch.rand(4))
        one, two = DataLoader(data), DataLoader(data)
        Pair = collections.namedtuple("Pair", "train val")
        state = state_with(
            one=one, two=two, loaders={"train": one}, both=(one, two), pair=Pair(one, 3), data=data, number=3,
            get=lambda size=4: DataLoader(data, batch_size=size), get_both=lambda: (one, two), needs=lambda root, size: None, get_data=lambda: data,
        )  # fmt: skip
        for name, reference in [
            ("one", "one"),
            ("get", "get()"),
            ("get()", "get()"),
            ("get_data", "get_data()"),
            ("loaders", 'loaders["train"]'),
            ("get_both()[1]", "get_both()[1]"),
            ("pair", "pair.train"),
            ("data", "data"),
        ]:
            self.assertEqual("there:" + reference, finding.find(state, {"from": "there:" + name})["reference"])
        has = "The module has the DataLoaders there:one and there:two"
        for name, error in [
            (":both", "there are 2 DataLoaders in there:both: name one, there:both[0] or there:both[1]"),
            ("", "there are 2 DataLoaders in there: name one, there:one or there:two"),
            (":needs", "there:needs needs root and size: write a function that takes no arguments, calls it and returns the DataLoader, here or in a file of its own, and name that"),
            (":number", "there:number is an int, not a DataLoader or dataset, or a function that returns one. " + has),
            (":on", 'module there has no attribute "on"; did you mean "one"? ' + has),
        ]:
            with self.assertRaises(Fault) as caught:
                finding.find(state, {"from": "there" + name})
            self.assertEqual(error, str(caught.exception))

    def test_module_alone(self):
        loader = DataLoader([1, 2])
        self.assertEqual('there:all["x"]', finding.find(state_with(all={"x": loader}), {"from": "there"})["reference"])

        def get_loaders():
            pass

        get_loaders.__module__ = "there"
        for names, error in [
            ({"get_loaders": get_loaders}, "The module has no DataLoader, but functions that may return one: there:get_loaders"),
            ({}, "The module has no DataLoader: make one at its top, or in a function that takes no arguments, and name that"),
        ]:
            with self.assertRaises(Fault) as caught:
                finding.find(state_with(**names), {"from": "there"})
            self.assertEqual("there alone names no DataLoader. " + error, str(caught.exception))

    def test_step(self):
        class Step:
            def __call__(self, batch):
                pass

        class Needs(Step):
            def __init__(self, model):
                pass

        state = state_with(
            loader=DataLoader([1]), function=lambda batch: None, maker=lambda: None, Step=Step, object=Step(), Needs=Needs, net=torch.nn.Linear(1, 1),
            two=lambda model, batch: None, more=lambda batch, epoch=0: None, number=3,
        )  # fmt: skip
        for name, factory in [("function", False), ("maker", True), ("Step", True), ("object", False), ("net", False), ("more", False)]:
            found = finding.find(state, {"from": "there:loader", "step": "there:" + name})
            self.assertEqual({"reference": "there:" + name, "factory": factory}, found["step"])
        for name, error in [
            ("Needs", "there:Needs needs model: write a function that takes no arguments and returns the step, a callable on one batch, and name that"),
            ("two", "there:two takes model and batch: write a function that takes a batch alone and calls it, and name that"),
            ("number", "there:number is an int, which can't be called: want a function on one batch, or one that makes it"),
        ]:
            with self.assertRaises(Fault) as caught:
                finding.find(state, {"from": "there:loader", "step": "there:" + name})
            self.assertEqual(error, str(caught.exception))

    def test_code_that_fails(self):
        def ends():
            raise SystemExit(2)

        state = state_with(ends=ends, reads=lambda: open("nowhere.csv"))
        for name, error in [
            ("ends", 'SystemExit: 2. The code runs without command-line arguments: put what reads them under `if __name__ == "__main__":`, or give them defaults'),
            (
                "reads",
                "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere.csv'. "
                "Relative paths start at the current folder: run pipectl where you run python",
            ),
        ]:
            with self.assertRaises(Fault) as caught:
                finding.find(state, {"from": "there:" + name})
            self.assertEqual(error, str(caught.exception))

    def test_seed(self):
        state = state_with(loader=DataLoader([1]))
        torch.seed()
        self.assertIsNone(finding.find(state, {"from": "there:loader"})["seed"])
        torch.manual_seed(42)
        self.assertEqual(42, finding.find(state, {"from": "there:loader"})["seed"])


class Words(unittest.TestCase):
    def test_names(self):
        for value, name in [
            (T.RandomResizedCrop(4), "random_resized_crop"),
            (T.PILToTensor(), "pil_to_tensor"),
            (torch.nn.Conv2d(1, 1, 1), "conv2d"),
            (type("ToTensorV2", (), {"__call__": pad})(), "to_tensor_v2"),
            (type("Resize3DVolume", (), {"__call__": pad})(), "resize3d_volume"),
            (len, "len"),
            (lambda x: x, "lambda"),
            (functools.partial(functools.partial(pad, 1), 2), "pad"),
            (type("_Ünder", (), {"__call__": pad})(), "nder"),
            (type("_", (), {"__call__": pad})(), "step"),
            (type("_3D", (), {"__call__": pad})(), "step_3d"),
        ]:
            self.assertEqual(name, adopt.Names().of(value))

    def test_text(self):
        for value, text in [
            (T.ToTensor(), "ToTensor()"),
            (T.Compose([T.ToTensor()]), "Compose(ToTensor())"),
            (T.RandomResizedCrop(224), "RandomResizedCrop(size=(224, 224), scale=(0.08, 1.0), ratio=(0.75, 1.3333), …)"),
            (pad, "pad"),
            (lambda x: x, "lambda"),
            (Named(None), "Named"),
        ]:
            self.assertEqual(text, adopt.text(value))


if __name__ == "__main__":
    unittest.main()
