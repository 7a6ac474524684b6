"""Memory of a test process: how much there is, and letting go of what tests leave behind."""

import ctypes
import gc
import sys
import warnings
from functools import lru_cache
from pathlib import Path

STATUS = Path("/proc/self/status")
"""Where Linux says how much memory a process has; nothing is known elsewhere."""

FORGETFUL = type(lru_cache(lambda: None))
"""What keeps the results of functions; those of limited size may forget."""

MUCH = 150e6
"""Growth [bytes] after which it is worth a moment to search what tests have made."""

_EARLY: list = []  # models and caches that were there before the first test


def used(name="VmRSS") -> float:
    """Memory of this process in bytes, now or, with ``"VmHWM"``, at most; zero where unknown."""
    if not STATUS.exists():
        return 0.0
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    return next((1024.0 * int(x.split()[1]) for x in lines if x.startswith(name)), 0.0)


def keep_early() -> None:
    """Never search again what is there now, before the first test: modules and tests, which stay.

    That is millions of objects. The garbage of tests is found by ``let_go``, once there is much of
    it, and by Python itself only within a test that makes gigabytes.
    """
    _EARLY[:] = _that_keep(gc.get_objects())
    gc.freeze()
    gc.set_threshold(200_000, 4, 3)


def let_go() -> None:
    """Free what nobody needs: cycles, what JAX and PyTorch compiled, kernels.

    Models of whole files of tests live as long as these, with all code that was ever made for
    them; on disk it stays.
    """
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if "torch._dynamo" in sys.modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch still imports
            sys.modules["torch._dynamo"].reset()
    _forget_kernels()
    gc.collect()
    if STATUS.exists() and hasattr(library := ctypes.CDLL(None), "malloc_trim"):  # glibc
        library.malloc_trim(0)


def _forget_kernels():
    """Remove what models keep and what caches of limited size in the library may forget."""
    for each in (*_EARLY, *_that_keep(gc.get_objects())):
        if type(each) is FORGETFUL:
            each.cache_clear()
        else:
            for name in ("kernels", "memo"):  # made again when needed
                vars(each).pop(name, None)


def _that_keep(objects):
    """Models, and caches that may forget."""
    from kinetree.model.model import Model  # not before its environment is set

    # Not isinstance: it asks the object, and some warn when they are asked.
    found = [x for x in objects if type(x) in (Model, FORGETFUL)]
    return [x for x in found if type(x) is Model or _is_ours(x)]


def _is_ours(cached):
    """Whether a cache is one of limited size in the library."""
    limited = cached.cache_parameters()["maxsize"] is not None
    return limited and cached.__module__.startswith("kinetree.")
