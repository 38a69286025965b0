"""Adoption: describes a user's DataLoader or dataset, step by step, for an experiment file.

The op "adopt.describe" takes the dataset's transforms apart, as far as trials in forked processes show that the samples stay the
same. What is described was found by finding.py.
"""

import functools
import inspect
import re
import sys

from . import lift, trial
from .finding import is_dataset, is_loader

# Names under which datasets keep their transforms. What these hold is said to stay inside where it can't be lifted.
USUAL = re.compile(r"_*(\w+_)?(transform(ation)?s?|augment\w*|preprocess\w*|pipeline|tfm?s?|augs?|tokeni[sz]er?)(_\w+)?")

# Names of classes and functions that draw at random, where a trial doesn't show it: with p=0.5, a few samples may all be spared.
RANDOM = re.compile(r"random|jitter|auto_?augment|augmix|mixup|cutmix|erasing|dropout|(^|add_?|gaussian_?)noise|masking", re.IGNORECASE)

CANDIDATES = 32  # attributes that are tried

TEXT = 100  # characters of a callable's repr that are worth showing


def describe(state, request):
    """Describes what find found. The trials take request["limit"] seconds at most."""
    reference, found = state.adopted
    loader = found if is_loader(found) else None
    dataset = found.dataset if loader is not None else found
    base = reference + ".dataset" if loader is not None else reference
    taken = trial.take_apart(dataset, candidates(dataset), loader, request["limit"])
    names = Names()
    steps = []
    for part, suffix, function, random in taken.steps:
        steps.append(
            {
                "block": "augment" if random or draws_by_name(function) else "prepare",
                "name": names.of(function),
                "part": part,
                "reference": f"{base}.{part}{suffix}",
                "text": text(function),
            }
        )
    return {
        "dataset": {
            "class": type(dataset).__name__,
            "name": identifier(snake(type(dataset).__name__), "data"),
            "iterable": trial.iterable(dataset),
            "length": length(dataset),
        },
        "lift": taken.lifted,
        "steps": steps,
        "opaque": opaque(taken),
        "samples": taken.samples,
        "note": taken.note,
        "loader": None if loader is None else settings(loader, reference),
    }


def opaque(taken):
    """Describes the transforms that stay inside the dataset, each once."""
    seen = {id(function) for _, _, function, _ in taken.steps}
    out = []
    for path, function, reason in sorted(taken.opaque, key=lambda o: o[0].count(".")):
        if usual(path) and id(function) not in seen:
            seen.add(id(function))
            out.append({"path": path, "text": text(function), "reason": reason})
    return out


def length(dataset):
    try:
        return len(dataset)
    except Exception:  # unknown to the dataset, or not for it to tell
        return None


def settings(loader, reference):
    """Describes how a DataLoader loads."""
    batched = loader.batch_sampler is not None
    iterable = trial.iterable(loader.dataset)
    own = batched and loader.batch_size is None  # a batch_sampler of the user's
    sampler = None if iterable else type(loader.batch_sampler if own else loader.sampler).__name__
    return {
        "class": type(loader).__name__,
        "workers": loader.num_workers,
        "prefetch": loader.prefetch_factor if loader.num_workers else None,
        "batch": loader.batch_size if not own else getattr(loader.batch_sampler, "batch_size", None),
        "batching": "batch_sampler" if own else "batch_size" if batched else "none",
        "drop_last": bool(getattr(loader.batch_sampler, "drop_last", False)) if own else bool(loader.drop_last),
        "sampler": sampler,
        "shuffle": {"RandomSampler": True, "SequentialSampler": False}.get(sampler) if plain(loader.sampler) else None,
        "collate": collate(loader, reference),
        "pin_memory": bool(loader.pin_memory),
        "worker_init_fn": None if loader.worker_init_fn is None else text(loader.worker_init_fn),
        "persistent_workers": bool(getattr(loader, "persistent_workers", False)),
        "generator": loader.generator is not None,
        "timeout": loader.timeout,
        "context": None if loader.multiprocessing_context is None else loader.multiprocessing_context.get_start_method(),
    }


def plain(sampler):
    """Reports whether a sampler is what DataLoader makes of shuffle."""
    return not getattr(sampler, "replacement", False) and getattr(sampler, "_num_samples", None) is None


def collate(loader, reference):
    """Returns a reference to the user's collate function, or None where it is torch's."""
    function = loader.collate_fn
    if (getattr(function, "__module__", None) or "").startswith("torch.utils.data"):
        return None
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", None)
    if name.isidentifier() and module in sys.modules and getattr(sys.modules[module], name, None) is function:
        return f"{module}:{name}"
    return reference + ".collate_fn"


