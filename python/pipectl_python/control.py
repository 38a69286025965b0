"""The words that a pool's processes and pipectl share: what the workers are to do, and where each of them is."""

import mmap
import os
import time

clock = time.perf_counter_ns  # CLOCK_MONOTONIC, which all processes share


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
        self.words[10 + 8 * worker] = clock()

    def vacate(self, worker):
        """Sets the status of a worker that there isn't."""
        at = 8 + 8 * worker
        self.words[at], self.words[at + 1], self.words[at + 3] = -1, -1, 0

    def status(self, worker):
        """Returns a worker's stage, item, since when, and process id."""
        return tuple(self.words[8 + 8 * worker : 12 + 8 * worker])
