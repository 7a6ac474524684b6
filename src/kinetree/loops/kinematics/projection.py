"""Back onto the constraints: the nearest configuration, velocity and state — Spencer §3.1.3.

A step of an integrator leaves the manifold of closed loops by its error. Projection moves the state
back, as little as possible in a metric: by default that of the masses, in which a projected
velocity is what an impulse of the constraint forces would leave. States that are on the manifold
stay what they are. All functions take leading batch axes.
"""

from math import prod
from typing import Any

import numpy as np

from kinetree.algorithms import crba, ltl
from kinetree.algorithms.closed.constraints import loop_constraints, loop_errors
from kinetree.algorithms.closed.rank import RANK_TOLERANCE, counting_part, kept_rows_at, scaling
from kinetree.algorithms.energy import elastic_energy, total_energy
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import AssemblyError, SingularError, calling
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.constraint import closing, constraint, independent_rows, loop_gaps
from kinetree.loops.kinematics.descent import descend, smallest_error
from kinetree.loops.kinematics.space import metric, space_of, tree_inertia
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.model.memo import remember

POSITION_TOLERANCE = 1e-12
"""Closure error [rad, or fraction of the size of a loop] with which a configuration is closed."""
_NEAREST_STEPS, _AT_REST = 500, 1e-13


@on_host
def project_configuration(
    model: Model,
    q: ArrayLike,
    *,
    weights: str | ArrayLike = "mass",
    nearest: bool = False,
    tolerance: float = POSITION_TOLERANCE,
    iterations: int = 50,
) -> Array:
    """The configuration near ``q`` that closes loops and obeys couplings, (..., nq).

    Newton's method with the shortest step at every iterate ends on the manifold close to the
    nearest point, and is there if ``q`` is off by rounding. ``nearest`` continues to the nearest
    point itself, where ``q`` and its projection differ by ``W⁻¹ Kᵀ mu``.

    Args:
        model: the mechanism.
        q: joint positions [m, rad], (..., nq).
        weights: metric: ``"mass"``, the inertia matrix of the spanning tree;
            ``"plain"``, all velocity variables alike; numbers (nv,); or a matrix (nv, nv).
        nearest: go to the exact nearest point.
        tolerance: closure error to reach [rad, or fraction of the size of a loop].
        iterations: most steps to take.
    """
    q = as_configuration(as_model(model), q).astype(float)
    flat = q.reshape(prod(q.shape[:-1]), model.nq)
    B = metric(model, flat, weights)
    found = descend(model, flat, B=B, tolerance=tolerance, iterations=iterations)
    _require_closed(model, q, found, tolerance)
    closed = found.q
    if nearest:
        full = np.broadcast_to(B, (len(flat), model.nv, model.nv))
        pairs = zip(flat, closed, full, strict=True)
        closed = np.array([_nearest(model, *pair) for pair in pairs]).reshape(closed.shape)
    return closed.reshape(q.shape)


@on_host
def project_velocity(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    weights: str | ArrayLike = "mass",
    tolerance: float | None = None,
) -> Array:
    """The velocity nearest to ``qd`` that keeps loops closed at ``q``, (..., nv).

    An orthogonal projection, ``qd - W⁻¹ Kᵀ (K W⁻¹ Kᵀ)⁺ K qd``.

    Args:
        model: the mechanism.
        q: joint positions that close the loops [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        weights: as in ``project_configuration``.
        tolerance: singular values of the constraints below this times the largest count as zero;
            None for the policy, see ``rank``.
    """
    q = as_configuration(as_model(model), q).astype(float)
    qd = as_joint_vector(model, qd, "qd").astype(float)
    c, B = constraint(model, q, qd), metric(model, q, weights)
    units, rate = scaling(model), np.asarray(c.rate)
    A = (np.asarray(c.K) * units.rows[:, None]) @ B
    P = counting_part(units.apply(c.K), units) if tolerance is None else None
    smallest = RANK_TOLERANCE if tolerance is None else tolerance
    inverse = np.linalg.pinv(A if P is None else P @ A, rcond=smallest)
    for _ in range(2):  # the second removes what rounding left of the first
        rate = rate * units.rows
        rate = rate if P is None else _apply(P, rate)
        qd = qd - _apply(B, _apply(inverse, rate))
        rate = np.asarray(constraint(model, q, qd).rate)
    return qd


def _require_closed(model, q, found, tolerance):
    limit = max(tolerance, smallest_error(model))
    if np.all(found.error <= limit):
        return
    worst = int(np.argmax(found.error))
    part, gap = max(loop_gaps(model, found.q[worst]).items(), key=lambda item: item[1])
    index = tuple(int(i) for i in np.unravel_index(worst, q.shape[:-1]))
    raise AssemblyError(
        f"q{f' of sample {index}' if q.ndim > 1 else ''} is too far from closed to be projected: "
        f"{part} stays open by {gap:.3g} m or rad, {limit:.3g} rad or fraction of its size is "
        f"required; kinetree.loops.assemble takes guesses that are far off",
        part=part,
        gap=float(gap),
        reason="local minimum",
        q=found.q[worst],
    )


