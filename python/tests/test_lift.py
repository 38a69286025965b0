import collections
import copy
import dataclasses
import os
import pickle
import random
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy
import torch
import torchvision
from PIL import Image
from torch.utils.data import ConcatDataset, IterableDataset, Subset

from pipectl_python import lift
from pipectl_python.lift import NotLiftable

Pair = collections.namedtuple("Pair", "image label")


@dataclasses.dataclass
class Record:
    image: object
    label: int


@dataclasses.dataclass(frozen=True)
class Frozen:
    image: object
    label: int


class Images:
    """A dataset whose samples `make` makes of the transformed image."""

    def __init__(self, make, transform=None, call=lambda t, image: t(image)):
        self.make, self.transform, self.call = make, transform, call

    def __len__(self):
        return 40

    def __getitem__(self, i):
        image = numpy.full((2, 2), i + random.random())
        if self.transform is not None:
            image = self.call(self.transform, image)
        return self.make(image, i)


def add_noise(image):
    return image + random.random() + numpy.random.random() + torch.rand(1).item()


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, *args):
        for t in self.transforms:
            args = t(*args) if len(args) > 1 else (t(*args),)
        return args if len(args) > 1 else args[0]


class Named:
    """Calls its transforms with keyword arguments, as albumentations does."""

    def __init__(self, transforms, p=1.0, processors=None):
        self.transforms, self.p, self.processors = transforms, p, processors or {}

    def __call__(self, **data):
        for t in self.transforms:
            data = t(**data)
        return data


Named.__name__ = "Compose"


