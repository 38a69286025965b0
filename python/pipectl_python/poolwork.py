"""What a worker of a pool does: it makes whole batches, stage by stage, keeps and replays what passes between stages, and says
in words that pipectl shares how it gets on."""

import collections
import copy
import ctypes
import faulthandler
import marshal
import mmap
import os
import re
import signal
import sys
import time

from . import lift
from .main import describe

BATCH, FILLER, FAILED = range(3)  # kinds of what a worker hands over

_clock = time.perf_counter_ns  # CLOCK_MONOTONIC, which all processes share


class Control:
    """Words of 64 bits that the pool's processes and pipectl share.

    Word 0 is the generation: the number of modes there have been. From word 8 on, each worker has 8 words: the stage that it is at
    (-1: none), the item (-1: none in particular), since when (CLOCK_MONOTONIC, ns), and its process's id. After them lie two
    modes, of which the generation's lowest bit chooses: from, to, batches to keep a worker, and the bytes that each worker
    may keep at each boundary."""

    def __init__(self, workers, stages, path=None, offset=0):
        self.workers, self.stages, self.path, self.offset = workers, stages, path, offset
        size = self.size(workers, stages)
        if path is None:
            self.map = mmap.mmap(-1, size)
            words = memoryview(self.map)
        else:
            page = offset - offset % mmap.ALLOCATIONGRANULARITY
            fd = os.open(path, os.O_RDWR)
            try:
                self.map = mmap.mmap(fd, offset - page + size, offset=page)
            finally:
                os.close(fd)
            words = memoryview(self.map)[offset - page : offset - page + size]
        self.words = words.cast("q")

    @staticmethod
    def size(workers, stages):
        """Returns the bytes that it takes."""
        return 8 * (8 + 8 * max(workers, 1) + 2 * (3 + stages))

    def __reduce__(self):
        return Control, (self.workers, self.stages, self.path, self.offset)

    def _mode(self, generation):
        return 8 + 8 * max(self.workers, 1) + generation % 2 * (3 + self.stages)

    def write(self, first, to, keep, limits):
        """Sets a new mode and returns its generation."""
        generation = self.words[0] + 1
        at = self._mode(generation)
        values = [first, to, keep] + list(limits)
        for i in range(3 + self.stages):
            self.words[at + i] = values[i] if i < len(values) else 0
        self.words[0] = generation
        return generation

    def read(self):
        """Returns the generation and its mode as write took it."""
        while True:
            generation = self.words[0]
            at = self._mode(generation)
            mode = self.words[at : at + 3 + self.stages].tolist()
            if self.words[0] == generation:
                return generation, mode[0], mode[1], mode[2], mode[3:]

    def renew(self, worker):
        """Takes a worker's stage as one that it begins now."""
        self.words[10 + 8 * worker] = _clock()

    def vacate(self, worker):
        """Sets the status of a worker that there isn't."""
        at = 8 + 8 * worker
        self.words[at], self.words[at + 1], self.words[at + 3] = -1, -1, 0

    def status(self, worker):
        """Returns a worker's stage, item, since when, and process id."""
        return tuple(self.words[8 + 8 * worker : 12 + 8 * worker])


class Failed(Exception):
    """A stage failed: `failure` says it in full."""

    def __init__(self, described):
        super().__init__(described["message"])
        self.failure = described


def failure(error, stage, item):
    """Returns an exception as replies have it, with the stage and the item that it is about."""
    try:
        described = {key: _plain(value) for key, value in describe(error).items()}
    except BaseException:  # the user's class may be faulty in any way
        described = {"kind": "exception", "type": _plain(type(error).__name__), "message": "(its text and traceback can't be had)", "traceback": ""}
    if isinstance(error, lift.NotLiftable):
        described["kind"] = "lift"
    elif REFUSED.search(described["message"]):
        described = {"kind": "memory", "message": no_room(described["message"])}
    described.update(stage=stage, index=item)
    return described


# What torch says where it can't make a file of shared memory.
REFUSED = re.compile(r"</?torch_\w+>.*(No space left on device|Read-only file system)", re.DOTALL)


def no_room(cause):
    """Returns what is to be said of batches that /dev/shm doesn't take."""
    if "Read-only" in cause:
        return "/dev/shm is read-only, and torch hands over batches there: mount it writable (docker run --shm-size=1g). torch says: " + cause
    return (
        f"/dev/shm has {mib(shm_free())} free, which is too small for the batches that torch hands over there: make it larger (docker run "
        f"--shm-size=1g), or lower prefetch or workers. torch says: {cause}"
    )


