"""What the helper needs of the standard library, which a module of the user's may have the name of.

All of it, and the helper itself, is loaded before there is a folder of the user's in sys.path: a random.py there isn't for the helper.
The user's code, then, finds what it would find without the helper.
"""

import builtins
import importlib
import multiprocessing.connection
import multiprocessing.popen_fork
import sys
import tokenize
from importlib.machinery import FrozenImporter, ModuleSpec, PathFinder

from . import adopt, control, copies, finding, fresh, lift, miniloader, pool, poolwork, refs, serve, step, trial, values

# The module that imports torch, and so can't be loaded before the user's code.
LATE = "pipectl_python.torchpool"


class Library:
    """The modules that the helper has loaded."""

    def __init__(self, folders, loaded, theirs):
        self.folders = folders  # of PYTHONPATH
        self.loaded = loaded  # names, before the helper
        self.theirs = theirs  # modules, of these, that come from the folders
        self.hidden = {}  # modules of the standard library that only the helper sees, by name
        # The user's code may change the process's user or its root: the helper's file can't be read after that.
        self.late = __loader__.get_code(LATE)
        sys.meta_path.insert(0, self)

    def admit(self, folders):
        """Puts folders, then those of PYTHONPATH, in front of sys.path, and has their modules found in place of the standard library's."""
        folders = folders + self.folders
        sys.path[:] = folders + sys.path[1:] + sys.path[:1]  # the first is the helper's own
        for name in [n for n in sys.modules if n.partition(".")[0] not in self.loaded | {"pipectl_python"}]:
            if found_in(name.partition(".")[0], folders):
                self.hidden[name] = sys.modules.pop(name)
        self.hidden.update((name, sys.modules[name]) for name in self.theirs if name in sys.modules)
        sys.modules.update(self.theirs)

    def find_spec(self, name, path, target=None):
        return ModuleSpec(LATE, self) if name == LATE else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self.import_hidden}
        exec(self.late, module.__dict__)

    def import_hidden(self, name, *args, **kwargs):
        """Imports as __import__ does, for the helper."""
        return self.hidden.get(name) or builtins.__import__(name, *args, **kwargs)


def found_in(name, folders):
    """Reports whether `import name` finds a module in one of the first folders of sys.path."""
    if name in sys.builtin_module_names or FrozenImporter.find_spec(name) is not None:
        return False
    spec = PathFinder.find_spec(name, folders)
    return spec is not None and spec.origin is not None  # a folder without __init__.py comes last