def equal(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if dataclasses.is_dataclass(a):
        return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and numpy.array_equal(a, b)
    return a == b


def seed(i=7):
    random.seed(i)
    numpy.random.seed(i)
    torch.manual_seed(i)


def plain(dataset, n=40):
    seed()
    return [dataset[i] for i in range(n)]


def lifted(dataset, paths, n=40, between=lambda sample: sample):
    originals = lift.lift(dataset, paths)
    chain = [(path, step) for path, original in originals.items() for _, step in lift.steps(original)]
    out = []
    seed()
    for i in range(n):
        sample = between(lift.fetch(dataset, i, paths))
        for path, step in chain:
            sample = between(lift.apply(sample, path, step))
        out.append(lift.finish(sample))
    lift.put_back(dataset, originals)
    return out


MAKES = {
    "tuple": lambda x, i: (x, i),
    "list": lambda x, i: [i, x],
    "dict": lambda x, i: {"image": x, "label": i},
    "ordered dict": lambda x, i: collections.OrderedDict(a=i, b=x),
    "default dict": lambda x, i: collections.defaultdict(int, {"image": x}),
    "alone": lambda x, i: x,
    "nested": lambda x, i: {"a": [(i, {"b": x})], "c": i},
    "named tuple": lambda x, i: Pair(x, i),
    "dataclass": lambda x, i: Record(x, i),
    "frozen dataclass": lambda x, i: (Frozen(x, i),),
    "changes its place": lambda x, i: (x, i) if i % 2 else [i, x],
}


class Equality(unittest.TestCase):
    def test_samples_equal_those_of_the_dataset(self):
        for name, make in MAKES.items():
            for transform in (add_noise, Compose([add_noise, Compose([add_noise]), torch.tensor])):
                for between in (lambda s: s, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))):
                    with self.subTest(name):
                        dataset = Images(make, transform)
                        want = plain(dataset)
                        self.assertTrue(equal(want, lifted(dataset, ["transform"], between=between)))
                        self.assertTrue(equal(want, plain(dataset)), "put back")

    def test_calling_conventions(self):
        def both(a, b):
            return a + random.random(), b * 2

        def named(image, mask):
            return {"image": image + random.random(), "mask": mask * 2}

        def rename(image, mask):
            return {"image": image, "mask": mask, "more": 1}

        def calls_with(t, image):
            return t(image=image, mask=image)

        cases = {
            "unpacked": (Compose([both, both]), lambda x, i: (x[1], i, x[0]), lambda t, image: t(image, image)),
            "as it is": (Compose([both, both]), lambda x, i: (x, i), lambda t, image: t(image, image)),
            "a list of them": (lambda a, b: [a, b], lambda x, i: x, lambda t, image: t(image, image)),
            "keywords": (Named([named, named]), lambda x, i: (x["image"], x["mask"]), calls_with),
            "one keyword's only": (Named([named, named]), lambda x, i: (x["image"], i), calls_with),
            "keywords' dict": (Named([named, rename]), lambda x, i: x, calls_with),
            "dict": (lambda d: {k: v + 1 for k, v in d.items()}, lambda x, i: x, lambda t, image: t({"image": image})),
        }
        for name, (transform, make, call) in cases.items():
            with self.subTest(name):
                dataset = Images((lambda make: lambda x, i: make(x, i))(make), transform, call)
                self.assertTrue(equal(plain(dataset), lifted(dataset, ["transform"])))

    def test_wrapped_datasets(self):
        def images():
            return Images(MAKES["tuple"], Compose([add_noise, add_noise]))

        class Wrapper:
            def __init__(self, dataset, transform):
                self.inner, self.transform = {"data": dataset}, transform

            def __getitem__(self, i):
                return {"sample": self.inner["data"][i], "extra": self.transform(numpy.ones(2))}

        cases = [
            (Subset(images(), range(3, 40)), ["dataset.transform"]),
            (Subset(Subset(images(), range(38)), range(37)), ["dataset.dataset.transform"]),
            (ConcatDataset([images(), images()]), ["datasets[0].transform", "datasets[1].transform"]),
            (Wrapper(images(), add_noise), ['inner["data"].transform', "transform"]),
        ]
        for dataset, paths in cases:
            with self.subTest(paths):
                self.assertTrue(equal(plain(dataset, 30), lifted(dataset, paths, 30)))

    def test_torchvision(self):
        with tempfile.TemporaryDirectory() as root:
            for i in range(12):
                os.makedirs(os.path.join(root, str(i % 3)), exist_ok=True)
                pixels = numpy.random.randint(0, 255, (40, 60, 3)).astype(numpy.uint8)
                Image.fromarray(pixels).save(os.path.join(root, str(i % 3), "%d.jpg" % i))
            T = torchvision.transforms
            transform = T.Compose([T.RandomResizedCrop(20), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5] * 3, [0.2] * 3)])
            dataset = torchvision.datasets.ImageFolder(root, transform, lambda y: y + random.random())
            self.assertTrue(equal(plain(dataset, 12), lifted(dataset, ["transform", "target_transform"], 12)))

            class Detection(torchvision.datasets.VisionDataset):
                def __getitem__(self, i):
                    with Image.open(os.path.join(self.root, str(i % 3), "%d.jpg" % i)) as image:
                        image, target = self.transforms(image, {"boxes": [i]})
                    return image, target

            for paths in (["transforms"], ["transforms.transform", "transforms.target_transform"]):
                dataset = Detection(root, transform=transform, target_transform=lambda t: sorted(t))
                self.assertTrue(equal(plain(dataset, 12), lifted(dataset, paths, 12)))

    def test_iterable(self):
        class Stream(IterableDataset):
            transform = staticmethod(add_noise)

            def __iter__(self):
                for i in range(30):
                    yield self.transform(numpy.full(2, random.random())), i

        dataset = Stream()
        seed()
        want = list(dataset)
        originals = lift.lift(dataset, ["transform"])
        seed()
        got = [lift.finish(lift.apply(s, "transform", originals["transform"])) for s in lift.iterate(dataset)]
        self.assertTrue(equal(want, got))

    def test_the_dataset_keeps_its_containers(self):
        class Cached:
            transform = staticmethod(add_noise)

            def __init__(self):
                self.samples = [{"raw": numpy.ones(2), "out": None} for _ in range(40)]

            def __getitem__(self, i):
                return dict(self.samples[i], out=self.transform(self.samples[i]["raw"]))

        self.assertTrue(equal(plain(Cached()), lifted(Cached(), ["transform"])))

    def test_a_part_that_is_not_called(self):
        dataset = Images(MAKES["tuple"], add_noise, lambda t, image: t(image) if image[0, 0] >= 20 else image)
        self.assertTrue(equal(plain(dataset), lifted(dataset, ["transform"])))
        lift.lift(dataset, ["transform"])
        self.assertEqual(lift.fetch(dataset, 0, ["transform"]).parts, {"transform": None})


