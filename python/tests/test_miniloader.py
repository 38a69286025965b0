import os
import random
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import numpy

from pipectl_python import lift
from pipectl_python.miniloader import MiniPool
from pipectl_python.control import Control

BATCH = 4
ZERO = (0, 0, 0, [], 0)


def noise(x):
    return x + random.random() + numpy.random.random()


class Data:
    def __init__(self, n=10, transform=noise):
        self.n, self.transform = n, transform

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.transform(numpy.full((30, 30), float(i))), i


class Stream:
    def __init__(self, n=10, transform=noise):
        self.n, self.transform = n, transform

    def __iter__(self):
        for i in range(self.n):
            yield self.transform(numpy.full(3, float(i))), i


def collate(samples):
    return numpy.stack([s[0] for s in samples]), [s[1] for s in samples]


class Loader(unittest.TestCase):
    def pool(self, workers, dataset=None, collate=collate, step=noise, skip=False, **over):
        dataset = Data() if dataset is None else dataset
        lift.lift(dataset, ["transform"])
        settings = dict(workers=workers, prefetch=0, batch=BATCH, drop_last=False, shuffle=None, seed=3)
        settings.update(over)
        pool = MiniPool(dataset, dataset, ["transform"], [("transform", step)], collate, [skip] * 3, Control(workers, 3), settings)
        self.addCleanup(pool.close)
        return pool

    def run_pool(self, pool, mode, n):
        pool.start(*mode)
        out = []
        for _ in range(n):
            reply, data = pool.next()
            self.assertNotIn("failure", reply)
            out.append((reply, data))
        return out

    def test_order(self):
        for workers in (0, 1, 2, 3):
            with self.subTest(workers):
                pool = self.pool(workers)
                self.assertEqual(pool.first(), {})
                self.assertEqual((pool.items(), pool.steps()), (10, 3))
                got = self.run_pool(pool, ZERO, 7)
                indices = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] * 3
                self.assertEqual([d[1] for _, d in got], indices[:7])
                self.assertEqual([(r["epoch"], r["last"], r["len"]) for r, _ in got], [(n // 3, n % 3 == 2, [4, 4, 2][n % 3]) for n in range(7)])
                again = self.run_pool(self.pool(workers), ZERO, 7)
                for (_, a), (_, b) in zip(got, again):
                    self.assertTrue(numpy.array_equal(a[0], b[0]))

    def test_workers_draw_their_own_numbers(self):
        got = self.run_pool(self.pool(2, Data(transform=noise)), ZERO, 2)
        self.assertFalse(numpy.array_equal(got[0][1][0] - [[[i]] for i in range(4)], got[1][1][0] - [[[i]] for i in range(4, 8)]))

    def test_shuffled_epochs(self):
        for workers in (0, 2):
            pool = self.pool(workers, shuffle=True, drop_last=True)
            pool.start(0, 0, 0, [], 2)
            seen = []
            while True:
                reply, data = pool.next()
                if "end" in reply:
                    break
                seen.append(data[1])
            self.assertEqual(len(seen), 4)
            self.assertNotEqual(seen[:2], seen[2:])
            self.assertEqual(len(set(sum(seen[:2], []))), 8)

    def test_streams(self):
        for workers in (0, 1, 2):
            pool = self.pool(workers, Stream())
            self.assertEqual(pool.first(), {})
            pool.start(0, 0, 0, [], 2)
            seen = []
            while "end" not in (made := pool.next())[0]:
                seen.append((made[0]["epoch"], made[1][1]))
            one = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
            self.assertEqual(seen, [(e, b) for e in range(2) for b in one for _ in range(max(workers, 1))])
            self.run_pool(self.pool(workers, Stream()), ZERO, 12)

    def test_probes(self):
        for workers in (0, 2):
            pool = self.pool(workers)
            filled = self.run_pool(pool, (0, 0, 4, [0, 1 << 20, 1 << 20], 0), 4)
            self.assertTrue(all(k > 0 for k in filled[-1][0]["kept"][1:]))
            for mode, items in (((0, 1), [0, 1, 1]), ((0, 2), [0, 0, 1]), ((1, 2), [1, 0, 1]), ((1, 3), [1, 0, 0])):
                for reply, _ in self.run_pool(pool, mode + (0, [], 0), 4):
                    self.assertEqual([i > 0 for i in reply["items"]], [i > 0 for i in items])

    def test_faults(self):
        def bad(x):
            if x[0, 0] == 5:
                raise ValueError("bad sample")
            return x

        def kill(x):
            if x[0, 0] == 5:
                os.kill(os.getpid(), signal.SIGKILL)
            return x

        for workers, step, message in ((0, bad, "bad sample"), (2, bad, "bad sample"), (2, kill, "was killed by SIGKILL")):
            pool = self.pool(workers, step=step)
            pool.start(*ZERO)
            for _ in range(2):
                reply, _ = pool.next()
            f = reply["failure"]
            self.assertIn(message, f["message"])
            self.assertEqual((f["stage"], f["index"]), (1, 5))
            pool.close()
            self.assertEqual(pool.running, [])
        reply, data = self.run_pool(self.pool(2, step=bad, skip=True), ZERO, 2)[1]
        self.assertEqual((data[1], len(reply["skipped"])), ([4, 6, 7], 1))
        pool = self.pool(1, collate=lambda samples: lambda: 1)
        pool.start(*ZERO)
        self.assertIn("can't be handed to another process", pool.next()[0]["failure"]["message"])
        self.assertIn("there are no batches", self.pool(1, Data(0)).first()["failure"]["message"])

    def test_batches_can_be_kept_and_written_to(self):
        pool = self.pool(2)
        got = self.run_pool(pool, ZERO, 6)
        arrays = [d[0] for _, d in got]
        sums = [a.sum() for a in arrays]
        self.run_pool(pool, (0, 0, 0, [], 1), 3)
        self.assertEqual(sums, [a.sum() for a in arrays])
        arrays[0] += 1

    def test_torch_is_not_imported(self):
        self.assertNotIn("torch", sys.modules)


if __name__ == "__main__":
    unittest.main()
