"""Algorithms of the literature beside those in use: variants, originals, derivations.

No public function is computed by these texts. They are there to be read next to the book and as
independent answers for the tests: ``kt.textbook.rnea_3d`` is the recursive Newton-Euler algorithm
with three-dimensional vectors, as it was first published. docs/book.md maps passages to texts.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec

_DEPRECATED = {
    "constraint_kinds": "constrained_body",
    "derivation": "aba_variants",
    "rigid_body": "constrained_body",
}


def __getattr__(name):
    if name in _DEPRECATED:
        new = f"{__name__}.{_DEPRECATED[name]}"
        warnings.warn(f"{__name__}.{name} is deprecated: use {new}", DeprecationWarning, 2)
        return import_module(new)
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
