"""Takes callables out of a dataset, so that what they do can be done, and timed, after the dataset has made a sample.

A lifted attribute is replaced by a Capture, which records its arguments and returns Holes. Once the dataset has made the sample,
the callable's steps run on the recorded arguments, and their result fills the Holes. A dataset that does anything with a
callable's result but hand it on, or draws random numbers after it, would make another sample that way: it raises NotLiftable.
"""

import copy
import dataclasses
import operator
import random
import re
import sys

__all__ = ["NotLiftable", "Sample", "lift", "put_back", "fetch", "iterate", "apply", "finish", "steps"]

# The first samples that a process fetches are searched whole and watched for random draws; those after them are only looked at in
# the places where the first ones' Holes were.
WATCHED = 16


class NotLiftable(Exception):
    """The dataset doesn't just hand on what the lifted callable returns."""


class Hole:
    """Stands in a sample for what a lifted callable, `part`, will make: its result, or the result's element `key`. Any use of it
    raises NotLiftable."""

    __slots__ = ("part", "key")

    def __init__(self, part, key=None):
        object.__setattr__(self, "part", part)
        object.__setattr__(self, "key", key)

    def __getattribute__(self, name):
        # Only pickle may look in: a sample crosses processes with its Holes.
        if name == "__reduce_ex__":
            return object.__getattribute__(self, name)
        raise _used(self, "its attribute " + name if not name.startswith("__") else "it")

    def __reduce_ex__(self, protocol):
        return Hole, (_part(self), _key(self))


_part = Hole.part.__get__
_key = Hole.key.__get__


def _used(hole, what):
    return _now.fail("the dataset uses %s of what %s returns, before the sample is made" % (what, _part(hole)))


def _refuse(operation):
    def method(self, *args, **kwargs):
        raise _used(self, operation + "()")

    return method


for _name in (
    "bool len iter next getitem setitem delitem contains call add radd iadd sub rsub isub mul rmul imul matmul rmatmul truediv rtruediv "
    "itruediv floordiv rfloordiv mod rmod pow rpow neg pos abs invert and rand or ror xor rxor lshift rshift eq ne lt le gt ge hash int "
    "float complex index bytes str repr format enter exit setattr delattr reversed length_hint fspath round"
).split():
    setattr(Hole, "__%s__" % _name, _refuse("__%s__" % _name))
del _name


class HoleTuple(tuple):
    """What a Capture returns where it was called with several arguments: a Hole for each."""

    __slots__ = ()


class HoleDict(dict):
    """What a Capture returns where it was called with keyword arguments: a Hole for each."""

    __slots__ = ()


class Capture:
    """Takes the place of a lifted callable."""

    def __init__(self, part):
        self.part = part

    def __call__(self, *args, **kwargs):
        return _now.capture(self.part, args, kwargs)

    def __reduce_ex__(self, protocol):
        return Capture, (self.part,)

    def __getattr__(self, name):
        if name.startswith("__"):  # what copy and the like look for
            raise AttributeError(name)
        raise _now.fail("the dataset uses the attribute %s of %s" % (name, self.part))

    @property
    def __class__(self):
        if _now.calls is not None:
            raise _now.fail("the dataset asks for the type of %s" % self.part)
        return Capture


class Sample:
    """A sample on its way: the dataset's, `value`, with Holes, and the arguments that each part's next step takes, {part: (args,
    kwargs)}, None for a part that the dataset didn't call. `places` says where the Holes are: a list of (path, Hole), where a Hole
    may be all that a part returns."""

    __slots__ = ("value", "parts", "places")

    def __init__(self, value, parts=None, places=()):
        self.value = value
        self.parts = parts if parts is not None else {}
        self.places = places

    def __getstate__(self):
        return (self.value, self.parts, self.places)

    def __setstate__(self, state):
        self.value, self.parts, self.places = state

    def __deepcopy__(self, memo):
        holes_in(self.value, memo)
        return Sample(copy.deepcopy(self.value, memo), copy.deepcopy(self.parts, memo), self.places)


