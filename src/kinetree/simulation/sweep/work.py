"""The work of one run of a sweep, and of a chunk of runs, on any thread or machine."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kinetree.codegen import tiers
from kinetree.errors import SweepError
from kinetree.functional.parameters import is_parameter, parameter, with_parameters

_EXTRAS = ("seed", "rng")
_STEPS = 1000  # assumed for a run


@dataclass
class Chunk:
    """Results of some runs."""

    ids: np.ndarray
    """Numbers of the runs."""
    seeds: np.ndarray
    """Their seeds."""
    columns: dict[str, list] = field(default_factory=dict)
    """For every name that a run returned, an array for each run, or None where there is none."""
    failures: dict[int, str] = field(default_factory=dict)
    """Why runs failed, by number."""
    unread: tuple[str, ...] = ()
    """Names of columns that are kept elsewhere."""

    def put(self, k, results):
        """Store the results of the run at position ``k`` of the chunk."""
        for name, array in results.items():
            self.columns.setdefault(name, [None] * len(self.ids))[k] = array

    @classmethod
    def join(cls, parts):
        """Chunk joined from chunks of single runs."""
        whole = cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.seeds for part in parts]),
        )
        for k, part in enumerate(parts):
            whole.put(k, {name: column[0] for name, column in part.columns.items()})
            whole.failures |= part.failures
        return whole


@dataclass(frozen=True)
class RunFunction:
    """A function of a model and of the values of a run."""

    model: Any
    """As it is before parameters of the run change it."""
    function: Callable
    """Called as ``function(model, **values)``; with ``batched``, once for a whole chunk, with
    values that have the runs along their first axis."""
    batched: bool = False
    """Whether it takes many runs at once."""
    extras: tuple[str, ...] = ()
    """Which of ``seed`` and ``rng`` it takes."""
    changes: tuple[str, ...] = ()
    """Names of values that change the model instead of going to the function."""
    label: str = "run"
    """What messages and manifests call it."""
    count: int = 1
    """How many runs there are in all."""

    def __call__(self, ids, seeds, values) -> Chunk:
        """Do some runs; one that fails is recorded, with the reason.

        Which code runs must not depend on what else was done here, or before.
        """
        with tiers.task(_STEPS * (1 if self.changes else self.count), alone=True):
            return self._runs(ids, seeds, values)

    def _runs(self, ids, seeds, values):
        """Chunk of results of several runs, in one batch or one by one."""
        chunk = Chunk(np.asarray(ids), np.asarray(seeds))
        if self.batched:
            try:
                self._together(chunk, range(len(ids)), values)
                return chunk
            except SweepError:
                raise
            except Exception as error:
                if len(ids) == 1:
                    chunk.failures[int(ids[0])] = _reason(error)
                    return chunk
        for k, i in enumerate(ids):
            try:
                if self.batched:  # one of them spoiled the batch
                    self._together(chunk, [k], values)
                else:
                    chunk.put(k, self._alone(k, seeds, values))
            except SweepError:
                raise
            except Exception as error:
                chunk.failures[int(i)] = _reason(error)
        return chunk

    def _alone(self, k, seeds, values):
        """Results of one run, by name."""
        row = {name: _plain(column[k]) for name, column in values.items()}
        changes = {name: row.pop(name) for name in self.changes}
        model = with_parameters(self.model, changes) if changes else self.model
        if "seed" in self.extras:
            row["seed"] = int(seeds[k])
        if "rng" in self.extras:
            row["rng"] = np.random.default_rng(int(seeds[k]))
        return arrays_by_name(self.function(model, **row))

    def _together(self, chunk, places, values):
        """Compute several runs in one batched call, storing their results."""
        places = np.asarray(places)
        rows = {name: column[places] for name, column in values.items()}
        if "seed" in self.extras:
            rows["seed"] = chunk.seeds[places]
        results = arrays_by_name(self.function(self.model, **rows))
        for name, array in results.items():
            if array.ndim == 0 or len(array) != len(places):
                raise SweepError(
                    f"{self.label} was given {len(places)} runs at once and must return arrays "
                    f"with as many rows; {name!r} has shape {array.shape}"
                )
        for j, k in enumerate(places):
            chunk.put(k, {name: array[j] for name, array in results.items()})


def work_of(model, function, names, *, batched) -> RunFunction:
    """``RunFunction`` that calls a user's function, checked to accept the names."""
    label = getattr(function, "__name__", type(function).__name__)
    if not callable(function):
        raise SweepError(
            f"what to run must be a function of the model and the values, or a dictionary of "
            f"options of kt.simulate; got {function!r}"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # built in
        return RunFunction(model, function, batched, label=label)
    taken = signature.parameters
    changes = model_parameters(model, [name for name in names if name not in taken])
    if batched and changes:
        raise SweepError(
            f"{label} takes many runs at once and shares one model among them: {changes[0]!r} "
            f"cannot change it. Give the values another name and pass them to a kernel, or leave "
            f"batched out"
        )
    extras = tuple(name for name in _EXTRAS if name in taken and name not in names)
    if batched and "rng" in extras:
        raise SweepError(
            f"{label} takes many runs at once; it can take their seeds, 'seed', but not one "
            f"generator 'rng', whose numbers would depend on how runs are grouped"
        )
    given = [name for name in (*names, *extras) if name not in changes]
    try:
        signature.bind(model, **dict.fromkeys(given))
    except TypeError as error:
        raise SweepError(
            f"{label}{signature} cannot be called with the model and the values "
            f"{', '.join(map(repr, given)) or 'none'}: {error}"
        ) from None
    return RunFunction(model, function, batched, extras, changes, label)


def model_parameters(model, names) -> tuple[str, ...]:
    """Names among ``names`` that are parameters of the model, in full form."""
    found = [n for n in names if is_parameter(n) and (":" in n or n in ("gravity", "inertia"))]
    return tuple(parameter(model, name).name for name in found)


def arrays_by_name(result) -> dict[str, np.ndarray]:
    """Results that a run function returned, as arrays by name."""
    if hasattr(result, "arrays"):  # a trajectory
        result = result.arrays()
    if not isinstance(result, dict):
        result = {"result": result}
    arrays = {str(name): np.asarray(value) for name, value in result.items() if value is not None}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufcUS":
            raise TypeError(f"{name!r} is {type(result[name]).__name__}, not numbers or text")
    return arrays


def _plain(value):
    """Python number from a NumPy scalar; other values unchanged."""
    return value.item() if isinstance(value, np.generic) else value


def _reason(error):
    """Text of an exception with the name of its class."""
    return f"{type(error).__name__}: {error}"
