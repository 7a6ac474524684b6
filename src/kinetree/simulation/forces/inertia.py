"""How easily joints move: numbers to choose stiffnesses by."""

import numpy as np

from kinetree.errors import SingularError
from kinetree.quantities import dynamics

__all__ = ["nominal_mobility"]


def nominal_mobility(model) -> np.ndarray:
    """Acceleration for a unit of force of every velocity variable at the neutral position, (nv,).

    The diagonal of ``H⁻¹``, without loops, which only make it smaller.
    """
    tree = model.replace(loops=()) if model.loops else model
    try:
        return np.diagonal(dynamics.inverse_mass_matrix(tree, tree.neutral()))
    except SingularError:  # massless joints: forward dynamics will name them
        return np.ones(model.nv)
