"""One algorithm per module; functions are the quantities it computes.

Modules are loaded when they are asked for: ``kt.algorithms.rnea``. What a text does not honour, of
loops, couplings, armature and joints that time moves, it refuses: see ``honours``.
"""

from importlib import import_module
from importlib.util import find_spec


def __getattr__(name):
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
