"""A dataset as a new worker would find it."""

import collections
import copy
import sys


class Fresh:
    """Objects' attributes as a new worker finds them, to be set to that again where a DataLoader would start new workers: their values,
    with copies of random generators, and of containers that are small, as caches are at first. What a worker changes deeper than
    that stays changed."""

    SMALL = 1000

    def __init__(self, things):
        self.found = []  # (object, its attributes, those that are to be filled again: {name: state})
        for thing in things:
            self._add(thing)

    def _add(self, thing):
        if not hasattr(thing, "__dict__") or isinstance(thing, type) or any(thing is found for found, _, _ in self.found):
            return
        attributes = dict(vars(thing))
        states = {name: _state(value) for name, value in attributes.items()}
        self.found.append((thing, attributes, {name: state for name, state in states.items() if state is not None}))
        for value in attributes.values():
            for inner in value if isinstance(value, (list, tuple)) and len(value) <= self.SMALL else (value,):
                if is_dataset(inner):
                    self._add(inner)

    def restore(self):
        for thing, attributes, states in self.found:
            vars(thing).clear()
            vars(thing).update(attributes)
            for name, state in states.items():
                _set_state(attributes[name], state)


def is_dataset(thing):
    data = sys.modules.get("torch.utils.data")
    return data is not None and isinstance(thing, data.Dataset)


def _state(value):
    """Returns the state of a random generator or a small container, for _set_state; None for anything else."""
    kind = type(value).__name__
    if kind == "Random":
        return value.getstate()
    if kind in ("RandomState", "Generator"):
        return value.get_state() if hasattr(value, "get_state") else copy.deepcopy(value.bit_generator.state)
    if isinstance(value, (dict, list, set, collections.deque)) and len(value) <= Fresh.SMALL:
        return copy.copy(value)
    return None


def _set_state(value, state):
    kind = type(value).__name__
    if kind == "Random":
        value.setstate(state)
    elif kind in ("RandomState", "Generator") and hasattr(value, "set_state"):
        value.set_state(state)
    elif kind == "Generator":
        value.bit_generator.state = copy.deepcopy(state)
    else:
        value.clear()
        value.update(state) if isinstance(value, (dict, set)) else value.extend(state)
