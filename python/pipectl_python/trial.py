"""Trials: which of a dataset's callables can be lifted with its samples staying the same, bit for bit.

Each trial is a forked process that fetches the first samples, as a DataLoader's worker would, and reports their digests. So every
trial begins with the same state, generators of the user's own included, and neither a hang nor an exit in the user's code goes further.
"""

import copy
import dataclasses
import hashlib
import itertools
import json
import os
import pickle
import random
import select
import signal
import sys
import time

from . import lift
from .main import flush

SAMPLES = 8  # fetched in a trial, if there is time
SEED = 1


class Taken:
    """What take_apart found: the paths that can be lifted, in the order in which their callables run; their steps, (path, suffix,
    callable, whether it draws at random); what stays inside, (path, callable, why); how many samples were compared; and a remark
    on the comparison, or None."""

    def __init__(self):
        self.lifted, self.steps, self.opaque, self.samples, self.note = [], [], [], 0, None


def take_apart(dataset, candidates, loader, limit):
    """Finds which of the candidates, (path, callable), can be lifted. It takes `limit` seconds at most."""
    taken = Taken()
    if not candidates:
        return taken
    start = time.monotonic()
    end = start + limit

    def run(paths, samples=SAMPLES, **how):
        return Trial(dataset, loader, paths, samples, limit / 8, **how).run(end)

    reference = run([])
    taken.samples = len(reference.samples)
    if not reference.samples:
        taken.note = "the dataset's transforms were not taken apart: " + (reference.fault or "a sample takes longer than %g s" % limit)
        return taken
    again = run([], taken.samples)
    same = "digest"
    if again.of("digest") != reference.of("digest")[: len(again.samples)]:
        same = "shape"
        taken.note = "the samples differ from one fetch to the next though the seeds are the same: only their types and shapes were compared"

    called = set()
    for path, function in candidates:
        if any(within(path, other) or within(other, path) for other in taken.lifted):
            continue
        fault, order = "", []
        for order in [taken.lifted + [path]] + ([[path] + taken.lifted] if taken.lifted else []):
            if time.monotonic() >= end:
                fault = "there was no time to try it"
                break
            trial = run(order, taken.samples)
            fault = trial.compare(reference, same)
            if fault is None and path not in trial.called:
                fault = ""  # not used: there is nothing to tell
            elif fault is None and not called <= trial.called:
                fault = "it calls what is lifted already"
            if fault is None:
                taken.lifted, called = order, trial.called
            if fault != DIFFERENT:
                break
        if fault:
            taken.opaque.append((path, function, fault))
    if taken.lifted:
        random_steps = run(taken.lifted, taken.samples, twice=True).random
        originals = lift.lift(dataset, taken.lifted)
        lift.put_back(dataset, originals)
        taken.steps = [step + (i in random_steps,) for i, step in enumerate(plan(taken.lifted, originals))]
    return taken


def within(path, other):
    """Reports whether one path leads through another."""
    return path.startswith((other + ".", other + "["))


DIFFERENT = "the samples come out differently when it runs after the dataset's own code"


def plan(paths, originals):
    """Returns the steps of lifted callables in their order: (path, suffix, callable)."""
    return [(path, suffix, step) for path in paths for suffix, step in lift.steps(originals[path])]


class Trial:
    """One forked process that fetches samples with some paths lifted. It stops by itself after some samples or seconds, whichever
    comes first, but not before the first sample. With `twice`, every step runs twice on the same argument, to see whether it
    draws from a generator that isn't one of the usual."""

    def __init__(self, dataset, loader, paths, samples, seconds, twice=False):
        self.dataset, self.loader, self.paths, self.wanted, self.seconds, self.twice = dataset, loader, paths, samples, seconds, twice
        self.samples = []  # of each: its digest, its shape's
        self.called = set()  # the paths whose callables the dataset called
        self.random = set()  # the indices of the steps that drew at random
        self.fault = None

    def of(self, key):
        return [sample[key] for sample in self.samples]

    def compare(self, reference, same):
        """Returns why the samples aren't the reference's, or None."""
        if self.fault is not None:
            return self.fault
        if not self.samples:
            return "there was no time to try it"
        if self.of(same) != reference.of(same)[: len(self.samples)]:
            return DIFFERENT
        return None

    def run(self, end):
        """Runs the trial, until `end` at most, and returns itself."""
        flush()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(reading)
                with os.fdopen(writing, "w") as out:
                    self._work(lambda **message: (json.dump(message, out), out.write("\n"), out.flush()))
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        received, timed_out = self._receive(reading, end)
        if timed_out:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        messages = [json.loads(line) for line in received.split(b"\n")[:-1]]
        for message in messages:
            if "digest" in message:
                self.samples.append(message)
            self.called.update(message.get("called", ()))
            self.random.update(message.get("random", ()))
            self.fault = message.get("fault")
        if not timed_out and self.fault is None and not (messages and messages[-1].get("done")):
            self.fault = "the process that fetched a sample " + ended(status)
        return self

    def _receive(self, reading, end):
        received, timed_out = b"", False
        while True:
            left = end - time.monotonic()
            if left <= 0 or not select.select([reading], [], [], left)[0]:
                timed_out = True
                break
            chunk = os.read(reading, 1 << 16)
            if not chunk:
                break
            received += chunk
        os.close(reading)
        return received, timed_out

    def _work(self, send):
        try:
            start = time.monotonic()
            if "torch" in sys.modules:
                sys.modules["torch"].set_num_threads(1)  # as in workers: a forked process can't use those of the process before
            become_worker(self.loader, self.dataset)
            steps = plan(self.paths, lift.lift(self.dataset, self.paths))
            seed()
            which = indices(self.loader, self.dataset)
            seed()
            for sample in itertools.islice(self._fetch(which), self.wanted):
                called = [path for path, arguments in sample.parts.items() if arguments is not None]
                drew = self._steps(sample, steps)
                value = lift.finish(sample)
                send(digest=digest(value), shape=digest(value, shape=True), called=called, random=drew)
                if time.monotonic() - start > self.seconds:
                    break
            send(done=True)
        except lift.NotLiftable as e:
            send(fault=str(e))
        except SystemExit as e:
            send(fault="the process that fetched a sample called sys.exit(%r)" % (e.code,))
        except BaseException as e:
            send(fault="%s: %s" % (type(e).__name__, e))

    def _fetch(self, which):
        if which is None:
            return lift.iterate(self.dataset, self.paths)
        return (lift.fetch(self.dataset, index, self.paths) for index in which)

    def _steps(self, sample, steps):
        """Runs the steps on a sample, and returns the indices of those that drew at random."""
        drew = []
        for i, (part, _, function) in enumerate(steps):
            arguments = copied(sample.parts.get(part)) if self.twice else None
            before = generators()
            lift.apply(sample, part, function)
            if generators() != before:
                drew.append(i)
            elif arguments is not None:
                other = lift.Sample(None, {part: arguments})
                lift.apply(other, part, function)
                if digest(other.parts[part]) != digest(sample.parts[part]):
                    drew.append(i)
        return drew


