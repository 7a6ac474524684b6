"""Results of a sweep, in memory or in a folder that survives a crash.

A folder holds ``manifest.json`` (what the sweep is about, with its digest), ``runs.npz`` (the
values of all runs), ``chunk-000000.npz`` and so on. Files are written under another name and then
renamed, so that a file which is there is whole; one that was damaged later is found by its
checksums and computed again.
"""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import SweepError, SweepWarning, UnknownNameError, need, require_known, warn
from kinetree.files import write_with
from kinetree.simulation.results.archives import Archive, regular_size
from kinetree.simulation.sweep.work import Chunk
from kinetree.spelling import printable

FORMAT = "kinetree sweep 1"
_MANIFEST_BYTES = 2**20
_MOST_CHUNKS = 10**6


class Memory:
    """Results that last as long as the program."""

    def __init__(self):
        self.chunks = {}

    def finished_chunks(self):
        """Set of the numbers of all stored chunks."""
        return set(self.chunks)

    def keep(self, number, chunk):
        """Store a chunk of results under its number."""
        self.chunks[number] = chunk

    def read(self, number, names=None) -> Chunk:
        """Chunk of results by number, with at least the named columns."""
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

    def finished_chunks(self):
        """Set of the numbers of all complete chunk files."""
        return {k for k in range(self.count) if self.file(k).exists() and self._is_whole(k)}

    def keep(self, number, chunk):
        """Write a chunk of results to its file."""
        write_with(self.file(number), lambda f: save_arrays(f, _pack(chunk, self.study)))

    def read(self, number, names=None) -> Chunk:
        """Chunk of results by number from its file, with all or the named columns."""
        path = self.file(number)
        try:
            with Archive(path) as arrays:
                return _unpack(arrays, names)
        except Exception as error:  # archives raise whatever they run into
            raise SweepError(
                f"{path} cannot be read ({_why(error)}); call kt.sweep again with this folder, "
                f"which computes what is missing or damaged"
            ) from error

    def file(self, number):
        """Path of the file that stores a chunk of results, by the chunk's number."""
        return self.path / f"chunk-{number:06d}.npz"

    def _is_whole(self, number):
        """Whether a chunk's file is readable, complete and of this sweep."""
        path = self.file(number)
        try:
            with Archive(path) as arrays:
                problem = arrays.check() and "a checksum is wrong"
                if not problem and str(arrays["study"]) != self.study:
                    problem = "it belongs to another sweep"
                if not problem:
                    _unpack(arrays, ())
        except Exception as error:  # archives raise whatever they run into
            problem = _why(error)
        if problem:
            warn(f"{path} is damaged ({problem}) and is computed again", SweepWarning)
        return not problem


def save_arrays(file, arrays: dict[str, Any]):
    """Write arrays by name into an open file as ``.npz``."""
    np.savez(file, **arrays)


def read_manifest(path):
    """Manifest (a dict) of a sweep's folder; SweepError if it is invalid."""
    file = Path(path) / "manifest.json"
    try:
        if (size := regular_size(file)) > _MANIFEST_BYTES:
            raise ValueError(f"it has {size} bytes; at most {_MANIFEST_BYTES} are read")
        manifest = json.loads(file.read_text(encoding="utf-8"))
        is_ours = manifest["format"] == FORMAT
        if is_ours:
            _check_manifest(manifest)
    except FileNotFoundError:
        raise SweepError(f"{path} holds no sweep: there is no {file.name} in it") from None
    except Exception as error:  # JSON from strangers can be nested too deeply, or long numbers
        raise SweepError(f"{file} cannot be read: {_why(error)}") from None
    if not is_ours:
        raise SweepError(f"{file} has format {manifest['format']!r}, expected {FORMAT!r}")
    return manifest


def _check_manifest(manifest):
    """Raise ValueError for a manifest that ``sweep`` cannot have written."""
    lengths, names = manifest["shape"], (*manifest["values"], *manifest["axes"])
    numbers = (*lengths, manifest["count"], manifest["chunk"], manifest["chunks"])
    if not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError("its numbers of runs are not integers")
    if not 1 <= manifest["chunks"] <= _MOST_CHUNKS or manifest["chunk"] < 1:
        raise ValueError(f"{manifest['chunks']} chunks of {manifest['chunk']} runs")
    if manifest["count"] != math.prod(lengths):
        raise ValueError(f"{manifest['count']} runs in the shape {lengths}")
    if not all(isinstance(text, str) for text in (*names, manifest["study"], manifest["run"])):
        raise ValueError("its names are not text")
    if not isinstance(manifest["digest"], dict) or not isinstance(manifest["model"], str):
        raise ValueError("it does not say what the sweep is about")


