"""Trains a small classifier on the 48 photos of ../photos. Plain PyTorch: nothing in here knows of pipectl.

    python3 train.py
"""
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

PHOTOS = Path(__file__).resolve().parent.parent / "photos" / "photos"

transform = transforms.Compose([
    transforms.RandomResizedCrop(224),
    transforms.RandomHorizontalFlip(),
    transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
    transforms.GaussianBlur(23, sigma=(0.1, 2.0)),
    transforms.ToTensor(),
    transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
])
dataset = datasets.ImageFolder(PHOTOS, transform)
loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)

model = nn.Sequential(
    nn.Conv2d(3, 16, 3, stride=4), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    nn.Linear(32, len(dataset.classes)),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
loss_of = nn.CrossEntropyLoss()


def step(batch):
    images, labels = batch
    optimizer.zero_grad()
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def main(epochs=10):
    for epoch in range(epochs):
        if epoch == 1:  # the first one starts the workers
            start = time.perf_counter()
        for batch in loader:
            loss = step(batch)
    elapsed = time.perf_counter() - start
    samples, steps = (epochs - 1) * len(dataset), (epochs - 1) * len(loader)
    print(f"{samples / elapsed:.0f} samples/s, {steps / elapsed:.1f} steps/s, loss {loss:.3f}")


if __name__ == "__main__":
    main()
