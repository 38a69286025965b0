"""References to the user's objects: `module:path`, as in `train:get_loaders()[0].dataset.transform`.

The path is a name, followed by attributes, `[0]`, `["key"]` and `()`. Whatever a reference or a part of it names is looked up once:
two references with the same beginning reach the same object.
"""

import ast
import difflib
import importlib
import inspect
import json
import os
import re
import shutil
import subprocess
import sys

from .main import Fault, class_name, hiding, text_of

STEP = re.compile(r"""\.(?P<name>[^\W\d]\w*)|\[(?P<index>-?\d+|"[^"]*"|'[^']*')\]|(?P<call>\(\))""")
MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def parse(ref):
    """Returns the module of a reference, and its path as pairs of a kind (name, index, call) and what it is about."""
    module, colon, path = ref.partition(":")
    if not colon or not MODULE.fullmatch(module) or not path:
        raise Fault("attribute", f'"{ref}" is no reference: write "module:name", as in "train:loader"')
    steps, at, text = [], 0, "." + path
    while at < len(text):
        m = STEP.match(text, at)
        if m is None:
            raise Fault("attribute", f'"{ref}" is no reference from "{text[max(at, 1):]}" on: after a name come .attribute, [0], ["key"] or ()')
        kind = m.lastgroup
        steps.append((kind, ast.literal_eval(m[kind]) if kind == "index" else m[kind]))
        at = m.end()
    return module, steps


def resolve(state, ref, args=None):
    """Returns what a reference names or, where args are given, what it makes of them as keyword arguments."""
    module, steps = parse(ref)
    name = module
    obj = remember(state, name, lambda: load(state, module))
    for i, (kind, what) in enumerate(steps):
        before, holder = name, obj
        name += ("." if i else ":") + what if kind == "name" else f"[{json.dumps(what)}]" if kind == "index" else "()"
        if kind == "name":
            obj = remember(state, name, lambda: attribute(holder, what, before))
        elif kind == "index":
            obj = remember(state, name, lambda: item(holder, what, before))
        else:
            obj = remember(state, name, lambda: call(holder, {}, before))
    if args is None:
        return obj
    return remember(state, name + "(" + json.dumps(args, sort_keys=True) + ")", lambda: call(obj, args, name))


def remember(state, name, make):
    if name not in state.objects:
        state.objects[name] = make()
    return state.objects[name]


