"""Refuse to compile what is singular in every configuration, as the public functions do."""

import numpy as np

from kinetree.algorithms.dependent_joints import require_independent_joints
from kinetree.functional.parameters import parameter, with_parameters
from kinetree.functions import FUNCTIONS

__all__ = ["require_solvable"]


def require_solvable(name, model, parameters=()):
    """Raise SingularError when joints move no inertia together, whatever the inputs.

    Args:
        name: of a public function.
        model: the mechanism.
        parameters: names of parameters of the model that are inputs: they could have any value.
    """
    function = FUNCTIONS.get(name)
    if function is None or not function.inverts_inertia or not model.nv:
        return
    if model.loops:  # what moves no inertia may be carried along
        return
    rng = np.random.default_rng(0)
    values = {p: _typical(parameter(model, p), model, rng) for p in parameters}
    require_independent_joints(with_parameters(model, values), name)


def _typical(p, model, rng):
    """A value that no coincidence distinguishes."""
    kind = p.name.partition(":")[0]
    if kind == "inertia":
        ball = np.array([1, 0, 0, 0, 1, 0, 1, 0, 0, 1.0])
        return np.broadcast_to(ball, p.shape)
    if kind == "placement":
        T = np.eye(4)
        T[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        T[:3, :3] *= np.sign(np.linalg.det(T[:3, :3]))
        T[:3, 3] = rng.standard_normal(3)
        return T
    return p.value(model)
