import gc
import itertools
import os
import random
import signal
import sys
import tempfile
import time
import unittest
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    WeightedRandomSampler,
    get_worker_info,
)

from pipectl_python import lift
from pipectl_python.poolwork import Control
from pipectl_python.torchpool import TorchPool, seed_all

warnings.filterwarnings("ignore", "This DataLoader will create")
SEED, EPOCHS, N, BATCH = 42, 3, 22, 4


def noise(x):
    return x + random.random() + numpy.random.random()


def more(x):
    return x * torch.rand(1).item()


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x


class Images(Dataset):
    """Draws from all generators, before and in its transform, and from one of its own."""

    def __init__(self, transform=True):
        self.transform = Compose([noise, Compose([more, torch.as_tensor])]) if transform else None
        self.own = numpy.random.RandomState(3)
        self.seen = {}

    def __len__(self):
        return N

    def __getitem__(self, i):
        self.seen[i] = self.seen.get(i, 0) + 1
        x = numpy.full((3, 2), i + torch.rand(1).item() + self.own.rand() + 100 * self.seen[i])
        if self.transform is not None:
            x = self.transform(x)
        return x, i


class Dicts(Images):
    def __getitem__(self, i):
        x, i = super().__getitem__(i)
        return {"x": x, "meta": {"name": "n%d" % i, "pair": (i, random.random())} if self.transform is None else {"name": str(i)}}


class Batched(Images):
    """Hands out whole batches, as torch's DataLoader takes them from version 2 on."""

    def __getitems__(self, indices):
        return [self[i] for i in indices]


class Stream(IterableDataset):
    """Sharded between the workers, evenly."""

    def __init__(self, n=24, sized=False):
        self.n, self.transform = n, Compose([noise, more, torch.as_tensor])

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        if info is not None:
            assert info.dataset is self and info.seed >= 0
        for i in range(worker, self.n, workers):
            yield self.transform(numpy.full(2, i + random.random())), i


class Ranged(IterableDataset):
    """Sharded by worker_init_fn, as torch's documentation shows it."""

    def __init__(self):
        self.start, self.end, self.transform = 0, 24, noise

    def __iter__(self):
        for i in range(self.start, self.end):
            yield self.transform(numpy.full(2, float(i))), i


def shard(worker):
    info = get_worker_info()
    dataset = info.dataset
    each = (dataset.end - dataset.start) // info.num_workers
    dataset.start += worker * each
    dataset.end = dataset.start + each


def reseed(worker):
    assert get_worker_info().dataset is not None
    numpy.random.seed(torch.initial_seed() % 2**32)
    random.seed(worker + torch.initial_seed())


def collate(samples):
    return {"x": torch.stack([s[0] for s in samples]) + random.random(), "i": [s[1] for s in samples]}


class Buckets:
    """A batch sampler of its own, which draws from two generators when it is asked for an iterator."""

    def __len__(self):
        return 5

    def __iter__(self):
        order = torch.randperm(N).tolist()
        random.shuffle(order)
        return iter([order[i * 3 : i * 3 + 3 + i % 2] for i in range(5)])


