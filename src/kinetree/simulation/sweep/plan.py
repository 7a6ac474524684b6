"""Plan of a sweep: values, number and seed of each run, and chunks of runs on a Dask cluster.

Workers of a cluster may come, go and die. They compute and send back; this process alone writes. A
chunk whose worker died is done by another one. One that takes its workers with it again and again
is done run by run, to find which run that is.
"""

import functools
import hashlib
import itertools
import pickle
import types
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache

import numpy as np

from kinetree.errors import SweepError, need
from kinetree.functional.kernel import UserKernel
from kinetree.model import Model
from kinetree.simulation.sweep.work import Chunk


@dataclass(frozen=True)
class SweepPlan:
    """The runs of a sweep, numbered from 0."""

    values: dict
    """What each run gets, by name: arrays whose first axis is the run; of things that are not
    numbers, arrays of objects."""
    shape: tuple
    """Of the grid, or ``(count,)``."""
    axes: dict
    """Values along each axis of the grid; empty for samples."""
    seed: int
    """From which the seeds of all runs follow."""

    @property
    def count(self) -> int:
        """Number of runs of the sweep."""
        return int(np.prod(self.shape))

    def seeds(self, ids):
        """Random seeds of the numbered runs, independent of the other runs."""
        return np.array([_seed(self.seed, int(i)) for i in ids], dtype=np.uint64)

    def part(self, ids):
        """Parameter values of the numbered runs, by name."""
        return {name: values[ids] for name, values in self.values.items()}


def from_grid(grid, seed) -> SweepPlan:
    """``SweepPlan`` of all combinations of values; the last name changes fastest."""
    if not isinstance(grid, dict) or not grid:
        raise SweepError(
            f"a grid is a dictionary from names to lists of values, such as {{'kp': [1, 10]}}; got "
            f"{grid!r}"
        )
    axes = {name: _column(name, values) for name, values in grid.items()}
    shape = tuple(len(axis) for axis in axes.values())
    index = np.indices(shape).reshape(len(shape), -1)
    values = {name: axis[k] for (name, axis), k in zip(axes.items(), index, strict=True)}
    return SweepPlan(values, shape, axes, _check_seed(seed))


