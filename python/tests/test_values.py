import mmap
import os
import pickle
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy as np
import torch
from PIL import Image

from pipectl_python import values
from pipectl_python.main import Fault

SIZE = 64 << 20


class Arena(unittest.TestCase):
    def setUp(self):
        self.fd = os.memfd_create("test")
        os.ftruncate(self.fd, SIZE)
        self.arena = mmap.mmap(self.fd, SIZE)
        self.memory = memoryview(self.arena)
        self.reader = values.Reader(self.fd, self.arena)

    def tearDown(self):
        os.close(self.fd)

    def put(self, value, offset=0):
        dumped = values.Dumped(value)
        dumped.write(self.memory[offset : offset + dumped.size])
        return offset, dumped.size

    def through(self, value):
        got, whole = values.load(self.reader.read(*self.put(value)))
        self.assertTrue(whole)
        return got


class Objects(Arena):
    def test_arrays(self):
        base = np.arange(24).reshape(2, 3, 4)
        for a in (
            np.float32([1.5, 2]), base.astype(">i4"), base.transpose(2, 0, 1), np.asfortranarray(base), base[:, ::2], base[::-1], np.array(3),
            np.zeros((0, 3)), np.array(["a", "bc"]), np.array([None, 1], object), np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
            np.array(["2020-01-01"], "datetime64[D]"), np.broadcast_to(np.arange(3), (2, 3)), np.bool_([True, False]),
        ):
            got = self.through({"a": [a]})["a"][0]
            self.assertEqual((got.dtype, got.shape), (a.dtype, a.shape))
            np.testing.assert_array_equal(got, a)
            self.assertTrue(got.flags.writeable)

    def test_strides(self):
        t = torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1)
        self.assertEqual(self.through(t).stride(), t.stride())
        nhwc = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        self.assertTrue(self.through(nhwc).is_contiguous(memory_format=torch.channels_last))

    def test_tensors(self):
        for t in (
            torch.ones(2, 3), torch.arange(4, dtype=torch.int64), torch.tensor(2), torch.ones(3, dtype=torch.bfloat16), torch.zeros(0, 2),
            torch.tensor([True]), torch.ones(2, 3).expand(4, 2, 3), torch.arange(10)[::3], torch.tensor([1 + 2j]),
            torch.eye(3).to_sparse(), torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8),
        ):
            got = self.through((t,))[0]
            self.assertEqual((got.dtype, got.shape, got.layout), (t.dtype, t.shape, t.layout))
            self.assertTrue(torch.equal(got.to_dense() if got.is_sparse else got, t.to_dense() if t.is_sparse else t))
        self.assertTrue(self.through(torch.ones(2, requires_grad=True)).requires_grad)

    def test_images(self):
        for mode in ("RGB", "L", "RGBA", "1", "P", "I", "F", "CMYK", "I;16"):
            i = Image.new(mode, (5, 3), 1 if mode in ("1", "L", "P", "I", "F", "I;16") else tuple(range(len(mode))))
            i.info["dpi"] = (72, 72)
            got = self.through([i])[0]
            self.assertEqual((got.mode, got.size, got.tobytes(), got.info), (i.mode, i.size, i.tobytes(), i.info))

    def test_the_same_object_stays_one(self):
        a = np.ones(3)
        got = self.through([a, a])
        self.assertIs(got[0], got[1])

    def test_buffers_of_other_classes(self):
        class Sub(np.ndarray):
            pass

        globals()["Sub"] = Sub
        Sub.__qualname__ = "Sub"
        got = self.through([np.ones(3), pickle.PickleBuffer(bytearray(b"abc")), np.ones(2).view(Sub), b"", bytearray(b"x")])
        self.assertEqual([type(g) for g in got], [np.ndarray, bytearray if isinstance(got[1], bytearray) else memoryview, Sub, bytes, bytearray])
        self.assertEqual([bytes(got[1]), got[2].tolist()], [b"abc", [1, 1]])

    def test_what_cannot_be_pickled(self):
        with self.assertRaisesRegex(Fault, "a tuple of a function, None can't be handed to another process"):
            values.Dumped((lambda: 0, None))