def shm_free():
    """Returns how many bytes can be written to /dev/shm."""
    disk = os.statvfs("/dev/shm")
    return 0 if disk.f_flag & os.ST_RDONLY else disk.f_bavail * disk.f_frsize


def mib(n):
    return f"{n / (1 << 20):.1f} MiB"


def _plain(value):
    """Returns a value without its subclass, which can't be marshalled."""
    return str.__str__(value) if isinstance(value, str) else value


def die_with_parent():
    """Has the kernel kill this process when the process that started it ends, leaves Ctrl-C to that one, and has a crash, or a hang,
    show the line it is at."""
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    if parent == 1 or os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if faulthandler.is_enabled():  # in a process forked from the main one
        faulthandler.disable()  # torch has put handlers of its own in their place
    else:
        faulthandler.register(signal.SIGUSR1, 2)
    faulthandler.enable(2)


class Work:
    """Makes batches. It is made in the main process, and belongs to one worker once that has called begin.

    dataset is the user's, with `parts` lifted. steps are the stages between load and batch: (part or None, callable). collate makes
    a batch of a list of samples, or, if single, of what the dataset returned for one index. skip says of each stage whether an item
    on which it fails is left out."""

    def __init__(self, dataset, parts, steps, collate, skip, control, single=False):
        self.dataset, self.parts, self.steps, self.collate, self.skip = dataset, list(parts), list(steps), collate, list(skip)
        self.control, self.single = control, single
        self.stages = len(self.steps) + 2
        self._reset(0)

    def begin(self, worker):
        """Makes this process the worker's."""
        self._reset(worker)
        self.control.words[self.at] = -1
        self.control.words[self.at + 3] = os.getpid()

    def _reset(self, worker):
        self.worker, self.at = worker, 8 + 8 * worker
        self.generation, self.turn = -1, 0
        self._empty()
        self.threads = None  # how many more there were after each stage, while the first batch was made
        self.ended = _clock()
        self.cpu = time.process_time_ns()

    def __getstate__(self):
        return (self.dataset, self.parts, self.steps, self.collate, self.skip, self.control, self.single)

    def __setstate__(self, state):
        self.__init__(*state)

    def filler(self):
        """Returns what takes a batch's place where there is none to make."""
        return marshal.dumps((FILLER, 0, self.worker)), None

    def batch(self, indices, epoch=0, last=False, stream=None, drop_last=False):
        """Makes a batch of dataset[i] for the indices, or of as many of the Stream's samples, and returns its account, marshalled,
        and the batch. Raises StopIteration at the stream's end."""
        began = _clock()
        generation, first, to, keep, limits = self.control.read()
        if generation != self.generation:
            self.generation, self.turn = generation, 0
            if keep:
                self._empty()
        batch = _Batch(self, indices, stream)
        data, described, samples = None, None, []
        try:
            if to > 0 and to < self.stages and not self.kept[to]:
                return self.filler()
            if first > 0 or to == 0:
                record = _Record(self, limits) if self.filled < keep else None
                samples = batch.through(None, 0, first or self.stages - 1, record)
                if stream is not None and stream.ended and batch.short(drop_last):
                    self.control.words[self.at] = -1
                    raise StopIteration
            if to > 0:
                samples = batch.through(self._replay(to, len(indices)), to, self.stages - 1) if to < self.stages else []
            if samples:
                data = batch.collated(samples)
            if to == 0 and record is not None:
                record.close()
                self.filled += 1
        except Failed as e:
            described, data, samples = e.failure, None, []
        self.control.words[self.at] = -1  # not where the process is about to end: then they say where it was
        ended, cpu = _clock(), time.process_time_ns()
        account = (
            BATCH if described is None else FAILED,
            generation,
            self.worker,
            epoch,
            last,
            self._length(samples, data),
            bytes_of(data),
            batch.busy,
            batch.items,
            began - self.ended,
            cpu - self.cpu,
            batch.skipped,
            self.filled,
            [max(0, b) for b in self.bytes],
            (threads(), self.threads) if batch.watches else None,
            described,
        )
        self.ended, self.cpu = ended, cpu
        return marshal.dumps(account), data

    def _empty(self):
        """Forgets what was kept."""
        self.kept = [[] for _ in range(self.stages)]  # at each boundary, batches that are lists of samples
        self.bytes = [0] * self.stages  # that they hold; -1: the first batch was too large
        self.copies = [False] * self.stages  # whether a later stage changes samples in place
        self.filled = 0

    def _length(self, samples, data):
        if not self.single or not samples:
            return len(samples)
        for value in leaves(data):
            shape = getattr(value, "shape", None)
            if shape is not None and len(shape) > 0:
                return int(shape[0])
        return 1

    def _replay(self, boundary, length):
        """Returns samples of a batch kept at a boundary, if there is one of as many samples as that."""
        kept = self.kept[boundary]
        for _ in kept:
            samples = kept[self.turn % len(kept)]
            self.turn += 1
            if len(samples) == length:
                break
        if self.copies[boundary]:
            return [copied(s) for s in samples]
        return [_shallow(s) for s in samples]


