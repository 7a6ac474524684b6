"""Derivatives of the exponential map of a joint's group, exact, as matrices.

With ``a`` the matrix of the bracket, ``a v = [u, v]``, every analytic function of ``a`` is a
polynomial of degree four: for rotations and for rigid motions ``a (a² + s)² = 0`` with ``s`` the
square of the angle. Its coefficients follow from values and slopes at the eigenvalues.
"""

from typing import Any

import numpy as np

from kinetree.errors import JointError
from kinetree.integration.manifold import group_bracket
from kinetree.spatial.ops import less, select
from kinetree.spatial.stumpff import stumpff, stumpff_rate

__all__ = ["bracket_matrix", "dexp", "dexp_inverse", "require_groups"]


def bracket_matrix(joint, u):
    """``a`` with ``a v = [u, v]``, (nv, nv); None for joints whose velocities commute."""
    if joint.rates_are_velocities:
        return None
    bracket: Any = group_bracket(joint)
    return np.column_stack([bracket(u, e) for e in np.eye(joint.nv, dtype=int)])


def dexp(joint, u):
    """``E`` with ``v = E du/dt``: from rates of local coordinates to child velocities."""
    a = bracket_matrix(joint, u)
    if a is None:
        return np.eye(joint.nv, dtype=int)
    s = _angle_squared(a)
    c = stumpff(s)
    _, dc2, dc3 = stumpff_rate(c)
    return _polynomial(a, (s * dc2 - c[2], c[3] - s * dc3, dc2, -dc3))


def dexp_inverse(joint, u):
    """``D = E⁻¹``, so that ``du/dt = D v``."""
    a = bracket_matrix(joint, u)
    if a is None:
        return np.eye(joint.nv, dtype=int)
    s = _angle_squared(a)
    c = stumpff(s)
    k = (c[3] - 2 * c[4]) / (2 * c[2])  # (1 - θ/2 cot θ/2) / s
    near = less(s, 1e-12)
    divisor = select(near, 1 + 0 * s, s)
    dk = select(near, 1 / 720 + 0 * s, (1 / 8 - 3 / 2 * k + k * k * s / 2) / divisor)
    return _polynomial(a, (1 / 2, k - s * dk, 0, -dk))


def _polynomial(a, coefficients):
    """``1 + c₁ a + c₂ a² + ...`` by Horner's rule."""
    one = np.eye(len(a), dtype=int)
    total = 0 * one
    for c in reversed(coefficients):
        total = a @ (total + c * one)
    return one + total


def _angle_squared(a):
    """``s`` from the trace of ``a²``, which is ``-2s`` for each of the blocks that turn."""
    trace = np.trace(a @ a)
    return -trace / (2 if len(a) <= 4 else 4)


def require_groups(model, what):
    """Raise JointError for joints whose group is not known."""
    for i, body in enumerate(model.bodies, start=1):
        joint = body.joint
        if not joint.rates_are_velocities and group_bracket(joint) is None:
            raise JointError(
                f"{what} knows the groups of spherical, free and planar joints alone; joint "
                f"{model.joint_names[i - 1]!r} is a {type(joint).__name__}, whose velocities are "
                f"not derivatives of its positions. Use the integrator 'rk4'"
            )
