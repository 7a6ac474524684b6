"""Moving on the configuration manifold, where ``q`` is a point and ``qd`` a tangent vector.

Joint by joint, over any leading batch axes — RBDA (3.5)–(3.7), §4.5.
"""

from typing import TYPE_CHECKING

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import ShapeError
from kinetree.model.array_arguments import POSITION
from kinetree.model.define import quantity

if TYPE_CHECKING:
    from kinetree.model import Model


def neutral(model):
    """Neutral configuration of all joints, (nq,)."""
    return _join(model, lambda i: model.joint[i].neutral())


def random_configuration(model, rng=None, count=None):
    """Random configuration within finite joint limits, (nq,), or ``count`` of them."""
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"rng must be a NumPy random generator or a seed, an integer that is not negative; "
            f"got {rng!r}"
        ) from error
    if count is not None:
        if not isinstance(count, (int, np.integer)) or count < 0:
            raise ShapeError(f"count must be an integer that is not negative, got {count!r}")
        joints = zip(model.joint[1:], model.travel[1:], strict=True)
        parts = [np.zeros((count, 0)), *(_draw_many(*joint, rng, count) for joint in joints)]
        return np.concatenate(parts, axis=-1)
    return _join(model, lambda i: _draw(model.joint[i], model.travel[i], rng))


def _draw(joint, limits, rng):
    """Random position of a joint, within its limits if both are finite."""
    q = joint.random(rng)
    if limits is None or not limits.lower or not limits.upper:
        return q
    lower, upper = np.array(limits.lower), np.array(limits.upper)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    inside = rng.uniform(np.where(bounded, lower, 0.0), np.where(bounded, upper, 1.0))
    return np.where(bounded, inside, q)


def _draw_many(joint, limits, rng, count):
    """Random positions of one joint within its limits, (count, nq)."""
    if limits is not None and np.size(limits.lower) == np.size(limits.upper) == joint.nq > 0:
        lower, upper = np.array(limits.lower), np.array(limits.upper)
        if np.all(np.isfinite(lower) & np.isfinite(upper)):
            return rng.uniform(lower, upper, (count, joint.nq))
    return np.array([_draw(joint, limits, rng) for _ in range(count)]).reshape(count, joint.nq)


@quantity(("nq",), public=False, general=True)
def integrate(model: "Model", q: ArrayLike, dv: ArrayLike) -> Array:
    """Configuration reached from ``q`` at constant velocity ``dv`` after unit time, (..., nq)."""
    moved, q_at, v_at = model.table(q[:0]), model.q_slice, model.v_slice
    for i in model.outward():
        moved[i] = model.joint[i].integrate(q[q_at[i]], dv[v_at[i]])
    return model.join_rows(moved, by="q")


@quantity(("nv",), public=False, general=True)
def difference(model: "Model", q0: ArrayLike, q1: ArrayLike) -> Array:
    """Velocity ``dv``, (..., nv), for which ``integrate(q0, dv)`` is ``q1``."""
    dv, at = model.table(q0[:0]), model.q_slice
    for i in model.outward():
        dv[i] = model.joint[i].difference(q0[at[i]], q1[at[i]])
    return model.join_rows(dv)


@quantity(("nq",), public=False, general=True)
def configuration_rate(model: "Model", q: ArrayLike, qd: ArrayLike) -> Array:
    """Rate ``dq/dt`` for the velocity variables ``qd``, (..., nq) — RBDA (3.7)."""
    rate, q_at, v_at = model.table(q[:0]), model.q_slice, model.v_slice
    for i in model.outward():
        rate[i] = model.joint[i].configuration_rate(q[q_at[i]], qd[v_at[i]])
    return model.join_rows(rate, by="q")


@quantity(("nq",), arrays={"q": POSITION}, public=False, general=True)
def normalize(model: "Model", q: ArrayLike) -> Array:
    """Configuration with its quaternions normalised to unit length."""
    unit = model.table(q[:0])
    with np.errstate(all="ignore"):
        for i in model.outward():
            unit[i] = model.joint[i].normalize(q[model.q_slice[i]])
    parts = model.join_rows(unit, by="q")
    if isinstance(parts, np.ndarray) and parts.dtype != object and not np.isfinite(parts).all():
        raise ShapeError(
            "q has a quaternion of length zero, which points nowhere; start from model.neutral()"
        )
    return parts


def continue_state(model, q, qd, near):
    """State in the joint charts that contain the configuration ``near``."""
    q, qd = np.array(q), np.array(qd)
    for i, joint in enumerate(model.joint[1:], start=1):
        if joint.turns_over:
            a, b = model.q_slice[i], model.v_slice[i]
            q[a], qd[b] = joint.reparameterize(q[a], qd[b], near[a])
    return q, qd


def _join(model, part):
    """Concatenation of a vector for each joint."""
    parts = [part(i) for i in range(1, model.body_count + 1)]
    return np.concatenate(parts) if parts else np.zeros(0)
