"""The main process: imports the user's code, and does what pipectl asks for, one request at a time.

File descriptors 3, 4 and 5 are the control socket, the arena, and a pipe that stays open as long as pipectl lives.
"""

import errno
import faulthandler
import fcntl
import importlib
import importlib.machinery
import json
import mmap
import os
import re
import select
import signal
import socket
import struct
import sys
import traceback

CONTROL, ARENA, LIFE = 3, 4, 5

# What can be asked for: the module and the function.
OPS = {
    "hello": ("main", "hello"),
    "exited": ("main", "exited"),
    "resolve": ("refs", "resolve_op"),
    "name": ("refs", "name_op"),
    "files": ("refs", "files_op"),
    "fork": ("serve", "fork"),
    "step.open": ("step", "open_step"),
    "step.run": ("step", "run"),
    "step.wait": ("step", "wait"),
    "pool.open": ("pool", "open_pool"),
    "pool.start": ("pool", "start"),
    "pool.next": ("pool", "next_batch"),
    "pool.copy": ("pool", "copy"),
    "pool.rest": ("pool", "rest"),
    "pool.close": ("pool", "close"),
    "adopt.find": ("finding", "find"),
    "adopt.describe": ("adopt", "describe"),
}


class Fault(Exception):
    """A mistake that the helper itself found in what it was asked for, or in what the user's code gave."""

    def __init__(self, kind, message, address=None, index=None):
        super().__init__(message)
        self.kind, self.address, self.index = kind, address, index


class State:
    """What the main process holds from one request to the next."""

    def __init__(self, control, arena, library):
        self.control = control
        self.library = library
        self.arena = arena  # an mmap of all of it
        self.objects = {}  # what references name, see refs.py
        self.children = set()  # process ids
        self.exits = {}  # status by process id, of those that ended
        self.python = "python3"  # as the file names the interpreter
        self.pythonpath = []

    def reap(self):
        """Takes note of the stage processes that have ended."""
        for pid in list(self.children):
            try:
                ended, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # the user's code waited for it
                ended, status = pid, 0
            if ended:
                self.children.discard(pid)
                self.exits[pid] = status


