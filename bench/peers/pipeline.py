"""The loader of bench_torch.py that the environment names: MODE, WORKERS, DATA and SAMPLES."""

import os

import bench_torch

loader = bench_torch.loader(os.environ["MODE"], int(os.environ["WORKERS"]), os.environ["DATA"], int(os.environ["SAMPLES"]))