class _Now:
    """The fetch that is under way in this process: datasets give no other way for a Capture to reach its sample."""

    def __init__(self):
        self.calls = None  # {part: (args, kwargs)}
        self.returned = None  # {part: Hole, HoleTuple or HoleDict}
        self.fault = None  # the first NotLiftable, which the dataset may have caught
        self.watched = 0
        self.places = ()
        self.drawn = None  # states of the random generators at the last capture: (as they were, as they were left)

    def fail(self, message):
        fault = NotLiftable(message)
        if self.fault is None:
            self.fault = fault
        return fault

    def begin(self):
        self.calls, self.returned, self.fault, self.drawn = {}, {}, None, None

    def end(self):
        calls, self.calls = self.calls, None
        if self.drawn is not None:
            self._compare_draws()
        return calls

    def capture(self, part, args, kwargs):
        calls = self.calls
        if calls is None:
            raise self.fail("%s is called while no sample is fetched" % part)
        if part in calls:
            raise self.fail("the dataset calls %s more than once for a sample" % part)
        if args and kwargs:
            raise self.fail("the dataset calls %s with positional and with keyword arguments" % part)
        if not args and not kwargs:
            raise self.fail("the dataset calls %s without arguments" % part)
        for arg in args or kwargs.values():
            if type(arg) is Hole or type(arg) is HoleTuple or type(arg) is HoleDict or (
                self.watched < WATCHED and _search(arg, (), [])
            ):
                raise self.fail("the dataset calls %s with what it, or another lifted callable, has returned" % part)
            # An image that is read when it is first used may be closed by then.
            if getattr(arg, "fp", None) is not None and hasattr(arg, "load") and hasattr(arg, "tile"):
                arg.load()
        if self.watched < WATCHED:
            if self.drawn is not None:
                self._compare_draws()
            self.drawn = _advance()
        calls[part] = (args, kwargs)
        if kwargs:
            result = HoleDict((key, Hole(part, key)) for key in kwargs)
        elif len(args) > 1:
            result = HoleTuple(Hole(part, i) for i in range(len(args)))
        else:
            result = Hole(part)
        self.returned[part] = result
        return result

    def _compare_draws(self):
        """Fails if random numbers were drawn, or generators seeded, since the last capture; else undoes what _advance did."""
        before, after = self.drawn
        self.drawn = None
        if _comparable(_states()) != after:
            self.fail("the dataset draws random numbers, or seeds, after it has called a lifted callable")
        else:
            _restore(before)

    def sample(self, value, calls, parts):
        """Returns the Sample of a dataset's value and the calls made for it."""
        if self.fault is not None:
            raise self.fault
        if self.watched >= WATCHED and calls and self._where_expected(value):
            places = self.places
        else:
            places = self.places = self._find(value, calls)
            self.watched += 1
        out = dict.fromkeys(parts)
        out.update(calls)
        return Sample(value, out, places)

    def _where_expected(self, value):
        """Reports whether all that was returned lies in value where the last sample's Holes lay."""
        seen = 0
        for path, hole in self.places:
            returned = self.returned.get(_part(hole))
            found = value
            try:
                for step in path:
                    if type(found) is Hole or isinstance(found, dict) and step not in found:
                        return False
                    found = getattr(found, step.name) if type(step) is _Field else found[step]
            except (LookupError, AttributeError, TypeError):
                return False
            key = _key(hole)
            if found is not (returned if key is None else returned[key] if returned is not None else None):
                return False
            seen += 1
        return seen == len(self.places) and {_part(h) for _, h in self.places} == self.returned.keys()

    def _find(self, value, calls):
        found = _search(value, (), [])
        places, seen = [], {}
        for path, thing in found:
            part = _part(thing) if type(thing) is Hole else _part(next(iter(thing.values() if type(thing) is HoleDict else thing)))
            returned = self.returned.get(part)
            if type(thing) is not Hole:
                keys = list(thing) if type(thing) is HoleDict else list(range(len(thing)))
                own, hole = thing is returned, Hole(part)
            else:
                key = _key(thing)
                keys, hole = [key], thing
                if key is None:
                    own = thing is returned
                else:
                    own = returned is not None and thing is returned[key]
            if not own:
                raise NotLiftable("the dataset keeps what %s returns and hands it out again with a later sample" % part)
            for key in keys:
                if (part, key) in seen:
                    raise NotLiftable("the sample contains what %s returns more than once" % part)
                seen[part, key] = True
            places.append((path, hole))
        for part, returned in self.returned.items():
            if type(returned) is Hole:
                lost = (part, None) not in seen
            elif type(returned) is HoleTuple:
                lost = any((part, i) not in seen for i in range(len(returned)))
            else:  # of keyword arguments' results a dataset may leave some behind
                lost = not any((part, key) in seen for key in returned)
            if lost:
                raise NotLiftable(
                    "the sample doesn't contain what %s returns in a tuple, list, dict or dataclass: the dataset puts it elsewhere" % part
                )
        return places


class _Field:
    """A step of a path: an attribute of a dataclass."""

    __slots__ = ("name",)

    def __init__(self, name):
        self.name = name

    def __reduce__(self):
        return _Field, (self.name,)


def _search(value, path, found):
    """Appends to found the (path, Hole, HoleTuple or HoleDict) in value."""
    kind = type(value)
    if kind is Hole or kind is HoleTuple or kind is HoleDict:
        found.append((path, value))
    elif issubclass(kind, (tuple, list)):
        for i, element in enumerate(value):
            _search(element, path + (i,), found)
    elif issubclass(kind, dict):
        for key, element in dict.items(value):
            _search(element, path + (key,), found)
    elif dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if hasattr(value, field.name):
                _search(getattr(value, field.name), path + (_Field(field.name),), found)
    return found


