import marshal
import os
import random
import signal
import sys
import tempfile
import threading
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
from pipectl_python.control import Control
from pipectl_python.poolwork import failure, shm_free
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
            models = [(0, False), (2, False)]
            if name in ("shuffled", "stream"):
                models += [(1, False), (1, True), (2, True), (3, False), (3, True)]
            elif name in ("generator", "batch sampler", "weighted", "worker_init_fn"):
                models += [(2, True)]
            for workers, persistent in models:
                with self.subTest("%s, %d workers, persistent %s" % (name, workers, persistent)):
                    size = {"batch": BATCH} if name == "torch's batch sampler" else {}
                    self.compare(lambda: make(workers, persistent), workers, lifted, **size)

    def test_sharded_by_worker_init_fn(self):
        for workers, persistent in ((1, False), (2, False), (3, True)):
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


class Counted(Dataset):
    """Counts what is called, in files, so that calls in workers count."""

    def __init__(self, folder=None, n=40):
        self.folder, self.n, self.transform = folder, n, Compose([first_step, second_step])

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.transform(torch.full((4,), float(i))), i


def first_step(x):
    return x + 0.25


def second_step(x):
    return x * 2


def in_place(x):
    return x.add_(0.5)


def number_of(x):
    return x[0]


class Probes(unittest.TestCase):
    """The stages: load, first_step, second_step, batch."""

    def probe(self, workers, calls=None, limit=1 << 20, fill=6, dataset=Counted):
        loader = DataLoader(dataset(), BATCH, num_workers=workers)
        pool = new_pool(loader, workers, ["transform"], calls=calls)
        self.addCleanup(pool.close)
        filled = run(pool, (0, 0, fill, [0] + [limit] * (pool.stages - 1), 0), fill)
        return pool, filled

    def test_replays(self):
        for workers in (0, 1, 2):
            for calls in (None, [("transform", in_place), ("transform", in_place)]):
                with self.subTest((workers, calls)):
                    pool, filled = self.probe(workers, calls)
                    whole = sorted(tuple(d[0].flatten().tolist()) for _, d in filled)
                    kept = filled[-1][0]["kept"]
                    self.assertEqual(kept[0], 0)
                    self.assertTrue(all(k == kept[1] >= 6 * BATCH * 24 for k in kept[1:]), kept)
                    for to in (1, 2, 3):
                        batches = run(pool, (0, to, 0, [], 0), 12)
                        self.assertEqual(whole, sorted({tuple(d[0].flatten().tolist()) for _, d in batches}))
                        for n, (reply, _) in enumerate(batches):
                            self.assertEqual(reply["items"], [0] * to + [BATCH] * (4 - to))
                            self.assertEqual([b > 0 for b in reply["busy"]], [False] * to + [True] * (4 - to))
                            self.assertEqual((reply["number"], reply["len"]), (n, BATCH))
                    for first, to in ((1, 2), (1, 3), (2, 3)):
                        batches = run(pool, (first, to, 0, [], 0), 12)
                        self.assertEqual(whole, sorted({tuple(d[0].flatten().tolist()) for _, d in batches}))
                        for reply, _ in batches:
                            self.assertEqual(reply["items"], [BATCH if k < first or k >= to else 0 for k in range(4)])
                    for first in (1, 2, 3):
                        for reply, data in run(pool, (first, 4, 0, [], 0), 6):
                            self.assertEqual((reply["len"], data), (0, None))
                            self.assertEqual(reply["items"], [BATCH if k < first else 0 for k in range(4)])
                    reply, data = run(pool, ZERO, 1)[0]
                    self.assertEqual((reply["items"], reply["len"]), ([BATCH] * 4, BATCH))

    def test_copies_only_what_is_changed_in_place(self):
        pool, _ = self.probe(0)
        self.assertEqual(pool.work.copies, [False] * 4)
        pool, _ = self.probe(0, [("transform", first_step), ("transform", in_place)])
        self.assertEqual(pool.work.copies, [False, False, True, False])

    def test_limits(self):
        _, filled = self.probe(2, limit=2 * BATCH * 60)  # a batch a worker
        kept = filled[-1][0]["kept"]
        self.assertTrue(0 < kept[1] <= 2 * BATCH * 60 < 2 * kept[1], kept)
        _, filled = self.probe(2, limit=100)
        self.assertEqual(filled[-1][0]["kept"], [0] * 4)

    def test_a_filling_smaller_than_the_workers(self):
        _, filled = self.probe(3, fill=1)
        self.assertTrue(all(k > 0 for k in filled[0][0]["kept"][1:]))

    def test_what_cannot_be_copied_is_not_kept(self):
        _, filled = self.probe(0, [("transform", lambda x: (threading.Lock(), x)), ("transform", lambda x: x[1])])
        kept = filled[-1][0]["kept"]
        self.assertEqual([k > 0 for k in kept], [False, True, False, True])

    def test_streams(self):
        pool, filled = self.probe(2, dataset=lambda: Stream(24))
        for mode in ((0, 2, 0, [], 0), (1, 3, 0, [], 0), (1, 5, 0, [], 0), ZERO):
            run(pool, mode, 20)