def read_runs(path, manifest):
    """Parameter values of all runs, and of a grid's axes, from a sweep's folder."""
    file = Path(path) / "runs.npz"
    try:
        with Archive(file) as arrays:
            values = {name: arrays[f"value:{name}"] for name in manifest["values"]}
            axes = {name: arrays[f"axis:{name}"] for name in manifest["axes"]}
        if axes and [len(axis) for axis in axes.values()] != manifest["shape"]:
            raise ValueError("its axes do not have the lengths of the manifest")
        for name, column in values.items():
            if len(column) != manifest["count"]:
                raise ValueError(f"{len(column)} values of {name!r} for {manifest['count']} runs")
    except Exception as error:  # archives raise whatever they run into
        raise SweepError(f"{file} cannot be read: {_why(error)}") from error
    return values, axes


def _why(error):
    """Text of an exception, at most 300 characters; its class name if the text is empty."""
    return printable(str(error)[:300]) or type(error).__name__


def _pack(chunk, study):
    """Arrays of a chunk by name, equal rows stacked, for its file."""
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
    """Chunk of results from the arrays of its file."""
    chunk = Chunk(arrays["ids"], arrays["seeds"])
    if (
        chunk.ids.dtype.kind not in "iu"
        or chunk.ids.shape != chunk.seeds.shape
        or chunk.ids.ndim != 1
    ):
        raise ValueError("the numbers of its runs do not go with their seeds")
    failed = arrays["failed"].tolist()
    if arrays["failed"].dtype.kind not in "iu" or not set(failed) <= set(chunk.ids.tolist()):
        raise ValueError("runs failed that are not its own")
    chunk.failures = dict(zip(failed, map(str, arrays["reasons"].tolist()), strict=False))
    for key in arrays.names:
        kind, _, name = key.partition(":")
        if kind != "rows":
            continue
        if names is not None and name not in names:
            chunk.unread += (name,)
            continue
        there = arrays[key].tolist()
        if not all(type(k) is int and 0 <= k < len(chunk.ids) for k in there):
            raise ValueError(f"results {name!r} of runs that are not its own")
        rows = arrays.get(f"all:{name}")
        for j, k in enumerate(there):
            chunk.put(k, {name: arrays[f"{k}:{name}"] if rows is None else rows[j]})
    return chunk