class Places(Arena):
    """What is read belongs to who reads it."""

    def test_writing(self):
        a = np.zeros(1 << 20, np.uint8)
        at = self.put(a)
        for _ in range(2):
            got = values.load(self.reader.read(*at))[0]
            self.assertEqual(got.sum(), 0)
            got += 1
            del got
            self.reader.done()

    def test_keeping(self):
        for n in (100, 1 << 20):
            kept = []
            for i in range(3):
                kept.append(values.load(self.reader.read(*self.put(np.full(n, i, np.uint8))))[0])
                self.reader.done()
            self.assertEqual([(k.min(), k.max()) for k in kept], [(0, 0), (1, 1), (2, 2)])

    def test_keeping_tensors(self):
        kept = []
        for i in range(3):
            kept.append(values.load(self.reader.read(*self.put({"x": torch.full((1 << 18,), float(i))})))[0])
            self.reader.done()
        self.assertEqual([float(k["x"].max()) for k in kept], [0, 1, 2])

    def test_mappings_are_used_again(self):
        a = np.zeros(1 << 20, np.uint8)
        for i in range(3):
            got = values.load(self.reader.read(*self.put(a + i)))[0]
            self.assertEqual(got.max(), i)
            del got
            self.reader.done()
        self.assertEqual(len(self.reader.maps), 1)
        got = values.load(self.reader.read(*self.put(np.zeros(2 << 20, np.uint8))))[0]  # it has grown
        self.assertEqual(len(got), 2 << 20)

    def test_without_the_kernels_account(self):
        self.reader.pages = os.open(os.devnull, os.O_RDONLY)
        self.test_writing()


class Elements(Arena):
    def test_sizes_and_shapes(self):
        for value, kind, shape, want in (
            (np.zeros((2, 3, 4), np.float32), values.TENSOR, [2, 3, 4], (2, 3, 4)),
            (np.zeros((3, 4), np.float32), values.TENSOR, [3, 4], (1, 3, 4)),
            (torch.zeros(4), values.TENSOR, [], (1, 1, 4)),
            (torch.zeros(3, 4, 5, dtype=torch.uint8), values.IMAGE, [4, 5], (4, 5, 3)),
            (Image.new("RGB", (5, 4)), values.IMAGE, [4, 5, 3], (4, 5, 3)),
            (torch.zeros(7, dtype=torch.int32), values.TOKENS, [7], (7, 0, 0)),
            (np.zeros(6, np.uint8), values.ENCODED, [], (6, 0, 0)),
            (memoryview(b"abc"), values.ENCODED, [], (3, 0, 0)),
        ):
            piece = values.element(value, kind, shape)
            self.assertEqual(piece.shape, want)
            piece.write(self.memory[: piece.size])

    def test_refused(self):
        for value, kind, shape, want in (
            (np.zeros((1, 2, 3, 4), np.float32), values.TENSOR, [], 'gave float32 (1, 2, 3, 4) where output = "tensor" needs float32, of one to three dimensions'),
            (torch.zeros(3, dtype=torch.float64), values.TENSOR, [], 'gave float64 (3,) where output = "tensor" needs float32'),
            ((torch.zeros(3), "x"), values.TENSOR, [], 'gave a tuple of float32 (3,), a str where output = "tensor" needs float32'),
            (np.zeros((4, 5), np.uint8), values.IMAGE, [], 'gave uint8 (4, 5) where output = "image" needs a PIL image of mode RGB, or uint8 (H, W, 3)'),
            (Image.new("RGB", (5, 4)), values.IMAGE, [5, 4], "gave a PIL image of mode RGB where shape = [5, 4]"),
            (np.zeros((2, 2), np.uint8), values.ENCODED, [], 'gave uint8 (2, 2) where output = "encoded" needs bytes'),
        ):
            with self.assertRaises(Fault) as raised:
                values.element(value, kind, shape)
            self.assertEqual(str(raised.exception), want)


if __name__ == "__main__":
    unittest.main()
