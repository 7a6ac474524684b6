"""Joint limits as two rows of numbers, and configurations within them."""

import numpy as np

from kinetree.errors import ModelError, ShapeError
from kinetree.model.arrays import as_position_vector

_NONE = 1e300  # compiled code wants finite numbers


class Limits:
    """Bounds of the position variables, each (nq,); huge where there is none.

    Attributes:
        lower: smallest values.
        upper: largest values.
        middle: between the two; where a side is open, one unit inside the other.
        are_any: whether there is any bound.
        are_of_model: whether those of loop joints hold, too.
    """

    def __init__(self, problem, lower, upper, are_of_model=False):
        self.are_of_model = are_of_model
        self.lower, self.upper = np.maximum(lower, -_NONE), np.minimum(upper, _NONE)
        below, above = self.lower > -_NONE, self.upper < _NONE
        self.are_any = bool(np.any(below | above))
        unit = np.ones(problem.model.nq)
        unit[problem.q_of_v[problem.q_of_v >= 0]] = problem.v_scale[problem.q_of_v >= 0]
        self.middle = problem.model.neutral()
        one_sided = np.where(below, self.lower + unit, self.upper - unit)
        self.middle = np.where(below | above, one_sided, self.middle)
        both = below & above
        self.middle[both] = (self.lower[both] + self.upper[both]) / 2

    def clip(self, q):
        """``q`` with every variable moved to the limit that it exceeds."""
        return np.clip(q, self.lower, self.upper)

    def active(self, problem, q, gradient, slack=0.0):
        """Position variables at a limit that the error pushes them against, (..., nq) of bool.

        Those count as at a limit that are within ``slack`` of it.
        """
        held = np.zeros(q.shape, dtype=bool)
        v = np.flatnonzero(problem.q_of_v >= 0)
        k = problem.q_of_v[v]
        push, at = gradient[..., v], q[..., k]
        low, high = at <= self.lower[k] + slack, at >= self.upper[k] - slack
        held[..., k] = (low & (push < 0)) | (high & (push > 0))
        return held

    def nearest(self, q):
        """The limit that is closer, for every variable."""
        return np.where(q - self.lower < self.upper - q, self.lower, self.upper)


def limits_of(problem, limits) -> Limits:
    """The limits of an argument: True, the model's limits; False, none; or two arrays (nq,)."""
    model = problem.model
    if isinstance(limits, bool) and limits in problem.known_limits:
        return problem.known_limits[limits]
    if limits is False:
        free = Limits(problem, np.full(model.nq, -np.inf), np.full(model.nq, np.inf))
        return problem.known_limits.setdefault(False, free)
    lower, upper = model.position_limits if limits is True else _given(model, limits)
    movable = np.zeros(model.nq, dtype=bool)
    movable[problem.q_of_v[problem.q_of_v >= 0]] = True
    bounded = (lower > -_NONE) | (upper < _NONE)
    for i in problem.bodies:
        at = model.q_slice[i]
        if np.any(bounded[at] & ~movable[at]):
            raise ModelError(
                f"inverse kinematics cannot keep joint {model.joint_names[i - 1]!r}, a "
                f"{type(model.joint[i]).__name__}, within limits of its position variables, since "
                f"its velocities are not their rates; pass limits=False, or limits=(lower, upper) "
                f"that leave it free"
            )
    found = Limits(problem, lower, upper, are_of_model=limits is True)
    return problem.known_limits.setdefault(True, found) if limits is True else found


def _given(model, limits):
    if not isinstance(limits, (tuple, list)) or len(limits) != 2:
        raise ShapeError(
            f"limits must be True (those of the model), False (none), or two arrays "
            f"(lower, upper) of shape (nq,); got {limits!r}"
        )
    bounds = []
    for name, values in zip(("lower", "upper"), limits, strict=True):
        a = np.asarray(values, dtype=float)
        as_position_vector(model, np.nan_to_num(a, posinf=0, neginf=0), f"{name} limits")
        bounds.append(np.broadcast_to(a, (model.nq,)))
    if np.any(bounds[0] > bounds[1]):
        k = int(np.argmax(bounds[0] > bounds[1]))
        raise ShapeError(
            f"lower limit {bounds[0][k]:.6g} of q[{k}] is above its upper limit {bounds[1][k]:.6g}"
        )
    return bounds