def _nearest(model, start, q, B):
    """The nearest point: steps that take the distance from ``start`` to be what is minimised.

    They converge as long as ``start`` is closer than the radius of curvature of the manifold.
    """
    space, units, away = space_of(model), scaling(model), np.zeros(model.nv)
    for _ in range(_NEAREST_STEPS):
        e, J = closing(model, q)
        away = space.difference(start, q)
        D = np.linalg.inv(space.difference_gradient(start, q))
        P = counting_part(units.apply(J), units)
        P = np.diag(units.rows) if P is None else P * units.rows
        y = np.linalg.pinv(P @ J @ D @ B, rcond=RANK_TOLERANCE) @ (P @ (J @ D @ away - e))
        dq = D @ (B @ y - away)
        q = space.move(q, dq)
        if np.linalg.norm(dq) <= _AT_REST * (1 + np.linalg.norm(away)):
            return q
    raise SingularError(
        f"no nearest configuration of {model.name!r} was found: the given one is as far from "
        f"closed as the constraints are curved; it is {np.linalg.norm(away):.3g} away"
    )


def _apply(A, x):
    """Products of matrices and vectors, batched."""
    return np.einsum("...ij,...j->...i", A, x)


# --- compiled projection in the metric of the masses ---------------------------------------------
# The rows must be independent: ``K H⁻¹ Kᵀ`` is factorised without pivoting, and pivots are checked
# at run time. Positions take chord steps, which use the factors of the start: the drift of a step
# of an integrator is so small that each gains as many digits as the state is off.

_STEPS = 3
_MOST = 4  # sets of rows for which one model gets kernels


@kernel
def _project(model, q, qd, *, rows):
    rows = [int(row) for row in rows.split()]
    c = loop_constraints(model, q, model.zero_velocity)
    to_joints = _impulses(model, q, c.K[rows])
    for _ in range(_STEPS):
        q = model.integrate(q, to_joints(-loop_errors(model, q)[rows]))
    c = loop_constraints(model, q, qd)
    qd = qd + _impulses(model, q, c.K[rows])(-c.rate[rows])
    return q, qd, loop_errors(model, q), loop_constraints(model, q, qd).rate


def _impulses(model, q, K):
    """Map from a change of constraints to the joint motion of least kinetic energy, (nv,)."""
    L, lam = crba.inertia_factors(model, q), model.expanded_parent
    Z = np.column_stack([ltl.solve_ltdl(L, lam, column) for column in K])
    chain = ltl.dense(len(K))
    factors = ltl.ltdl(K @ Z, chain)
    return lambda change: Z @ ltl.solve_ltdl(factors, chain, change)


def fast_projection(model, q, qd, tolerance):
    """``q, qd`` projected, and which samples of them are good to the tolerance, (...,).

    None where no kernel will do: then ranks have to be decided anew.
    """
    known, units = remember(model, "rows of projection", list), scaling(model)
    for rows in (*reversed(known), None):
        if rows is None:
            rows = _independent_rows_near(model, q.reshape(prod(q.shape[:-1]), model.nq)[:1])
            if not rows or rows in known or len(known) >= _MOST:
                return None
            known.append(rows)
        try:
            closed, moving, error, rate = _project(model, q, qd, rows=rows)
        except SingularError:
            continue
        limit = np.full(len(units.rows), tolerance)
        if units.policy.is_known:  # by what the rows that are left out may miss
            limit[[str(k) not in rows.split() for k in range(len(limit))]] += units.policy.slack
        speed = np.maximum(np.max(np.abs(moving / units.columns), axis=-1), 1.0)
        good = np.all(np.abs(error * units.rows) <= limit, axis=-1)
        good &= np.all(np.abs(rate * units.rows) <= limit * speed[..., None], axis=-1)
        if np.any(good):
            return closed, moving, good
    return None


def _independent_rows_near(model, q):
    """Numbers of the constraints that are independent near ``q``, as text.

    They are counted on the manifold: beside it, redundant constraints seem independent.
    """
    closed = descend(model, q, tolerance=0.0, iterations=50).q[0]
    K = constraint(model, closed, np.zeros(model.nv)).K
    return " ".join(map(str, independent_rows(K, scaling(model))))


# --- states and their energy: Spencer §3.1.3, §3.2 -----------------------------------------------
# In two stages, positions and then velocities at the new positions; or all invariants at once, with
# one shortest step for ``(dq, dqd)`` at a time. Energy is an invariant of conservative motion
# alone.

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
    """The state near ``(q, qd)`` that satisfies loops and couplings.

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
    """Errors of positions, velocities and energy, and their Jacobian for ``(dq, dqd)``."""
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
    return total_energy(model, q, qd) + elastic_energy(model, q)


@kernel
def _values(model, q, qd):
    c = loop_constraints(model, q, qd)
    return np.concatenate([c.error, c.rate, [_energy(model, q, qd)]])


_gradients = differentiate(_values, wrt=("q", "qd"))