def equal(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return a == b


def settings(loader, workers, **over):
    s = dict(workers=workers, prefetch=0, batch=loader.batch_size or 0, drop_last=loader.drop_last, shuffle=None, seed=SEED)
    s.update(over)
    return s


def new_pool(loader, workers, lifted=(), skip=False, collate=None, calls=None, **over):
    originals = lift.lift(loader.dataset, lifted)
    if calls is None:
        calls = [(path, step) for path in lifted for _, step in lift.steps(originals[path])]
    control = Control(workers, len(calls) + 2)
    return TorchPool(loader, loader.dataset, list(lifted), calls, collate, [skip] * (len(calls) + 2), control, settings(loader, workers, **over))


def run(pool, mode, batches):
    pool.start(*mode)
    out = []
    while len(out) < batches:
        reply, data = pool.next()
        if "failure" in reply or "end" in reply:
            raise AssertionError(reply)
        out.append((reply, data))
    return out


ZERO = (0, 0, 0, [], 0)


def plain(make, epochs=EPOCHS):
    loader = make()
    seed_all(SEED)
    return [list(loader) for _ in range(epochs)]


class Equality(unittest.TestCase):
    def compare(self, make, workers, lifted, ordered=True, **over):
        want = plain(make)
        flat = [(e, b) for e, batches in enumerate(want) for b in batches]
        for endless in (True, False):
            pool = new_pool(make(), workers, lifted, **over)
            try:
                self.assertEqual(pool.first(), {})
                pool.start(0, 0, 0, [], 0 if endless else EPOCHS)
                got = []
                while len(got) < len(flat):
                    reply, data = pool.next()
                    self.assertNotIn("failure", reply)
                    self.assertNotIn("end", reply)
                    got.append((reply["epoch"], data))
                    if pool.steps() and not pool.iterable:
                        self.assertEqual(reply["last"], len(got) % pool.steps() == 0)
                if not endless:
                    self.assertEqual(pool.next()[0], {"end": True})
                self.assertEqual([e for e, _ in flat], [e for e, _ in got])
                for n, ((_, a), (_, b)) in enumerate(zip(flat, got)):
                    self.assertTrue(equal(a, b), "batch %d, endless %s: %r, not %r" % (n, endless, b, a))
            finally:
                pool.close()

    def cases(self):
        """Yields name, a function that makes a loader of so many workers, and what to lift."""

        def loader(dataset=Images, **kwargs):
            def make(workers, persistent):
                args = {k: v() if k in ("generator", "sampler", "batch_sampler") else v for k, v in kwargs.items()}
                if "batch_sampler" not in args:
                    args.setdefault("batch_size", BATCH)
                if not workers:
                    args.pop("worker_init_fn", None)
                return DataLoader(dataset(), num_workers=workers, persistent_workers=persistent and workers > 0, **args)

            return make

        def generator():
            g = torch.Generator()
            g.manual_seed(9)
            return g

        lifted = ["transform"]
        yield "shuffled", loader(shuffle=True), lifted
        yield "in order, drop last", loader(drop_last=True), lifted
        yield "shuffled, drop last, whole samples", loader(lambda: Images(False), shuffle=True, drop_last=True), []
        yield "generator", loader(shuffle=True, generator=generator), lifted
        yield "sampler's generator", loader(sampler=lambda: RandomSampler(range(N), generator=generator())), lifted
        yield "replacement", loader(sampler=lambda: RandomSampler(range(N), replacement=True, num_samples=70)), lifted
        yield "weighted", loader(sampler=lambda: WeightedRandomSampler([1.0 + i for i in range(N)], 14)), lifted
        yield "batch sampler", loader(batch_sampler=Buckets), lifted
        yield "torch's batch sampler", loader(batch_sampler=lambda: BatchSampler(SequentialSampler(range(N)), BATCH, False)), lifted
        yield "worker_init_fn", loader(shuffle=True, worker_init_fn=reseed), lifted
        yield "dicts", loader(Dicts, shuffle=True), []
        yield "whole batches", loader(Batched, shuffle=True), []
        yield "collate", loader(shuffle=True, collate_fn=collate), lifted
        yield "samples that are batches", loader(shuffle=True, batch_size=None), lifted
        yield "sampler of batches", loader(sampler=lambda: BatchSampler(RandomSampler(range(6)), 2, False), batch_size=None, dataset=Whole), []
        yield "stream", loader(Stream), lifted
        yield "stream, drop last", loader(lambda: Stream(34), drop_last=True), []
        yield "stream of batches", loader(Stream, batch_size=None), lifted
        yield "pinned, prefetch", loader(shuffle=True, pin_memory=True), lifted

    def test_batches_equal_those_of_the_loader(self):
        for name, make, lifted in self.cases():
            models = [(0, False), (2, False), (2, True)]
            if name in ("shuffled", "stream"):
                models += [(1, False), (1, True), (3, False), (3, True)]
            for workers, persistent in models:
                with self.subTest("%s, %d workers, persistent %s" % (name, workers, persistent)):
                    size = {"batch": BATCH} if name == "torch's batch sampler" else {}
                    self.compare(lambda: make(workers, persistent), workers, lifted, **size)

    def test_sharded_by_worker_init_fn(self):
        for workers in (1, 2, 3):
            for persistent in (False, True):
                with self.subTest(workers):
                    make = lambda: DataLoader(Ranged(), BATCH, num_workers=workers, worker_init_fn=shard, persistent_workers=persistent)
                    self.compare(make, workers, ["transform"])

    def test_uneven_shards_keep_each_workers_batches(self):
        make = lambda: DataLoader(Stream(26), BATCH, num_workers=3)
        want = sorted(tuple(i.tolist()) for batches in plain(make) for _, i in batches)
        pool = new_pool(make(), 3, ["transform"])
        got = run(pool, ZERO, 4 * len(want))
        pool.close()
        self.assertEqual(want, sorted(tuple(d[1].tolist()) for r, d in got if r["epoch"] < EPOCHS))

    def test_spawned_workers(self):
        make = lambda: DataLoader(Images(), BATCH, shuffle=True, num_workers=2, multiprocessing_context="spawn")
        with tempfile.TemporaryFile() as f:
            f.truncate(1 << 20)
            path = "/proc/%d/fd/%d" % (os.getpid(), f.fileno())
            want = [b for e in plain(make, 2) for b in e]
            dataset = make()
            originals = lift.lift(dataset.dataset, ["transform"])
            calls = [("transform", step) for _, step in lift.steps(originals["transform"])]
            control = Control(2, len(calls) + 2, path, 4096 + 64)
            pool = TorchPool(dataset, dataset.dataset, ["transform"], calls, None, [False] * 5, control, settings(dataset, 2))
            got = run(pool, ZERO, len(want))
            pool.close()
        self.assertTrue(equal(want, [d for _, d in got]))

    def test_settings_of_the_file(self):
        seed = lambda make: [b for e in plain(make) for b in e]
        base = lambda: DataLoader(Images(), 5, num_workers=1)
        cases = [
            (lambda: DataLoader(Images(), 3, True, num_workers=2, drop_last=True), dict(workers=2, batch=3, shuffle=True, drop_last=True)),
            (lambda: DataLoader(Images(), 5, num_workers=3, prefetch_factor=4), dict(workers=3, batch=5, shuffle=False, prefetch=4)),
            (lambda: DataLoader(Images(), 5, num_workers=0), dict(workers=0, batch=5)),
            (lambda: DataLoader(Images(), 5, num_workers=1, collate_fn=collate), dict(workers=1, collate=collate)),
        ]
        for make, over in cases:
            want = seed(make)
            pool = new_pool(base(), lifted=["transform"], **over)
            got = run(pool, ZERO, len(want))
            pool.close()
            self.assertTrue(equal(want, [d for _, d in got]), over)


class Whole(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, indices):
        return torch.tensor(indices) + torch.rand(1)


if __name__ == "__main__":
    unittest.main()
