"""Samples and batches in the arena: any object, pickled, with the data of numpy arrays, torch tensors and PIL images beside it; and
the elements of pipectl's own stages.

An object is laid out as: twice the number of buffers, plus 1 if it is a whole sample, with its label in it, and length of the pickle
(uint32, little endian); the buffers' lengths (uint64); the pickle; the buffers, each aligned to 64 bytes. Data is copied once, when it is written. What is read of it in place is mapped privately: the
user's code may write to it, and keep it.
"""

import ctypes
import importlib
import io
import mmap
import os
import pickle
import struct
import sys

from .main import Fault, class_name

ALIGN = 64
PAGE = 4096
# What is shorter than that is copied when it is read: that takes less time than to see whether it was written to.
COPIED = 32 << 10

# Kinds of elements, as package stages counts them.
ENCODED, IMAGE, TENSOR, TOKENS, OPAQUE, OBJECT = 1, 2, 3, 4, 5, 6
NAMES = {"encoded": ENCODED, "image": IMAGE, "tensor": TENSOR, "tokens": TOKENS, "object": OBJECT}


def aligned(n):
    return -(-n // ALIGN) * ALIGN


class Dumper(pickle.Pickler):
    """Pickles one object, and collects the arrays in it."""

    def __init__(self, file):
        super().__init__(file, protocol=5, buffer_callback=self._buffer)
        self.buffers, self.placing = [], False  # whether the next buffer holds the place of one that is kept
        self.numpy = sys.modules.get("numpy")
        self.torch = loaded("torch")
        self.image = sys.modules.get("PIL.Image")

    def _buffer(self, buffer):
        """Keeps a buffer, unless it holds the place of data that _place has kept."""
        if self.placing:
            self.placing = False
        else:
            self.buffers.append(buffer.raw())
        return False

    def _place(self, data):
        """Keeps data, and returns the buffer that holds its place: it is the next that is pickled."""
        self.buffers.append(data)
        self.placing = True
        return pickle.PickleBuffer(bytearray())

    def reducer_override(self, obj):
        kind = type(obj)
        if self.numpy is not None and kind is self.numpy.ndarray:
            if obj.dtype.kind in "OVmM":
                return NotImplemented
            data, order = by_strides(obj, obj.strides, obj.flags.c_contiguous)
            return array, (self._place(data), obj.dtype.str, data.shape, order)
        if self.torch is not None and kind is self.torch.Tensor:
            if obj.layout is not self.torch.strided or obj.is_quantized or obj.dtype.is_complex and obj.is_conj():
                return NotImplemented
            data = obj.detach()
            data, order = by_strides(data, data.stride(), data.is_contiguous())
            return tensor, (self._place(data), str(obj.dtype)[6:], tuple(data.shape), order, obj.requires_grad and obj.is_leaf)
        if self.image is not None and issubclass(kind, self.image.Image) and obj.mode in RAW:
            info = {k: v for k, v in obj.info.items() if isinstance(v, (str, int, float, bytes, tuple, type(None)))}
            return image, (self._place(memoryview(obj.tobytes())), obj.mode, obj.size, info)
        return NotImplemented


# The modes of PIL whose pixels tobytes and frombuffer hand over unchanged.
RAW = ("L", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV", "LAB", "I", "F", "LA", "I;16")


def by_strides(a, strides, contiguous):
    """Returns an array or tensor with its axes in the order of the memory, and which axis went where; None where none did."""
    if contiguous or any(s <= 0 for s in strides):
        return a, None
    order = sorted(range(len(strides)), key=lambda i: -strides[i])
    ordered = a.permute(order) if hasattr(a, "permute") else a.transpose(order)
    dense = ordered.is_contiguous() if hasattr(a, "permute") else ordered.flags.c_contiguous
    if not dense:
        return a, None
    back = [0] * len(order)
    for at, axis in enumerate(order):
        back[axis] = at
    return ordered, tuple(back)


def array(buffer, dtype, shape, order):
    """Makes a numpy array of a buffer."""
    import numpy as np

    view = memoryview(buffer)
    a = np.frombuffer(view, dtype).reshape(shape) if view.nbytes else np.empty(shape, dtype)
    return a if order is None else a.transpose(order)


def tensor(buffer, dtype, shape, order, requires_grad):
    """Makes a torch tensor of a buffer."""
    import torch

    view = memoryview(buffer)
    if view.nbytes:
        t = flat_tensor(torch, view, getattr(torch, dtype)).reshape(shape)
    else:
        t = torch.empty(shape, dtype=getattr(torch, dtype))
    if order is not None:
        t = t.permute(order)
    return t.requires_grad_() if requires_grad else t


def flat_tensor(torch, view, dtype):
    """Returns a tensor of one dimension in the memory of a buffer."""
    if hasattr(torch, "frombuffer"):  # since 1.10
        return torch.frombuffer(view, dtype=dtype)
    import numpy as np

    return torch.from_numpy(np.frombuffer(view, np.dtype(str(dtype)[6:])))


def image(buffer, mode, size, info):
    """Makes a PIL image of a buffer."""
    import PIL.Image

    view = memoryview(buffer)
    if not view.nbytes:
        img = PIL.Image.new(mode, size)
    else:
        img = PIL.Image.frombytes(mode, size, bytes(view))
    img.info = info
    return img


def loaded(name):
    """Returns a module if the user's code has imported it, and not just begun to."""
    module = sys.modules.get(name)
    if module is not None and name == "torch" and not hasattr(module, "Tensor"):
        return None
    return module


class Dumped:
    """An object, pickled, and ready to be written."""

    def __init__(self, obj, whole=True):
        self.whole = whole
        file = io.BytesIO()
        dumper = Dumper(file)
        try:
            dumper.dump(obj)
        except Exception as e:
            raise Fault("result", f"{describe(obj)} can't be handed to another process: put the stages in a pool block, where one process does the work of all") from e
        self.pickle = file.getbuffer()
        self.buffers = dumper.buffers
        self.lengths = [byte_length(b) for b in self.buffers]
        self.head = 8 + 8 * len(self.buffers)
        self.size = aligned(self.head + len(self.pickle)) + sum(map(aligned, self.lengths))

    def write(self, dest):
        """Writes the object to a memoryview of bytes."""
        n = len(self.buffers)
        struct.pack_into(f"<II{n}Q", dest, 0, 2 * n + self.whole, len(self.pickle), *self.lengths)
        dest[self.head : self.head + len(self.pickle)] = self.pickle
        at = aligned(self.head + len(self.pickle))
        for data, length in zip(self.buffers, self.lengths):
            if length:
                copy_to(dest[at : at + length], data)
            at += aligned(length)


def byte_length(data):
    return data.numel() * data.element_size() if hasattr(data, "element_size") else data.nbytes


def copy_to(dest, data):
    """Copies a buffer's data, in the order of its axes."""
    if isinstance(data, memoryview):
        dest[:] = data
    elif hasattr(data, "permute"):
        torch = sys.modules["torch"]
        flat_tensor(torch, dest, data.dtype).view(data.shape).copy_(data)
    else:
        np = sys.modules["numpy"]
        np.copyto(np.frombuffer(dest, data.dtype).reshape(data.shape), data)


def load(view):
    """Reads an object from a memoryview of bytes, whose memory the arrays in it use, and whether it is a whole sample."""
    n, length = struct.unpack_from("<II", view)
    n, whole = divmod(n, 2)
    lengths = struct.unpack_from(f"<{n}Q", view, 8)
    head = 8 + 8 * n
    at, buffers = aligned(head + length), []
    for size in lengths:
        buffers.append(view[at : at + size])
        at += aligned(size)
    return pickle.loads(view[head : head + length], buffers=buffers), bool(whole)


class Mapping(mmap.mmap):
    """A mapping that knows its first page."""

    __slots__ = ("page",)


class Reader:
    """Reads pieces of the arena, for the time of one call.

    What is read in place lies in a private mapping, which is kept for the next time: the kernel shows there what the arena holds
    now, but for the pages that the user's code has written to, which are its own from then on.
    """

    def __init__(self, fd, arena):
        self.fd, self.arena = fd, memoryview(arena)
        self.maps = {}  # mappings, by offset
        self.references = 0  # to a mapping that nobody else has
        self.used = []  # offsets of those that this call has read
        self.pages = None  # descriptor of the kernel's account of this process's pages

    def read(self, offset, length):
        """Returns a memoryview of bytes of one's own, to be written to and kept."""
        if length <= COPIED:
            return memoryview(bytearray(self.arena[offset : offset + length]))
        start = offset // PAGE * PAGE
        if start in self.maps and len(self.maps[start]) < offset + length - start:
            del self.maps[start]  # it lives on while the user's code has a part of it
        if start not in self.maps:
            self.maps[start] = Mapping(self.fd, offset + length - start, flags=mmap.MAP_PRIVATE, offset=start)
            self.maps[start].page = ctypes.addressof(ctypes.c_char.from_buffer(self.maps[start])) // PAGE
            self.references = sys.getrefcount(self.maps[start])
        self.used.append(start)
        return memoryview(self.maps[start])[offset - start : offset - start + length]

    def done(self):
        """Ends a call: the arena may change after it, so what the user's code has kept of it becomes its own."""
        for start in set(self.used).intersection(self.maps):
            if sys.getrefcount(self.maps[start]) > self.references:
                view = memoryview(self.maps.pop(start))
                view[::PAGE] = memoryview(bytes(view[::PAGE]))  # a page that is written to is copied
            elif self._written(self.maps[start]):
                del self.maps[start]
        self.used.clear()
        while len(self.maps) > MAPS:
            del self.maps[next(iter(self.maps))]

    def _written(self, private):
        """Reports whether a mapping has pages of its own."""
        try:
            if self.pages is None:
                self.pages = os.open("/proc/self/pagemap", os.O_RDONLY)
            flags = set(os.pread(self.pages, 8 * -(-len(private) // PAGE), 8 * private.page)[7::8])
        except OSError:  # it isn't to be had here
            return True
        # The highest bits of a page's 64: in memory, swapped out, of a file (proc_pid_pagemap(5)).
        return not flags or any(f & 0xC0 and not f & 0x20 for f in flags)


# How many mappings are kept.
MAPS = 256


def read_element(reader, kind, shape, offset, length, form):
    """Returns an element of a Go stage, or an object, and whether that is a whole sample, with its label in it. form says what an
    image or tensor becomes: "array", "pil" or "tensor"."""
    if kind == OBJECT:
        return load(reader.read(offset, length))
    return read_data(reader, kind, shape, offset, length, form), False


def read_data(reader, kind, shape, offset, length, form):
    if kind in (ENCODED, OPAQUE):
        return bytes(reader.arena[offset : offset + length])
    h, w, c = shape
    if kind == IMAGE and form == "pil":
        return needed("PIL.Image", form).frombytes("RGB", (w, h), bytes(reader.arena[offset : offset + length]))
    view = reader.read(offset, length)
    if kind == IMAGE:
        if form == "tensor":
            torch = needed("torch", form)
            return flat_tensor(torch, view, torch.uint8).view(h, w, c).permute(2, 0, 1)
        return needed("numpy", form).frombuffer(view, "uint8").reshape(h, w, c)
    dtype, shape = ("float32", shape) if kind == TENSOR else ("int32", (length // 4,))
    if form == "tensor":
        torch = needed("torch", form)
        return flat_tensor(torch, view, getattr(torch, dtype)).view(shape)
    return needed("numpy", form).frombuffer(view, dtype).reshape(shape)


def needed(module, form):
    """Imports a module that a form needs."""
    try:
        return importlib.import_module(module)
    except ImportError as e:
        raise Fault("import", f'as = "{form}" needs {module.partition(".")[0]}, which {sys.executable} lacks') from e


class Piece:
    """An element of a Go stage, ready to be written."""

    def __init__(self, kind, shape, data):
        self.kind, self.shape, self.data = kind, shape, data
        self.size = byte_length(data)

    def write(self, dest):
        if self.size:
            copy_to(dest[: self.size], self.data)


def element(value, kind, shape, whole=True):
    """Returns what the user's code gave as an element of a kind, with a size and write(dest), or raises a Fault that says why it
    isn't one. shape is what the file declares, [] where it doesn't; whole says whether an object is a whole sample."""
    if kind == OBJECT:
        dumped = Dumped(value, whole)
        dumped.kind, dumped.shape = OBJECT, (dumped.size, 0, 0)
        return dumped
    name = next(n for n, k in NAMES.items() if k == kind)
    want = {ENCODED: "bytes", IMAGE: "a PIL image of mode RGB, or uint8 (H, W, 3)", TENSOR: "float32", TOKENS: "int32, of one dimension"}[kind]

    def refuse(why=""):
        raise Fault("result", f'gave {describe(value)} where output = "{name}" needs {want}{why}')

    if kind == ENCODED:
        data = memoryview(value).cast("B") if isinstance(value, (bytes, bytearray, memoryview)) else numeric(value)
        if data is None or not isinstance(data, memoryview) and (dtype_of(data) != "uint8" or len(data.shape) != 1):
            refuse()
        return Piece(kind, (byte_length(data), 0, 0), data)
    if kind == IMAGE and is_pil(value):
        if value.mode != "RGB":
            refuse(': .convert("RGB") makes it one')
        w, h = value.size
        piece = Piece(kind, (h, w, 3), memoryview(value.tobytes()))
    else:
        data = numeric(value)
        if data is None or dtype_of(data) != {IMAGE: "uint8", TENSOR: "float32", TOKENS: "int32"}[kind]:
            refuse()
        if kind == IMAGE:
            if hasattr(data, "permute") and len(data.shape) == 3 and data.shape[0] == 3:
                data = data.permute(1, 2, 0)  # torch's images have the channels first
            if len(data.shape) != 3 or data.shape[2] != 3:
                refuse()
        elif not 1 <= len(data.shape) <= (3 if kind == TENSOR else 1):
            refuse("" if kind == TOKENS else ", of one to three dimensions")
        piece = Piece(kind, padded(tuple(data.shape), kind), data)
    if shape and tuple(shape) != tuple(piece.shape) and padded(tuple(shape), kind) != piece.shape:
        raise Fault("result", f"gave {describe(value)} where shape = {list(shape)}")
    return piece


def padded(shape, kind):
    """Returns a shape of three dimensions, as package stages counts them."""
    if kind == TENSOR:
        return (1,) * (3 - len(shape)) + shape
    if kind == IMAGE and len(shape) == 2:
        return shape + (3,)
    return shape + (0,) * (3 - len(shape))


def numeric(value):
    """Returns a numpy array or a torch tensor of the CPU, or None where the value is neither."""
    np, torch = sys.modules.get("numpy"), loaded("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach()
    if np is not None and isinstance(value, np.ndarray):
        return value
    return None


def is_pil(value):
    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(value, pil.Image)


def dtype_of(data):
    return str(data.dtype).replace("torch.", "")


def describe(value):
    """Says what a value is, for messages."""
    data = numeric(value)
    if data is not None:
        return f"{dtype_of(data)} {tuple(data.shape)}"
    if is_pil(value):
        return f"a PIL image of mode {value.mode}"
    if value is None:
        return "None"
    if isinstance(value, (tuple, list)) and len(value) <= 4:
        return f"a {class_name(value)} of {', '.join(map(describe, value))}" if value else f"an empty {class_name(value)}"
    return f"a {class_name(value)}"
