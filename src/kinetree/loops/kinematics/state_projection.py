"""Back onto the constraints: the nearest state, with or without its energy — Spencer §3.1.3, §3.2.

In two stages, positions and then velocities at the new positions; or all invariants at once, with
one shortest step for ``(dq, dqd)`` at a time. Energy is an invariant of conservative motion alone.
"""

from math import prod
from typing import Any

import numpy as np

from kinetree.algorithms import crba, ltl
from kinetree.algorithms.closed.constraints import loop_constraints, loop_errors
from kinetree.algorithms.closed.rank import kept_rows_at, scaling
from kinetree.algorithms.energy import elastic_energy, total_energy
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import AssemblyError, SingularError, calling
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.compiled_projection import Chosen, scale_to_energy
from kinetree.loops.kinematics.constraint import constraint, independent_rows, loop_gaps
from kinetree.loops.kinematics.descent import descend, smallest_error
from kinetree.loops.kinematics.projection import (
    POSITION_TOLERANCE,
    project_configuration,
    project_velocity,
)
from kinetree.loops.kinematics.space import metric, space_of, tree_inertia
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.memo import remember

_DAMPED_STEPS = 50
_LOST = 0.5  # of the kinetic energy: a larger correction is left out
_DAMPING, _LESS, _MORE, _MOST_DAMPING = 1e-3, 0.1, 10.0, 1e8
_REACHED = 1e-9  # of the numbers of a state: what rounding may leave of its invariants


@on_host
def project_state(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    weights: str | ArrayLike = "mass",
    energy: ArrayLike | None = None,
    simultaneous: bool = False,
    nearest: bool = False,
    tolerance: float = POSITION_TOLERANCE,
) -> tuple[Any, Any]:
    """State near ``(q, qd)`` that satisfies loops, couplings and, if given, an energy.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        weights: metric of the projection, see ``project_configuration``.
        energy: mechanical energy [J] that the state should have, (...), as
            ``mechanical_energy`` counts it; None not to change it. In two stages the velocity is
            scaled, unless the mechanism is almost at rest, where the energy hardly depends on
            it.
        simultaneous: project positions, velocities and energy at once.
        nearest: in two stages: go to the exact nearest configuration.
        tolerance: error to reach [m, rad and per second, J]; two stages reach the limit of
            rounding in the velocities.

    Returns:
        ``q`` and ``qd``.

    Raises:
        AssemblyError: no such state was found near the given one.
    """
    q = as_configuration(as_model(model), q).astype(float)
    qd = as_joint_vector(model, qd, "qd").astype(float)
    if simultaneous:
        return _all_at_once(model, q, qd, weights, energy, tolerance)
    q, qd = _two_stages(model, q, qd, weights, nearest, tolerance)
    return q, qd if energy is None else _with_energy(model, q, qd, np.asarray(energy))


def mechanical_energy(model: Model, q: ArrayLike, qd: ArrayLike) -> Array:
    """Kinetic plus potential energy of gravity and joint springs [J], (...)."""
    with calling("mechanical_energy"):
        return _energy(model, q, qd)


def _two_stages(model, q, qd, weights, nearest, tolerance):
    """State after projecting positions, then velocities; compiled where possible."""
    if isinstance(weights, str) and weights == "mass" and not nearest:
        found = fast_projection(model, q, qd, max(tolerance, smallest_error(model)))
        if found is not None and np.all(found[2]):
            return found[0], found[1]
    q = project_configuration(model, q, weights=weights, nearest=nearest, tolerance=tolerance)
    return q, project_velocity(model, q, qd, weights=weights)


def _with_energy(model, q, qd, energy):
    """Velocities scaled to the given mechanical energy, the nearest such in the metric H."""
    kinetic = np.einsum("...i,...ij,...j->...", qd, tree_inertia(model, q), qd) / 2
    return scale_to_energy(qd, energy - np.asarray(_energy(model, q, qd)), kinetic, _LOST)


# --- in compiled code, as far as it will do ------------------------------------------------------
# The equations must be independent: ``K H⁻¹ Kᵀ`` is factorised without pivoting, and pivots are
# checked at run time; that costs less than ``compiled_projection``, whose equations may become
# dependent on the way of a simulation. Positions take chord steps, which use the factors of the
# start: the drift of a step of an integrator is so small that each gains as many digits as the
# state is off. Choices of equations that were good for one state are tried for others.

_STEPS = 3
_MOST = 4  # sets of rows for which one model gets kernels


@kernel
def _project(model, q, qd, *, chosen):
    """Kernel of a projection: chord steps of positions, one of velocities, and errors left."""
    rows = list(chosen.rows)
    c = loop_constraints(model, q, model.zero_velocity)
    to_joints = _impulses(model, q, c.K[rows])
    for _ in range(_STEPS):
        q = model.integrate(q, to_joints(-loop_errors(model, q)[rows]))
    c = loop_constraints(model, q, qd)
    qd = qd + _impulses(model, q, c.K[rows])(-c.rate[rows])
    return q, qd, loop_errors(model, q), loop_constraints(model, q, qd).rate


