"""A pool whose workers torch's own DataLoader runs, so that all but the probes is as in the user's script: how they are forked and
seeded, how indices and batches pass between them, and in which order.

Epoch follows epoch without an end, and without new workers. What a loop over the user's loader draws in the main process for each
new iterator is drawn in the same order, and workers are seeded with it as new ones are, so that the batches of each epoch stay the
same.
"""

import marshal
import multiprocessing.queues
import os
import random
import signal
import sys

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, SequentialSampler, _utils, get_worker_info
from torch.utils.data._utils.collate import default_collate, default_convert

from .main import Fault
from .fresh import Fresh
from .poolwork import FAILED, Failed, Stream, die_with_parent, failure
from .pool import Pool, died, with_the_only_batch


class TorchPool(Pool):
    """A pool for a DataLoader, or for a dataset that one is made for."""

    def __init__(self, source, dataset, parts, calls, collate, skip, control, settings):
        if source is dataset:
            if not isinstance(dataset, IterableDataset) and length(dataset):
                settings = with_the_only_batch(settings, length(dataset))
            source = DataLoader(dataset, settings["batch"], shuffle=settings["shuffle"] or None, drop_last=settings["drop_last"])
            self.persistent = True
        else:
            self.persistent = bool(getattr(source, "persistent_workers", False)) or settings["workers"] == 0
        self.loader = source
        self.iterable = isinstance(dataset, IterableDataset)
        if type(dataset).__name__ == "_IterDataPipeSerializationWrapper":
            raise Fault("attribute", "the dataset is an IterDataPipe, whose shards and seeds torch hands out by other means than a pool can: make it an IterableDataset")
        self.indices = None if self.iterable else self._indices(settings)
        single = source.batch_size is None and (self.iterable or source.batch_sampler is None)
        if collate is None:
            collate = source.collate_fn or (default_convert if single else default_collate)
        super().__init__(dataset, parts, calls, collate, skip, control, settings, single)
        self.generators = [(g, g.get_state()) for g in generators(source, self.indices)]
        self.renews = not self.persistent and self.workers > 0
        self.iterator = None
        self.watch = None
        self._note_iter()

    def _note_iter(self):
        if type(self.loader).__iter__ is not DataLoader.__iter__:
            self._note("loader", f"the loader is a {type(self.loader).__name__} with an __iter__ of its own, which the pool leaves out.")

    def _indices(self, settings):
        """Returns what yields the indices: lists of them for batches, or one by one where the loader's samples are batches."""
        loader, batch, drop_last, shuffle = self.loader, settings["batch"], settings["drop_last"], settings["shuffle"]
        if loader.batch_size is None:
            own = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
            size = getattr(own, "batch_size", None)
            if loader.batch_sampler is not None and isinstance(size, int) and size != batch:
                raise Fault("attribute", f"the loader's batch_sampler, a {type(own).__name__}, makes batches of {size}, and size is {batch}: set size = {size}")
            return own
        sampler = loader.sampler
        if shuffle is not None and shuffle != isinstance(sampler, RandomSampler):
            sampler = RandomSampler(loader.dataset, generator=loader.generator) if shuffle else SequentialSampler(loader.dataset)
        if sampler is loader.sampler and batch == loader.batch_size and drop_last == loader.drop_last:
            return loader.batch_sampler
        if length(sampler):
            drop_last = with_the_only_batch(settings, length(sampler))["drop_last"]
        return BatchSampler(sampler, batch, drop_last)

    def prefetch(self):
        """Returns how many batches are under way a worker."""
        return self.settings["prefetch"] or getattr(self.loader, "prefetch_factor", None) or 2

    def items(self):
        """Returns the samples of an epoch, 0 where that is unknown."""
        if self.iterable:
            return length(self.dataset)
        if self.loader.batch_size is None:
            return length(self.dataset)
        return length(self.indices.sampler) or length(self.dataset)

    def steps(self):
        """Returns the batches of an epoch, 0 where that is unknown."""
        if not self.iterable:
            return length(self.indices)
        n = length(self.dataset)
        if self.work.single:
            return n
        batch = self.settings["batch"]
        return n // batch if self.settings["drop_last"] else -(-n // batch)

    def sample(self):
        """Returns what a worker would make the first batch of, or some of it: indices, how many times as large the whole is, a Stream."""
        if self.iterable:
            return range(1) if self.work.single else range(min(2, self.settings["batch"])), self.settings["batch"] / 2, Stream(self.dataset, self.parts)
        order = iter(self.indices)
        self._draw()  # which torch does before it asks for the first
        for indices in order:
            if self.work.single:
                return [indices], 1, None
            some = list(indices)[:2]
            return some, len(indices) / max(1, len(some)), None
        raise Failed(self.nothing())

    def nothing(self):
        if self.iterable:
            return super().nothing()
        message = "the loader yields no batches: its sampler is empty"
        if self.settings["drop_last"]:
            message += ", or yields fewer samples than a batch has, and drop_last leaves them out: set drop_last = false"
        return failure(Fault("result", message), 0, -1)

    def seed(self):
        """Seeds the generators as they are before the first batch."""
        seed_all(self.settings["seed"])
        for generator, state in self.generators:
            generator.set_state(state)

    def become_worker(self):
        """Has user code take this process for the first worker."""
        torch.set_num_threads(1)
        if not self.workers:
            return
        try:
            _utils.worker._worker_info = _utils.worker.WorkerInfo(id=0, num_workers=self.workers, seed=0, dataset=self.dataset)
        except AttributeError:  # torch is free to change these
            pass
        if self.loader.worker_init_fn is not None:
            self.loader.worker_init_fn(0)

    def begin(self, epochs):
        """Starts the workers and returns an iterator of what they make: endless, or of so many epochs."""
        self.seed()
        if epochs:
            return self._epochs(epochs)
        if self.iterable:
            seeds = (self.loader.generator.get_state() if self.loader.generator is not None else torch.get_rng_state()) if self.renews else None
            dataset = _Streams(self._unit(), self.settings["drop_last"], seeds, None if self.workers else self._draw, self.loader.worker_init_fn)
            tasks = _Forever()
        else:
            dataset = _Map(self.work, self.loader.worker_init_fn)
            tasks = _Chain(self)
        self.iterator = iter(self._loader(dataset, tasks, False, self.renews))
        self._watch_workers()
        return self.iterator

    def _epochs(self, epochs):
        if self.iterable:
            dataset, tasks = _Iterable(self._unit(), self.settings["drop_last"]), None
        else:
            dataset, tasks = _Map(self.work, None), _Epoch(self.indices, self.work.single)
        loader = self._loader(dataset, tasks, getattr(self.loader, "persistent_workers", False) and self.workers > 0, False)
        for epoch in range(epochs):
            self.iterator = iter(loader)
            self._watch_workers()
            for account, data in self.iterator:
                yield account, data, epoch

    def _unit(self):
        return self.work, 1 if self.work.single else self.settings["batch"]

    def _loader(self, dataset, tasks, persistent, fresh):
        own, kwargs = self.loader, {}
        if self.workers:
            kwargs.update(prefetch_factor=self.prefetch(), timeout=own.timeout, persistent_workers=persistent)
            kwargs.update(multiprocessing_context=own.multiprocessing_context)
        for name, usual in (("pin_memory_device", ""), ("in_order", True)):
            if getattr(own, name, usual) != usual:
                kwargs[name] = getattr(own, name)
        return DataLoader(
            dataset,
            batch_size=None,
            sampler=tasks,
            num_workers=self.workers,
            collate_fn=_as_it_is,
            pin_memory=own.pin_memory,
            worker_init_fn=_Init(dataset, self.work, own.worker_init_fn, fresh) if self.workers else None,
            generator=own.generator,
            **kwargs,
        )

    def _draw(self):
        """Draws the seed of an iterator's workers, as torch does for each new one."""
        return torch.empty((), dtype=torch.int64).random_(generator=self.loader.generator).item()

    def _watch_workers(self):
        """Has the death of a worker raise an exception only while a batch is waited for: torch's handler would at any time."""
        if not self.workers:
            return
        handler = signal.getsignal(signal.SIGCHLD)
        if not isinstance(handler, _OnDeath):
            handler = _OnDeath(handler)
            signal.signal(signal.SIGCHLD, handler)
        handler.exited = self._exited
        self.watch = handler

    def _exited(self):
        """Raises an exception where a worker has ended at work. torch only looks for that every few seconds if the exit status is 0."""
        for number, worker in enumerate(getattr(self.iterator, "_workers", ())):
            if self.control.status(number)[0] >= 0 and not _runs(worker.pid):
                raise RuntimeError("a worker has ended")

    def _take(self):
        if self.watch is None:
            return super()._take()
        self.watch.waiting = True
        try:
            self.watch.check()
            return super()._take()
        finally:
            self.watch.waiting = False

    def broken(self, error):
        for number, worker in enumerate(getattr(self.iterator, "_workers", ())):
            worker.join(0.1)
            if worker.exitcode is not None:
                stage, item, _, _ = self.control.status(number)
                if stage < 0:  # it was handing over a batch
                    stage, item = self.stages - 1, -1
                return died(f"worker {number} (process {worker.pid})", worker.exitcode, stage, item)
        return super().broken(error)

    def stop(self):
        iterator, self.iterator, self.made = self.iterator, None, None
        if iterator is not None and hasattr(iterator, "_shutdown_workers"):
            iterator._shutdown_workers()


