"""What a worker of a pool does: it makes whole batches, stage by stage, keeps and replays what passes between stages, and says
in words that pipectl shares how it gets on."""

import ctypes
import faulthandler
import marshal
import os
import re
import signal
import time

from . import lift
from .control import clock
from .copies import bytes_of, copied, leaves, same, shallow
from .main import describe

BATCH, FILLER, FAILED = range(3)  # kinds of what a worker hands over


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
        self.ended = clock()
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
        began = clock()
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
        ended, cpu = clock(), time.process_time_ns()
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
        return [shallow(s) for s in samples]


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
        now = clock()
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
                    then = clock()
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
                    then = clock()
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
        words, began = work.control.words, clock()
        words[work.at], words[work.at + 1], words[work.at + 2] = 0, -1, began
        try:
            if work.parts:
                raise lift.NotLiftable("the dataset makes whole batches in __getitems__: nothing can be lifted out of it")
            return work.dataset.__getitems__(self.indices)
        except BaseException as e:
            raise Failed(failure(e, 0, -1))
        finally:
            self.busy[0] += clock() - began

    def _aside(self, k, sample, record):
        """Does what no stage is charged for, after stage k; returns the time."""
        if self.watches:
            self._count_threads(k)
        if record is not None:
            record.note(k + 1, sample)
        return clock()

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
        return clock()

    def collated(self, samples):
        """Makes a batch of the samples, as the dataset would have made them."""
        work, stage = self.work, self.work.stages - 1
        words, began = work.control.words, clock()
        words[work.at + 1], words[work.at + 2], words[work.at] = -1, began, stage
        try:
            if work.parts:
                samples = [lift.finish(s) for s in samples]
            data = work.collate(samples[0] if work.single else samples)
        except BaseException as e:
            raise Failed(failure(e, stage, -1)) from None
        self.busy[stage] += clock() - began
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
            self.made[boundary].append((shallow(sample), copied(sample), size))
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
