"""Results of a sweep: the runs with their values, results and failures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.errors import SweepError, UnknownNameError, need
from kinetree.simulation.sweep.store import Folder, read_manifest, read_runs
from kinetree.spelling import did_you_mean


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
        """A sweep from its folder, finished ones only."""
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
        for k in range(self._chunk_count):
            yield self._store.read(k, names)

    def __len__(self):
        return int(np.prod(self.shape))

    @property
    def ok(self) -> Array:
        """Which runs succeeded, (count,)."""
        mask = np.ones(len(self), dtype=bool)
        mask[list(self.failed)] = False
        return mask

    def __getitem__(self, name):
        """Results of all runs, (count, ...); an array of objects where runs differ in shape."""
        if name not in self.names:
            raise UnknownNameError(
                f"the runs returned no {name!r}; {did_you_mean(name, self.names)}"
            )
        rows = []
        for chunk in self._chunks((name,)):
            rows += chunk.columns.get(name) or [None] * len(chunk.ids)
        return _stack(rows)

    def run(self, number: int) -> dict[str, Any]:
        """Values and results of one run, by name; None where there is none."""
        if not 0 <= number < len(self):
            raise UnknownNameError(f"there is no run {number}; they are 0 to {len(self) - 1}")
        found = {name: column[number] for name, column in self.values.items()}
        chunk = self._store.read(int(np.searchsorted(self._ends, number, side="right")))
        place = int(np.searchsorted(chunk.ids, number))
        return found | {name: column[place] for name, column in chunk.columns.items()}

    def to_pandas(self) -> Any:
        """A table with a row for each run; entries of vectors are columns ``name[0]`` and so on."""
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
        """A dataset whose dimensions are the names of the grid, or ``run``."""
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
    return ", ".join(map(str, ids[:3].tolist())) + (", ..." if len(ids) > 3 else "")


def _variable(name, array, dims, shape):
    inner = tuple(f"{name}_{k}" for k in range(array.ndim - 1))
    return dims + inner, array.reshape(shape + array.shape[1:])


def _stack(rows):
    """Rows as one array; NaN for those that are missing among numbers, else an array of objects."""
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
