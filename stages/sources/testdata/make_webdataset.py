"""Makes webdataset/: shards in the tar formats that Python writes, and samples.json, what Python finds in them.

Made with Python 3.11.2 and numpy 1.24.2. The grouping is that of https://github.com/webdataset/webdataset: a member's key is its name up to the first dot of
its last part, found here by a regular expression.
"""
import io
import json
import os
import re
import tarfile

import numpy as np

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "webdataset")


def npy(a):
    buffer = io.BytesIO()
    np.save(buffer, a)
    return buffer.getvalue()


SHARDS = {
    "ustar": (tarfile.USTAR_FORMAT, [
        ("a.jpg", b"jpeg a"), ("a.cls", b"3"), ("a.json", b'{"label": "cat", "id": 1}'),
        ("b/c.d.JPG", b"not the first extension"), ("b/c.cls", b" 0\n"), ("b/c.jpeg", b"jpeg c" * 200),
        ("README", b"no extension"), ("b/", None), ("dir.with.dots/x.png", b"png"), ("dir.with.dots/x.cls", b"12"),
        ("__index__/i.jpg", b"set apart"), ("__meta__", b"set apart"), ("__e.jpg", b"an underscore"), ("__e.cls", b"1"),
        ("p" * 60 + "/" + "n" * 90 + ".jpg", b"a name in two parts"), ("p" * 60 + "/" + "n" * 90 + ".cls", b"2"),
        ("./f.jpg", b""), ("./f.cls", b"7"),
    ]),
    "gnu": (tarfile.GNU_FORMAT, [
        ("long" * 60 + ".jpg", b"jpeg"), ("long" * 60 + ".cls", b"1"), ("\u00fc/\u65e5\u672c.jpg", b"jpeg " * 1000), ("\u00fc/\u65e5\u672c.cls", b"0"),
    ]),
    "pax": (tarfile.PAX_FORMAT, [
        ("long" * 60 + ".jpg", b"jpeg"), ("long" * 60 + ".cls", b"1"), ("\u00fc/\u65e5\u672c.jpg", b"jpeg " * 1000), ("\u00fc/\u65e5\u672c.cls", b"0"),
    ]),
    "npy": (tarfile.PAX_FORMAT, [
        ("0.npy", npy(np.arange(6, dtype=np.float32).reshape(1, 2, 3) / 4)), ("0.cls", b"0"),
        ("1.npy", npy(-np.arange(6, dtype=np.float32).reshape(1, 2, 3))), ("1.cls", b"1"),
        ("2.npy", npy(np.arange(4, dtype=np.float32).reshape(1, 2, 2))), ("2.cls", b"2"),
    ]),
}


def samples(path):
    found = []
    with tarfile.open(path) as tar:
        for m in tar:
            match = re.match(r"^((?:.*/|)[^.]+)[.]([^/]*)$", m.name)
            if not m.isreg() or not match or re.match(r"__[^/]*__($|/)", m.name):
                continue
            key, extension = match.groups()
            if not found or found[-1]["key"] != key:
                found.append({"key": key, "members": {}})
            found[-1]["members"][extension.lower()] = [m.name, m.offset_data, m.size]
    return found


if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    result = {}
    for name, (form, members) in SHARDS.items():
        path = os.path.join(FOLDER, name + ".tar")
        with tarfile.open(path, "w", format=form) as tar:
            for member, data in members:
                info = tarfile.TarInfo(member)
                if data is None:
                    info.type = tarfile.DIRTYPE
                    tar.addfile(info)
                else:
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        result[name] = samples(path)
    with open(os.path.join(FOLDER, "samples.json"), "w") as f:
        json.dump(result, f, indent=1, ensure_ascii=False)
        f.write("\n")
