"""Copies of samples and batches: how large they are, and whether two are the same."""

import copy
import sys

from . import lift


def leaves(value):
    """Yields what tuples, lists and dicts contain that is none of them."""
    if isinstance(value, (tuple, list)):
        for element in value:
            yield from leaves(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from leaves(element)
    else:
        yield value


def bytes_of(value):
    """Returns the bytes of a sample's or batch's data."""
    kind = type(value)
    if kind is int or kind is float or kind is bool or value is None:
        return 8
    if kind is lift.Sample:
        return bytes_of(value.value) + bytes_of(list(value.parts.values()))
    if issubclass(kind, (tuple, list, set, frozenset)):
        return sum(map(bytes_of, value))
    if issubclass(kind, dict):
        return sum(map(bytes_of, value.values()))
    if kind is lift.Hole:
        return 0
    if issubclass(kind, (bytes, bytearray, memoryview, str)):
        return len(value)
    if hasattr(value, "element_size") and hasattr(value, "numel"):
        return value.element_size() * value.numel()
    nbytes = getattr(value, "nbytes", None)
    if type(nbytes) is int:
        return nbytes
    if hasattr(value, "getbands") and hasattr(value, "size"):
        return value.size[0] * value.size[1] * len(value.getbands())
    if hasattr(value, "__dict__"):
        return sum(map(bytes_of, vars(value).values()))
    return sys.getsizeof(value)


def shallow(sample):
    return lift.Sample(sample.value, dict(sample.parts), sample.places) if type(sample) is lift.Sample else sample


def copied(value, memo=None):
    """Returns a copy of a sample that shares nothing that could be changed in place."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)][0]
    out = _copied(value, memo)
    memo[id(value)] = out, value  # the value too, so that its id isn't another's
    return out


def _copied(value, memo):
    kind = type(value)
    if kind in (int, float, bool, str, bytes, complex, type(None), lift.Hole, lift.HoleTuple, lift.HoleDict):
        return value
    if kind is tuple:
        return tuple([copied(v, memo) for v in value])
    if kind is list:
        return [copied(v, memo) for v in value]
    if kind is dict:
        return {k: copied(v, memo) for k, v in value.items()}
    if kind is lift.Sample:
        return lift.Sample(copied(value.value, memo), copied(value.parts, memo), value.places)
    numpy, torch, image = sys.modules.get("numpy"), sys.modules.get("torch"), sys.modules.get("PIL.Image")
    if torch is not None and kind is torch.Tensor and not value.requires_grad:
        return value.clone()
    if numpy is not None and kind is numpy.ndarray and value.dtype != object:
        return value.copy(order="K")
    if image is not None and kind is image.Image:
        return value.copy()
    found = {}
    lift.holes_in(value, found)
    return copy.deepcopy(value, found)


def same(a, b):
    """Reports whether two objects of which one was a copy of the other still hold the same; False where that can't be told."""
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is lift.Sample:
        return same(a.value, b.value) and same(a.parts, b.parts)
    if issubclass(kind, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if issubclass(kind, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    try:
        if hasattr(a, "element_size") and hasattr(a, "numel"):
            return a.shape == b.shape and a.dtype == b.dtype and bytes_equal(a.detach().cpu().numpy(), b.detach().cpu().numpy())
        if hasattr(a, "tobytes") and hasattr(a, "dtype"):
            return a.shape == b.shape and a.dtype == b.dtype and bytes_equal(a, b)
        if hasattr(a, "tobytes"):
            return a.size == b.size and a.tobytes() == b.tobytes()
        return bool(a == b)
    except Exception:  # the user's classes may do anything when they are compared
        return False


def bytes_equal(a, b):
    return a.dtype != object and a.tobytes() == b.tobytes()