class _OnDeath:
    """Handles SIGCHLD, as the handler before it does, but only while that may raise an exception."""

    def __init__(self, before):
        self.before, self.waiting, self.missed = before, False, False
        self.exited = None  # raises an exception where torch sees no reason to

    def __call__(self, number, frame):
        if self.waiting:
            self.check_now(number, frame)
        else:
            self.missed = True

    def check(self):
        """Handles what came meanwhile."""
        if self.missed:
            self.missed = False
            self.check_now(signal.SIGCHLD, None)

    def check_now(self, number, frame):
        if callable(self.before):
            self.before(number, frame)
        self.exited()


def _runs(pid):
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


class _Map:
    """The dataset that workers are given for a map-style one: an item is a batch."""

    def __init__(self, work, init):
        self.work, self.init = work, init
        self.epoch, self.fresh = 0, None

    def __getitem__(self, task):
        if task is None:
            return self.work.filler()
        epoch, last, base, indices = task
        if epoch != self.epoch:
            self.epoch = epoch
            if base is not None:
                renew(self.fresh, base, self.work.worker, self.init)
        return self.work.batch(indices, epoch, last)


class _Streams:
    """The dataset that workers are given for an iterable-style one where there is no end: an item is a batch."""

    def __init__(self, unit, drop_last, seeds, draw, init):
        self.work, self.batch = unit
        self.drop_last, self.seeds, self.draw, self.init = drop_last, seeds, draw, init
        self.epoch, self.stream, self.fresh, self.generator = 0, None, None, None

    def __getitem__(self, task):
        for _ in range(2):
            if self.stream is None:
                self._begin()
            try:
                return self.work.batch(range(self.batch), self.epoch, False, self.stream, self.drop_last)
            except StopIteration:
                self.epoch += 1
                self.stream = None
        return self.work.filler()

    def _begin(self):
        """Begins an epoch as a new worker would, or a new iterator in the main process."""
        if self.seeds is not None:
            if self.generator is None:
                self.generator = torch.Generator()
                self.generator.set_state(self.seeds)
            base = torch.empty((), dtype=torch.int64).random_(generator=self.generator).item()
            if self.epoch:
                renew(self.fresh, base, self.work.worker, self.init)
        elif self.draw is not None and self.epoch:
            self.draw()
        self.stream = Stream(self.work.dataset, self.work.parts)