def candidates(dataset):
    """Returns (path, callable or list of callables) of what may be transforms in a dataset and in those that it wraps: first those
    that are named so, the innermost first, and what a transform of the user's own is made of before itself. What torchvision's
    datasets keep twice comes last, in the place that fewer of them use."""
    found, opened = {}, set()
    for prefix, holder in holders(dataset):
        for name, value in attributes(holder):
            for path, v in entries(name, value):
                found.setdefault(prefix + path, v)
                if id(v) not in opened and type(v) not in (list, tuple) and not composes(v) and not inspect.isroutine(v):
                    opened.add(id(v))
                    found.update((f"{prefix}{path}.{n}", part) for n, part in attributes(v) if composes(part))
    twice = re.compile(r"(^|\.)transforms\.(target_)?transform\b")

    def rank(candidate):
        path, v = candidate
        return not usual(path), type(v).__name__ == "StandardTransform", bool(twice.search(path)), -path.count(".")

    return sorted(found.items(), key=rank)[:CANDIDATES]


def usual(path):
    """Reports whether transforms are usually kept under such names: the last, or that of what holds it."""
    names = re.sub(r"\[[^]]*\]", "", path).split(".")
    return any(USUAL.fullmatch(name) for name in names[-2:])


def composes(value):
    """Reports whether a value is a callable that can be taken apart into several."""
    return is_transform(value) and len(lift.steps(value)) > 1


def holders(dataset):
    """Yields (path prefix, object) of a dataset, the datasets wrapped in it, and what they keep pairs of transforms in."""
    seen, pending = set(), [("", dataset, 0)]
    while pending:
        prefix, holder, depth = pending.pop(0)
        if id(holder) in seen:
            continue
        seen.add(id(holder))
        yield prefix, holder
        if depth == 6:
            continue
        for name, value in attributes(holder):
            several = [(f"{name}[{i}]", v) for i, v in enumerate(value[:16])] if type(value) in (list, tuple) else []
            for at, v in [(name, value)] + several:
                if is_dataset(v) or is_loader(v) or type(v).__name__ == "StandardTransform":
                    pending.append((prefix + at + ".", v, depth + 1))


def attributes(holder):
    """Returns the names and values of an object's own attributes, and of those of its class that are no methods."""
    try:
        own = dict(vars(holder))
    except TypeError:  # it has slots
        own = {}
    for cls in type(holder).__mro__:
        for name, value in vars(cls).items():
            inherent = isinstance(value, (staticmethod, classmethod, property, type)) or inspect.isroutine(value)
            if not name.startswith("__") and name not in own and not inherent and callable(value):
                own[name] = value
    return list(own.items())


def entries(name, value):
    """Yields (path, callable or list of callables) of what may be transforms in an attribute."""
    if is_transform(value):
        yield name, value
    elif type(value) in (list, tuple) and value and all(is_transform(v) for v in value):
        yield name, value
    elif type(value) is dict:
        for k, v in value.items():
            if isinstance(k, str) and k.isidentifier() and is_transform(v):
                yield f'{name}["{k}"]', v


def is_transform(value):
    return callable(value) and not isinstance(value, type) and not is_dataset(value) and not is_loader(value) and value is not None


class Names:
    """Gives each callable a name that no other has."""

    def __init__(self):
        self.used = set()

    def of(self, function):
        base = identifier(snake(callable_name(function)), "step")
        name, n = base, 1
        while name in self.used:
            n += 1
            name = f"{base}_{n}"
        self.used.add(name)
        return name


def callable_name(function):
    """Returns the name of a callable: its function's, or its class's."""
    while isinstance(function, functools.partial):
        function = function.func
    inner = getattr(function, "lambd", None)  # torchvision's Lambda
    if inner is not None and callable(inner):
        return callable_name(inner)
    name = getattr(function, "__name__", None)
    if not isinstance(name, str):
        name = type(function).__name__
    return "lambda" if name == "<lambda>" else name


def snake(name):
    """Returns a name in snake case: RGBToGray is rgb_to_gray."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name).lower()


def identifier(name, otherwise):
    """Returns a name as the language takes it: letters, digits and underscores, beginning with a letter."""
    name = re.sub(r"[^a-z0-9]+", "_", name).strip("_")
    if name and not name[0].isalpha():
        name = otherwise + "_" + name
    return name[:60].rstrip("_") or otherwise


def draws_by_name(function):
    while isinstance(function, functools.partial):
        function = function.func
    return bool(RANDOM.search(callable_name(function)))


def text(value):
    """Returns a value's repr in one line, shortened where it is long, or what it is where that tells nothing."""
    try:
        shown = " ".join(repr(value).split())
    except Exception:  # the user's own __repr__
        shown = ""
    if re.match(r"\w+\(", shown) and " at 0x" not in shown:
        shown = shown.replace("( ", "(").replace(" )", ")")
        if len(shown) > TEXT:
            shown = shown[: TEXT - 2].rpartition(" ")[0] + " …)"
        return shown
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        return callable_name(value)
    return type(value).__name__
