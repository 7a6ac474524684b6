"""Equations on paper: formulas of a mechanism, by SymPy (``pip install "kinetree[symbolic]"``)."""

from kinetree.arguments import guard_module
from kinetree.symbolic.equations import EquationsOfMotion, equations_of_motion, lagrange_equations

__all__ = ["EquationsOfMotion", "equations_of_motion", "lagrange_equations"]

guard_module(__name__)