class Refusals(unittest.TestCase):
    def refuses(self, dataset, message, paths=("transform",), n=40):
        with self.assertRaisesRegex(NotLiftable, message):
            lifted(dataset, list(paths), n)

    def test_uses(self):
        def swallow(t, image):
            image = t(image)
            try:
                return image.float()
            except Exception:
                return image

        cases = {
            "attribute": (lambda x, i: (x.shape, i), "attribute shape"),
            "arithmetic": (lambda x, i: (x * 2, i), "__mul__"),
            "reflected": (lambda x, i: (2 - x, i), "__rsub__"),
            "index": (lambda x, i: (x[0], i), "__getitem__"),
            "length": (lambda x, i: (x, len(x)), "__len__"),
            "truth": (lambda x, i: (x if x else 0, i), "__bool__"),
            "type": (lambda x, i: (x, i) if isinstance(x, torch.Tensor) else i, "what transform returns"),
            "comparison": (lambda x, i: (x == 1, i), "__eq__"),
            "text": (lambda x, i: ("%s" % x, i), "__str__"),
            "array": (lambda x, i: (numpy.asarray(x), i), "transform"),
            "torch": (lambda x, i: (torch.stack([x, x]), i), "transform"),
            "deep copy": (lambda x, i: (copy.deepcopy(x), i), "transform"),
            "twice": (lambda x, i: (x, x), "more than once"),
            "lost": (lambda x, i: i, "doesn't contain"),
            "elsewhere": (lambda x, i: ({1: 2}.keys(), frozenset(), object.__new__(Compose), [lambda: x]), "doesn't contain"),
        }
        for name, (make, message) in cases.items():
            with self.subTest(name):
                self.refuses(Images(make, add_noise), message)
        self.refuses(Images(MAKES["tuple"], add_noise, swallow), "attribute float")

    def test_calls(self):
        t = add_noise
        cases = {
            "twice": (lambda t, image: (t(image), t(image)), "more than once"),
            "chained": (lambda t, image: t(t(image)), "more than once"),
            "no arguments": (lambda t, image: t(), "without arguments"),
            "mixed": (lambda t, image: t(image, mask=1), "positional and with keyword"),
            "its attribute": (lambda t, image: t(image) if hasattr(t, "transforms") else image, "attribute transforms"),
            "its type": (lambda t, image: t(image) if isinstance(t, Compose) else image, "type of transform"),
        }
        for name, (call, message) in cases.items():
            with self.subTest(name):
                self.refuses(Images(MAKES["tuple"], t, call), message)

    def test_draws_after_the_call(self):
        def reseeds(t, image):
            random.seed(3)
            out = t(image)
            random.seed(3)
            return out

        for draw in (random.random, numpy.random.rand, lambda: torch.rand(1)):
            self.refuses(Images(lambda x, i: (x, draw()), add_noise), "draws random numbers")
        self.refuses(Images(MAKES["tuple"], add_noise, reseeds), "draws random numbers")

    def test_between_parts(self):
        class Joint:
            def __init__(self):
                self.transform = self.target_transform = add_noise

            def __getitem__(self, i):
                random.seed(i)
                image = self.transform(numpy.ones(2))
                random.seed(i)
                return image, self.target_transform(numpy.ones(2))

        self.refuses(Joint(), "draws random numbers", ["transform", "target_transform"])

        class Chained(Joint):
            def __getitem__(self, i):
                return self.target_transform([self.transform(numpy.ones(2))])

        self.refuses(Chained(), "has returned", ["transform", "target_transform"])

    def test_keeps(self):
        class Keeps:
            def __init__(self):
                self.transform, self.kept = add_noise, {}

            def __getitem__(self, i):
                i %= 5
                if i not in self.kept:
                    self.kept[i] = (self.transform(numpy.ones(2)), i)
                return self.kept[i]

        self.refuses(Keeps(), "keeps what transform returns")

        class Overwrites:
            def __init__(self):
                self.transform, self.sample = add_noise, {"image": numpy.ones(2)}

            def __getitem__(self, i):
                self.sample["image"] = self.transform(self.sample["image"])
                return self.sample

        self.refuses(Overwrites(), "has returned")

        class Shuffles(IterableDataset):
            transform = staticmethod(add_noise)

            def __iter__(self):
                yield from reversed([self.transform(numpy.ones(2)) for _ in range(3)])

        dataset = Shuffles()
        lift.lift(dataset, ["transform"])
        with self.assertRaisesRegex(NotLiftable, "more than once"):
            list(lift.iterate(dataset))

    def test_paths(self):
        class ReadOnly:
            transform = property(lambda self: add_noise)

        module = torch.nn.Module()
        module.transform = torch.nn.Identity()
        fixed = Images(MAKES["tuple"], add_noise)
        fixed.fixed = (add_noise,)
        cases = [
            (Images(MAKES["tuple"]), "transform", "is None"),
            (Images(MAKES["tuple"], 3), "transform", "not callable"),
            (Images(MAKES["tuple"]), "transfrom", "has no transfrom"),
            (Images(MAKES["tuple"]), "a..b", "not a path"),
            (Images(MAKES["tuple"]), "", "empty"),
            (ReadOnly(), "transform", "can't be replaced"),
            (module, "transform", "can't be replaced"),
            (fixed, "fixed[0]", "can't be replaced"),
        ]
        for dataset, path, message in cases:
            with self.subTest(message), self.assertRaisesRegex(NotLiftable, message):
                lift.lift(dataset, [path])
        with self.assertRaises(NotLiftable):
            lift.lift(fixed, ["transform", "fixed[0]"])
        self.assertIs(fixed.transform, add_noise)

    def test_errors_of_the_dataset_stay_its_own(self):
        def fails(x, i):
            raise ValueError("bad item")

        with self.assertRaisesRegex(ValueError, "bad item"):
            lifted(Images(fails, add_noise, lambda t, image: image), ["transform"])
        self.refuses(Images(fails, add_noise), "fails after it has called transform: ValueError: bad item")

    def test_results_that_do_not_fit(self):
        with self.assertRaisesRegex(TypeError, "called with 2 arguments it returned 3"):
            lifted(Images(MAKES["tuple"], lambda a, b: (a, b, 1), lambda t, image: t(image, image)), ["transform"])
        with self.assertRaisesRegex(TypeError, "not a dict"):
            lifted(Images(MAKES["tuple"], lambda image: image, lambda t, image: t(image=image)), ["transform"])