def _impulses(model, q, K):
    """Function from constraint changes to the joint motion of least kinetic energy, (nv,)."""
    L, lam = crba.inertia_factors(model, q), model.expanded_parent
    Z = np.column_stack([ltl.solve_ltdl(L, lam, column) for column in K])
    chain = ltl.dense(len(K))
    factors = ltl.ltdl(K @ Z, chain)
    return lambda change: Z @ ltl.solve_ltdl(factors, chain, change)


def fast_projection(model, q, qd, tolerance):
    """Compiled projection of states, and which samples met the tolerance; None if unsuited.

    None where no kernel will do: then ranks have to be decided anew.
    """
    known, units = remember(model, "equations of projection", list), scaling(model)
    for chosen in (*reversed(known), None):
        if chosen is None:
            chosen = _equations_near(model, q.reshape(prod(q.shape[:-1]), model.nq)[:1])
            if not chosen.rows or chosen in known or len(known) >= _MOST:
                return None
            known.append(chosen)
        try:
            closed, moving, error, rate = _project(model, q, qd, chosen=chosen)
        except SingularError:
            continue
        limit = np.full(len(units.rows), tolerance)
        if chosen.slack:  # what the rows that are left out may miss
            limit[[k not in chosen.rows for k in range(len(limit))]] += chosen.slack
        speed = np.maximum(np.max(np.abs(moving / units.columns), axis=-1), 1.0)
        good = np.all(np.abs(error * units.rows) <= limit, axis=-1)
        good &= np.all(np.abs(rate * units.rows) <= limit * speed[..., None], axis=-1)
        if np.any(good):
            return closed, moving, good
    return None


def _equations_near(model, q) -> Chosen:
    """``Chosen`` equations that are independent near ``q``.

    They are counted on the manifold: beside it, redundant constraints seem independent.
    """
    units = scaling(model)
    closed = descend(model, q, tolerance=0.0, iterations=50).q[0]
    K = constraint(model, closed, np.zeros(model.nv)).K
    slack = float(units.policy.slack) if units.policy.is_known else 0.0
    return Chosen.of_rows(independent_rows(K, units), units, slack=slack)


# --- all invariants at once ----------------------------------------------------------------------


def _all_at_once(model, q, qd, weights, energy, tolerance):
    """States after simultaneous projection onto all invariants, sample by sample."""
    shape = np.broadcast_shapes(q.shape[:-1], qd.shape[:-1], np.shape(energy))
    q, qd = (np.array(np.broadcast_to(a, (*shape, a.shape[-1]))) for a in (q, qd))
    targets = None if energy is None else np.broadcast_to(energy, shape)
    for index in np.ndindex(shape):
        target = None if targets is None else float(targets[index])
        q[index], qd[index] = _one_at_once(model, q[index], qd[index], weights, target, tolerance)
    return q, qd


def _one_at_once(model, q, qd, weights, energy, tolerance):
    """One state after damped Newton steps onto all invariants together."""
    space, B, n, damping = space_of(model), metric(model, q, weights), model.nv, _DAMPING
    h, A = _invariants(model, q, qd, energy)
    size = np.linalg.norm(h)
    for _ in range(_DAMPED_STEPS):
        if size <= tolerance or damping > _MOST_DAMPING:
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
    limit = max(tolerance, _REACHED * (1 + np.linalg.norm(qd) + abs(energy or 0.0)))
    if not size <= limit:
        part, gap = max(loop_gaps(model, q).items(), key=lambda item: item[1])
        raise AssemblyError(
            f"the state is too far from the constraints of model {model.name!r}"
            f"{'' if energy is None else f' and an energy of {energy:.6g} J'} to be projected at "
            f"once: errors of {size:.3g} are left, {limit:.3g} was required, and {part} stays open "
            f"by {gap:.3g} m or rad; start closer, or project in two stages",
            part=part,
            gap=float(gap),
            reason="local minimum",
            q=q,
        )
    return q, qd


def _invariants(model, q, qd, energy) -> tuple[Any, Any]:
    """Errors of positions, velocities and energy, and their Jacobian by ``(dq, dqd)``."""
    h, (by_q, by_qd) = np.array(_values(model, q, qd)), _gradients(model, q, qd)
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
    """Kernel of the mechanical energy [J]."""
    return total_energy(model, q, qd) + elastic_energy(model, q)


@kernel
def _values(model, q, qd):
    """Kernel of the invariants: position errors, velocity errors, energy."""
    c = loop_constraints(model, q, qd)
    return np.concatenate([c.error, c.rate, [_energy(model, q, qd)]])


_gradients = differentiate(_values, wrt=("q", "qd"))