class Stream:
    """One iteration over a dataset, which doesn't go on after its end."""

    def __init__(self, dataset, parts):
        self.iterator = lift.iterate(dataset, parts) if parts else iter(dataset)
        self.ended = False

    def __next__(self):
        if not self.ended:
            try:
                return next(self.iterator)
            except StopIteration:
                self.ended = True
        raise StopIteration


class _Batch:
    """A batch that is being made."""

    def __init__(self, work, indices, stream):
        self.work, self.indices, self.stream = work, indices, stream
        self.busy = [0] * work.stages
        self.items = [0] * work.stages
        self.skipped = []
        self.watches = work.threads is None
        self.threads = 0
        if self.watches:
            work.threads = [0] * work.stages
            self.threads = threads()

    def short(self, drop_last):
        """Reports whether what a stream had left is no batch."""
        taken = self.items[0]
        return taken == 0 or drop_last and taken < len(self.indices)

    def through(self, samples, first, until, record=None):
        """Takes samples, or those of the indices where first is 0, through the stages from first to before until."""
        work, busy = self.work, self.busy
        words, at, parts = work.control.words, work.at, work.parts
        steps = [(k, part, step) for k, (part, step) in enumerate(work.steps, 1) if first <= k < until]
        dataset, stream, fetched = work.dataset, self.stream, first == 0
        apply, fetch = lift.apply, lift.fetch
        watches = self.watches
        out, skipped_before = [], len(self.skipped)
        whole = self._whole() if fetched and stream is None else None
        attempts = 0
        now = _clock()
        for position, index in enumerate(self.indices if fetched else samples):
            k = 0
            words[at + 1] = index if type(index) is int else -1
            words[at + 2] = now
            attempts += 1
            try:
                if fetched:
                    words[at] = 0
                    if stream is not None:
                        sample = next(stream)
                    elif whole is not None:
                        sample = whole[position]
                    elif parts:
                        sample = fetch(dataset, index, parts)
                        # As long as the dataset's own code would: when memory is freed decides what the next allocation costs.
                        held = tuple(sample.parts.values())
                    else:
                        sample = dataset[index]
                    then = _clock()
                    busy[0] += then - now
                    now = then
                    if record is not None or watches:
                        now = self._aside(0, sample, record)
                else:
                    sample, index = index, -1
                for k, part, step in steps:
                    words[at] = k
                    words[at + 2] = now
                    sample = step(sample) if part is None else apply(sample, part, step)
                    then = _clock()
                    busy[k] += then - now
                    now = then
                    if record is not None or watches:
                        now = self._aside(k, sample, record)
            except StopIteration as e:
                if stream is not None and k == 0:
                    attempts -= 1
                    break
                now = self._fail(e, k, index)
                if record is not None:
                    record.drop(k)
                continue
            except BaseException as e:  # whatever it is, it is about this item
                now = self._fail(e, k, index)
                if record is not None:
                    record.drop(k)
                continue
            out.append(sample)
            held = None
        for k in range(first, until):
            self.items[k] += attempts - sum(1 for s in self.skipped[skipped_before:] if s["stage"] < k)
        return out

    def _whole(self):
        """Returns all samples at once where the dataset hands them out that way, as torch's DataLoader takes them then."""
        work = self.work
        if work.single or not fetches_whole(work.dataset):
            return None
        words, began = work.control.words, _clock()
        words[work.at], words[work.at + 1], words[work.at + 2] = 0, -1, began
        try:
            if work.parts:
                raise lift.NotLiftable("the dataset makes whole batches in __getitems__: nothing can be lifted out of it")
            return work.dataset.__getitems__(self.indices)
        except BaseException as e:
            raise Failed(failure(e, 0, -1))
        finally:
            self.busy[0] += _clock() - began

    def _aside(self, k, sample, record):
        """Does what no stage is charged for, after stage k; returns the time."""
        if self.watches:
            self._count_threads(k)
        if record is not None:
            record.note(k + 1, sample)
        return _clock()

    def _count_threads(self, k):
        now = threads()
        self.work.threads[k] += max(0, now - self.threads)
        self.threads = now

    def _fail(self, error, stage, index):
        """Leaves an item out, or raises Failed."""
        item = number(index)
        described = failure(error, stage, item)
        if not self.work.skip[stage] or isinstance(error, lift.NotLiftable):
            raise Failed(described) from None
        self.skipped.append(described)
        return _clock()

    def collated(self, samples):
        """Makes a batch of the samples, as the dataset would have made them."""
        work, stage = self.work, self.work.stages - 1
        words, began = work.control.words, _clock()
        words[work.at + 1], words[work.at + 2], words[work.at] = -1, began, stage
        try:
            if work.parts:
                samples = [lift.finish(s) for s in samples]
            data = work.collate(samples[0] if work.single else samples)
        except BaseException as e:
            raise Failed(failure(e, stage, -1)) from None
        self.busy[stage] += _clock() - began
        self.items[stage] += len(samples)
        if self.watches:
            self._count_threads(stage)
        return data


