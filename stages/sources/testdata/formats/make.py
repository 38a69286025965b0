"""Makes the files that the tests of the formats read. Made with Python 3.11 and numpy 1.24.2: /usr/bin/python3 make.py"""

import csv
import os
import struct

import numpy as np

here = os.path.dirname(os.path.abspath(__file__))


def file(name):
    return os.path.join(here, name)


# CIFAR: image k's value at (y, x, channel) is (7y + 13x + 101c + 50k) mod 256.
y, x, c = np.meshgrid(np.arange(32), np.arange(32), np.arange(3), indexing="ij")
images = [((7 * y + 13 * x + 101 * c + 50 * k) % 256).astype(np.uint8) for k in range(2)]
with open(file("cifar10.bin"), "wb") as f:
    for k, image in enumerate(images):
        f.write(bytes([3 + k]) + image.transpose(2, 0, 1).tobytes())
with open(file("cifar100.bin"), "wb") as f:
    for k, image in enumerate(images):
        f.write(bytes([11 + k, 70 + k]) + image.transpose(2, 0, 1).tobytes())

# npy: values count up from 0 in C order.
def save(name, shape, dtype, version=(1, 0), fortran=False, **kwargs):
    a = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if fortran:
        a = np.asfortranarray(a)
    with open(file(name), "wb") as f:
        np.lib.format.write_array(f, a, version=version, **kwargs)


save("vectors.npy", (3, 4), "<f4")
save("planes.npy", (2, 2, 3), "<f4", version=(2, 0))
save("tensors.npy", (2, 3, 2, 2), "<f4", version=(3, 0))
save("images.npy", (2, 2, 2, 3), "u1")
save("grey.npy", (2, 2, 2), "u1")
save("int64.npy", (3, 2), "<i8")
save("int32.npy", (3, 2), "<i4")
save("uint16.npy", (3, 2), "<u2")
save("labels.npy", (3,), "<i8")
save("big.npy", (2, 2), ">f4")
save("double.npy", (2, 2), "<f8")
save("fortran.npy", (2, 3), "<f4", fortran=True)
save("object.npy", (2,), "O", allow_pickle=True)
np.save(file("record.npy"), np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
np.savez(file("archive.npz"), a=np.zeros(2))

# csv: as Python's csv module writes it, which ends lines in CRLF and quotes commas, quotes and line ends.
with open(file("python.csv"), "w", newline="", encoding="utf-8-sig") as f:
    w = csv.writer(f)
    w.writerow(["id", "file", "class"])
    for i, name in enumerate(['a,b.txt', 'say "x".txt', 'two\nlines.txt', 'né.txt']):
        w.writerow([i, name, "dog" if i % 2 else "cat"])
