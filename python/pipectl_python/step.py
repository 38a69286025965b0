"""The user's training step, in the main process."""

import sys
import time

from . import refs, serve, values
from .main import ARENA


class Step:
    """A training step, and the memory that its batches are read from."""

    def __init__(self, state, request):
        self.callable = refs.find(state, "step", request["ref"], request["args"])
        self.collate = refs.collate_of(state, {})
        self.reader = values.Reader(ARENA, state.arena)
        self.events = {}  # (start, end) of steps that weren't waited for
        self.count = 0


def open_step(state, request):
    """Makes the step, in place of the one before."""
    state.step = Step(state, request)
    return {}


def run(state, request):
    """Does one step. Returns the seconds that it took or, where it may go on after the callable has returned, the number of the event
    that it ends with; and what it was timed by."""
    step = state.step
    try:
        batch = batch_of(state, step, request)
        cuda = cuda_in_use()
        if cuda is not None:
            start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
            start.record()
            step.callable(batch)
            end.record()
            step.count += 1
            step.events[step.count] = (start, end)
            return {"event": step.count, "timed": "cuda " + cuda.get_device_name()}
        began = time.perf_counter()
        step.callable(batch)
        cuda = cuda_in_use()
        if cuda is not None:  # since this step, which has no event to begin with
            cuda.synchronize()
        return {"took": time.perf_counter() - began, "timed": "cpu"}
    finally:
        batch = None
        step.reader.done()


def wait(state, request):
    """Waits for the event that a step ends with, and returns the seconds that the step took on the device."""
    start, end = state.step.events.pop(request["event"])
    end.synchronize()
    return {"took": start.elapsed_time(end) / 1000}


def cuda_in_use():
    """Returns torch.cuda if the user's code has used it."""
    torch = values.loaded("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def batch_of(state, step, request):
    """Returns the batch of a request: one that a pool in this process has made, an object, or what pipectl's own stages made."""
    if "batch" in request:
        return state.batches[request["batch"]]
    if "object" in request:
        return values.load(step.reader.read(*request["object"]))[0]
    if "objects" in request:
        samples = [(values.load(step.reader.read(offset, length)), label) for label, offset, length in request["objects"]]
        return step.collate([serve.sample_of(sample, whole, label) for (sample, whole), label in samples])
    data = [numbers(step.reader.read(offset, length), DTYPES[kind], shape) for kind, shape, offset, length in request["data"]]
    labels = numbers(step.reader.read(*request["labels"]), "int64", [request["len"]])
    return data[0] if request["dense"] else data, labels


DTYPES = {values.ENCODED: "uint8", values.IMAGE: "uint8", values.TENSOR: "float32", values.TOKENS: "int32", values.OPAQUE: "uint8"}


def numbers(view, dtype, shape):
    """Returns numbers as torch has them, if the user's code has loaded that, else numpy, else as a memoryview."""
    torch, numpy = values.loaded("torch"), sys.modules.get("numpy")
    if torch is not None:
        return values.flat_tensor(torch, view, getattr(torch, dtype)).view(shape) if view.nbytes else torch.empty(shape, dtype=getattr(torch, dtype))
    if numpy is not None:
        return numpy.frombuffer(view, dtype).reshape(shape)
    return view.cast({"uint8": "B", "float32": "f", "int32": "i", "int64": "q"}[dtype], shape)