def load(state, module):
    """Imports a module."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        missing = e.name or ""
        if hiding(str(e)):
            raise Fault("import", f"importing {module}: {text_of(e)}") from e
        if missing == module or module.startswith(missing + "."):
            looked = ", ".join(state.pythonpath) or "no folder of its own"
            raise Fault("import", f'there is no module "{missing}" in pythonpath ({looked}), nor in {interpreter(state)}{elsewhere(missing)}') from None
        raise Fault("import", f'importing {module}: there is no module "{missing}" in {interpreter(state)}{elsewhere(missing)}') from None
    except BaseException as e:
        raise Fault("import", f"importing {module}: {text_of(e)}") from e


def interpreter(state):
    return f"{sys.executable} (Python {sys.version.split()[0]}, python = {json.dumps(state.python)})"


def elsewhere(module):
    """Returns advice that names another interpreter of this machine that has a module; "" where none does."""
    top = module.partition(".")[0]
    found = [shutil.which("python3", path=d) for d in os.get_exec_path()] + ["/usr/bin/python3"]
    tried = {os.path.realpath(sys.executable)}
    for program in found:
        if program is None or not os.path.exists(program) or os.path.realpath(program) in tried:
            continue
        tried.add(os.path.realpath(program))
        probe = f"import sys; del sys.path[0]; import importlib.util; sys.exit(importlib.util.find_spec({top!r}) is None)"
        try:
            if subprocess.run([program, "-E", "-c", probe], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=10).returncode == 0:
                return f'; {program} has it: set python = "{program}"'
        except (OSError, subprocess.TimeoutExpired):
            continue
    return ""


def attribute(obj, name, where):
    try:
        return getattr(obj, name)
    except AttributeError as e:
        try:
            names = dir(obj)
        except Exception:  # the user's __dir__ may be faulty
            names = []
        if name in names:
            raise
        near = difflib.get_close_matches(name, names, 1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        kind = "module " if inspect.ismodule(obj) else f"a {class_name(obj)}, "
        raise Fault("attribute", f"{kind}{where} has no attribute {json.dumps(name)}{hint}") from None


def item(obj, index, where):
    try:
        return obj[index]
    except (IndexError, KeyError, TypeError) as e:
        if isinstance(obj, dict):
            has = "the keys " + ", ".join(map(repr, list(obj)[:20]))
        elif hasattr(obj, "__len__"):
            has = f"{len(obj)} elements"
        else:
            has = "no elements"
        raise Fault("attribute", f"{where}, a {class_name(obj)}, has no [{json.dumps(index)}]: it has {has}") from None


def call(obj, args, where):
    """Calls what a reference names with keyword arguments."""
    if not callable(obj):
        raise Fault("signature", f"{where} is a {class_name(obj)}, which can't be called")
    check(obj, (), args, where)
    return obj(**args)


def check(obj, positional, keywords, where):
    """Raises a Fault where a callable's signature is known and doesn't take such arguments."""
    try:
        signature = inspect.signature(obj)
    except (ValueError, TypeError):  # it has none that can be known, as many of C have
        return
    try:
        signature.bind(*positional, **keywords)
    except TypeError as e:
        given = [f"{len(positional)} positional argument" + "s" * (len(positional) != 1)] if positional else []
        given += [k + "=…" for k in keywords]
        raise Fault("signature", f"{where}{signature} can't be called with {', '.join(given) or 'no arguments'}: {e}") from None


def resolve_op(state, request):
    """Finds what a block of the file names, and returns what is known about it."""
    role = request["role"]
    obj = find(state, role, request["ref"], request.get("args"))
    if role == "dataset":
        return describe_data(obj)
    if role == "loader":
        return {**describe_data(obj.dataset), "shuffled": is_random(obj)}
    return {}


def find(state, role, ref, args):
    """Returns the user's object for a role: "loader", "dataset", "callable", "part" (a callable that does part of a lifted
    one's work), "collate" or "step"."""
    return remember(state, f"{role} {ref} {json.dumps(args, sort_keys=True)}", lambda: ROLES[role](state, ref, args))


def loader(state, ref, args):
    """Returns a DataLoader, which the reference names, or which what it names returns."""
    obj = made(state, ref, args)
    for needed in ("dataset", "batch_sampler", "collate_fn", "num_workers"):
        if not hasattr(obj, needed):
            raise Fault("attribute", f"{ref} gives a {class_name(obj)}, and loader takes a torch.utils.data.DataLoader: for a data set, set dataset in its place")
    return obj


def dataset(state, ref, args):
    """Returns a data set, which the reference names, or which the class or function that it names makes."""
    obj = made(state, ref, args)
    if hasattr(obj, "batch_sampler") and hasattr(obj, "dataset"):
        raise Fault("attribute", f"{ref} gives a {class_name(obj)}: set loader in place of dataset")
    if not hasattr(obj, "__getitem__") and not hasattr(obj, "__iter__"):
        raise Fault("attribute", f"{ref} gives a {class_name(obj)}, which is no data set: it has neither __getitem__ nor __iter__")
    return obj


def made(state, ref, args):
    """Returns what a reference names, or what that returns where it is a class or function."""
    obj = resolve(state, ref)
    if inspect.isclass(obj) or inspect.isroutine(obj) or hasattr(obj, "func") and hasattr(obj, "keywords"):  # functools.partial
        return resolve(state, ref, args or {})
    if args is not None:
        raise Fault("signature", f"{ref} names a {class_name(obj)}: args are for a class or a function")
    return obj


