"""Where results are kept: in memory, or in a folder that survives a crash.

A folder holds ``manifest.json`` (what the sweep is about, with its digest), ``runs.npz`` (the
values of all runs), ``chunk-000000.npz`` and so on. Files are written under another name and then
renamed, so that a file which is there is whole; one that was damaged later is found by its
checksums and computed again.
"""

import json
import os
import uuid
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.errors import SweepError, SweepWarning
from kinetree.simulation.sweep.work import Chunk

__all__ = ["FORMAT", "Folder", "Memory", "read_manifest", "save_arrays", "write_whole"]

FORMAT = "kinetree sweep 1"
_DAMAGED = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zipfile.LargeZipFile)


class Memory:
    """Results that last as long as the program."""

    def __init__(self):
        self.chunks = {}

    def finished(self):
        """Numbers of the chunks that are there."""
        return set(self.chunks)

    def keep(self, number, chunk):
        """Keep a chunk."""
        self.chunks[number] = chunk

    def read(self, number, names=None) -> Chunk:
        """A chunk, with the named columns at least."""
        return self.chunks[number]


class Folder:
    """Results in a folder.

    Args:
        path: of the folder.
        study: digest of the sweep, which every file of it carries.
        count: number of chunks.
    """

    def __init__(self, path, study, count):
        self.path, self.study, self.count = Path(path), study, count

    def finished(self):
        """Numbers of the chunks that are there and whole."""
        return {k for k in range(self.count) if self.file(k).exists() and self._is_whole(k)}

    def keep(self, number, chunk):
        """Write a chunk."""
        write_whole(self.file(number), lambda f: save_arrays(f, _pack(chunk, self.study)))

    def read(self, number, names=None) -> Chunk:
        """A chunk, with all or only the named columns."""
        path = self.file(number)
        try:
            with np.load(path) as arrays:
                return _unpack(arrays, names)
        except _DAMAGED as error:
            raise SweepError(
                f"{path} cannot be read ({error}); call kt.sweep again with this folder, which "
                f"computes what is missing or damaged"
            ) from error

    def file(self, number):
        """Path of a chunk."""
        return self.path / f"chunk-{number:06d}.npz"

    def _is_whole(self, number):
        path = self.file(number)
        try:
            with zipfile.ZipFile(path) as archive:
                problem = archive.testzip() and "a checksum is wrong"
            with np.load(path) as arrays:
                if not problem and str(arrays["study"]) != self.study:
                    problem = "it belongs to another sweep"
        except _DAMAGED as error:
            problem = f"{error}"
        if problem:
            warnings.warn(
                f"{path} is damaged ({problem}) and is computed again", SweepWarning, stacklevel=5
            )
        return not problem


def write_whole(path, write):
    """Write a file so that it is there completely or not at all."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        with open(draft, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def save_arrays(file, arrays: dict[str, Any]):
    """Write arrays by name into an open file."""
    np.savez(file, **arrays)


def read_manifest(path):
    """What a folder says it is about."""
    file = Path(path) / "manifest.json"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
        is_ours = manifest["format"] == FORMAT
    except FileNotFoundError:
        raise SweepError(f"{path} holds no sweep: there is no {file.name} in it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SweepError(f"{file} cannot be read: {error}") from None
    if not is_ours:
        raise SweepError(f"{file} has format {manifest['format']!r}, expected {FORMAT!r}")
    return manifest


def _pack(chunk, study):
    """A chunk as arrays: columns stacked where rows are alike, else row by row."""
    failed = list(chunk.failures)
    arrays = {
        "study": np.array(study),
        "ids": chunk.ids,
        "seeds": chunk.seeds,
        "failed": np.array(failed, dtype=np.int64),
        "reasons": np.array([chunk.failures[i] for i in failed] or [""]),
    }
    for name, column in chunk.columns.items():
        there = [k for k, row in enumerate(column) if row is not None]
        arrays[f"rows:{name}"] = np.array(there, dtype=np.int64)
        rows = [column[k] for k in there]
        if len({(row.shape, row.dtype.kind) for row in rows}) == 1:
            arrays[f"all:{name}"] = np.stack(rows)
        else:
            arrays |= {f"{k}:{name}": row for k, row in zip(there, rows, strict=True)}
    return arrays


def _unpack(arrays, names):
    chunk = Chunk(arrays["ids"], arrays["seeds"])
    failures = zip(arrays["failed"].tolist(), arrays["reasons"].tolist(), strict=False)
    chunk.failures = dict(failures)
    for key in arrays:
        kind, _, name = key.partition(":")
        if kind != "rows":
            continue
        if names is not None and name not in names:
            chunk.unread += (name,)
            continue
        there = arrays[key].tolist()
        rows = arrays.get(f"all:{name}")
        for j, k in enumerate(there):
            chunk.put(k, {name: arrays[f"{k}:{name}"] if rows is None else rows[j]})
    return chunk