class _Record:
    """Keeps deep copies of what passes the boundaries while a batch is made, and finds out which of them later stages change."""

    def __init__(self, work, limits):
        self.work, self.limits = work, limits
        self.made = [[] for _ in range(work.stages)]  # (the sample that went on, the copy, its bytes); None where it is too much
        self.bytes = [0] * work.stages

    def note(self, boundary, sample):
        """Keeps a sample at a boundary, if it may."""
        work, limit = self.work, self.limits[boundary]
        if self.made[boundary] is None or work.bytes[boundary] < 0:
            return
        try:
            size = bytes_of(sample)
            if work.bytes[boundary] + self.bytes[boundary] + size > limit:
                self.made[boundary] = None
                return
            self.made[boundary].append((_shallow(sample), copied(sample), size))
            self.bytes[boundary] += size
        except Exception:  # what can't be copied can't be kept; why is up to the user's classes
            self.made[boundary] = None

    def drop(self, stage):
        """Takes back what was noted of a sample on which a stage has failed."""
        for boundary in range(1, stage + 1):
            if self.made[boundary]:
                self.bytes[boundary] -= self.made[boundary].pop()[2]

    def close(self):
        """Adds the batch to what the worker keeps, once it is made."""
        work = self.work
        for boundary, made in enumerate(self.made):
            if made is None:
                if not work.kept[boundary]:
                    work.bytes[boundary] = -1
            elif made:
                work.copies[boundary] = work.copies[boundary] or not all(same(went, kept) for went, kept, _ in made)
                work.kept[boundary].append([kept for _, kept, _ in made])
                work.bytes[boundary] += self.bytes[boundary]


def fetches_whole(dataset):
    """Reports whether the dataset makes a batch's samples in one call that isn't just a loop over the samples."""
    if getattr(dataset, "__getitems__", None) is None:
        return False
    if type(dataset).__name__ == "Subset" and type(dataset).__module__ == "torch.utils.data.dataset":
        return fetches_whole(dataset.dataset)
    return callable(dataset.__getitems__)


def number(index):
    """Returns an item's number where the index is one, -1 elsewhere."""
    try:
        return int(index.__index__())
    except (AttributeError, TypeError, ValueError):
        return -1


