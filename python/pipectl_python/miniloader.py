"""A pool for code without torch: workers forked from the main process make batches in turn, and hand them over in memory that
nobody else sees."""

import collections
import itertools
import marshal
import mmap
import multiprocessing
import os
import random
import signal
import sys
import time
from multiprocessing import reduction

from . import refs, values
from .main import Fault, class_name
from .pool import Pool, died, with_the_only_batch
from .poolwork import FAILED, FILLER, Failed, Stream, die_with_parent, failure

PREFETCH = 2  # batches a worker


class MiniPool(Pool):
    """A pool for a dataset, which is asked for its items in order, or in one drawn from the seed."""

    uses_shm = False

    def __init__(self, source, dataset, parts, calls, collate, skip, control, settings):
        if source is not dataset:
            raise Fault("attribute", f"a {class_name(source)} can't be run without torch, which the code hasn't imported: name the data set in its place")
        self.iterable = refs.describe_data(dataset)["iterable"]
        if not self.iterable:
            settings = with_the_only_batch(settings, len(dataset))
        super().__init__(dataset, parts, calls, collate or refs.collate_of(None, {}), skip, control, settings)
        self.running = []  # (process id, connection) of the workers

    def prefetch(self):
        """Returns how many batches are under way a worker."""
        return self.settings["prefetch"] or PREFETCH

    def items(self):
        """Returns the samples of an epoch, 0 where that is unknown."""
        return len(self.dataset) if hasattr(type(self.dataset), "__len__") else 0

    def steps(self):
        """Returns the batches of an epoch, 0 where that is unknown."""
        batch = self.settings["batch"]
        return self.items() // batch if self.settings["drop_last"] else -(-self.items() // batch)

    def sample(self):
        """Returns some of the first batch: indices, how many times as large the whole is, a Stream."""
        batch = self.settings["batch"]
        some = range(min(2, batch))
        if self.iterable:
            return some, batch / len(some), Stream(self.dataset, self.parts)
        if self.steps() == 0:
            raise Fault("result", "there are no batches: the dataset is empty")
        some = range(min(2, batch, len(self.dataset)))
        return list(some), batch / len(some), None

    def seed(self):
        """Seeds the generators as they are before the first batch."""
        seed_all(self.settings["seed"])

    def become_worker(self):
        """Does nothing: no code asks."""

    def begin(self, epochs):
        """Starts the workers and returns an iterator of what they make: endless, or of so many epochs."""
        self.seed()
        base = random.getrandbits(62)
        for number in range(self.workers):
            near, far = multiprocessing.Pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    near.close()
                    self._serve(number, base + number, far)
                finally:
                    os._exit(1)
            far.close()
            self.running.append((pid, near))
        source = _Source(self.work, self.settings)
        return self._streamed(source, epochs) if self.iterable else self._mapped(source, epochs)

    def _serve(self, number, seed, connection):
        """Does a worker's work."""
        die_with_parent()
        self.work.begin(number)
        seed_all(seed)
        source = _Source(self.work, self.settings)
        while True:
            try:
                task = connection.recv()
            except EOFError:
                os._exit(0)
            account, data = source.make(task)
            if data is None:
                connection.send_bytes(b"0" + account)
                continue
            try:
                dumped = values.Dumped(data)
            except Fault as e:
                account = list(marshal.loads(account))
                account[0], account[-1] = FAILED, failure(e, self.stages - 1, -1)
                connection.send_bytes(b"0" + marshal.dumps(tuple(account)))
                continue
            fd = os.memfd_create("batch", os.MFD_CLOEXEC)
            os.ftruncate(fd, dumped.size)
            with mmap.mmap(fd, dumped.size) as shared:
                view = memoryview(shared)
                dumped.write(view)
                view.release()
            connection.send_bytes(b"1" + account)
            reduction.send_handle(connection, fd, None)
            os.close(fd)

    def _mapped(self, source, epochs):
        tasks = self._tasks(epochs)
        if not self.workers:
            for task in tasks:
                yield source.make(task)
            return
        turns = itertools.cycle(range(self.workers))
        under_way = collections.deque()
        for task in itertools.islice(tasks, self.workers * self.prefetch()):
            under_way.append(self._give(next(turns), task))
        while under_way:
            made = self._receive(under_way.popleft())
            for task in itertools.islice(tasks, 1):
                under_way.append(self._give(next(turns), task))
            yield made

    def _tasks(self, epochs):
        """Yields (epoch, whether it is the epoch's last batch, indices)."""
        batch, steps = self.settings["batch"], self.steps()
        for epoch in range(epochs) if epochs else itertools.count():
            order = list(range(len(self.dataset)))
            if self.settings["shuffle"]:
                random.shuffle(order)
            for n in range(steps):
                yield epoch, n == steps - 1, order[n * batch : (n + 1) * batch]

    def _streamed(self, source, epochs):
        """Has each worker iterate over the dataset: an epoch ends when all have."""
        for epoch in range(epochs) if epochs else itertools.count():
            task, some = (epoch, False, None), False
            under_way = collections.deque()
            for worker in list(range(self.workers)) * self.prefetch():
                under_way.append(self._give(worker, task))
            left = set(range(self.workers))
            while left if self.workers else True:
                if self.workers:
                    worker = under_way.popleft()
                    account, data = self._receive(worker)
                else:
                    worker, (account, data) = 0, source.make(task)
                if marshal.loads(account)[0] == FILLER:
                    left.discard(worker)
                    if not self.workers:
                        break
                    continue
                some = True
                if worker in left:
                    under_way.append(self._give(worker, task))
                yield account, data
            for worker in under_way:
                self._receive(worker)
            if not some:
                raise Failed(self.nothing())

    def _give(self, worker, task):
        self.running[worker][1].send(task)
        return worker

    def _receive(self, worker):
        """Returns the next that a worker has made."""
        pid, connection = self.running[worker]
        try:
            message = connection.recv_bytes()
            fd = reduction.recv_handle(connection) if message[:1] == b"1" else None
        except (EOFError, OSError):
            _, status = os.waitpid(pid, 0)
            self.running[worker] = None, connection
            stage, item, _, _ = self.control.status(worker)
            if stage < 0:  # it was handing over a batch
                stage, item = self.stages - 1, -1
            raise Failed(died(f"worker {worker} (process {pid})", -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), stage, item)) from None
        if fd is None:
            return message[1:], None
        try:
            shared = mmap.mmap(fd, os.fstat(fd).st_size)
        finally:
            os.close(fd)
        return message[1:], values.load(memoryview(shared))[0]

    def stop(self):
        """Ends the workers."""
        self.made = None
        for _, connection in self.running:
            connection.close()
        deadline = time.monotonic() + 1
        for pid, _ in self.running:
            if pid is None:
                continue
            while os.waitpid(pid, os.WNOHANG)[0] == 0:
                if time.monotonic() > deadline:
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.001)
        self.running = []


class _Source:
    """Makes what a task asks for."""

    def __init__(self, work, settings):
        self.work, self.batch, self.drop_last = work, settings["batch"], settings["drop_last"]
        self.epoch, self.stream = None, None

    def make(self, task):
        """Returns an account and a batch: of indices or, where there are none, of the epoch's stream."""
        epoch, last, indices = task
        if indices is not None:
            return self.work.batch(indices, epoch, last)
        if epoch != self.epoch:
            self.epoch, self.stream = epoch, Stream(self.work.dataset, self.work.parts)
        if self.stream is not None:
            try:
                return self.work.batch(range(self.batch), epoch, False, self.stream, self.drop_last)
            except StopIteration:
                self.stream = None
        return self.work.filler()


def seed_all(seed):
    """Seeds the generators that are loaded."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