def fails(x):
    if x[0] in (5.0, 6.0):
        raise ValueError("bad sample")
    return x


def kills(x):
    if x[0] == 9.0:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def exits(x):
    if x[0] == 9.0:
        os._exit(3)
    return x


def not_again(x):
    return x[100]


class Faults(unittest.TestCase):
    def one(self, workers, step, skip=False, batches=10, **kwargs):
        loader = DataLoader(Counted(), BATCH, num_workers=workers, **kwargs)
        pool = new_pool(loader, workers, ["transform"], skip=skip, calls=[("transform", step)])
        self.addCleanup(pool.close)
        pool.start(*ZERO)
        out = []
        for _ in range(batches):
            out.append(pool.next())
        return out

    def test_exceptions(self):
        for workers in (0, 2):
            out = self.one(workers, fails, batches=3)
            self.assertEqual(out[0][0]["len"], BATCH)
            for reply, data in out[1:]:
                f = reply["failure"]
                self.assertEqual((f["type"], f["message"], f["stage"], f["index"], data), ("ValueError", "bad sample", 1, 5, None))
                self.assertIn('raise ValueError("bad sample")', f["traceback"])
                self.assertNotIn("pipectl_python/", f["traceback"])

    def test_skipping(self):
        for workers in (0, 2):
            reply, data = self.one(workers, fails, skip=True)[1]
            self.assertEqual(data[1].tolist(), [4, 7])
            self.assertEqual([(s["stage"], s["index"], s["message"]) for s in reply["skipped"]], [(1, 5, "bad sample"), (1, 6, "bad sample")])
            self.assertEqual((reply["len"], reply["items"]), (2, [4, 4, 2]))

    def test_deaths(self):
        for step, message in ((kills, r"worker 0 \(process \d+\) was killed by SIGKILL: "), (exits, r"worker 0 \(process \d+\) ended with exit status 3")):
            f = self.one(2, step)[-1][0]["failure"]
            self.assertRegex(f["message"], message)
            self.assertEqual((f["stage"], f["index"]), (1, 9))

    def test_collate_and_init(self):
        def bad(what):
            raise RuntimeError("no")

        f = self.one(2, first_step, collate_fn=bad)[0][0]["failure"]
        self.assertEqual((f["message"], f["stage"], f["index"]), ("no", 2, -1))
        f = self.one(2, first_step, worker_init_fn=bad)[0][0]["failure"]
        self.assertIn("no", f["message"])

    def test_the_first_batch_is_tried_elsewhere(self):
        def first(step, dataset=None, **kwargs):
            pool = new_pool(DataLoader(dataset or Counted(), BATCH, **kwargs), kwargs.get("num_workers", 0), ["transform"], calls=[("transform", step)])
            state = torch.get_rng_state()
            f = pool.first().get("failure")
            self.assertTrue(torch.equal(state, torch.get_rng_state()))
            return f and (f["stage"], f["index"], f["message"])

        self.assertIsNone(first(first_step))
        self.assertEqual(first(not_again), (1, 0, "index 100 is out of bounds for dimension 0 with size 4"))
        self.assertRegex(first(lambda x: os._exit(4))[2], "the process that tried the first batch ended with exit status 4")
        self.assertRegex(first(first_step, Counted(n=0), sampler=[])[2], "yields no batches: its sampler is empty$")
        self.assertRegex(first(first_step, Counted(n=3), drop_last=True)[2], "yields no batches: .* fewer samples than a batch .*: set drop_last = false$")

        def interrupted(worker):
            raise KeyboardInterrupt

        f = first(first_step, num_workers=2, worker_init_fn=interrupted)
        self.assertEqual(f, (0, -1, ""))
        self.assertEqual(first(first_step, num_workers=2, worker_init_fn=lambda worker: os._exit(4))[:2], (0, -1))
        self.assertRegex(first(first_step, Stream(0))[2], "yields no samples")
        f = first(lambda x: x.expand(1 << 34, 4)[:, :1], num_workers=2, collate_fn=lambda s: s[0][0])
        self.assertEqual(f[0], 2)
        self.assertRegex(f[2], r"/dev/shm has .* MiB free, and the workers hand over batches of .* there, up to 8 at a time .*docker run --shm-size=")

    def test_the_same_samples_are_tried_each_time(self):
        def tried(loader):
            pool = new_pool(loader, 0, [])
            random.seed()
            torch.seed()
            pool.seed()
            return pool.sample()[0]

        def order():
            return DataLoader(Counted(n=1000), BATCH, shuffle=True)

        seed_all(SEED)
        want = next(iter(order()))
        for _ in range(3):
            self.assertEqual(tried(order()), want[1][:2].tolist())

    def test_a_trial_is_seeded(self):
        drawn = []

        def draws(x):
            raise ValueError(str(torch.rand(1).item()))

        for _ in range(2):
            torch.seed()
            pool = new_pool(DataLoader(Counted(n=1000), BATCH, shuffle=True), 0, ["transform"], calls=[("transform", draws)])
            failure = pool.first()["failure"]
            drawn.append((failure["index"], failure["message"]))
        self.assertEqual(drawn[0], drawn[1])

    def test_a_stream_shorter_than_a_batch(self):
        for workers in (0, 2):
            pool = new_pool(DataLoader(Stream(3), BATCH, drop_last=True, num_workers=workers), workers, [])
            self.addCleanup(pool.close)
            pool.start(*ZERO)
            self.assertRegex(pool.next()[0]["failure"]["message"], "no batches: .* fewer than a batch .*: set drop_last = false$")

    def test_shared_memory_is_counted(self):
        pool = new_pool(DataLoader(Counted(), BATCH, num_workers=2, prefetch_factor=3), 2, [])
        free = shm_free()
        fits = free // 10  # three batches and the one being made, of two workers, and two that the step has
        self.assertIsNone(pool._room(fits))
        self.assertRegex(pool._room(fits + free // 50)["failure"]["message"], "up to 10 at a time")
        self.assertIsNone(new_pool(DataLoader(Counted(), BATCH), 0, [])._room(free))

    def test_no_processes_are_left(self):
        pool = new_pool(DataLoader(Counted(), BATCH), 3, [])
        run(pool, ZERO, 5)
        pids = [w.pid for w in pool.iterator._workers]
        pool.close()
        for pid in pids:
            self.assertFalse(os.path.exists("/proc/%d" % pid))


class Failures(unittest.TestCase):
    def test_shared_memory(self):
        for error, want in (
            ("unable to write to file </torch_1_2_0>: No space left on device (28)", "/dev/shm has .* MiB free, .*docker run --shm-size=.*torch says: unable"),
            ("unable to allocate shared memory(shm) for file </torch_1_2_0>: No space left on device (28)", "/dev/shm has"),
            ("unable to open shared memory object </torch_1_2_0> in read-write mode: Read-only file system (30)", "/dev/shm is read-only"),
        ):
            f = failure(RuntimeError(error), 3, -1)
            self.assertEqual((f["kind"], f["stage"], f["index"]), ("memory", 3, -1))
            self.assertRegex(f["message"], want)
        for error in ("unable to open shared memory object </torch_1_2_0> in read-write mode: Too many open files (24)", "No space left on device"):
            self.assertEqual(failure(RuntimeError(error), 3, -1)["kind"], "exception")

    def test_faulty_exceptions(self):
        class Text(str):
            pass

        class Subclass(Exception):
            def __str__(self):
                return Text("text")

        class Interrupting(type):
            def __getattribute__(cls, name):
                if name == "__qualname__":
                    raise KeyboardInterrupt
                return super().__getattribute__(name)

        class Faulty(Exception, metaclass=Interrupting):
            pass

        self.assertEqual(marshal.loads(marshal.dumps(failure(Subclass(), 1, 2)))["message"], "text")
        f = failure(Faulty(), 1, 2)
        self.assertEqual((f["kind"], f["stage"], f["index"]), ("exception", 1, 2))


class Notes(unittest.TestCase):
    def notes(self, workers, calls, batches=60, **kwargs):
        pool = new_pool(DataLoader(Counted(n=400), BATCH, num_workers=workers, **kwargs), workers, ["transform"], calls=calls)
        self.addCleanup(pool.close)
        return {n["code"]: n for reply, _ in run(pool, ZERO, batches) for n in reply.get("notes", ())}

    def test_threads(self):
        def starts_threads(x):
            while threading.active_count() < 10:
                threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
            return x

        found = self.notes(2, [("transform", first_step), ("transform", starts_threads)], persistent_workers=True)
        self.assertEqual(found["threads"]["stages"], [2])
        self.assertRegex(found["threads"]["text"], "2 workers run 20 threads, each up to 10")
        self.assertNotIn("cv2", found["threads"]["text"])
        self.assertEqual(self.notes(2, [("transform", first_step)], persistent_workers=True), {})

    def test_restarts(self):
        self.assertRegex(self.notes(2, [("transform", first_step)])["workers"]["text"], "set persistent_workers=True")
        self.assertEqual(self.notes(0, [("transform", first_step)]), {})


if __name__ == "__main__":
    unittest.main()
