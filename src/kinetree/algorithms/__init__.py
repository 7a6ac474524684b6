"""One algorithm per module; functions are the quantities it computes.

Modules are loaded on first use: ``kt.algorithms.rnea``. Features of a model that a text does not
support (loops, couplings, armature, joints that depend on time) raise an error, see ``honours``.
"""

import warnings
from importlib import import_module
from importlib.util import find_spec

_DEPRECATED = {
    name: f"kinetree.textbook.{name}"
    for name in (
        "aba_variants",
        "closed_form",
        "crba_variants",
        "derivation",
        "newton_kinematics",
        "projection",
        "rnea_3d",
        "rnea_absolute",
    )
} | {
    "lagrange": "kinetree.algorithms.energy",
    "ltl_products": "kinetree.algorithms.ltl",
    "momentum": "kinetree.algorithms.centroidal",
}


def __getattr__(name):
    if name in _DEPRECATED:
        new = _DEPRECATED[name]
        warnings.warn(
            f"kinetree.algorithms.{name} is deprecated: use {new}", DeprecationWarning, stacklevel=2
        )
        return import_module(new)
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
