"""Moving on the configuration manifold, where ``q`` is a point and ``qd`` a tangent vector.

Joint by joint, over any leading batch axes — RBDA (3.5)–(3.7), §4.5.
"""

import numpy as np

from kinetree.arrays.functions import one_kernel
from kinetree.errors import ShapeError
from kinetree.model.arrays import as_configuration, as_joint_vector, as_position_vector

__all__ = [
    "configuration_rate", "difference", "integrate", "neutral", "normalize", "random_configuration",
]  # fmt: skip


def neutral(model):
    """Every joint at its neutral position."""
    return _join(model, lambda i: model.joint[i].neutral())


def random_configuration(model, rng=None, count=None):
    """Every joint at a random position, within its limits where they are finite; or ``count``."""
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ShapeError(
            f"rng must be a NumPy random generator or a seed, a whole number that is not negative; "
            f"got {rng!r}"
        ) from error
    if count is not None:
        if not isinstance(count, (int, np.integer)) or count < 0:
            raise ShapeError(f"count must be a whole number that is not negative, got {count!r}")
        joints = zip(model.joint[1:], model.travel[1:], strict=True)
        parts = [np.zeros((count, 0)), *(_draw_many(*joint, rng, count) for joint in joints)]
        return np.concatenate(parts, axis=-1)
    return _join(model, lambda i: _draw(model.joint[i], model.travel[i], rng))


def _draw(joint, limits, rng):
    q = joint.random(rng)
    if limits is None or not limits.lower or not limits.upper:
        return q
    lower, upper = np.array(limits.lower), np.array(limits.upper)
    bounded = np.isfinite(lower) & np.isfinite(upper)
    inside = rng.uniform(np.where(bounded, lower, 0.0), np.where(bounded, upper, 1.0))
    return np.where(bounded, inside, q)


def _draw_many(joint, limits, rng, count):
    """Positions of one joint, (count, nq)."""
    if limits is not None and np.size(limits.lower) == np.size(limits.upper) == joint.nq > 0:
        lower, upper = np.array(limits.lower), np.array(limits.upper)
        if np.all(np.isfinite(lower) & np.isfinite(upper)):
            return rng.uniform(lower, upper, (count, joint.nq))
    return np.array([_draw(joint, limits, rng) for _ in range(count)]).reshape(count, joint.nq)


@one_kernel(q="configuration", dv=("nv",))
def integrate(model, q, dv):
    """The configuration reached from ``q`` at the constant velocity ``dv`` in one second."""
    q, dv = as_configuration(model, q), as_joint_vector(model, dv, "dv")
    return _each(model, "integrate", q, dv, model.q_slice, model.v_slice)


@one_kernel(q0="configuration", q1="configuration")
def difference(model, q0, q1):
    """The ``dv`` for which ``integrate(q0, dv)`` is ``q1``."""
    q0, q1 = as_configuration(model, q0, "q0"), as_configuration(model, q1, "q1")
    return _each(model, "difference", q0, q1, model.q_slice, model.q_slice)


@one_kernel(q="configuration", qd=("nv",))
def configuration_rate(model, q, qd):
    """``dq/dt`` for the velocity variables ``qd`` — RBDA (3.7)."""
    q, qd = as_configuration(model, q), as_joint_vector(model, qd, "qd")
    return _each(model, "configuration_rate", q, qd, model.q_slice, model.v_slice)


@one_kernel(q=("nq",))
def normalize(model, q):
    """``q`` with its quaternions put back to unit length."""
    q, at = as_position_vector(model, q), model.q_slice
    result = np.empty(q.shape, q.dtype)
    for sample in np.ndindex(q.shape[:-1]):
        with np.errstate(all="ignore"):
            parts = _join(model, lambda i, q=q[sample]: model.joint[i].normalize(q[at[i]]))
        if parts.dtype != object and not np.all(np.isfinite(parts)):
            raise ShapeError(
                f"q{f' of sample {sample}' if sample else ''} has a quaternion of length zero, "
                f"which points nowhere; start from model.neutral()"
            )
        result[sample] = parts
    return result


def _join(model, part):
    parts = [part(i) for i in range(1, model.body_count + 1)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _each(model, operation, a, b, a_at, b_at):
    def one(a, b):
        return _join(model, lambda i: getattr(model.joint[i], operation)(a[a_at[i]], b[b_at[i]]))

    if a.ndim == b.ndim == 1:
        return one(a, b)
    batch = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    a, b = np.broadcast_to(a, (*batch, a.shape[-1])), np.broadcast_to(b, (*batch, b.shape[-1]))
    results = [one(a[n], b[n]) for n in np.ndindex(batch)]
    size = model.nv if operation == "difference" else model.nq
    return np.reshape(results, (*batch, size)) if results else np.zeros((*batch, size))