class _Iterable(IterableDataset):
    """The dataset that workers are given for an iterable-style one's epoch: it yields batches."""

    def __init__(self, unit, drop_last):
        self.unit, self.drop_last = unit, drop_last
        self.work = unit[0]
        self.fresh = None

    def __iter__(self):
        return self._batches(Stream(self.work.dataset, self.work.parts))

    def _batches(self, stream):
        while True:
            try:
                made = self.work.batch(range(self.unit[1]), 0, False, stream, self.drop_last)
            except StopIteration:
                return
            yield made


class _Chain:
    """The tasks of an endless loader: (epoch, whether it is the epoch's last, seed for new workers, indices), or None for no work. As
    torch asks for an iterator, so is the user's sampler asked for one."""

    def __init__(self, pool):
        self.pool = pool

    def __iter__(self):
        return self._tasks(iter(self.pool.indices))

    def _tasks(self, indices):
        pool, epoch, base = self.pool, 0, None
        while True:
            n, steps = 0, length(pool.indices)
            for task in indices:
                n += 1
                yield epoch, n == steps, base, [task] if pool.work.single else task
            if n == 0:
                raise Failed(pool.nothing())
            if pool.workers:
                # Each epoch's first batch is the first worker's.
                for _ in range(-n % pool.workers):
                    yield None
            epoch += 1
            indices = iter(pool.indices)
            if not pool.workers:
                pool._draw()
            elif pool.renews:
                base = pool._draw()
                indices = iter(pool.indices)  # torch asks for one more, then


