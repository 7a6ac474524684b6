"""Which runs there are: the values that each gets, its number and its seed."""

import itertools
from dataclasses import dataclass

import numpy as np

from kinetree.errors import SweepError

__all__ = ["Plan", "from_grid", "from_samples"]


@dataclass(frozen=True)
class Plan:
    """The runs of a sweep, numbered from 0.

    Attributes:
        values: what each run gets, by name: arrays whose first axis is the run; of things that are
            not numbers, arrays of objects.
        shape: of the grid, or ``(count,)``.
        axes: values along each axis of the grid; empty for samples.
        seed: from which the seeds of all runs follow.
    """

    values: dict
    shape: tuple
    axes: dict
    seed: int

    @property
    def count(self) -> int:
        """Number of runs."""
        return int(np.prod(self.shape))

    def seeds(self, ids):
        """Seeds of runs; that of a run depends on the sweep's seed and its number alone."""
        return np.array([_seed(self.seed, int(i)) for i in ids], dtype=np.uint64)

    def part(self, ids):
        """The values of some runs."""
        return {name: values[ids] for name, values in self.values.items()}


def from_grid(grid, seed) -> Plan:
    """Every combination of the values; the last name changes fastest."""
    if not isinstance(grid, dict) or not grid:
        raise SweepError(
            f"a grid is a dictionary from names to lists of values, such as {{'kp': [1, 10]}}; got "
            f"{grid!r}"
        )
    axes = {name: _column(name, values) for name, values in grid.items()}
    shape = tuple(len(axis) for axis in axes.values())
    index = np.indices(shape).reshape(len(shape), -1)
    values = {name: axis[k] for (name, axis), k in zip(axes.items(), index, strict=True)}
    return Plan(values, shape, axes, _checked(seed))


def from_samples(samples, count, seed) -> Plan:
    """Runs from columns of equal length, from a list of dictionaries, or drawn one by one.

    Args:
        samples: values by name, one for each run; or a dictionary for each run; or a function of a
            random generator that returns the dictionary of one run.
        count: how many runs to draw; for functions alone.
        seed: from which the generators follow.
    """
    seed = _checked(seed)
    if callable(samples):
        if not isinstance(count, int) or count < 1:
            raise SweepError(
                f"how many samples to draw? Give count=, a whole number of at least 1; got "
                f"{count!r}"
            )
        samples = [samples(_drawing(seed, i)) for i in range(count)]
    elif count is not None:
        raise SweepError("count= is for samples that a function draws; leave it out")
    if not isinstance(samples, dict):
        samples = _columns(list(samples))
    columns = {name: _column(name, values) for name, values in samples.items()}
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) != 1:
        raise SweepError(
            f"samples must have as many values of every name; got "
            f"{', '.join(f'{n} of {name!r}' for name, n in lengths.items()) or 'none'}"
        )
    return Plan(columns, (next(iter(lengths.values())),), {}, seed)


def _columns(rows):
    """Values by name from the dictionaries of the runs."""
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != rows[0].keys():
            raise SweepError(
                f"sample {i} must be a dictionary with the names of the first, "
                f"{list(rows[0]) if isinstance(rows[0], dict) else rows[0]!r}; got "
                f"{list(row) if isinstance(row, dict) else row!r}"
            )
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _column(name, values):
    """Values as an array whose first axis counts them."""
    if isinstance(values, (str, bytes, dict)) or not np.iterable(values):
        raise SweepError(f"the values of {name!r} must be a list or an array, got {values!r}")
    values = values if isinstance(values, np.ndarray) else list(values)
    if len(values) == 0:
        raise SweepError(f"there are no values of {name!r}")
    if all(isinstance(x, (bool, int, float, complex, np.generic, np.ndarray, list, tuple))
           for x in itertools.islice(values, 1000)):  # fmt: skip
        try:
            array = np.asarray(values)
        except ValueError:  # of different lengths
            array = None
        if array is not None and array.dtype.kind in "biufc":
            return array
    objects = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        objects[i] = value
    return objects


def _checked(seed):
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SweepError(f"the seed must be a whole number of at least 0, got {seed!r}")
    return int(seed)


def _seed(seed, i):
    return np.random.SeedSequence(seed, spawn_key=(i,)).generate_state(1, np.uint64)[0]


def _drawing(seed, i):
    """The generator that draws the values of run ``i``: another stream than the run's own."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i, 1)))