def threads():
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def leaves(value):
    """Yields what tuples, lists and dicts contain that is none of them."""
    if isinstance(value, (tuple, list)):
        for element in value:
            yield from leaves(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from leaves(element)
    else:
        yield value


def bytes_of(value):
    """Returns the bytes of a sample's or batch's data."""
    kind = type(value)
    if kind is int or kind is float or kind is bool or value is None:
        return 8
    if kind is lift.Sample:
        return bytes_of(value.value) + bytes_of(list(value.parts.values()))
    if issubclass(kind, (tuple, list, set, frozenset)):
        return sum(map(bytes_of, value))
    if issubclass(kind, dict):
        return sum(map(bytes_of, value.values()))
    if kind is lift.Hole:
        return 0
    if issubclass(kind, (bytes, bytearray, memoryview, str)):
        return len(value)
    if hasattr(value, "element_size") and hasattr(value, "numel"):
        return value.element_size() * value.numel()
    nbytes = getattr(value, "nbytes", None)
    if type(nbytes) is int:
        return nbytes
    if hasattr(value, "getbands") and hasattr(value, "size"):
        return value.size[0] * value.size[1] * len(value.getbands())
    if hasattr(value, "__dict__"):
        return sum(map(bytes_of, vars(value).values()))
    return sys.getsizeof(value)


def _shallow(sample):
    return lift.Sample(sample.value, dict(sample.parts), sample.places) if type(sample) is lift.Sample else sample


def copied(value, memo=None):
    """Returns a copy of a sample that shares nothing that could be changed in place."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)][0]
    out = _copied(value, memo)
    memo[id(value)] = out, value  # the value too, so that its id isn't another's
    return out


def _copied(value, memo):
    kind = type(value)
    if kind in (int, float, bool, str, bytes, complex, type(None), lift.Hole, lift.HoleTuple, lift.HoleDict):
        return value
    if kind is tuple:
        return tuple([copied(v, memo) for v in value])
    if kind is list:
        return [copied(v, memo) for v in value]
    if kind is dict:
        return {k: copied(v, memo) for k, v in value.items()}
    if kind is lift.Sample:
        return lift.Sample(copied(value.value, memo), copied(value.parts, memo), value.places)
    numpy, torch, image = sys.modules.get("numpy"), sys.modules.get("torch"), sys.modules.get("PIL.Image")
    if torch is not None and kind is torch.Tensor and not value.requires_grad:
        return value.clone()
    if numpy is not None and kind is numpy.ndarray and value.dtype != object:
        return value.copy(order="K")
    if image is not None and kind is image.Image:
        return value.copy()
    found = {}
    lift.holes_in(value, found)
    return copy.deepcopy(value, found)


def same(a, b):
    """Reports whether two objects of which one was a copy of the other still hold the same; False where that can't be told."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is lift.Sample:
        return same(a.value, b.value) and same(a.parts, b.parts)
    if issubclass(kind, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if issubclass(kind, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    try:
        if hasattr(a, "element_size") and hasattr(a, "numel"):
            return a.shape == b.shape and a.dtype == b.dtype and bytes_equal(a.detach().cpu().numpy(), b.detach().cpu().numpy())
        if hasattr(a, "tobytes") and hasattr(a, "dtype"):
            return a.shape == b.shape and a.dtype == b.dtype and bytes_equal(a, b)
        if hasattr(a, "tobytes"):
            return a.size == b.size and a.tobytes() == b.tobytes()
        return bool(a == b)
    except Exception:  # the user's classes may do anything when they are compared
        return False


def bytes_equal(a, b):
    return a.dtype != object and a.tobytes() == b.tobytes()


class Fresh:
    """Objects' attributes as a new worker finds them, to be set to that again where a DataLoader would start new workers: their values,
    with copies of random generators, and of containers that are small, as caches are at first. What a worker changes deeper than
    that stays changed."""

    SMALL = 1000

    def __init__(self, things):
        self.found = []  # (object, its attributes, those that are to be filled again: {name: state})
        for thing in things:
            self._add(thing)

    def _add(self, thing):
        if not hasattr(thing, "__dict__") or isinstance(thing, type) or any(thing is found for found, _, _ in self.found):
            return
        attributes = dict(vars(thing))
        states = {name: _state(value) for name, value in attributes.items()}
        self.found.append((thing, attributes, {name: state for name, state in states.items() if state is not None}))
        for value in attributes.values():
            for inner in value if isinstance(value, (list, tuple)) and len(value) <= self.SMALL else (value,):
                if is_dataset(inner):
                    self._add(inner)

    def restore(self):
        for thing, attributes, states in self.found:
            vars(thing).clear()
            vars(thing).update(attributes)
            for name, state in states.items():
                _set_state(attributes[name], state)


def is_dataset(thing):
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(thing, data.Dataset)


def _state(value):
    """Returns the state of a random generator or a small container, for _set_state; None for anything else."""
    kind = type(value).__name__
    if kind == "Random":
        return value.getstate()
    if kind in ("RandomState", "Generator"):
        return value.get_state() if hasattr(value, "get_state") else copy.deepcopy(value.bit_generator.state)
    if isinstance(value, (dict, list, set, collections.deque)) and len(value) <= Fresh.SMALL:
        return copy.copy(value)
    return None


def _set_state(value, state):
    kind = type(value).__name__
    if kind == "Random":
        value.setstate(state)
    elif kind in ("RandomState", "Generator") and hasattr(value, "set_state"):
        value.set_state(state)
    elif kind == "Generator":
        value.bit_generator.state = copy.deepcopy(state)
    else:
        value.clear()
        value.update(state) if isinstance(value, (dict, set)) else value.extend(state)