class _Epoch:
    """The tasks of one epoch."""

    def __init__(self, indices, single):
        self.indices, self.single = indices, single

    def __iter__(self):
        return self._tasks(iter(self.indices))

    def _tasks(self, indices):
        steps = length(self.indices)
        for n, task in enumerate(indices, 1):
            yield 0, n == steps, None, [task] if self.single else task


class _Forever:
    """Tasks without content."""

    def __iter__(self):
        while True:
            yield None


class _Init:
    """What a worker does first."""

    def __init__(self, dataset, work, own, fresh):
        self.dataset, self.work, self.own, self.fresh = dataset, work, own, fresh

    def __call__(self, worker):
        die_with_parent()
        info = get_worker_info()
        # It is the same object unless it was pickled for a new interpreter.
        given = info.dataset
        work = given.work
        object.__setattr__(info, "dataset", work.dataset)
        work.begin(worker)
        multiprocessing.queues.Queue._on_queue_feeder_error = _not_handed_over
        if self.fresh:
            given.fresh = Fresh([work.dataset] + [step for _, step in work.steps])
        if self.own is not None:
            self.own(worker)


_print_error = multiprocessing.queues.Queue._on_queue_feeder_error


def _not_handed_over(queue, error, element):
    """Hands over why in place of a batch that can't be pickled, or finds no room: torch prints that, and waits for the batch for ever."""
    try:
        task, (account, _) = element
        account = list(marshal.loads(account))
        account[0], account[-1] = FAILED, failure(error, len(account[7]) - 1, -1)
    except (TypeError, ValueError, LookupError, EOFError):  # it is another queue's, of the user's own
        _print_error(error, element)
    else:
        queue.put((task, (marshal.dumps(tuple(account)), None)))


def renew(fresh, base, worker, init):
    """Makes a worker as one that is new, seeded as torch does it."""
    fresh.restore()
    seed = base + worker
    random.seed(seed)
    torch.manual_seed(seed)
    if hasattr(_utils.worker, "_generate_state"):
        try:
            import numpy
        except ImportError:
            pass
        else:
            numpy.random.seed(_utils.worker._generate_state(base, worker))
    object.__setattr__(get_worker_info(), "seed", seed)
    if init is not None:
        init(worker)


def seed_all(seed):
    """Seeds the generators of the main process, as a script does before its loop."""
    random.seed(seed)
    torch.manual_seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def generators(loader, indices):
    """Returns the loader's own random generators, each once."""
    found = [getattr(thing, "generator", None) for thing in (loader, indices, getattr(indices, "sampler", None), loader.sampler)]
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


def length(thing):
    """Returns how many elements there are, 0 where that is unknown."""
    try:
        return len(thing)
    except (TypeError, NotImplementedError, AttributeError):
        return 0


def _as_it_is(made):
    return made