class Connection:
    """A control socket: frames of a length (uint32, little endian) and so many bytes."""

    def __init__(self, sock):
        self.sock = sock
        self.files = []  # descriptors that came with the last frame
        self.buffer = b""

    def receive(self):
        """Returns the next frame, or None at the end."""
        data = self.buffer
        while len(data) < 4 or len(data) < 4 + LENGTH.unpack_from(data)[0]:
            try:
                more, ancillary, _, _ = self.sock.recvmsg(1 << 16, ROOM)
            except OSError as e:
                self.closed(e)
            for level, kind, fds in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    for (fd,) in struct.iter_unpack("i", fds[: len(fds) // 4 * 4]):
                        os.set_inheritable(fd, False)
                        self.files.append(fd)
            if not more:
                return None
            data += more
        end = 4 + LENGTH.unpack_from(data)[0]
        self.buffer = data[end:]
        return data[4:end]

    def send(self, body):
        try:
            self.sock.sendall(LENGTH.pack(len(body)) + body)
        except OSError as e:
            self.closed(e)

    def closed(self, error):
        """Ends the process if the user's code has closed the socket, or put something else there; raises other errors."""
        if error.errno not in (errno.EBADF, errno.ENOTSOCK):
            raise error
        try:
            os.write(2, b"The code has closed the descriptor that pipectl reaches it by, as os.closerange(3, n) does.\n")
        finally:
            os._exit(1)

    def answer(self, reply):
        self.send(b"J" + json.dumps(reply).encode())


LENGTH = struct.Struct("<I")
ROOM = socket.CMSG_SPACE(4 * 4)  # for four descriptors


def main(folders, loaded, theirs):
    """Serves pipectl until it is gone. folders are those of sys.path before the standard library's, which the bootstrap has taken out;
    loaded has the names of the modules that the interpreter starts with, and theirs those of them that come from the folders."""
    for fd in (CONTROL, ARENA, LIFE):
        os.set_inheritable(fd, False)
    die_with_pipectl(LIFE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable()  # a crash is printed with the line it happened in,
    faulthandler.register(signal.SIGUSR1)  # and a hang, before the process is killed
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # else the interpreter's sitecustomize has put something else there
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.argv = ["pipectl"]
    control = socket.socket(fileno=CONTROL)
    state = State(Connection(control), mmap.mmap(ARENA, 0), importlib.import_module("pipectl_python.library").Library(folders, loaded, theirs))
    while True:
        body = state.control.receive()
        if body is None:
            os.killpg(os.getpid(), signal.SIGKILL)  # which it leads; the user's code may have taken it to another group
            os.kill(os.getpid(), signal.SIGKILL)
        state.reap()
        state.control.answer(reply_to(state, json.loads(body[1:])))


def die_with_pipectl(life):
    """Has the kernel kill this process and its group when the pipe's other end is closed, whatever the processes do meanwhile."""
    set_signal = 10  # F_SETSIG of <fcntl.h>, which the module fcntl lacks
    own = os.open(f"/proc/self/fd/{life}", os.O_RDONLY)  # a descriptor of its own has an owner of its own
    for fd, owner in ((life, -os.getpgrp()), (own, os.getpid())):
        fcntl.fcntl(fd, set_signal, signal.SIGKILL)
        fcntl.fcntl(fd, fcntl.F_SETOWN, owner)
        fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:  # it was closed before
        os.killpg(0, signal.SIGKILL)


def flush():
    """Writes out what the user's code has printed, as far as that can be: the code may have closed or replaced the streams."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            stream.flush()
        except Exception:
            pass


def reply_to(state, request):
    """Does what is asked for and returns the reply."""
    try:
        module, function = OPS[request["op"]]
        if module == "main":
            do = globals()[function]
        else:
            do = getattr(importlib.import_module("pipectl_python." + module), function)
        return {"ok": do(state, request)}
    except BaseException as e:  # sys.exit of the user's code, too
        return {"error": describe(e)}


def hello(state, request):
    """Prepares the process."""
    state.python, state.pythonpath = request["python"], request["pythonpath"]
    state.library.admit(state.pythonpath)
    return {"version": sys.version.split()[0], "executable": sys.executable}


def exited(state, request):
    """Returns the wait status of a stage process that has ended, None where it hasn't."""
    return state.exits.get(request["pid"])


def describe(error):
    """Returns an exception as a reply has it."""
    if isinstance(error, Fault):
        described = {"kind": error.kind, "message": cut(str(error))}
        if error.address is not None:
            described["address"] = error.address
        if error.index is not None:
            described["index"] = error.index
        if error.__cause__ is not None:
            described["traceback"] = trace(error.__cause__)
        return described
    return {"kind": "exception", "type": class_name(error), "message": message_of(error), "traceback": trace(error)}


def class_name(error):
    kind = type(error)
    module = kind.__module__
    if not isinstance(module, str) or module in ("builtins", "__main__"):
        return kind.__qualname__
    return module + "." + kind.__qualname__


def message_of(error):
    """Returns an exception's text, with what a file is to blame for that hides a module of the standard library."""
    try:
        return cut(str(error) + hiding(str(error)))
    except BaseException as e:  # the user's class may be faulty
        return "(its text can't be had: " + class_name(e) + ")"


def text_of(error):
    """Returns an exception's class and text."""
    return ": ".join(filter(None, (class_name(error), message_of(error))))


# How many characters are told of a text of the user's code.
TOLD = 8 << 10


def cut(text):
    return text if len(text) <= TOLD else f"{text[:TOLD]}… {len(text) - TOLD} more characters"


# What Python says of a module that lacks something.
LACKING = re.compile(r"(?:module|from|;) '(\w+)")


def hiding(message):
    """Returns what belongs behind an exception's text where it is about a module of the user's that is imported in place of one of the
    standard library."""
    found = LACKING.search(message[:TOLD])
    file = getattr(sys.modules.get(found[1]), "__file__", None) if found else None
    own = os.path.dirname(os.__file__)
    if not file or file.startswith(own + os.sep) or file in message:
        return ""
    if importlib.machinery.PathFinder.find_spec(found[1], [own, os.path.join(own, "lib-dynload")]) is None:
        return ""
    return f" ({file} hides Python's own module {found[1]}: rename it)"


def trace(error):
    """Returns an exception's traceback as Python prints it, without this helper's frames and those of the import machinery."""
    try:
        described = traceback.TracebackException.from_exception(error)
        seen = set()
        pending = [described]
        while pending:
            e = pending.pop()
            if e is None or id(e) in seen:
                continue
            seen.add(id(e))
            e.stack[:] = filter(of_user, e.stack)
            pending += [e.__cause__, e.__context__]
            pending += getattr(e, "exceptions", None) or []
        return cut("".join(described.format()).rstrip("\n"))
    except BaseException:  # the user's class may be faulty
        frames = filter(of_user, traceback.extract_tb(error.__traceback__))
        return "Traceback (most recent call last):\n" + "".join(traceback.format_list(list(frames))) + text_of(error)


def of_user(frame):
    """Reports whether a frame is neither this helper's nor the import machinery's."""
    name = frame.filename
    return "/pipectl_python/" not in name and not name.startswith(("<frozen importlib", "<frozen zipimport")) and name != importlib.__file__
