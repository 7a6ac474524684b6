"""NumPy's archives (``.npz``) from strangers: as much as a file may unfold to, and no more.

Numbers compress without limit where they are all the same, and headers can claim anything. So sizes
are added up before anything is unpacked, an array must be as long as its header says, and what is
neither number nor text is rejected.
"""

import ast
import math
import os
import stat
import struct
import zipfile
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, get_args, get_origin

import numpy as np

from kinetree.contact.history import (
    ContactHistory,
    PhaseHistory,
    PhaseResiduals,
    RecordedHistory,
    Residuals,
)
from kinetree.contact.soft.history import SoftHistory
from kinetree.errors import LoadError
from kinetree.integration.events import EventRecord
from kinetree.loops.stepping.singular_passes import SingularPass
from kinetree.simulation.results.report import Report

FREE_BYTES = 256 * 2**20
"""What any file may unfold to."""
UNFOLDING = 20
"""How many times its own size a larger file may unfold to."""
_MOST_ARRAYS = 100_000
_LONGEST_HEADER = 4096
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PLAIN = "biufcUS"  # kinds of NumPy's types: numbers and text


def regular_size(path) -> int:
    """Size of a regular file in bytes; LoadError for folders, pipes and devices."""
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise LoadError(f"{path}: this is not a regular file")
    return status.st_size


def check_size(path, unfolded, size):
    """Raise LoadError if a compressed file would expand to too many bytes."""
    most = FREE_BYTES + UNFOLDING * size
    if unfolded > most:
        raise LoadError(
            f"{path}: its {size} bytes unfold to {unfolded}, and at most {most} are read; for a "
            f"file that you trust, raise kinetree.simulation.results.archives.FREE_BYTES"
        )


