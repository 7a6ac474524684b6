"""States back onto the constraints, and to the energy that they should have — Spencer §3.1.3, §3.2.

In two stages, positions and then velocities at the new positions; or all invariants at once, with
one shortest step for ``(dq, dqd)`` at a time. Energy is an invariant of conservative motion alone.
"""

from typing import Any

import numpy as np

from kinetree.algorithms.energy import elastic_energy, total_energy
from kinetree.algorithms.loop_constraints import loop_constraints
from kinetree.algorithms.loop_rank import kept_rows_at
from kinetree.arrays.functions import on_host
from kinetree.errors import calling
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.descent import smallest_error
from kinetree.loops.kinematics.metric import metric, tree_inertia
from kinetree.loops.kinematics.projection import (
    POSITION_TOLERANCE,
    project_configuration,
    project_velocity,
)
from kinetree.loops.kinematics.projector import fast_projection
from kinetree.loops.state_space.space import space_of
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

__all__ = ["mechanical_energy", "project_state"]

_STEPS = 50
_LOST = 0.5  # of the kinetic energy: a larger correction is left out
_DAMPING, _LESS, _MORE, _MOST = 1e-3, 0.1, 10.0, 1e8


@on_host
def project_state(
    model, q, qd, *, weights="mass", energy=None, simultaneous=False, nearest=False,
    tolerance=POSITION_TOLERANCE,
) -> tuple[Any, Any]:  # fmt: skip
    """The state near ``(q, qd)`` that keeps loops closed and couplings obeyed.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        weights: what near means, see ``project_configuration``.
        energy: mechanical energy [J] that the state should have, (...), as
            ``mechanical_energy`` counts it; None to leave it alone. In two stages the velocity is
            made longer or shorter, unless the mechanism is almost at rest: there the energy says
            little about it.
        simultaneous: project positions, velocities and energy at once.
        nearest: in two stages: go to the exact nearest configuration.
        tolerance: error to reach [m, rad and per second, J]; two stages reach the limit of
            rounding in the velocities.

    Returns:
        ``q`` and ``qd``.
    """
    q = as_configuration(as_model(model), q).astype(float)
    qd = as_joint_vector(model, qd, "qd").astype(float)
    if simultaneous:
        return _all_at_once(model, q, qd, weights, energy, tolerance)
    q, qd = _two_stages(model, q, qd, weights, nearest, tolerance)
    return q, qd if energy is None else _with_energy(model, q, qd, np.asarray(energy))


def mechanical_energy(model, q, qd):
    """Kinetic energy, and potential energy of gravity and of the springs in joints [J], (...)."""
    with calling("mechanical_energy"):
        return _energy(model, q, qd)


def _two_stages(model, q, qd, weights, nearest, tolerance):
    if isinstance(weights, str) and weights == "mass" and not nearest:
        found = fast_projection(model, q, qd, max(tolerance, smallest_error(model)))
        if found is not None and np.all(found[2]):
            return found[0], found[1]
    q = project_configuration(model, q, weights=weights, nearest=nearest, tolerance=tolerance)
    return q, project_velocity(model, q, qd, weights=weights)


def _with_energy(model, q, qd, energy):
    """Velocities times what makes the energy right; also the shortest way, measured by masses."""
    kinetic = np.einsum("...i,...ij,...j->...", qd, tree_inertia(model, q), qd) / 2
    lacking = energy - np.asarray(_energy(model, q, qd))
    small = np.abs(lacking) <= _LOST * kinetic
    ratio = np.where(small, lacking / np.where(small, np.maximum(kinetic, 1e-300), 1.0), 0.0)
    return qd * np.sqrt(1 + ratio)[..., None]


def _all_at_once(model, q, qd, weights, energy, tolerance):
    shape = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1], np.shape(energy))
    q, qd = (np.array(np.broadcast_to(a, (*shape, a.shape[-1]))) for a in (q, qd))
    targets = None if energy is None else np.broadcast_to(energy, shape)
    for index in np.ndindex(shape):
        target = None if targets is None else float(targets[index])
        q[index], qd[index] = _one_at_once(model, q[index], qd[index], weights, target, tolerance)
    return q, qd


def _one_at_once(model, q, qd, weights, energy, tolerance):
    """Damped shortest steps for all invariants, kept where they come closer."""
    space, B, n, damping = space_of(model), metric(model, q, weights), model.nv, _DAMPING
    h, A = _invariants(model, q, qd, energy)
    size = np.linalg.norm(h)
    for _ in range(_STEPS):
        if size <= tolerance or damping > _MOST:
            break
        A = np.hstack([A[:, :n] @ B, A[:, n:] @ B])
        mu = damping * min(size, 1.0) * np.trace(A @ A.T) / len(h)
        z = -A.T @ np.linalg.solve(A @ A.T + (mu + 1e-300) * np.eye(len(h)), h)
        q_t, qd_t = space.move(q, B @ z[:n]), qd + B @ z[n:]
        h_t, A_t = _invariants(model, q_t, qd_t, energy)
        if np.linalg.norm(h_t) < size:
            q, qd, h, A, damping = q_t, qd_t, h_t, A_t, damping * _LESS
            size = np.linalg.norm(h)
        else:
            A, damping = _invariants(model, q, qd, energy)[1], damping * _MORE
    return q, qd


def _invariants(model, q, qd, energy):
    """Errors of positions, velocities and energy, and their Jacobian for ``(dq, dqd)``."""
    h, (by_q, by_qd) = np.array(_values(model, q, qd)), _slopes(model, q, qd)
    A = np.hstack([by_q, by_qd])
    rows = kept_rows_at(model, q)
    if rows is not None:  # those that are nearly redundant have no say
        nc = (len(h) - 1) // 2
        every = [*rows, *(nc + rows), len(h) - 1]
        h, A = h[every], A[every]
    if energy is None:
        return h[:-1], A[:-1]
    h[-1] -= energy
    return h, A


@kernel
def _energy(model, q, qd):
    return total_energy(model, q, qd) + elastic_energy(model, q)


@kernel
def _values(model, q, qd):
    c = loop_constraints(model, q, qd)
    return np.concatenate([c.error, c.rate, [_energy(model, q, qd)]])


_slopes = differentiate(_values, wrt=("q", "qd"))
