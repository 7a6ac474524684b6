"""Back onto the constraints: the nearest configuration and velocity — Spencer §3.1.3.

A step of an integrator leaves the manifold of closed loops by its error. Projection moves the state
back, as little as possible in a metric: by default that of the masses, in which a projected
velocity is what an impulse of the constraint forces would leave. States that are on the manifold
stay what they are. All functions take leading batch axes.

Here ranks are decided, in Python: which constraints count, whatever the metric and however far the
state. What steps of simulations end with is compiled code for equations that were chosen before:
``compiled_projection``.
"""

from math import prod

import numpy as np

from kinetree.algorithms.closed.rank import RANK_TOLERANCE, counting_part, scaling
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import AssemblyError, SingularError
from kinetree.loops.kinematics.constraint import closing, constraint, loop_gaps
from kinetree.loops.kinematics.descent import descend, smallest_error
from kinetree.loops.kinematics.space import metric, space_of
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model

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
    """Configuration near ``q`` that closes loops and obeys couplings, (..., nq).

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
    """Velocity nearest to ``qd`` that keeps loops closed at ``q``, (..., nv).

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
    """Raise AssemblyError, naming the loop and sample, if loops stay open."""
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
    """Closed configuration nearest to ``start``, by Newton steps with curvature.

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
    """Matrix-vector products ``A x`` with batch axes."""
    return np.einsum("...ij,...j->...i", A, x)