class Archive:
    """Arrays by name in a file, unpacked one by one; use it in a ``with`` statement.

    Attributes:
        names: of the arrays.
    """

    def __init__(self, path):
        size = regular_size(path)
        self._path = path
        self._zip = zipfile.ZipFile(path)
        try:
            entries = self._zip.infolist()
            if len(entries) > _MOST_ARRAYS:
                raise LoadError(f"{path}: {len(entries)} arrays; at most {_MOST_ARRAYS} are read")
            self._entries = {entry.filename.removesuffix(".npy"): entry for entry in entries}
            if len(self._entries) < len(entries):
                raise LoadError(f"{path}: two of its arrays have the same name")
            if any(e.compress_type not in _METHODS or e.flag_bits & 1 for e in entries):
                raise LoadError(f"{path}: this is not an archive that NumPy writes")
            check_size(path, sum(entry.file_size for entry in entries), size)
        except BaseException:
            self._zip.close()
            raise
        self.names = tuple(self._entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._zip.close()

    def __contains__(self, name):
        return name in self._entries

    def __getitem__(self, name) -> np.ndarray:
        """An array; its checksum is compared."""
        data = self._zip.read(self._entries[name])
        return _array(data)

    def get(self, name, default=None):
        """Array of the archive by name, or a default."""
        return self[name] if name in self._entries else default

    def check(self):
        """Name of the first array with a wrong checksum, or None."""
        return self._zip.testzip()


def _array(data) -> np.ndarray:
    """Array from the bytes of an ``.npy`` file; ValueError for unsafe or broken content."""
    if data[:6] != b"\x93NUMPY" or data[6:8] not in (b"\1\0", b"\2\0", b"\3\0"):
        raise ValueError("an array that NumPy did not write")
    wide = data[6] > 1
    (length,) = struct.unpack("<I" if wide else "<H", data[8 : 12 if wide else 10])
    start = (12 if wide else 10) + length
    if length > _LONGEST_HEADER or start > len(data):
        raise ValueError(f"an array with a header of {length} bytes")
    header = ast.literal_eval(data[start - length : start].decode("utf-8").strip())
    kind, shape, is_fortran = header["descr"], header["shape"], header["fortran_order"]
    if not isinstance(kind, str) or (dtype := np.dtype(kind)).kind not in _PLAIN:
        raise ValueError(f"an array of {str(kind)[:60]}, neither numbers nor text")
    if not (isinstance(shape, tuple) and all(type(n) is int and n >= 0 for n in shape)):
        raise ValueError(f"an array of shape {str(shape)[:60]}")
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ValueError(f"an array of shape {shape} in {len(data) - start} bytes")
    if not dtype.itemsize:
        return np.zeros(shape, dtype)
    array = np.frombuffer(bytearray(data[start:]), dtype)
    return array.reshape(shape, order="F" if is_fortran is True else "C")


# --- events and reports as plain data, and back --------------------------------------------------
# A file names classes by the keys of a fixed table, so that no file chooses what is made.

_ARRAY = "array"
_DEEPEST = 16
_CLASSES: dict = {  # by the names that files have for them, whatever the place of the class today
    "results.report.Report": Report,
    "events.event.EventRecord": EventRecord,
    "constrained.passes.SingularPass": SingularPass,
    "contact.history.ContactHistory": ContactHistory,
    "contact.phases.history.PhaseHistory": PhaseHistory,
    "kinetree." + "contact.stepping.residuals.Residuals": Residuals,
    "kinetree." + "simulation.contact.phases.history.PhaseResiduals": PhaseResiduals,
}
_NAMES = {kind: name for name, kind in _CLASSES.items()}
_NAMES[RecordedHistory] = _NAMES[SoftHistory] = _NAMES[ContactHistory]


def plain(x):
    """JSON-ready form of numbers, arrays, containers and known record classes."""
    if isinstance(x, np.ndarray):
        return {"": _ARRAY, "values": x.tolist()}
    if isinstance(x, np.generic):
        return x.item()
    kind = _NAMES.get(type(x))
    if kind is not None:
        return {"": kind} | {name: plain(getattr(x, name)) for name in _fields(type(x))}
    if isinstance(x, (list, tuple)) and not hasattr(x, "_fields"):
        return [plain(item) for item in x]
    if isinstance(x, dict):
        return {str(key): plain(value) for key, value in x.items()}
    if isinstance(x, (str, int, float, bool, type(None))):
        return x
    if type(x).__module__.startswith("kinetree."):
        raise TypeError(f"{type(x).__qualname__} is not among the classes that files can name")
    return str(x)


def revive(data, depth=0):
    """Object from its ``plain`` form; ValueError for anything ``plain`` cannot have written."""
    if depth > _DEEPEST:
        raise ValueError(f"data nested more than {_DEEPEST} deep")
    if isinstance(data, list):
        return tuple(revive(item, depth + 1) for item in data)
    if not isinstance(data, dict):
        return data
    if data.get("") == _ARRAY:
        array = np.array(data["values"])
        if array.dtype.kind not in "biufU":
            raise ValueError("an array of something other than numbers and text")
        return array
    values = {key: revive(value, depth + 1) for key, value in data.items() if key}
    if "" not in data:
        return values
    if data[""] not in _CLASSES:
        raise ValueError(f"{str(data[''])[:60]!r} is nothing that a trajectory holds")
    kind = _CLASSES[data[""]]
    for name, expected in _fields(kind).items():
        if name in values and not _fits(values[name], expected):
            raise ValueError(f"{name} of {kind.__name__} cannot be {str(values[name])[:60]!r}")
    return kind(**values)


def _fields(kind):
    """Field names and types of a dataclass or named tuple."""
    if is_dataclass(kind):
        return {f.name: f.type for f in fields(kind) if f.init}
    return dict.fromkeys(kind._fields, float)


def _fits(value, expected):
    """Whether a value matches a type annotation; integers count as floats.

    Any is for residuals, which are named tuples; a tuple without more has the numbers of a sample.
    """
    if expected is Any:
        return value is None or hasattr(value, "_fields")
    if expected is tuple:
        return isinstance(value, tuple) and all(_fits(x, int) for x in value)
    if isinstance(expected, UnionType):
        return any(_fits(value, one) for one in get_args(expected))
    if get_origin(expected) is tuple:
        return isinstance(value, tuple) and all(_fits(x, get_args(expected)[0]) for x in value)
    if expected in (float, int):
        kinds = (int, float) if expected is float else (int,)
        return isinstance(value, kinds) and not isinstance(value, bool)
    return value is None if expected in (None, type(None)) else isinstance(value, expected)
