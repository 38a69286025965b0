"""Stage processes: each is forked from the main process, and does one stage's work for one of pipectl's workers.

A request is `C`, what to do, where the result may go in the arena, and what it is about. The answer is `C`, whether the result is there
or needs more room, and what it is; or an error, as the main process gives it.
"""

import ctypes
import os
import random
import signal
import socket
import struct
import sys
import traceback

from . import lift, refs, values
from .main import ARENA, Connection, Fault, describe, flush

# After `C` and the letter: offset and room in the arena; a seed, and whether to take it.
HEAD = struct.Struct("<2sqqQB")
INDEX = struct.Struct("<q")
COUNT = struct.Struct("<I")
# An element: kind, shape, label, offset and length.
ENTRY = struct.Struct("<B3xiiiiqq")
# Status, kind, shape, label and length.
ANSWER = struct.Struct("<cBB2xiiiiq")
DONE, MORE = 0, 1


def fork(state, request):
    """Forks a stage process. The request came with its socket and with the pipe that it prints to."""
    control, printed = state.control.files
    state.control.files = []
    flush()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            become_stage(state, request, parent, control, printed)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(control)
    os.close(printed)
    state.children.add(pid)
    return {"pid": pid}


def become_stage(state, request, parent, control, printed):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it ends with its parent
    if os.getppid() != parent:
        os._exit(1)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    os.close(printed)
    state.control.sock.close()
    state.children.clear()
    sock = socket.socket(fileno=control)
    sock.settimeout(None)  # the user's code may have called setdefaulttimeout
    connection = Connection(sock)
    torch = values.loaded("torch")
    if torch is not None:
        torch.set_num_threads(1)  # as in a DataLoader's workers
    try:
        stage = STAGES[request["stage"]](state, request)
    except BaseException as e:
        connection.answer({"error": describe(e)})
        os._exit(0)
    connection.answer({"ok": {}})
    serve(connection, stage)


def serve(connection, stage):
    """Answers requests until the socket is closed."""
    while True:
        body = connection.receive()
        if body is None:
            os._exit(0)
        try:
            answer = stage.answer(body)
        except BaseException as e:
            stage.drop()
            answer = None
            connection.answer({"error": describe(e)})
        if answer is not None:
            connection.send(answer)


class Stage:
    """What a stage process does."""

    def __init__(self, state, request):
        self.arena = memoryview(state.arena)
        self.reader = values.Reader(ARENA, state.arena)
        self.kind, self.shape = request["kind"], request["shape"]
        self.pending = None  # a result that waits for room, and its label

    def answer(self, body):
        letters, offset, room, seed, seeded = HEAD.unpack_from(body)
        if letters != b"CW":
            if seeded:
                seed_all(seed)
            self.pending = self.make(body, HEAD.size)
        result, label = self.pending
        if result.size > room:
            return ANSWER.pack(b"C", MORE, 0, 0, 0, 0, 0, result.size)
        result.write(self.arena[offset : offset + result.size])
        answer = ANSWER.pack(b"C", DONE, result.kind, *result.shape, label, result.size)
        del result
        self.drop()
        return answer

    def drop(self):
        """Ends a call."""
        self.pending = None
        self.reader.done()

    def element(self, body, at):
        """Returns the sample that an entry of a request is about, and whether it has its label in it."""
        kind, h, w, c, label, offset, length = ENTRY.unpack_from(body, at)
        sample, whole = values.read_element(self.reader, kind, (h, w, c), offset, length, self.form)
        return sample, whole, label

    form = "array"


class Load(Stage):
    """Reads a data set's items."""

    def __init__(self, state, request):
        super().__init__(state, request)
        data = refs.find(state, request["role"], request["ref"], request["args"])
        self.data = data.dataset if request["role"] == "loader" else data
        self.lifted = bool(request["lift"])
        if self.lifted:
            lifting(lift.lift, self.data, request["lift"])

    def make(self, body, at):
        (index,) = INDEX.unpack_from(body, at)
        sample = lifting(lift.fetch, self.data, index) if self.lifted else self.data[index]
        whole = sample.value if self.lifted else sample
        label = label_of(whole)
        if self.kind != values.OBJECT and label is not None:
            sample = sample[0]
        return values.element(sample, self.kind, self.shape), label or 0


class Transform(Stage):
    """Calls a callable on each sample."""

    def __init__(self, state, request):
        super().__init__(state, request)
        self.callable = refs.find(state, request["role"], request["ref"], request["args"])
        self.part, self.form = request["part"], request["form"]

    def make(self, body, at):
        sample, whole, _ = self.element(body, at)
        if isinstance(sample, lift.Sample):
            sample = lifting(lift.apply, sample, self.part, self.callable)
            if self.kind != values.OBJECT:
                sample = lift.finish(sample)
        else:
            sample = self.callable(sample)
        if self.kind != values.OBJECT and whole and label_of(sample) is not None:
            sample = sample[0]
        return values.element(sample, self.kind, self.shape, whole), 0


class Collate(Stage):
    """Makes batches of samples."""

    def __init__(self, state, request):
        super().__init__(state, request)
        self.collate = refs.collate_of(state, request)

    def make(self, body, at):
        (n,) = COUNT.unpack_from(body, at)
        samples = [sample_of(*self.element(body, at + COUNT.size + i * ENTRY.size)) for i in range(n)]
        return values.element(self.collate(samples), values.OBJECT, []), 0


STAGES = {"load": Load, "transform": Transform, "collate": Collate}


def sample_of(sample, whole, label):
    """Returns a sample as the user's code takes it: one of pipectl's own stages with its label."""
    if isinstance(sample, lift.Sample):
        return lift.finish(sample)
    return sample if whole else (sample, label)


def label_of(sample):
    """Returns the label of a sample, if it is a pair of something and a whole number; None otherwise."""
    if not isinstance(sample, (tuple, list)) or len(sample) != 2:
        return None
    label = sample[1]
    if type(label) is lift.Hole:
        return None
    if getattr(label, "shape", None) == () and hasattr(label, "item"):  # of numpy or torch
        label = label.item()
    if isinstance(label, int) and not isinstance(label, bool) and -(1 << 31) <= label < 1 << 31:
        return label
    return None


def lifting(function, *args):
    """Calls a function of lift.py for a file that lifts what can't be lifted."""
    try:
        return function(*args)
    except lift.NotLiftable as e:
        raise Fault("lift", f"{e}: take it out of lift, and its stages out of the pipeline") from None


def seed_all(seed):
    """Seeds the random number generators that the user's code may draw from."""
    random.seed(seed)
    numpy, torch = sys.modules.get("numpy.random"), values.loaded("torch")
    if numpy is not None:
        numpy.seed(seed % 2**32)
    if torch is not None:
        torch.default_generator.manual_seed(seed)
