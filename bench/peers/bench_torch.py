#!/usr/bin/env python3
"""PyTorch DataLoaders to compare with.

usage: bench_torch.py MODE WORKERS [EPOCHS] [DATA]

MODE: pil  = ImageFolder + RandomResizedCrop(224) + HorizontalFlip + ToTensor + Normalize (the standard ImageNet transform, PIL)
      io   = torchvision.io.decode_jpeg + the same transforms on tensors (RandomResizedCrop antialias=True)
      draft = pil, decoded at half the size or less by Image.draft() where at least twice the result's size is left, as thumbnail() does
      cv2  = cv2.imdecode + cv2.resize(INTER_LINEAR) + numpy normalise, as written by hand
      ov8  = what the loader itself costs: preallocated uint8 3x224x224; ov32 = the same in float32
Prints a JSON line: images/s of each epoch; the first, a warm-up, is dropped."""

import json
import math
import random
import sys
import time

import numpy as np
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
BATCH = 64


class Repeated(torchvision.datasets.ImageFolder):
    """An ImageFolder that goes through its files so often that an epoch has at least so many samples."""

    def __init__(self, root, transform=None, samples=0):
        super().__init__(root, transform)
        self.samples = self.samples * max(1, -(-samples // len(self.samples)))


class Io(Repeated):
    def __getitem__(self, i):
        path, label = self.samples[i]
        image = torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)
        top, left, height, width = T.RandomResizedCrop.get_params(image, (0.08, 1.0), (3 / 4, 4 / 3))
        image = T.functional.resize(image[:, top : top + height, left : left + width], [224, 224], antialias=True)
        if torch.rand(1) < 0.5:
            image = T.functional.hflip(image)
        return T.functional.normalize(image.float().div_(255), MEAN, STD), label


class Draft(Repeated):
    def __getitem__(self, i):
        from PIL import Image

        path, label = self.samples[i]
        image = Image.open(path)
        width, height = image.size
        top, left, h, w = crop(height, width)
        scale = max(1, min(h, w) // (2 * 224))
        image.draft("RGB", (width // scale, height // scale))
        image = image.convert("RGB")
        scale = width / image.width
        image = image.resize((224, 224), Image.BILINEAR, box=(left / scale, top / scale, (left + w) / scale, (top + h) / scale))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        return T.functional.normalize(T.functional.to_tensor(image), MEAN, STD), label


class Cv2(Repeated):
    mean = (np.array(MEAN, np.float32) * 255).reshape(1, 1, 3)
    scale = (1 / (np.array(STD, np.float32) * 255)).reshape(1, 1, 3)

    def __getitem__(self, i):
        import cv2

        path, label = self.samples[i]
        image = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
        top, left, height, width = crop(*image.shape[:2])
        image = cv2.resize(image[top : top + height, left : left + width], (224, 224), interpolation=cv2.INTER_LINEAR)
        if random.random() < 0.5:
            image = image[:, ::-1]
        image = (image[:, :, ::-1].astype(np.float32) - self.mean) * self.scale
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1))), label


def crop(height, width):
    """Draws a crop as RandomResizedCrop does: top, left, height, width."""
    for _ in range(10):
        area = height * width * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, height - h), random.randint(0, width - w), h, w
    side = min(height, width)
    return (height - side) // 2, (width - side) // 2, side, side


class Overhead(Dataset):
    def __init__(self, samples, dtype):
        self.samples, self.image = samples, torch.zeros(3, 224, 224, dtype=dtype)

    def __len__(self):
        return self.samples

    def __getitem__(self, i):
        return self.image, i


def loader(mode, workers, data, samples=0):
    """Returns the DataLoader of a mode, whose epochs have at least so many samples."""
    torch.set_num_threads(1)
    if mode == "pil":
        steps = [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
        dataset = Repeated(data, T.Compose(steps), samples)
    elif mode in ("io", "draft", "cv2"):
        dataset = {"io": Io, "draft": Draft, "cv2": Cv2}[mode](data, samples=samples)
    else:
        dataset = Overhead(samples or BATCH * 100, {"ov8": torch.uint8, "ov32": torch.float32}[mode])
    return DataLoader(dataset, BATCH, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=workers > 0)


def main(mode, workers, epochs="3", data="data"):
    batches, rates = loader(mode, int(workers), data), []
    for _ in range(int(epochs) + 1):
        n, start = 0, time.perf_counter()
        for x, _ in batches:
            n += len(x)
        rates.append(n / (time.perf_counter() - start))
    print(json.dumps({"mode": mode, "workers": int(workers), "images_s": round(sorted(rates[1:])[len(rates[1:]) // 2], 1), "all": rates[1:]}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
