"""Forward dynamics inside a trace, by the formulation with the fewest operations.

In a trace, ``kinetree.forward_dynamics`` is the text of the algorithm. A step that runs a million
times takes instead what the compiled function itself is made of.
"""

import numpy as np

from kinetree import dynamics
from kinetree.algorithms import fewest_operations
from kinetree.expr.node import Expr
from kinetree.functional.inline import evaluated
from kinetree.functions import quantity

__all__ = ["forward_dynamics"]


def forward_dynamics(model, q, qd, tau):
    """``kinetree.forward_dynamics``, in as few operations as we know when it is traced."""
    arrays = [np.asarray(a) for a in (q, qd, tau)]
    if model.loops or not _is_traced(arrays):
        return dynamics.forward_dynamics(model, q, qd, tau)
    if model.scalar_type().kind == "O":  # parameters of the model are traced too
        return fewest_operations.forward_dynamics_by_articulated_bodies(model, *arrays)
    return evaluated(quantity(model, "forward_dynamics").program, arrays)


def _is_traced(arrays):
    return any(isinstance(x, Expr) for a in arrays if a.dtype == object for x in a.ravel())
