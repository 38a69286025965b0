#!/usr/bin/python3
"""Trains the networks of TestTorch with PyTorch and prints the losses and the final parameters.

usage: ./make_torch.py >torch.json   (made with Debian 12's python3-torch, 1.13)
"""
import json
import sys

import numpy as np
import torch


def numbers(n, step):
    """n numbers that the test can compute too."""
    return torch.from_numpy(np.sin(step * np.arange(n)).astype(np.float32))


def train(channels, height, width, filters, depth, stride, classes, batches):
    rate, momentum = 0.03125, 0.9
    convs, h, w = [], height, width
    for i in range(depth):
        convs.append((channels if i == 0 else filters << i - 1, filters << i, stride if i == 0 else 1))
        h, w = [((d - 1) // convs[-1][2] + 1) // 2 for d in (h, w)]

    # One parameter after the other, channels innermost, as gpu.Net has them.
    shapes = [s for i, o, _ in convs for s in ((o, 3, 3, i), (o,))] + [(classes, h, w, convs[-1][1]), (classes,)]
    flat = 0.5 * numbers(sum(np.prod(s) for s in shapes), 1.7)
    params = []
    for s in shapes:
        params.append(flat[:np.prod(s)].reshape(s).clone().requires_grad_())
        flat = flat[np.prod(s):]

    x = numbers(sum(batches) * channels * height * width, 0.37).reshape(-1, channels, height, width)
    y = torch.arange(sum(batches)) % classes
    sgd = torch.optim.SGD(params, lr=rate, momentum=momentum)
    losses = []
    for n in batches:
        out = x[:n]
        for (_, _, s), weight, bias in zip(convs, params[0::2], params[1::2]):
            out = torch.conv2d(out, weight.permute(0, 3, 1, 2), bias, stride=s, padding=1)
            out = torch.max_pool2d(torch.relu(out), 2)
        out = torch.nn.functional.linear(out.flatten(1), params[-2].permute(0, 3, 1, 2).flatten(1), params[-1])
        loss = torch.nn.functional.cross_entropy(out, y[:n])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
        x, y = x[n:], y[n:]
    return dict(channels=channels, height=height, width=width, filters=filters, depth=depth, stride=stride, classes=classes,
                rate=rate, momentum=momentum, batches=batches, losses=losses,
                params=[round(v, 7) for p in params for v in p.flatten().tolist()])


json.dump([
    train(channels=3, height=8, width=8, filters=2, depth=2, stride=1, classes=3, batches=[6, 6, 6, 4]),
    train(channels=1, height=15, width=11, filters=3, depth=2, stride=2, classes=4, batches=[20, 1, 20]),
], sys.stdout)
