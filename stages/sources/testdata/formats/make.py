"""Makes the files that the tests of the formats read. Made with Python 3.11 and numpy 1.24.2: /usr/bin/python3 make.py"""

import csv
import json
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
save("complex.npy", (2, 2), "<c8")
save("fortran.npy", (2, 3), "<f4", fortran=True)
save("object.npy", (2,), "O", allow_pickle=True)
np.save(file("record.npy"), np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
# Numbers of every type, whose extremes come first and last, and what astype makes of them.
numbers = {}
for order in "<>":
    for kind in ["f2", "f4", "f8"]:
        info = np.finfo(kind)
        with np.errstate(over="ignore"):
            a = np.array([[info.max, info.min, info.tiny], [info.smallest_subnormal, -0.0, 1 / 3], [np.inf, -np.inf, 0.1]])
        numbers[order + kind] = a.astype(order + kind)
    for kind in ["i1", "i2", "i4", "u2", "u4", "i8", "u8"]:
        info = np.iinfo("i4" if np.dtype(kind).itemsize >= 4 else kind)
        low = 0 if kind[0] == "u" else info.min
        numbers[order + kind] = np.array([[info.max, low], [1, 258 % (info.max + 1)]]).astype(order + kind)
numbers["b1"] = np.array([[True, False], [False, True]])
np.savez(file("numbers.npz"), **{name.replace("<", "little_").replace(">", "big_"): a for name, a in numbers.items()})
np.savez_compressed(file("packed.npz"), **{name.replace("<", "little_").replace(">", "big_"): a for name, a in numbers.items()}, labels=np.array([2, 0, 1], "u1"))
with open(file("numbers.json"), "w") as f, np.errstate(over="ignore"):
    json.dump({name.replace("<", "little_").replace(">", "big_"): (a.astype("f4").view("u4") if a.dtype.kind == "f" else a.astype("i4")).tolist() for name, a in numbers.items()}, f)

np.savez(file("archive.npz"), a=np.arange(4, dtype="<f4").reshape(2, 2))

# csv: as Python's csv module writes it, which ends lines in CRLF and quotes commas, quotes and line ends.
with open(file("python.csv"), "w", newline="", encoding="utf-8-sig") as f:
    w = csv.writer(f)
    w.writerow(["id", "file", "class"])
    for i, name in enumerate(['a,b.txt', 'say "x".txt', 'two\nlines.txt', 'né.txt']):
        w.writerow([i, name, "dog" if i % 2 else "cat"])
