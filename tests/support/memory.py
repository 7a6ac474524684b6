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
"""Growth [bytes] after which it is worth a second to search everything."""


def used(name="VmRSS") -> float:
    """Memory of this process in bytes, now or, with ``"VmHWM"``, at most; zero where unknown."""
    if not STATUS.exists():
        return 0.0
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    return next((1024.0 * int(x.split()[1]) for x in lines if x.startswith(name)), 0.0)


def let_go() -> None:
    """Free what nobody needs: cycles, frozen ones too, what JAX and PyTorch compiled, kernels.

    Models of whole files of tests live as long as these, with all code that was ever made for
    them; on disk it stays.
    """
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if "torch._dynamo" in sys.modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what PyTorch still imports
            sys.modules["torch._dynamo"].reset()
    gc.unfreeze()
    _forget_kernels()
    gc.collect()
    gc.freeze()
    if STATUS.exists() and hasattr(library := ctypes.CDLL(None), "malloc_trim"):  # glibc
        library.malloc_trim(0)


def _forget_kernels():
    """Remove what models keep and what caches of limited size in the library may forget."""
    from kinetree.model.model import Model  # not before its environment is set

    # Not isinstance: it asks the object, and some warn when they are asked.
    for each in [x for x in gc.get_objects() if type(x) in (Model, FORGETFUL)]:
        if type(each) is Model:
            for name in ("kernels", "memo"):  # made again when needed
                vars(each).pop(name, None)
        elif _is_ours(each):
            each.cache_clear()


def _is_ours(cached):
    """Whether a cache is one of limited size in the library."""
    limited = cached.cache_parameters()["maxsize"] is not None
    return limited and cached.__module__.startswith("kinetree.")