def holes_in(value, memo):
    """Has a copy.deepcopy with this memo leave the Holes in value as they are: they don't change, and are told by identity."""
    for _, thing in _search(value, (), []):
        memo[id(thing)] = thing
        for hole in () if type(thing) is Hole else thing.values() if type(thing) is HoleDict else thing:
            memo[id(hole)] = hole


def _states():
    """Returns the states of the random generators that the process has loaded, as (random's, numpy's, torch's)."""
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    return (
        random.getstate(),
        numpy.get_state() if numpy is not None else None,
        torch.get_rng_state() if torch is not None and hasattr(torch, "get_rng_state") else None,
    )


def _comparable(states):
    own, numpy, torch = states
    return own, numpy and (numpy[1].tobytes(),) + tuple(numpy[2:]), torch is not None and torch.tolist()


def _advance():
    """Draws a number from each generator, so that one that is seeded anew is seen to differ; returns how they were before, and how
    they are after."""
    before = _states()
    random.random()
    if before[1] is not None:
        sys.modules["numpy.random"].random_sample()
    if before[2] is not None:
        sys.modules["torch"].rand(1)
    return before, _comparable(_states())


def _restore(states):
    random.setstate(states[0])
    if states[1] is not None:
        sys.modules["numpy.random"].set_state(states[1])
    if states[2] is not None:
        sys.modules["torch"].set_rng_state(states[2])


_now = _Now()

