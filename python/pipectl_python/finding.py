"""Finding: what a user's DataLoader or dataset, and training step, are, and how a reference reaches them.

The op "adopt.find" imports the modules and finds what references name; "adopt.describe" in adopt.py goes on from there.
"""

import dataclasses
import inspect
import re
import sys

from . import refs
from .main import Fault, class_name, message_of


def find(state, request):
    """Imports and finds what request["from"] and, if it isn't None, request["step"] name."""
    try:
        reference, found = source(state, request["from"])
        step = request.get("step")
        step = None if step is None else training_step(state, step)
    except (Fault, SystemExit, FileNotFoundError) as e:
        advise(e)
        raise
    state.adopted = reference, found
    return {"reference": reference, "step": step, "seed": torch_seed()}


def advise(error):
    """Raises a Fault that says what to do about an error in the user's code, if that can be said."""
    cause = error.__cause__ if isinstance(error, Fault) else error
    kind = error.kind if isinstance(error, Fault) else "exception"
    what = error if isinstance(error, Fault) else f"{class_name(error)}: {message_of(error)}"
    if isinstance(cause, SystemExit):
        advice = 'The code runs without command-line arguments: put what reads them under `if __name__ == "__main__":`, or give them defaults'
        raise Fault(kind, f"{what}. {advice}") from None
    if isinstance(cause, FileNotFoundError):
        raise Fault(kind, f"{what}. Relative paths start at the current folder: run pipectl where you run python") from cause


def torch_seed():
    """Returns the seed that the user's code gave to torch, or None. A generator that nobody seeded has one of 64 random bits."""
    torch = sys.modules.get("torch")
    seed = torch.initial_seed() if torch else None
    return seed if seed is not None and seed < 2**32 else None


def source(state, reference):
    """Returns the reference and the object of the one DataLoader or dataset that a reference, or a module alone, names, calling what
    makes it."""
    module, _, path = reference.partition(":")
    namespace = refs.remember(state, module, lambda: refs.load(state, module))
    if not path:
        found = [(f"{module}:{ref}", value) for ref, value in members(namespace) if is_loader(value)]
        return one_of(module, found, listing(module, namespace))
    try:
        value = refs.resolve(state, reference)
    except Fault as e:
        if e.kind == "attribute":
            end = "" if str(e).endswith("?") else "."
            raise Fault(e.kind, f"{e}{end} {listing(module, namespace)}") from None
        raise
    if not is_source(value) and callable(value):
        needs = required(value)
        if needs:
            raise Fault(
                "signature",
                f"{reference} needs {listed(needs)}: write a function that takes no arguments, calls it and returns the DataLoader, here or in a file of its own, and name that",
            )
        reference += "()"
        value = refs.resolve(state, reference)
    if is_source(value):
        return reference, value
    inside = [(reference + suffix, v) for suffix, v in contained(value) if is_source(v)]
    if inside:
        return one_of(reference, [(ref, v) for ref, v in inside if is_loader(v)] or inside, "")
    raise Fault(
        "result",
        f"{reference} is {a(type(value).__name__)}, not a DataLoader or dataset, or a function that returns one. {listing(module, namespace)}",
    )


