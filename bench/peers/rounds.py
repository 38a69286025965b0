"""Times rounds of a loader of bench_torch.py in steady state, one for each line of standard input.

usage: rounds.py MODE WORKERS DATA BATCHES

A round is an epoch: its first and last batches, while the workers fill and empty their queues, aren't timed. Prints samples/s."""

import sys
import time

import bench_torch

mode, workers, data, batches = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
around = 2 * max(workers, 1)
loader = bench_torch.loader(mode, workers, data, (batches + 2 * around) * bench_torch.BATCH)
for _ in sys.stdin:
    for n, batch in enumerate(loader):
        if n == around - 1:
            start = time.perf_counter()
        if n == around - 1 + batches:
            took = time.perf_counter() - start
    print(batches * bench_torch.BATCH / took, flush=True)
