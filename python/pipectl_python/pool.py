"""A pool of processes that make batch after batch of the user's dataset, as a DataLoader's workers do, and what pipectl asks of it."""

import marshal
import os
import signal
import struct
import sys
import time

from . import lift, refs, values
from .main import ARENA, Fault
from .control import Control
from .copies import bytes_of
from .poolwork import FAILED, FILLER, Failed, Work, die_with_parent, failure, mib, shm_free

# A share of an epoch from which starting the workers anew is worth a remark.
NOTICEABLE = 0.05

# Batches that the main process has: the one that the step works on, and the one before it.
HELD = 2


def open_pool(state, request):
    """Makes the pool; its workers start with the first mode."""
    close(state, request)
    role = request["role"]
    source = refs.find(state, role, request["ref"], request.get("args"))
    dataset = source.dataset if role == "loader" else source
    stages = request["stages"]
    calls = [(s["part"] or None, refs.find(state, "part" if s["part"] else "callable", s["ref"], s["args"])) for s in stages[1:-1]]
    collate = refs.find(state, "collate", stages[-1]["ref"], None) if stages[-1]["ref"] else None
    control = Control(request["workers"], len(stages), f"/proc/{os.getpid()}/fd/{ARENA}", request["control"])
    try:
        originals = lift.lift(dataset, request["lift"])
    except lift.NotLiftable as e:
        raise Fault("lift", str(e)) from None
    settings = {k: request[k] for k in ("workers", "prefetch", "batch", "drop_last", "shuffle", "seed")}
    try:
        make = kind(source, dataset)
        pool = make(source, dataset, request["lift"], calls, collate, [s["skip"] for s in stages], control, settings)
        first = pool.first()
    except BaseException:
        lift.put_back(dataset, originals)
        raise
    state.pool, state.originals, state.batches = pool, (dataset, originals), {}
    if first.get("failure"):
        close(state, request)
        return first
    return {"items": pool.items(), "steps": pool.steps(), "persistent": pool.persistent}


def kind(source, dataset):
    """Returns the class of the pool for a loader or dataset: torch's own where the user's code has loaded it, and can be asked for items
    or for torch's kind of iteration."""
    if "torch.utils.data" in sys.modules and (source is not dataset or hasattr(dataset, "__getitem__")):
        from .torchpool import TorchPool

        return TorchPool
    from .miniloader import MiniPool

    return MiniPool


def start(state, request):
    """Has the pool go on in another mode."""
    free(state, request)
    state.pool.start(request["from"], request["to"], request["fill"], request["limits"], request["epochs"])
    return {}


def rest(state, request):
    """Stops the workers until the next mode."""
    state.pool.rest()
    return {}


def next_batch(state, request):
    """Returns the account of the next batch, which stays here under its id; {"end": true} after the last."""
    reply, data = state.pool.next()
    free(state, request)  # not before: a loop over a loader holds the batch before, too, while the next is made
    if "id" in reply:
        state.batches[reply["id"]] = data
    return reply


def copy(state, request):
    """Copies a batch's samples and labels, its first two elements, to where pipectl's own training step takes them from."""
    batch = state.batches[request["id"]]
    n, *shape = request["shape"]
    try:
        samples, labels = (batch[0], batch[1]) if isinstance(batch, (tuple, list)) and len(batch) > 1 else (batch, None)
        labels = [0] * n if labels is None else [int(label) for label in labels]
        count = len(samples)
    except (TypeError, ValueError, LookupError) as e:
        raise Fault("result", f"the batch is {values.describe(batch)}, and this training step takes samples and whole numbers for labels") from e
    if count != n or len(labels) != n:
        raise Fault("result", f"the batch has {count} samples and {len(labels)} labels, of {n} items")
    at, arena = request["at"], memoryview(state.arena)
    for sample in samples:
        element = values.element(sample, request["kind"], shape)
        element.write(arena[at : at + element.size])
        at += element.size
    struct.pack_into(f"={n}i", arena, request["label"], *labels)
    return {}


def free(state, request):
    """Lets go of batches."""
    for i in request.get("free") or ():
        state.batches.pop(i, None)


def close(state, request):
    """Ends the pool's workers and gives the dataset back what was lifted."""
    pool, state.batches = getattr(state, "pool", None), {}
    if pool is not None:
        state.pool = None
        pool.close()
        lift.put_back(*state.originals)