class Steps(unittest.TestCase):
    def test_taken_apart(self):
        T = torchvision.transforms
        a, b, c = T.ToTensor(), T.RandomHorizontalFlip(), T.RandomErasing()
        hooked = torch.nn.Sequential(b)
        hooked.register_forward_hook(lambda *args: None)
        either = T.RandomApply([b])
        cases = [
            (a, [("", a)]),
            (T.Compose([a, b]), [(".transforms[0]", a), (".transforms[1]", b)]),
            (T.Compose([a, T.Compose([b, c])]), [(".transforms[0]", a), (".transforms[1].transforms[0]", b), (".transforms[1].transforms[1]", c)]),
            (T.Compose([a, torch.nn.Sequential(b, c)]), [(".transforms[0]", a), (".transforms[1][0]", b), (".transforms[1][1]", c)]),
            (T.Compose([either, a]), [(".transforms[0]", either), (".transforms[1]", a)]),
            (hooked, [("", hooked)]),
            (Compose([add_noise]), [(".transforms[0]", add_noise)]),
            (Named([add_noise]), [(".transforms[0]", add_noise)]),
        ]
        for opaque in (T.Compose([]), T.RandomOrder([a, b]), Named([a], p=0.5), Named([a], processors={"bboxes": 1}), Compose(3), Compose([1])):
            cases.append((opaque, [("", opaque)]))
        for whole, want in cases:
            got = lift.steps(whole)
            self.assertEqual([s for s, _ in got], [s for s, _ in want])
            self.assertTrue(all(x is y for (_, x), (_, y) in zip(got, want)))


if __name__ == "__main__":
    unittest.main()