def one_argument(state, ref, args):
    """Returns a callable on one sample or batch, which the reference names, or which what it names makes of args."""
    obj, where = callable_of(state, ref, args)
    check(obj, (None,), {}, where)
    return obj


def part(state, ref, args):
    """Returns a callable on what the dataset gives a lifted one: one argument, several, or keywords."""
    return callable_of(state, ref, args)[0]


def callable_of(state, ref, args):
    """Returns a callable, which the reference names, or which what it names makes of args, and what to call it."""
    obj = resolve(state, ref, args)
    where = ref if args is None else ref + "(…)"
    if not callable(obj):
        raise Fault("signature", f"{where} is a {class_name(obj)}, which can't be called")
    if args is None and inspect.isclass(obj) and any("__call__" in vars(c) for c in obj.__mro__):
        raise Fault("signature", f"{ref} is a class, whose instances are the callables: set args to what it is made of, {{}} for nothing")
    return obj, where


ROLES = {"loader": loader, "dataset": dataset, "callable": one_argument, "part": part, "collate": one_argument, "step": one_argument}


def collate_of(state, request):
    """Returns the function that makes a batch of a list of samples: the one that a request names, else its loader's own, else torch's,
    else list."""
    if request.get("ref"):
        return find(state, "collate", request["ref"], None)
    if request.get("loader"):
        return find(state, "loader", request["loader"], request.get("args")).collate_fn
    if sys.modules.get("torch") is not None:
        from torch.utils.data.dataloader import default_collate

        return default_collate
    return list


def describe_data(data):
    """Returns what is known of a data set: its length (None where it has none, or is iterated over), and how many classes it counts."""
    iterable = not hasattr(data, "__getitem__") or is_iterable_dataset(data)
    length = None
    if not iterable:
        if not hasattr(data, "__len__"):
            raise Fault("attribute", f"a {class_name(data)} has __getitem__ but no __len__, so its items can't be counted")
        length = len(data)
    classes = getattr(whole(data), "classes", None)
    return {"length": length, "iterable": iterable, "classes": len(classes) if isinstance(classes, (list, tuple, dict)) else 0}


def is_iterable_dataset(data):
    torch = sys.modules.get("torch.utils.data")
    return torch is not None and isinstance(data, torch.IterableDataset)


def is_random(loader):
    """Reports whether a loader's sampler draws the items' order at random, as far as is known."""
    sampler = getattr(loader, "sampler", None)
    return any("Random" in c.__name__ for c in type(sampler).__mro__)


def whole(data):
    """Returns the data set that a subset is of."""
    while hasattr(data, "indices") and hasattr(data, "dataset"):
        data = data.dataset
    return data


def item_path(data, index):
    """Returns the file that an item is read from, where the data set lists them as those of torchvision do, or None."""
    while hasattr(data, "indices") and hasattr(data, "dataset"):
        index, data = data.indices[index], data.dataset
    for attribute_name in ("samples", "imgs"):
        listed = getattr(data, attribute_name, None)
        if isinstance(listed, (list, tuple)) and index < len(listed):
            entry = listed[index]
            path = entry[0] if isinstance(entry, (list, tuple)) and entry else entry
            if isinstance(path, (str, os.PathLike)):
                return os.fspath(path)
    return None


def name_op(state, request):
    """Returns the name of an item of a block's data set."""
    obj = find(state, request["role"], request["ref"], request.get("args"))
    return item_path(obj.dataset if request["role"] == "loader" else obj, request["index"]) or f"item {request['index']}"


def files_op(state, request):
    """Returns the absolute paths of the files of some items of a block's data set, from one on; None where one isn't known."""
    obj = find(state, request["role"], request["ref"], request.get("args"))
    data = obj.dataset if request["role"] == "loader" else obj
    if not hasattr(type(data), "__len__"):
        return None
    first = request["first"]
    paths = [item_path(data, i) for i in range(first, min(first + request["count"], len(data)))]
    if any(not isinstance(path, str) for path in paths):
        return None
    return [os.path.abspath(path) for path in paths]
