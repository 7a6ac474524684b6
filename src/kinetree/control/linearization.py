"""Linear equations of motion near a state, in continuous and in discrete time.

The state of a mechanism near ``(q, qd)`` is described by ``x = (dq, dqd)``: the configuration is
``model.integrate(q, dq)`` and the velocity ``qd + dqd``. When the reference moves on,

    d(dq)/dt = dqd + [dq, qd]      d(dqd)/dt = ∂qdd/∂q dq + ∂qdd/∂qd dqd + ∂qdd/∂tau dtau

The bracket stands for axes that turn with the body: for a spherical joint it is ``dq × qd``. It
vanishes for joints whose ``qd`` is the derivative of ``q``, and for every joint at rest.
"""

from typing import NamedTuple

import numpy as np

from kinetree.control.matrix_exponential import held_input
from kinetree.control.motors import motion_under
from kinetree.dynamics import forward_dynamics, passive_force
from kinetree.errors import UnknownNameError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp
from kinetree.functions import require_tree
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["Linearization", "linearize"]


class Linearization(NamedTuple):
    """``dx/dt = A x + B dtau``, or ``x' = A x + B dtau`` for the next sample."""

    A: np.ndarray
    """(..., 2 nv, 2 nv)"""
    B: np.ndarray
    """(..., 2 nv, nv)"""


def linearize(model, q, qd, tau, f_ext=None, *, dt=None, method=None):
    """The equations of motion to first order about a state, for ``x = (dq, dqd)``.

    Args:
        model: the mechanism, without loops.
        q: joint positions, (..., nq).
        qd: joint velocities, (..., nv).
        tau: forces of the motors, (..., nv). Springs and dampers of the joints are part of the
            linear system, and so is the force of dry friction, which is constant near a state.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``; they stay what they are in base
            coordinates.
        dt: time between samples [s]; continuous time if it is left out.
        method: ``"zoh"``, the default: ``exp(A dt)`` and the input held over the step, exact for
            the continuous linear system, and for the mechanism about an equilibrium. ``"euler"``:
            the derivative of one step of semi-implicit Euler, ``qd' = qd + dt qdd`` and
            ``q' = integrate(q, dt qd')``, exact for a simulator that takes such steps.

    Returns:
        A ``Linearization``.
    """
    require_tree(as_model(model), "linearize")
    _check(dt, method)
    q = as_configuration(model, q)
    qd, tau = as_joint_vector(model, qd, "qd"), as_joint_vector(model, tau, "tau")
    slopes = _motion_slopes(model, q, qd, tau, f_ext)
    if dt is not None and method == "euler":
        qdd = motion_under(model, q, qd, tau, f_ext)
        return _euler(model, q, qd + dt * qdd, slopes, dt)
    batch, nv = slopes[0].shape[:-2], model.nv
    A = np.zeros((*batch, 2 * nv, 2 * nv), slopes[0].dtype)
    A[..., :nv, :nv] = _brackets(model, q, qd)
    A[..., :nv, nv:] = np.eye(nv)
    A[..., nv:, :nv], A[..., nv:, nv:] = slopes[0], slopes[1]
    B = np.concatenate([np.zeros_like(slopes[2]), slopes[2]], axis=-2)
    return Linearization(A, B) if dt is None else Linearization(*held_input(A, B, dt))


def _check(dt, method):
    if method not in (None, "zoh", "euler"):
        raise UnknownNameError(f"linearize has no method {method!r}; use 'zoh' or 'euler'")
    if dt is None and method is not None:
        raise ValueError(f"method={method!r} is about discrete time: give the time step dt, too")
    if dt is not None and not (np.ndim(dt) == 0 and np.isfinite(dt) and dt > 0):
        raise ValueError(f"dt must be a positive number of seconds, got {dt!r}")


_slopes = differentiate(forward_dynamics, wrt=("q", "qd", "tau"))
_passive_slopes = differentiate(passive_force, wrt=("q", "qd"))


def _motion_slopes(model, q, qd, tau, f_ext):
    """Derivatives of ``motion_under`` with respect to ``q``, ``qd`` and ``tau``."""
    arguments = (q, qd, tau + passive_force(model, q, qd))
    dq, dqd, dtau = _slopes(model, *(arguments if f_ext is None else (*arguments, f_ext)))
    passive_dq, passive_dqd = _passive_slopes(model, q, qd)
    return dq + dtau @ passive_dq, dqd + dtau @ passive_dqd, dtau


def _euler(model, q, qd, slopes, dt):
    """Derivative of a step that ends with the velocity ``qd``."""
    eye, zero = np.eye(model.nv), np.zeros_like(slopes[0])
    velocity = np.concatenate([dt * slopes[0], eye + dt * slopes[1], dt * slopes[2]], axis=-1)
    start = np.concatenate([zero + eye, zero, zero], axis=-1)
    shifted, moved = _step_slopes(model, q, dt * qd)
    rows = np.concatenate([shifted @ start + dt * moved @ velocity, velocity], axis=-2)
    return Linearization(rows[..., : 2 * model.nv], rows[..., 2 * model.nv :])


# --- on the manifold -----------------------------------------------------------------------------


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


def _is_vector_space(model):
    """Whether velocity variables are the derivatives of position variables throughout."""
    return all(joint.rates_are_velocities for joint in model.joint[1:])


def _brackets(model, q, qd):
    """The matrix of ``dq -> [dq, qd]``.

    With ``dq/dt = Q(q) qd``, the directions ``Q dq`` and ``Q qd`` as fields over all configurations
    have the bracket ``∂(Q qd) Q dq - ∂(Q dq) Q qd``.
    """
    if _is_vector_space(model) or not np.any(qd):
        return 0
    bracket = _rate_slope(model, q, qd) - _rate_matrix_along(model, q, qd, tangents=qd)
    return _velocities(model, q, bracket)


def _step_slopes(model, q, dv):
    """Derivatives of ``integrate(q, dv)`` in its tangent space, with respect to both."""
    if _is_vector_space(model):
        return np.eye(model.nv), np.eye(model.nv)
    end = _moved(model, q, dv)
    return [_velocities(model, end, rates) for rates in _moved_slopes(model, q, dv)]


def _velocities(model, q, rates):
    """The velocity variables for which ``dq/dt`` has the given values; column by column."""
    Q = _rate_matrix(model, q, np.zeros(model.nv))
    Q_T = np.swapaxes(Q, -1, -2)
    return np.linalg.solve(Q_T @ Q, Q_T @ rates)