_STEP = re.compile(r"""\.?([^\W\d]\w*)|\[(-?\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")


def _parse(path):
    """Returns the steps of a path such as `datasets[0].transform`: names as str, indices and keys in a tuple."""
    out, at = [], 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (match.group(1) is not None and (path[at] == ".") == (at == 0)):
            raise NotLiftable("%r is not a path of attributes, such as transform or dataset.transform" % path)
        name, index, double, single = match.groups()
        out.append(name if name is not None else (int(index) if index is not None else double if double is not None else single,))
        at = match.end()
    if not out:
        raise NotLiftable("a path of attributes is empty")
    return out


def _follow(obj, step):
    return getattr(obj, step) if isinstance(step, str) else obj[step[0]]


def _replace(holder, step, value):
    if isinstance(step, str):
        setattr(holder, step, value)
    else:
        holder[step[0]] = value


def _holder(dataset, path):
    """Returns the object that holds what path names, the last step, and what it names."""
    parsed = _parse(path)
    holder = dataset
    try:
        for step in parsed[:-1]:
            holder = _follow(holder, step)
        return holder, parsed[-1], _follow(holder, parsed[-1])
    except (AttributeError, LookupError, TypeError) as e:
        raise NotLiftable("the dataset, a %s, has no %s: %s" % (type(dataset).__name__, path, e)) from None


def lift(dataset, paths):
    """Replaces the attributes that paths name, such as "transform" or "dataset.transform", by Captures. Returns {path: the callable
    that was there}. Raises NotLiftable, with nothing replaced, where one can't be."""
    found = {}
    for path in paths:
        if path in found:
            raise NotLiftable("%s is lifted twice" % path)
        holder, step, value = _holder(dataset, path)
        if not callable(value) and not _is_list(value):
            raise NotLiftable("%s of the dataset, a %s, is %s: there is nothing to lift" % (path, type(dataset).__name__, "None" if value is None else "not callable"))
        found[path] = (holder, step, value)
    done = []
    for path, (holder, step, value) in found.items():
        try:
            # A dataset calls the callables of a list one after the other: as it would one alone.
            capture = type(value)([Capture(path)]) if _is_list(value) else Capture(path)
            _replace(holder, step, capture)
            done.append((holder, step, value))
            replaced = _follow(holder, step) is capture
        except Exception as e:  # a property, a torch.nn.Module's child, __slots__, a tuple: their errors differ
            replaced, cause = False, e
        else:
            cause = "it doesn't stay as it is set"
        if not replaced:
            for undo in done:
                _replace(*undo)
            raise NotLiftable("%s of the dataset can't be replaced: %s" % (path, cause))
    _now.watched = 0
    return {path: value for path, (_, _, value) in found.items()}


def put_back(dataset, originals):
    """Undoes a lift."""
    for path, value in originals.items():
        holder, step, _ = _holder(dataset, path)
        _replace(holder, step, value)


def _made(make, *args):
    """Calls make, which has the dataset make a sample, and returns what it returns and the calls it made of lifted callables."""
    _now.begin()
    try:
        value = make(*args)
    except NotLiftable:
        _now.end()
        raise
    except Exception as e:
        calls = _now.end()
        if _now.fault is not None:
            raise _now.fault from e
        if isinstance(e, StopIteration):
            raise
        if calls:
            raise NotLiftable(
                "the dataset fails after it has called %s: %s: %s" % (", ".join(calls), type(e).__name__, e)
            ) from e
        raise
    except BaseException:
        _now.end()
        raise
    return value, _now.end()


def fetch(dataset, index, parts=()):
    """Returns the Sample of dataset[index]. parts are the paths that were lifted: those that aren't called for this sample are None
    in its parts."""
    value, calls = _made(operator.getitem, dataset, index)
    return _now.sample(value, calls, parts)


def iterate(dataset, parts=()):
    """Yields a Sample for each of what the dataset yields."""
    iterator, _ = _made(iter, dataset)
    while True:
        try:
            value, calls = _made(next, iterator)
        except StopIteration:
            return
        yield _now.sample(value, calls, parts)


def apply(sample, part, callable):
    """Runs one step of a part's callable on its arguments, as a Compose does, and returns the sample. A step takes what the
    step before it has returned: one argument; several; or keyword arguments. It does nothing where the dataset didn't call the part."""
    arguments = sample.parts.get(part)
    if arguments is None:
        return sample
    args, kwargs = arguments
    if kwargs:
        result = callable(**kwargs)
        if not isinstance(result, dict):
            raise TypeError("called with keyword arguments it returned a %s, not a dict" % type(result).__name__)
        sample.parts[part] = ((), result)
    elif len(args) == 1:
        sample.parts[part] = ((callable(args[0]),), kwargs)
    else:
        result = callable(*args)
        if not isinstance(result, (tuple, list)) or len(result) != len(args):
            raise TypeError(
                "called with %d arguments it returned %s, not as many values"
                % (len(args), "%d" % len(result) if isinstance(result, (tuple, list)) else "a " + type(result).__name__)
            )
        sample.parts[part] = (result, kwargs)
    return sample


def finish(sample):
    """Returns the dataset's sample with its Holes filled. The containers that held them are copied: the dataset may keep its own."""
    value = sample.value
    for path, hole in sample.places:
        args, kwargs = sample.parts[_part(hole)]
        key = _key(hole)
        if key is not None:
            filling = kwargs[key] if kwargs else args[key]
        else:
            filling = kwargs if kwargs else args[0] if len(args) == 1 else args
        value = _filled(value, path, 0, filling)
    return value


def _filled(value, path, depth, filling):
    if depth == len(path):
        return filling
    step, kind = path[depth], type(value)
    if type(step) is _Field:
        out = copy.copy(value)
        object.__setattr__(out, step.name, _filled(getattr(value, step.name), path, depth + 1, filling))
        return out
    filled = _filled(value[step], path, depth + 1, filling)
    if kind is tuple:
        return value[:step] + (filled,) + value[step + 1 :]
    if issubclass(kind, tuple):
        elements = list(value)
        elements[step] = filled
        return kind._make(elements) if hasattr(kind, "_make") else kind(elements)
    out = copy.copy(value)
    out[step] = filled
    return out


def steps(callable):
    """Takes a Compose, or a list of callables, apart: returns [(suffix, step)], where the suffix is the step's path from the callable, such as
    ".transforms[0]"; [("", callable)] where it is no Compose, or more than its steps one after the other."""
    out = []
    for suffix, child in _children(callable):
        out += [(suffix + rest, step) for rest, step in steps(child)]
    return out or [("", callable)]


def _children(callable):
    kind = type(callable)
    if _is_list(callable):
        return [("[%d]" % i, child) for i, child in enumerate(callable)]
    if kind.__name__ == "Sequential" and kind.__module__.startswith("torch.nn."):
        hooks = ("_forward_hooks", "_forward_pre_hooks")
        if any(getattr(callable, name, None) for name in hooks):
            return []
        return [("[%d]" % i, child) for i, child in enumerate(callable)]
    if kind.__name__ != "Compose":
        return []
    transforms = getattr(callable, "transforms", None)
    try:
        children = list(transforms)
    except TypeError:
        return []
    # Of albumentations: with a probability, or with boxes or key points to keep in step, a Compose does more than its steps.
    if getattr(callable, "p", 1) != 1 or getattr(callable, "processors", None):
        return []
    if not all(map(_is_callable, children)):
        return []
    return [(".transforms[%d]" % i, child) for i, child in enumerate(children)]


def _is_list(thing):
    """Reports whether a thing is a list or tuple of callables."""
    return type(thing) in (list, tuple) and len(thing) > 0 and all(map(_is_callable, thing))


def _is_callable(thing):
    return callable(thing)
