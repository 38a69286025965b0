#!/usr/bin/env python3
"""Makes the golden files of the image operators with torchvision and Pillow.

They were made with torchvision 0.14.1 and Pillow 9.4.0 (Debian 12: python3-torchvision, python3-pil, python3-numpy). The
photo is a part of examples/photos/photos/cat/cat_00.jpg, which is in the public domain (CC0); it is kept decoded, so that
no JPEG decoder plays a part. The cases here are those of the tables in the tests.
"""

from pathlib import Path

import numpy as np
from PIL import Image
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F

HERE = Path(__file__).resolve().parent


def save(image, name):
    image.save(HERE / "torchvision" / f"{name}.png", optimize=True)


photo = Image.open(HERE.parents[1] / "examples/photos/photos/cat/cat_00.jpg").convert("RGB")
photo = F.crop(photo, 60, 110, 96, 128)
save(photo, "photo")

for interpolation in "bilinear", "bicubic", "nearest":
    mode = InterpolationMode(interpolation)
    for size in [45], [24, 32], [24, 150], [110, 31], [96, 20], [20, 128]:
        save(F.resize(photo, size, mode), f"resize_{interpolation}_{'x'.join(map(str, size))}")
    save(F.resized_crop(photo, 13, 40, 60, 51, [28, 36], mode), f"resized_crop_{interpolation}")

for size in [33, 35], [35, 33], [101, 31], [20, 140], [97, 20], [12, 129]:
    save(F.center_crop(photo, size), f"center_crop_{size[0]}x{size[1]}")

small = F.resize(photo, [24, 32])
ADJUST = F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue
NAMES = "brightness", "contrast", "saturation", "hue"
for which, factors in enumerate([(0.6, 1.5), (0.5, 1.8), (0.3, 1.9), (0.25, -0.337)]):
    for factor in factors:
        save(ADJUST[which](small, factor), f"{NAMES[which]}_{factor}")
mixed = small
for which, factor in (2, 1.4), (0, 1.2), (3, 0.05), (1, 0.7):
    mixed = ADJUST[which](mixed, factor)
save(mixed, "color_jitter")

levels = np.arange(0, 256, 15, dtype=np.uint8)
colours = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(len(levels), -1, 3)
save(F.adjust_hue(Image.fromarray(colours), -0.1), "hue_of_all_colours")

tensor = F.normalize(F.to_tensor(F.resize(photo, [6, 8])), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
tensor.numpy().astype("<f4").tofile(HERE / "torchvision" / "normalize.f32")