def one_of(what, found, otherwise):
    """Returns the only one of what was found."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise Fault("attribute", f"{what} alone names no DataLoader. {otherwise}")
    kind = "DataLoaders" if is_loader(found[0][1]) else "datasets"
    raise Fault("attribute", f"there are {len(found)} {kind} in {what}: name one, {listed([ref for ref, _ in found], ' or ')}")


def listed(names, last=" and "):
    """Joins names in prose."""
    if len(names) > 12:
        names = names[:10] + [f"{len(names) - 10} more"]
    return last.join(filter(None, [", ".join(names[:-1]), names[-1]]))


def listing(module, namespace):
    """Words which DataLoaders, datasets and functions that might make one are in a module."""
    found = members(namespace)
    for kind, test in ("DataLoaders", is_loader), ("datasets", is_source):
        names = [f"{module}:{ref}" for ref, value in found if test(value)]
        if names:
            return f"The module has the {kind} {listed(names)}"
    makers = [
        f"{module}:{name}"
        for name, value in vars(namespace).items()
        if inspect.isfunction(value) and value.__module__ == namespace.__name__ and re.search("load|data|pipe", name, re.IGNORECASE)
    ]
    if makers:
        return f"The module has no DataLoader, but functions that may return one: {listed(makers)}"
    return "The module has no DataLoader: make one at its top, or in a function that takes no arguments, and name that"


def members(module):
    """Returns the loaders and datasets at the top of a module, and in the tuples, lists and dicts there."""
    found, seen = [], set()
    for name, value in list(vars(module).items()):
        if name.startswith("__") or isinstance(value, type):
            continue
        for suffix, v in [("", value)] + contained(value):
            if (is_loader(v) or is_dataset(v)) and id(v) not in seen:
                seen.add(id(v))
                found.append((name + suffix, v))
    return found


def contained(value):
    """Returns what a tuple, list, dict or dataclass holds, by how a reference reaches it."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [("." + name, getattr(value, name)) for name in value._fields]
    if isinstance(value, (tuple, list)):
        return [(f"[{i}]", v) for i, v in enumerate(value[:100])]
    if isinstance(value, dict):
        return [(f'["{k}"]', v) for k, v in list(value.items())[:100] if isinstance(k, str) and '"' not in k and "\\" not in k]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [("." + f.name, getattr(value, f.name, None)) for f in dataclasses.fields(value)]
    return []


def torch_data():
    """Returns torch.utils.data if the user's code has imported it."""
    return sys.modules.get("torch.utils.data")


def is_loader(value):
    data = torch_data()
    return data is not None and isinstance(value, data.DataLoader)


def is_dataset(value):
    """Reports whether a value says that it is a dataset: torch's, or by its class's name."""
    data = torch_data()
    if data is not None and isinstance(value, data.Dataset):
        return True
    cls = type(value)
    return cls.__name__.lower().endswith(("dataset", "datapipe")) and (hasattr(cls, "__getitem__") or hasattr(cls, "__iter__"))


def is_source(value):
    """Reports whether a value is a loader or can serve as a dataset."""
    if is_loader(value) or is_dataset(value):
        return True
    cls = type(value)
    if isinstance(value, (type, str, bytes, tuple, list, dict)) or cls.__module__.partition(".")[0] in ("builtins", "collections", "numpy", "torch"):
        return False
    return hasattr(cls, "__getitem__") and hasattr(cls, "__len__")


def training_step(state, reference):
    """Describes a training step: a callable on one batch, or what makes one without arguments."""
    value = refs.resolve(state, reference)
    if not callable(value):
        raise Fault("result", f"{reference} is {a(type(value).__name__)}, which can't be called: want a function on one batch, or one that makes it")
    needs = required(value)
    factory = isinstance(value, type) or not accepts_one(value)
    if needs and needs[0] == "self":
        owner, _, method = reference.rpartition(".")
        raise Fault("signature", f"{reference} is a method of a class: name it on an object, {owner}().{method}")
    if factory and needs:
        raise Fault(
            "signature",
            f"{reference} needs {listed(needs)}: write a function that takes no arguments and returns the step, a callable on one batch, and name that",
        )
    if len(needs) > 1:
        raise Fault("signature", f"{reference} takes {listed(needs)}: write a function that takes a batch alone and calls it, and name that")
    return {"reference": reference, "factory": factory}


def required(function):
    """Returns the parameters of a callable that have no defaults; none where its signature is unknown."""
    P = inspect.Parameter
    return [
        p.name
        for p in parameters(function)
        if p.default is P.empty and p.kind not in (P.VAR_POSITIONAL, P.VAR_KEYWORD)
    ]


def accepts_one(function):
    """Reports whether a callable takes one positional argument."""
    P = inspect.Parameter
    known = parameters(function)
    return known is UNKNOWN or any(p.kind in (P.POSITIONAL_ONLY, P.POSITIONAL_OR_KEYWORD, P.VAR_POSITIONAL) for p in known)


UNKNOWN = ()  # the parameters of a callable of which Python doesn't know them


def parameters(function):
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return UNKNOWN


def a(noun):
    return ("an " if noun[:1].lower() in "aeiou" else "a ") + noun
