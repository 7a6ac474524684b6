"""What axes that turn with the body do to small changes of a configuration.

For joints whose ``qd`` is the derivative of ``q``, configurations add like vectors. Others, such as
spherical joints, live on a curved manifold, in which directions do not commute.
"""

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp

__all__ = ["brackets", "is_vector_space", "step_slopes"]


@kernel
def _rate(m, q, qd):
    return m.configuration_rate(q, qd)


@kernel
def _moved(m, q, qd):
    return m.integrate(q, qd)


_rate_matrix = differentiate(_rate, wrt="qd")
_rate_slope = differentiate(_rate, wrt="q")
_rate_matrix_along = jvp(_rate_matrix, wrt="q")
_moved_slopes = differentiate(_moved, wrt=("q", "qd"))


def is_vector_space(model) -> bool:
    """Whether velocity variables are the derivatives of position variables throughout."""
    return all(joint.rates_are_velocities for joint in model.joint[1:])


def brackets(model, q, qd):
    """The matrix of ``dq -> [dq, qd]``, (..., nv, nv); zero if all directions commute.

    With ``dq/dt = Q(q) qd``, the directions ``Q dq`` and ``Q qd`` as fields over all configurations
    have the bracket ``∂(Q qd) Q dq - ∂(Q dq) Q qd``.
    """
    if is_vector_space(model) or not np.any(qd):
        return np.zeros((*np.shape(qd), model.nv))
    bracket = _rate_slope(model, q, qd) - _rate_matrix_along(model, q, qd, tangents=qd)
    return _velocities(model, q, bracket)


def step_slopes(model, q, dv):
    """Derivatives of ``integrate(q, dv)`` in its tangent space, with respect to both."""
    if is_vector_space(model):
        return np.eye(model.nv), np.eye(model.nv)
    end = _moved(model, q, dv)
    return [_velocities(model, end, rates) for rates in _moved_slopes(model, q, dv)]


def _velocities(model, q, rates):
    """The velocity variables for which ``dq/dt`` has the given values; column by column."""
    Q = _rate_matrix(model, q, np.zeros(model.nv))
    Q_T = np.swapaxes(Q, -1, -2)
    return np.linalg.solve(Q_T @ Q, Q_T @ rates)
