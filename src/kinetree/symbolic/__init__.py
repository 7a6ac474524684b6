"""Equations on paper: formulas of a mechanism, by SymPy (``pip install "kinetree[symbolic]"``)."""

from kinetree.symbolic.equations import EquationsOfMotion, equations_of_motion
from kinetree.symbolic.lagrange import lagrange_equations
from kinetree.symbolic.library import MissingLibraryError

__all__ = [
    "EquationsOfMotion",
    "MissingLibraryError",
    "equations_of_motion",
    "lagrange_equations",
]
