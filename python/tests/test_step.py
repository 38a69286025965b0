import os
import sys
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import torch

from pipectl_python import main, step


class Event:
    """An event of a device on which a step takes 25 ms, and which is done with it only when it is waited for."""

    clock = 0.0

    def __init__(self, enable_timing):
        assert enable_timing
        self.at, self.done = None, False

    def record(self):
        self.at = Event.clock

    def synchronize(self):
        assert self.at is not None
        self.done = True

    def elapsed_time(self, end):
        assert end.done
        return end.at - self.at


class Cuda:
    """torch.cuda as far as step.py needs it."""

    Event = Event

    def __init__(self):
        self.initialized, self.synchronized = False, 0

    def is_initialized(self):
        return self.initialized

    def get_device_name(self):
        return "Emulated 1"

    def synchronize(self):
        self.synchronized += 1


class Steps(unittest.TestCase):
    def setUp(self):
        self.cuda = Cuda()
        self.addCleanup(mock.patch.object(torch, "cuda", self.cuda).stop)
        mock.patch.object(torch, "cuda", self.cuda).start()
        self.state = types.SimpleNamespace(objects={}, arena=bytearray(4096), batches={7: "a batch"}, pythonpath=[], python="python3")
        self.batches = []
        module = types.ModuleType("user")
        module.step = self.train
        self.addCleanup(sys.modules.pop, "user")
        sys.modules["user"] = module
        step.open_step(self.state, {"ref": "user:step", "args": None})

    def train(self, batch):
        self.batches.append(batch)
        if self.on_cuda:
            self.cuda.initialized = True
            Event.clock += 25

    def test_on_the_cpu(self):
        self.on_cuda = False
        reply = step.run(self.state, {"batch": 7})
        self.assertGreater(reply.pop("took"), 0)
        self.assertEqual((reply, self.batches, self.cuda.synchronized), ({"timed": "cpu"}, ["a batch"], 0))

    def test_on_cuda(self):
        self.on_cuda = True
        first = step.run(self.state, {"batch": 7})  # it is what uses CUDA first
        self.assertEqual((first["timed"], self.cuda.synchronized), ("cpu", 1))
        replies = [step.run(self.state, {"batch": 7}) for _ in range(2)]
        self.assertEqual(replies, [{"event": 1, "timed": "cuda Emulated 1"}, {"event": 2, "timed": "cuda Emulated 1"}])
        self.assertEqual([step.wait(self.state, {"event": e}) for e in (1, 2)], [{"took": 0.025}, {"took": 0.025}])
        self.assertEqual(self.state.step.events, {})

    def test_failing(self):
        self.on_cuda = False
        reply = main.reply_to(self.state, {"op": "step.run", "batch": 8})
        self.assertEqual(reply["error"]["type"], "KeyError")


if __name__ == "__main__":
    unittest.main()