def generators():
    """Returns the states of the random generators that are loaded."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    return (
        random.getstate(),
        None if numpy is None else pickle.dumps(numpy.random.get_state()),
        None if torch is None else bytes(torch.get_rng_state().tolist()),
    )


def copied(arguments):
    try:
        return copy.deepcopy(arguments)
    except Exception:  # objects that can't be copied
        return None


def ended(status):
    if os.WIFSIGNALED(status):
        return "was killed by " + signal.Signals(os.WTERMSIG(status)).name
    return "ended with exit status %d" % os.WEXITSTATUS(status)


def become_worker(loader, dataset):
    """Makes this process the first of the loader's workers, for datasets that ask or wait for that."""
    if loader is None or not loader.num_workers:
        return
    worker = sys.modules["torch.utils.data"]._utils.worker
    try:
        worker._worker_info = worker.WorkerInfo(id=0, num_workers=loader.num_workers, seed=SEED, dataset=dataset)
    except AttributeError:  # torch is free to change these
        pass
    if loader.worker_init_fn is not None:
        loader.worker_init_fn(0)


def seed():
    """Seeds the random generators that are loaded."""
    random.seed(SEED)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed(SEED)
    if torch is not None:
        torch.manual_seed(SEED)


def iterable(dataset):
    """Reports whether a dataset yields its samples in an order of its own."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(dataset, data.IterableDataset) or not hasattr(type(dataset), "__getitem__")


def indices(loader, dataset):
    """Returns indices of samples to try: the loader's first, and the first of each dataset that is chained in this one; None where
    the dataset is an iterable."""
    if iterable(dataset):
        return None
    own = []
    if loader is not None:
        batches = loader.batch_sampler
        own = list(itertools.islice(loader.sampler if batches is None else itertools.chain.from_iterable(batches), 4))
        if type(loader.sampler).__name__ not in ("SequentialSampler", "RandomSampler") or batches is not None and loader.batch_size is None:
            return own
    n = len(dataset)
    starts = [0] + list(getattr(dataset, "cumulative_sizes", []))[:6]
    ordered = own[:1] + starts + own[1:] + [n // 2, n - 1] + list(range(min(n, SAMPLES)))
    return list(dict.fromkeys(i for i in ordered if 0 <= i < n))


def digest(value, shape=False):
    """Returns a digest of a sample: the same for equal samples, and with `shape` for samples of the same types and shapes."""
    h = hashlib.blake2b(digest_size=16)
    _update(h, value, shape)
    return h.hexdigest()


def _update(h, value, shape):
    kind = type(value)
    h.update(("<%s.%s>" % (kind.__module__, kind.__qualname__)).encode())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, bytearray)):
        h.update(b"" if shape else repr(value).encode("utf-8", "surrogatepass"))
    elif isinstance(value, dict):
        h.update(b"%d" % len(value))
        for key, element in value.items():
            _update(h, key, False)
            _update(h, element, shape)
    elif isinstance(value, (tuple, list)):
        h.update(b"%d" % len(value))
        for element in value:
            _update(h, element, shape)
    elif hasattr(value, "detach") and hasattr(value, "cpu"):  # torch.Tensor
        _array(h, b"" if shape or value.numel() == 0 else _tensor_bytes(value), value)
    elif hasattr(value, "__array_interface__") and hasattr(value, "dtype") and not value.dtype.hasobject:  # numpy.ndarray
        _array(h, b"" if shape else value.tobytes(), value)
    elif hasattr(value, "tobytes") and hasattr(value, "mode") and hasattr(value, "size"):  # PIL.Image
        h.update(repr((value.mode, value.size)).encode())
        h.update(b"" if shape else value.tobytes())
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _update(h, getattr(value, field.name, None), shape)
    elif shape:
        pass
    elif hasattr(value, "__dict__") and kind.__reduce_ex__ is object.__reduce_ex__ and not hasattr(kind, "__slots__"):
        _update(h, vars(value), shape)
    else:
        h.update(pickle.dumps(value))


def _tensor_bytes(value):
    return value.detach().cpu().contiguous().reshape(-1).view(sys.modules["torch"].uint8).numpy()


def _array(h, data, value):
    h.update(repr((str(value.dtype), tuple(value.shape))).encode())
    h.update(data)
