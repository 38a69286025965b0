#!/usr/bin/env python3
"""Makes the golden files of the augmentations with torchvision, Pillow and scikit-learn.

They were made with torchvision 0.14.1, torch 1.13.0, Pillow 9.4.0 and scikit-learn 1.2.1 (Debian 12: python3-torchvision,
python3-torch, python3-pil, python3-sklearn). The image is one of those that make_goldens.py makes. The cases here are those of
the tables in the tests.
"""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.preprocessing import StandardScaler
from torchvision.transforms import InterpolationMode, RandAugment, TrivialAugmentWide
from torchvision.transforms import functional as F
from torchvision.transforms.autoaugment import _apply_op

FOLDER = Path(__file__).resolve().parent / "torchvision"


def save(image, name):
    image.save(FOLDER / f"{name}.png", optimize=True)


small = Image.open(FOLDER / "resize_bilinear_24x32.png")
odd = F.crop(small, 0, 0, 23, 32)
colour = [10, 200, 90]

for name, image, angle, mode, expand, center in [
    ("nearest", small, 30, "nearest", False, None),
    ("bilinear", small, -17.3, "bilinear", False, None),
    ("bicubic", small, 133, "bicubic", False, None),
    ("expand", small, 45, "bilinear", True, None),
    ("center", small, 400, "nearest", False, [10.25, 7]),
    ("half_turn", small, 180, "bilinear", False, [10.25, 7]),
    ("quarter", odd, -270, "nearest", True, None),
    ("far_center", odd, 12, "bicubic", True, [-3, 40]),
]:
    save(F.rotate(image, angle, InterpolationMode(mode), expand, center, colour), f"rotation_{name}")

for name, magnitude, mode in [
    ("ShearX", 0.561, "nearest"),
    ("ShearX", -0.297, "bilinear"),
    ("ShearY", -0.561, "nearest"),
    ("ShearY", 0.297, "bicubic"),
    ("TranslateX", 5.9, "nearest"),
    ("TranslateX", -40.0, "nearest"),
    ("TranslateY", -5.9, "bilinear"),
    ("Rotate", 27.0, "bilinear"),
    ("Brightness", 0.5, "nearest"),
    ("Color", -0.7, "nearest"),
    ("Contrast", 0.8, "nearest"),
    ("Sharpness", 0.99, "nearest"),
    ("Sharpness", -0.9, "nearest"),
    ("Posterize", 3.0, "nearest"),
    ("Solarize", 127.5, "nearest"),
    ("AutoContrast", 0.0, "nearest"),
    ("Equalize", 0.0, "nearest"),
]:
    save(_apply_op(small, name, magnitude, InterpolationMode(mode), colour), f"augment_{name}_{magnitude:g}")

# A channel of one value, one of two and one of sixteen. Then one whose values would go beyond 255.
flat = np.zeros((4, 4, 3), np.uint8)
flat[..., 0], flat[..., 1] = 90, [[20], [20], [60], [60]]
flat[..., 2].flat = range(16)
flat = Image.fromarray(flat)
save(flat, "flat")
save(F.autocontrast(flat), "autocontrast_flat")
save(F.equalize(F.resize(small, [22, 23])), "equalize_22x23")

with open(FOLDER / "magnitudes.txt", "w") as lines:
    for bins in 2, 11, 31:
        for name, space in [
            ("trivial", TrivialAugmentWide()._augmentation_space(bins)),
            ("rand", RandAugment()._augmentation_space(bins, (24, 33))),
        ]:
            for op, (magnitudes, signed) in space.items():
                values = [f"{v:.6g}" for v in magnitudes.reshape(-1).tolist()]
                print(name, bins, op, "signed" if signed else "unsigned", *values, file=lines)

for kernel, sigma in ([3, 3], 0.1), ([5, 5], 1.3), ([3, 7], 0.8), ([23, 1], 5.0), ([1, 23], 5.0):
    save(F.gaussian_blur(small, kernel, [sigma, sigma]), f"blur_{kernel[0]}x{kernel[1]}_{sigma:g}")

save(F.rgb_to_grayscale(small, 3), "grayscale")


def standardized(image):
    """What tf.image.per_image_standardization is defined as."""
    x = np.asarray(image, np.float64)
    return ((x - x.mean()) / max(x.std(), 1 / np.sqrt(x.size))).transpose(2, 0, 1)


tiny = F.resize(small, [3, 4])
save(tiny, "tiny")
standardized(tiny).astype("<f4").tofile(FOLDER / "standardized.f32")

data = np.random.default_rng(1).normal([1, -20, 300, 5], [1, 3, 0.1, 0], (50, 4)).astype(np.float32)
scaler = StandardScaler().fit(data)
with open(FOLDER / "scaled.txt", "w") as lines:
    for row in scaler.mean_, np.sqrt(scaler.var_), data[7], scaler.transform(data)[7]:
        print(*(repr(float(v)) for v in row), file=lines)
