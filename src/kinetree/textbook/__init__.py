"""Algorithms of the literature beside those in use: variants, originals, derivations.

No public function is computed by these texts. They are there to be read next to the book and as
independent answers for the tests: ``kt.textbook.rnea_3d`` is the recursive Newton-Euler algorithm
with three-dimensional vectors, as it was first published. docs/book.md maps passages to texts.
"""

from importlib import import_module
from importlib.util import find_spec


def __getattr__(name):
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