def from_samples(samples, count, seed) -> SweepPlan:
    """``SweepPlan`` of samples: columns, a list of dicts, or a random function.

    Args:
        samples: values by name, one for each run; or a dictionary for each run; or a function of a
            random generator that returns the dictionary of one run.
        count: how many runs to draw; for functions alone.
        seed: from which the generators follow.
    """
    seed = _check_seed(seed)
    if callable(samples):
        if not isinstance(count, int) or count < 1:
            raise SweepError(
                f"how many samples to draw? Give count=, an integer of at least 1; got {count!r}"
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
    return SweepPlan(columns, (next(iter(lengths.values())),), {}, seed)


def _columns(rows):
    """Parameter values by name, from the dictionaries of all runs."""
    for i, row in enumerate(rows):
        if not isinstance(row, dict) or row.keys() != rows[0].keys():
            raise SweepError(
                f"sample {i} must be a dictionary with the names of the first, "
                f"{list(rows[0]) if isinstance(rows[0], dict) else rows[0]!r}; got "
                f"{list(row) if isinstance(row, dict) else row!r}"
            )
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _column(name, values):
    """Values of one parameter as an array with one entry per run."""
    if isinstance(values, (str, bytes, dict)) or not np.iterable(values):
        raise SweepError(f"the values of {name!r} must be a list or an array, got {values!r}")
    values = values if isinstance(values, np.ndarray) else list(values)
    if len(values) == 0:
        raise SweepError(f"there are no values of {name!r}")
    if all(
        isinstance(x, (bool, int, float, complex, np.generic, np.ndarray, list, tuple))
        for x in itertools.islice(values, 1000)
    ):
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


def _check_seed(seed):
    """Seed as an int; SweepError unless it is a nonnegative integer."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise SweepError(f"the seed must be an integer of at least 0, got {seed!r}")
    return int(seed)


def _seed(seed, i):
    """Random seed of run ``i``."""
    return np.random.SeedSequence(seed, spawn_key=(i,)).generate_state(1, np.uint64)[0]


def _drawing(seed, i):
    """Random generator that draws run ``i``'s values, a stream separate from the run's."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(i, 1)))


# --- A digest of what a sweep is about, so that only its own results are ever taken up again -----
# Functions count by what they do: byte code, constants, defaults and what they close over. What
# they read from global variables, and what the functions do that they call, no digest covers.


def digest(*things) -> str:
    """SHA-256 digest of objects' content, as a hexadecimal string."""
    state = hashlib.sha256()
    for thing in things:
        _describe(thing, state.update, set())
    return state.hexdigest()


def _describe(x, add, seen):
    """Pass bytes that describe ``x`` to ``add``, each recursive object once."""
    if isinstance(x, (str, bytes, int, float, complex, bool, type(None))):
        add(f"{type(x).__name__}:{x!r};".encode())
    elif isinstance(x, np.ndarray) and x.dtype != object:
        add(f"array:{x.dtype.str}{x.shape};".encode() + np.ascontiguousarray(x).tobytes())
    elif isinstance(x, np.generic):
        _describe(np.asarray(x), add, seen)
    elif isinstance(x, Model):
        add(f"model:{x.fingerprint};".encode())
    elif id(x) in seen:
        add(b"again;")
    else:
        _describe_parts(x, add, seen | {id(x)})


def _describe_parts(x, add, seen):
    """Pass bytes that describe a container and its parts to ``add``."""
    kind, parts = _parts(x)
    add(f"{kind}{len(parts)}(".encode())
    for part in parts:
        _describe(part, add, seen)
    add(b")")


def _parts(x):
    """Type name of an object and the list of its parts, for digests."""
    kind = f"{type(x).__module__}.{type(x).__qualname__}"
    if isinstance(x, (list, tuple)):
        return kind, list(x)
    if isinstance(x, np.ndarray):
        return f"{kind}{x.shape}", x.ravel().tolist()
    if isinstance(x, dict):
        return kind, [part for item in x.items() for part in item]
    if isinstance(x, (set, frozenset)):
        return kind, sorted(x, key=repr)
    if isinstance(x, UserKernel):
        return kind, [x.function]
    if isinstance(x, functools.partial):
        return kind, [x.func, x.args, x.keywords]
    if isinstance(x, types.MethodType):
        return kind, [x.__func__, x.__self__]
    if isinstance(x, types.FunctionType):
        inside = [_content(cell) for cell in x.__closure__ or ()]
        return kind, [x.__qualname__, x.__code__, x.__defaults__, x.__kwdefaults__, inside]
    if isinstance(x, types.CodeType):
        return kind, [x.co_code, x.co_names, x.co_consts]
    if isinstance(x, type) or (type(x).__repr__ is not object.__repr__ and not is_dataclass(x)):
        return kind, [repr(x)]
    names = [f.name for f in fields(x)] if is_dataclass(x) else sorted(getattr(x, "__dict__", {}))
    return kind, [part for name in names for part in (name, getattr(x, name))]


def _content(cell):
    """Value in a closure's cell, or None if unbound."""
    try:
        return cell.cell_contents
    except ValueError:  # a name that is not bound yet
        return None


_MOST = 64  # chunks that wait at the scheduler, at least


def on_cluster(work, tasks, client, study):
    """Chunks of results of all tasks, computed by a dask cluster, as they finish."""
    distributed = need("distributed", "a sweep with a client", "cluster")
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise SweepError(
            f"client must be a dask.distributed.Client that is not asynchronous, such as "
            f"Client('tcp://host:8786'); got {client!r}"
        )
    cluster = _Cluster(distributed, client, work, study)
    waiting, done, tasks = {}, distributed.as_completed(), iter(tasks)

    def submit():
        for number, *runs in tasks:
            future = cluster.submit(*runs)
            waiting[future] = number, runs
            done.add(future)
            return

    try:
        for _ in range(max(_MOST, 4 * sum(client.nthreads().values()))):
            submit()
        for future in done:
            number, runs = waiting.pop(future)
            submit()
            chunk = cluster.result(future)
            yield number, cluster.one_by_one(*runs) if chunk is None else chunk
    finally:  # nothing goes on when we are interrupted
        client.cancel(list(waiting))


class _Cluster:
    """Sends runs to a cluster and fetches their results."""

    def __init__(self, distributed, client, work, study):
        self.distributed, self.client, self.study = distributed, client, study
        self.sent = need("cloudpickle", "a sweep with a client", "cluster").dumps(work)

    def submit(self, ids, seeds, values):
        """Dask future of the results of some runs."""
        return self.client.submit(_do, self.study, self.sent, ids, seeds, values, pure=False)

    def result(self, future):
        """Results of a future, or None if it killed every worker that tried it."""
        try:
            return future.result()  # dask computes it again where the worker that had it is gone
        except self.distributed.KilledWorker:
            return None
        except self.distributed.client.CancelledError as error:
            raise SweepError(
                f"the cluster dropped some runs ({error}): was it closed or restarted? Chunks that "
                f"were finished are kept if a folder was given; call again"
            ) from error
        except SweepError:
            raise
        except Exception as error:
            raise SweepError(
                f"the runs could not be done on the cluster: {type(error).__name__}: {error}. Its "
                f"workers need kinetree, and whatever the function imports, in the versions of here"
            ) from error

    def one_by_one(self, ids, seeds, values):
        """Chunk of results from single-run tasks, after the chunk killed its workers."""
        parts = []
        for k in range(len(ids)):
            alone = slice(k, k + 1)
            row = {name: column[alone] for name, column in values.items()}
            chunk = self.result(self.submit(ids[alone], seeds[alone], row))
            if chunk is None:
                chunk = Chunk(np.asarray(ids[alone]), np.asarray(seeds[alone]))
                chunk.failures[int(ids[k])] = "every worker that tried it died"
            parts.append(chunk)
        return Chunk.join(parts)


def _do(study, sent, ids, seeds, values):
    """Results of some runs, computed on a cluster worker."""
    return _work(study, sent)(ids, seeds, values)


@lru_cache(maxsize=4)
def _work(study, sent):
    """Work object unpickled on a worker, cached with its compiled code."""
    return pickle.loads(sent)


# --- Chunks on the threads of this process -------------------------------------------------------


def on_threads(work, tasks, threads):
    """Chunks of results of all tasks, computed by threads, as they finish.

    The first is done alone, so that what must be compiled is compiled once. Results come in the
    order in which they are ready.
    """
    tasks = iter(tasks)
    for number, *runs in tasks:
        yield number, work(*runs)
        break
    if threads == 1:
        for number, *runs in tasks:
            yield number, work(*runs)
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix="kinetree-sweep")
    try:
        yield from _in_pool(pool, work, tasks, 2 * threads)
    finally:  # whoever interrupts us need not wait for what has not begun
        pool.shutdown(wait=True, cancel_futures=True)


def _in_pool(pool, work, tasks, most):
    """Results of tasks as they finish, with at most ``most`` of them queued."""
    waiting, is_over = {}, False
    while waiting or not is_over:
        while not is_over and len(waiting) < most:
            task = next(tasks, None)
            if task is None:
                is_over = True
            else:
                waiting[pool.submit(work, *task[1:])] = task[0]
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            yield waiting.pop(future), future.result()