class Pool:
    """The main process's side of a pool. Subclasses run the workers: `begin` returns an iterator of their (account, batch)s."""

    persistent = True  # whether workers live on from epoch to epoch in the user's own loop

    def __init__(self, dataset, parts, calls, collate, skip, control, settings, single=False):
        self.dataset, self.parts, self.control, self.settings = dataset, parts, control, settings
        self.workers = settings["workers"]
        self.work = Work(dataset, parts, calls, collate, skip, control, single)
        self.stages = self.work.stages
        self.made = None  # the iterator of batches
        self.ended = False
        self.endless = False
        self.number = self.fill = self.generation = 0
        self.ids = 0
        self.failed = None
        self.kept = {}  # of each worker, after a filling: the bytes at each boundary
        self.filled = {}  # and the batches
        self.threads = {}
        self.notes, self.new_notes = {}, []
        self.resting = False
        self.startup = self.last_at = None
        self.intervals = []

    def first(self):
        """Makes part of the first batch in a process of its own, which leaves this one as it is, and returns {"failure": …} where
        that fails, or where shared memory is too small for the batches that will be under way."""
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:  # then nobody can learn how a process ended
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self.control.vacate(0)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                die_with_parent()
                os.write(write, marshal.dumps(self._first()))
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as f:
            answer = f.read()
        try:
            _, status = os.waitpid(pid, 0)
        except ChildProcessError:  # the user's code waited for it
            status = 0
        stage, item, _, _ = self.control.status(0)
        self.control.vacate(0)
        if not answer:
            return {"failure": self._death(status, "the process that tried the first batch", max(stage, 0), item)}
        described, size = marshal.loads(answer)
        if described is not None:
            return {"failure": described}
        return self._room(size) or {}

    def _first(self):
        """Returns what failed, or None, and how many bytes a batch has."""
        try:
            self.seed()
            self.become_worker()
            indices, share, stream = self.sample()
        except Failed as e:
            return e.failure, 0
        except BaseException as e:
            return failure(e, 0, -1), 0
        self.work.begin(0)
        self.control.write(0, 0, 0, [])
        try:
            account, data = self.work.batch(indices, stream=stream)
        except StopIteration:
            return self.nothing(), 0
        account = marshal.loads(account)
        if account[0] == FAILED:
            return account[-1], 0
        return None, int(bytes_of(data) * share)

    def _room(self, size):
        """Returns a failure where the batches under way don't fit in /dev/shm, through which torch hands them over."""
        if not self.uses_shm or not self.workers:
            return None
        under_way = (self.prefetch() + 1) * self.workers + HELD
        try:
            free = shm_free()
        except OSError:
            return None
        if under_way * size <= free:
            return None
        return {
            "failure": {
                "kind": "memory",
                "message": f"/dev/shm has {mib(free)} free, and the workers hand over batches of {mib(size)} there, up to {under_way} at a time "
                f"(workers × (prefetch + the one being made), and {HELD} that the step has): lower prefetch or workers, or make /dev/shm larger (docker run --shm-size={under_way * size // (1 << 20) * 2 + 64}m)",
                "stage": self.stages - 1,
                "index": -1,
            }
        }

    def nothing(self):
        """Returns the failure of a pool that has no batches to make."""
        message = "the dataset yields no samples"
        if self.settings["drop_last"]:
            message = "there are no batches: the dataset yields no samples, or fewer than a batch has and drop_last leaves them out: set drop_last = false"
        return failure(Fault("result", message), 0, -1)

    uses_shm = True

    def start(self, first, to, fill, limits, epochs):
        """Goes on in another mode, as stages.PoolMode describes it."""
        if self.failed is not None:
            return
        self.wake()
        share = max(1, -(-fill // max(self.workers, 1))) if fill else 0
        each = [limit // max(self.workers, 1) for limit in limits]
        self.generation = self.control.write(first, to, share, each)
        self.number, self.fill, self.share = 0, fill, share
        self.zero, self.last_at, self.intervals = to == 0 and not fill, None, []
        if fill:
            self.kept, self.filled = {}, {}
        if self.made is None or epochs or not self.endless:
            self.stop()
            if self.workers == 0:
                self.work.begin(0)
            self.ended, self.endless = False, not epochs
            self.opened = time.perf_counter()
            self.made = self.begin(epochs)

    def next(self):
        """Returns the reply about the next batch, and the batch."""
        if self.failed is not None:
            return {"failure": self.failed}, None
        if self.ended:
            return {"end": True}, None
        try:
            account, data = self._take()
        except StopIteration:
            self.ended, self.made = True, None
            return {"end": True}, None
        except Failed as e:
            self.failed = e.failure
            return {"failure": e.failure}, None
        except BaseException as e:
            self.failed = self.broken(e)
            return {"failure": self.failed}, None
        _, _, worker, epoch, last, length, size, busy, items, wait, _, skipped, _, _, _, _ = account
        self._watch_time(busy)
        self.ids += 1
        reply = dict(id=self.ids, number=self.number, epoch=epoch, last=last, len=length, bytes=size, worker=worker)
        reply.update(busy=busy, items=items, wait=wait, skipped=skipped)
        self.number += 1
        if self.fill and self.number == self.fill:
            try:
                reply["kept"] = self._complete()
            except Failed as e:
                self.failed = e.failure
                return {"failure": e.failure}, None
            except StopIteration:
                self.ended = True
                reply["kept"] = self._kept()
        if self.new_notes:
            reply["notes"], self.new_notes = self.new_notes, []
        return reply, data

    def _take(self):
        """Returns the next batch of this mode."""
        idle = 0
        while True:
            account, data, *epoch = next(self.made)
            account = marshal.loads(account)
            if epoch:
                account = account[:3] + tuple(epoch) + account[4:]
            if account[0] == FILLER:
                idle += 1
                if idle > 4 * max(self.workers, 1) * max(self.prefetch(), 1) + 4:
                    raise Failed(self.nothing())
                continue
            idle = 0
            if account[1] != self.generation:
                continue
            if account[0] == FAILED:
                raise Failed(account[-1])
            worker = account[2]
            self.filled[worker], self.kept[worker] = account[12], account[13]
            if account[14] is not None and self.workers:
                self.threads[worker] = account[14]
                self._note_threads()
            return account, data

    def _complete(self):
        """Has each worker keep its share of batches."""
        for _ in range(4 * max(self.workers, 1) * max(self.prefetch(), 1)):
            if len(self.filled) >= max(self.workers, 1) and min(self.filled.values()) >= self.share:
                break
            self._take()
        return self._kept()

    def _kept(self):
        """Returns the bytes kept at each boundary, 0 where a worker keeps nothing."""
        if len(self.kept) < max(self.workers, 1):
            return [0] * self.stages
        return [sum(column) if min(column) > 0 else 0 for column in zip(*self.kept.values())]

    def _note(self, code, text, stages=()):
        if code not in self.notes:
            self.notes[code] = text
            self.new_notes.append({"code": code, "text": text, "stages": list(stages)})

    def _note_threads(self):
        """Remarks on libraries' own threads, those beside each worker's main thread."""
        if len(self.threads) < self.workers:
            return
        total = sum(count for count, _ in self.threads.values())
        cores = len(os.sched_getaffinity(0))
        if total == self.workers or total <= cores:
            return
        stages = [k for k in range(self.stages) if any(more[k] for _, more in self.threads.values())]
        means = ["cv2.setNumThreads(0)"] if "cv2" in sys.modules else []
        means.append('env = { OMP_NUM_THREADS = "1" }')
        self._note(
            "threads",
            f"{self.workers} workers run {total} threads, each up to {max(count for count, _ in self.threads.values())} with those that "
            f"libraries start, on {cores} cores: they take each other's time. Have a worker run one: {' or '.join(means)}.",
            stages,
        )

    def _watch_time(self, busy):
        """Learns how long the start of the workers takes, and an epoch, and remarks on their proportion."""
        now = time.perf_counter()
        if self.startup is None and self.workers:
            self.startup = max(0.0, now - self.opened - sum(busy) / 1e9)
        if self.persistent or not self.workers or not self.zero or not self.endless:
            return
        if self.last_at is not None:
            self.intervals.append(now - self.last_at)
        self.last_at = now
        steps = self.steps()
        if len(self.intervals) != max(20, 2 * self.workers * self.prefetch()) or not steps:
            return
        epoch = steps * sum(self.intervals) / len(self.intervals)
        share = self.startup / (self.startup + epoch)
        if share > NOTICEABLE:
            self._note(
                "workers",
                f"the loader starts its {self.workers} workers anew for each epoch, which takes {self.startup:.2f} s beside {epoch:.2f} s of an "
                f"epoch of {steps} batches ({100 * share:.0f} %): set persistent_workers=True. The measurements leave it out.",
            )

    def rest(self):
        """Stops the workers where they are: what they make ahead would take time from what is measured meanwhile."""
        if self.made is not None and self.failed is None:
            self.resting = True
            self._signal(signal.SIGSTOP)

    def wake(self):
        """Has workers that rest go on."""
        if self.resting:
            self.resting = False
            for worker in range(self.workers):
                self.control.renew(worker)
            self._signal(signal.SIGCONT)

    def _signal(self, number):
        for worker in range(self.workers):
            pid = self.control.status(worker)[3]
            if pid > 0:
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass

    def stop(self):
        """Ends the workers."""
        self.made = None

    def close(self):
        self.wake()
        self.stop()

    def broken(self, error):
        """Returns what is to be said of an exception that isn't the user's code's own."""
        stage, item, _, _ = self._longest()
        return failure(error, max(stage, 0), item)

    def _longest(self):
        """Returns the status of the worker that is at its stage for the longest time."""
        at_work = [s for s in map(self.control.status, range(max(self.workers, 1))) if s[0] >= 0]
        return min(at_work, key=lambda s: s[2]) if at_work else (-1, -1, 0, 0)

    def _death(self, status, who, stage, item):
        """Returns the failure of a process that has ended with a wait status."""
        if os.WIFSIGNALED(status):
            return died(who, -os.WTERMSIG(status), stage, item)
        return died(who, os.WEXITSTATUS(status), stage, item)


def with_the_only_batch(settings, items):
    """Returns settings that keep an epoch's short batch where there is no other."""
    return dict(settings, drop_last=settings["drop_last"] and items >= settings["batch"])


def died(who, code, stage, item):
    """Returns the failure of a process that has ended; code is its exit status, or the signal that killed it, below 0."""
    if code >= 0:
        message = f"{who} ended with exit status {code}"
    else:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        message = f"{who} was killed by {name}"
        if name == "SIGKILL":
            message += ": the system does that when memory runs out"
        elif name == "SIGBUS":
            message += ": that happens when /dev/shm is too small for the batches under way: make it larger (docker run --shm-size=1g), or lower prefetch or workers"
    return {"kind": "exit", "message": message, "stage": stage, "index": item}
