"""Large batches over several threads; every sample comes out the same whatever their number."""

import os
import sys
from contextlib import suppress
from functools import cache
from math import prod
from threading import Lock, local
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.codegen.runtime.interrupts import BREATH

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MINIMUM_PER_THREAD = 2048  # scalars of input and output; less is not worth waking a thread
_SLICE = 2**22  # scalars of one call of compiled code, at most, so that Ctrl-C is heard in time


class _Setting:
    count: int | None = None


def threads() -> int:
    """Number of threads that large batches use."""
    if _Setting.count is None:
        _Setting.count = _from_environment()
    return _Setting.count


def _from_environment():
    """Number of threads by ``KINETREE_THREADS``, else by the processors."""
    text = os.environ.get("KINETREE_THREADS", "")
    if not text:
        return _processors()
    if not text.isdigit() or int(text) < 1:
        raise ValueError(f"KINETREE_THREADS must be an integer of at least 1, got {text!r}")
    return int(text)


def _processors():
    """Number of processors that this process may use, limits of containers included."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_threads(count: int) -> None:
    """Use ``count`` threads for large batches and large worlds; 1 stays on the calling thread."""
    if not isinstance(count, (int, float)) or not 1 <= count < 1e9 or int(count) != count:
        raise ValueError(f"threads must be an integer of at least 1, got {count!r}")
    _Setting.count = int(count)


def workers(count: int) -> "ThreadPoolExecutor":
    """New pool of threads, at most ``count``, as a context."""
    from concurrent.futures import ThreadPoolExecutor  # 4 ms, which an import need not take

    return ThreadPoolExecutor(count, thread_name_prefix="kinetree")


def map_on_cores(function, items, advance=lambda: None) -> list:
    """Results of a function for each item, in order, computed on all cores.

    Args:
        function: of an item.
        items: a list.
        advance: called when the next result is there.
    """
    found, count = [], min(threads(), len(items))
    if count < 2:
        for item in items:
            found.append(function(item))
            advance()
        return found
    pool = workers(count)
    try:
        for job in [pool.submit(function, item) for item in items]:
            found.append(job.result())
            advance()
    finally:
        pool.shutdown(cancel_futures=True)  # at Ctrl-C, what has not begun is not begun
    return found


_pool = cache(workers)  # that large batches share


if hasattr(os, "register_at_fork"):  # threads do not survive in a forked process
    os.register_at_fork(after_in_child=_pool.cache_clear)


class _Here(local):
    of_pool = False  # whether this thread is one of the pool


_here = _Here()


def _in_pool(function, k):
    """Call ``function(k)`` in a thread that is marked as one of the pool."""
    _here.of_pool = True
    return function(k)


def threads_here() -> int:
    """The number of threads for work that begins here: 1 on a thread of the pool."""
    return 1 if _here.of_pool else threads()


def on_threads(function, count, look=None, halt=None):
    """Call ``function(k)`` for ``k`` below ``count``, each on its own thread; waits for all.

    All have ended when this ends, also by an exception: nobody writes to arrays afterwards. On a
    thread of the pool, which others may wait for, they are called one after the other.

    Args:
        function: what to call.
        count: how often; the first is on the calling thread.
        look: called about every ``BREATH`` seconds while others are waited for.
        halt: called before others are waited for after an exception, to let them end early.
    """
    if _here.of_pool:
        for k in range(count):
            function(k)
        return
    jobs = [_pool(count - 1).submit(_in_pool, function, k) for k in range(1, count)]
    try:
        function(0)
        for job in jobs:
            while look is not None and not _ends_soon(job):
                look()
            job.result()
    except BaseException:
        if halt is not None:
            halt()
        _wait_for(jobs)
        raise


def _ends_soon(job):
    """Whether a job finishes within ``BREATH`` seconds."""
    from concurrent.futures import wait

    return job.done() or bool(wait([job], BREATH).done)


def _wait_for(jobs):
    """Wait until all threads have ended, however often Ctrl-C is pressed."""
    for job in jobs:
        while not job.done():
            with suppress(BaseException):
                job.exception()


def run_threaded(ufunc, arrays, kernel, batch, dtype, out=None):
    """Call a ufunc on a batch, split among threads along its longest axis if that pays."""
    count, size = threads(), kernel.numbers * prod(batch)
    if count > 1:
        count = min(count, size // MINIMUM_PER_THREAD, max(batch, default=1))
    if out is None and batch:  # without a batch NumPy makes numbers of results that are numbers
        out = tuple(empty(batch + o.shape, dtype) for o in kernel.outputs)
    if (count <= 1 and size < _SLICE) or not _fits(out, kernel, batch):
        return _quiet(ufunc, *arrays, **({} if out is None else {"out": out}))
    axis, count, halted = int(np.argmax(batch)), max(count, 1), []
    pieces = min(count * -(-size // (count * _SLICE)), batch[axis])
    cuts = np.linspace(0, batch[axis], pieces + 1).astype(int)
    full = [np.broadcast_to(a, batch + i.shape) for a, i in zip(arrays, kernel.inputs, strict=True)]
    outs = _tuple(out)

    def part(k):
        for m in range(k, pieces, count):
            if halted:
                return
            piece = (*([slice(None)] * axis), slice(cuts[m], cuts[m + 1]))
            _quiet(ufunc, *(a[piece] for a in full), out=tuple(o[piece] for o in outs))

    on_threads(part, count, halt=lambda: halted.append(True))
    return outs[0] if len(outs) == 1 else tuple(outs)


def run_whole(ufunc, arrays, kernel, batch, dtype, out=None):
    """Call a function on the whole batch, without splitting it among threads."""
    if out is None and batch:
        out = tuple(empty(batch + o.shape, dtype) for o in kernel.outputs)
    return _quiet(ufunc, *arrays, **({} if out is None else {"out": out}))


def _quiet(ufunc, *arrays, **out):
    """Call a ufunc without NumPy's floating-point warnings."""
    with np.errstate(all="ignore"):
        return ufunc(*arrays, **out)