class Sweep:
    """The runs of a sweep, in the order of their numbers.

        sweep["energy"]        an array with one row for each run; NaN where a run failed
        sweep.values["kp"]     what the runs were given
        sweep.failed           why runs failed, by number

    Results in a folder are read on demand.

    Attributes:
        values: what each run was given, by name; arrays whose first axis is the run.
        shape: of the grid, or ``(count,)``.
        axes: values along each axis of a grid, by name.
        seeds: of the runs.
        failed: why runs failed, by number.
        names: of the results.
    """

    def __init__(
        self, values: dict, shape: Sequence[int], axes: dict, store: Any, chunk_count: int
    ):
        self.values, self.shape, self.axes = values, tuple(shape), axes
        self._store, self._chunk_count = store, chunk_count
        self.failed, seeds, names = {}, [], {}
        for chunk in self._chunks(()):
            first = sum(map(len, seeds))
            if not np.array_equal(chunk.ids, np.arange(first, first + len(chunk.ids))):
                raise SweepError(
                    f"chunk {len(seeds)} holds runs {_some(chunk.ids)}, expected those from "
                    f"{first} on; remove its file and call kt.sweep again with the folder"
                )
            self.failed |= chunk.failures
            seeds.append(chunk.seeds)
            names |= dict.fromkeys((*chunk.columns, *chunk.unread))
        self.seeds = np.concatenate(seeds)
        self.names = tuple(names)
        self._ends = np.cumsum([len(part) for part in seeds])

    @classmethod
    def load(cls, folder: str | Path) -> "Sweep":
        """Finished ``Sweep`` read from its folder."""
        manifest = read_manifest(folder)
        values, axes = read_runs(folder, manifest)
        count = manifest["chunks"]
        found = cls(
            values, manifest["shape"], axes, Folder(folder, manifest["study"], count), count
        )
        if len(found.seeds) != manifest["count"] or not set(found.failed) <= set(range(len(found))):
            raise SweepError(
                f"{folder} holds {len(found.seeds)} runs, and its manifest has "
                f"{manifest['count']}; call kt.sweep again with this folder"
            )
        return found

    def _chunks(self, names):
        """Chunks of results in order, with the named columns."""
        for k in range(self._chunk_count):
            yield self._store.read(k, names)

    def __len__(self):
        return int(np.prod(self.shape))

    @property
    def ok(self) -> Array:
        """Mask of the runs that succeeded, (count,)."""
        mask = np.ones(len(self), dtype=bool)
        mask[list(self.failed)] = False
        return mask

    def __getitem__(self, name):
        """Results of all runs, (count, ...); an array of objects where runs differ in shape."""
        require_known(name, self.names, f"the runs returned no {name!r}")
        rows = []
        for chunk in self._chunks((name,)):
            rows += chunk.columns.get(name) or [None] * len(chunk.ids)
        return _stack(rows)

    def batches(self, *names: str) -> Iterator[tuple[Array, dict[str, Array]]]:
        """Run numbers and results chunk by chunk, for results larger than memory.

        For results that do not fit into memory: a part is as large as ``chunk`` of ``kt.sweep``.

            total = sum(part["energy"].sum() for runs, part in sweep.batches("energy"))

        Args:
            *names: of the results; all by default.
        """
        for name in names:
            require_known(name, self.names, f"the runs returned no {name!r}")
        wanted = names or self.names
        for chunk in self._chunks(wanted):
            rows = {n: chunk.columns.get(n) or [None] * len(chunk.ids) for n in wanted}
            yield chunk.ids, {name: _stack(rows[name]) for name in wanted}

    def run(self, number: int) -> dict[str, Any]:
        """Values and results of one run by name; None for missing results."""
        if not 0 <= number < len(self):
            raise UnknownNameError(f"there is no run {number}; they are 0 to {len(self) - 1}")
        found = {name: column[number] for name, column in self.values.items()}
        chunk = self._store.read(int(np.searchsorted(self._ends, number, side="right")))
        place = int(np.searchsorted(chunk.ids, number))
        return found | {name: column[place] for name, column in chunk.columns.items()}

    def to_pandas(self) -> Any:
        """``pandas.DataFrame`` with one row per run; vector entries are ``name[0]``, ..."""
        pandas = need("pandas", "Sweep.to_pandas", "tables")
        columns = {}
        for name, array in (*self.values.items(), *((n, self[n]) for n in self.names)):
            flat = array.reshape(len(self), -1) if array.dtype != object else array[:, None]
            if flat.shape[1] == 1:
                columns[name] = flat[:, 0]
                continue
            indices = np.ndindex(array.shape[1:])
            for k, index in enumerate(indices):
                columns[f"{name}[{','.join(map(str, index))}]"] = flat[:, k]
        columns["seed"] = self.seeds
        columns["failure"] = [self.failed.get(i, "") for i in range(len(self))]
        return pandas.DataFrame(columns, index=pandas.RangeIndex(len(self), name="run"))

    def to_xarray(self) -> Any:
        """``xarray.Dataset`` with the grid's names, or ``run``, as dimensions."""
        xarray = need("xarray", "Sweep.to_xarray", "tables")
        dims = tuple(self.axes) or ("run",)
        coords, data = {}, {}
        for name, axis in self.axes.items():
            is_label = axis.ndim == 1 and axis.dtype != object
            coords[name] = axis if is_label else np.arange(len(axis))
            if not is_label:  # vectors cannot label an axis; their numbers do, they stand beside
                data[f"{name}_values"] = _variable(name, axis, (name,), (len(axis),))
        if not self.axes:
            coords["run"] = np.arange(len(self))
            for name, column in self.values.items():
                data[name] = _variable(name, column, dims, self.shape)
        for name in self.names:
            label = f"{name}_result" if name in coords or name in data else name
            data[label] = _variable(label, self[name], dims, self.shape)
        data["seed"] = (dims, self.seeds.reshape(self.shape))
        failure = np.array([self.failed.get(i, "") for i in range(len(self))])
        data["failure"] = (dims, failure.reshape(self.shape))
        return xarray.Dataset(data, coords=coords)

    def __repr__(self):
        runs = " × ".join(map(str, self.shape))
        bad = f", {len(self.failed)} failed" if self.failed else ""
        return f"Sweep({runs} runs of {', '.join(self.values)} -> {', '.join(self.names)}{bad})"


def _some(ids):
    """First three run numbers as text, with "..." if there are more."""
    return ", ".join(map(str, ids[:3].tolist())) + (", ..." if len(ids) > 3 else "")


def _variable(name, array, dims, shape):
    """Dimensions and reshaped array of a result for xarray."""
    inner = tuple(f"{name}_{k}" for k in range(array.ndim - 1))
    return dims + inner, array.reshape(shape + array.shape[1:])


def _stack(rows):
    """Rows stacked to one array; missing numeric rows are NaN, mixed rows objects."""
    there = [row for row in rows if row is not None]
    if len({row.shape for row in there}) == 1 and len({row.dtype.kind for row in there}) == 1:
        first = there[0]
        if len(there) == len(rows):
            return np.stack(rows)
        if first.dtype.kind in "biuf":
            missing = np.full(first.shape, np.nan)
            return np.stack([missing if row is None else row for row in rows])
        if first.dtype.kind == "c":
            missing = np.full(first.shape, complex(np.nan, np.nan))
            return np.stack([missing if row is None else row for row in rows])
    objects = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        objects[i] = row
    return objects