def _fits(out, kernel, batch):
    """Whether result arrays have exactly the batch shape, so that they can be split like inputs."""
    shapes = [batch + o.shape for o in kernel.outputs]
    return [getattr(o, "shape", None) for o in _tuple(out)] == shapes


def _tuple(out) -> Any:
    """One or several results as a tuple."""
    return out if isinstance(out, tuple) else (out,)


# --- Memory for large results, reused when nothing refers to it ----------------------------------
# A fresh page costs more than the numbers written to it: the operating system clears it first. A
# program that computes results of one size again and again, and drops the old ones, gets the same
# memory back, as long as no array or view of it is alive.

KEPT_BYTES = 256 * 2**20  # kept at most
_LARGE = 2**16  # bytes; less comes from the allocator's own store
_BLOCKS = 64  # searched at most
_lock = Lock()
_kept: list[np.ndarray] = []


def empty(shape, dtype):
    """Uninitialised float array; memory of large arrays that nobody refers to is reused."""
    size = prod(shape) * (4 if dtype == "float32" else 8)
    if not _LARGE <= size <= KEPT_BYTES or not _counts_references():
        return np.empty(shape, dtype)
    with _lock:
        return _idle_bytes(size).view(dtype).reshape(shape)


def _idle_bytes(size):
    """Memory block of ``size`` bytes that no array refers to any more, or a new one."""
    for k in range(len(_kept)):
        if _kept[k].size == size and sys.getrefcount(_kept[k]) == _ALONE:
            _kept.append(_kept.pop(k))  # the one used last goes last
            return _kept[-1]
    room = KEPT_BYTES - size
    while len(_kept) >= _BLOCKS or sum(block.size for block in _kept) > room:
        del _kept[0]
    _kept.append(np.empty(size, np.uint8))
    return _kept[-1]


def _references_of_one():
    """Reference count of an object that only a list refers to."""
    one = [np.empty(0)]
    return sys.getrefcount(one[0])


_ALONE = _references_of_one()

if hasattr(os, "register_at_fork"):  # who holds the lock would not be there to release it
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )


def _counts_references():
    """Whether reference counts are exact: only in CPython with the global lock."""
    gil = getattr(sys, "_is_gil_enabled", None)
    return sys.implementation.name == "cpython" and (gil is None or gil())
