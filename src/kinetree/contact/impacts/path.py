"""An impact at one point with Coulomb friction, followed through its impulses — Routh's method.

An impact takes no time, but it has a course: the normal impulse ``p`` grows, and with it the
friction impulse and the relative velocity,

    dλ = (1, -μ d) dp  while the bodies slide in the direction d,      dζ = W dλ

until sliding stops. Then they stick, ``dλ_t/dp = -W_tt⁻¹ W_tn``, if the cone allows that, or slide
off in the one direction in which they can keep on sliding. In a plane, and wherever else ``d``
stays the same, this is piecewise linear. Otherwise ``d`` turns, faster and faster as sliding slows
down; ``dp = s dτ`` with the sliding speed ``s`` makes a smooth differential equation of it.
Coordinates are (normal, tangent 1, tangent 2). Host-only.
"""

from dataclasses import dataclass, replace

import numpy as np

from kinetree.contact.impacts.swirl import swirl
from kinetree.errors import ImpactError

__all__ = ["Course", "follow"]

_ARRESTED = 1e-13  # of the relative velocity: slower sliding is none
_WEDGED = 1e-12  # of the mobility: less of it along the normal is none
_NOISE = 1e-11  # of the relative velocity: left of an approach that is over


@dataclass(frozen=True)
class Course:
    """How far an impact has come.

    Attributes:
        W: velocity change per impulse, (3, 3), symmetric and positive semidefinite.
        friction: coefficient of friction.
        zeta: relative velocity, (3,).
        impulse: so far, (3,).
        work: of the normal impulse so far [J].
        scale: relative speed at the start [m/s].
        arrested: whether sliding has stopped just now.
    """

    W: np.ndarray
    friction: float
    zeta: np.ndarray
    impulse: np.ndarray
    work: float
    scale: float
    arrested: bool = False

    @classmethod
    def start(cls, W, zeta, friction):
        """Before the impact."""
        return cls(W, friction, zeta, np.zeros(3), 0.0, float(np.linalg.norm(zeta)))

    @property
    def sliding(self) -> bool:
        """Whether the bodies slide on one another."""
        return not self.arrested and np.hypot(*self.zeta[1:]) > _ARRESTED * self.scale

    def along(self, c, p) -> "Course":
        """After a normal impulse ``p`` with ``dλ/dp = c``."""
        rate = self.W @ c
        work = self.work + self.zeta[0] * p + rate[0] * p * p / 2
        return replace(
            self, zeta=self.zeta + rate * p, impulse=self.impulse + c * p, work=work, arrested=False
        )


def follow(course: Course, goal) -> Course:
    """The course up to a goal.

    Args:
        course: where to start.
        goal: has ``is_rest``, whether it is the end of the approach; ``distance(course)``, which
            grows to zero along the course; and ``impulse(course, k)``, the normal impulse that
            takes it there while the normal velocity grows at ``k``; infinite if nothing does.

    Raises:
        ImpactError: no impulse gets there.
    """
    arrived = goal.distance(course) >= 0
    while not arrived and course.sliding and course.friction:
        course, arrived = _slide(course, goal)
    if arrived:
        return course
    c = _without_sliding(course)
    k = (course.W @ c)[0]
    p = goal.impulse(course, k if k > _WEDGED * np.trace(course.W) else 0.0)
    if np.isfinite(p):
        return course.along(c, p)
    if goal.is_rest and course.zeta[0] > -_NOISE * course.scale:
        return course
    raise ImpactError(
        "the bodies stick such that no normal impulse can part them, as friction wedges a "
        "mechanism with a single freedom: use law='poisson', or restitution=0"
    )


def _slide(course, goal):
    """Sliding, to the goal or until it stops; and whether it got to the goal."""
    W, mu, speed = course.W, course.friction, np.hypot(*course.zeta[1:])
    d = course.zeta[1:] / speed
    c = np.array([1.0, *(-mu * d)])
    turn, slow = np.array([-d[1], d[0]]) @ (W @ c)[1:], d @ (W @ c)[1:]
    if abs(turn) > 1e-14 * np.linalg.norm(W[1:]) * (1 + mu):
        return swirl(course, goal)
    to_goal = goal.impulse(course, (W @ c)[0])
    to_stop = -speed / slow if slow < 0 else np.inf
    if to_goal < to_stop:
        return course.along(c, to_goal), True
    stopped = course.along(c, to_stop)
    return replace(stopped, zeta=np.array([stopped.zeta[0], 0, 0]), arrested=True), False


def _without_sliding(course):
    """``dλ/dp`` from sticking: on sticking, or sliding off."""
    W, mu = course.W, course.friction
    if not mu:
        return np.array([1.0, 0, 0])
    w, Q = np.linalg.eigh(W[1:, 1:])
    b = Q.T @ W[1:, 0]
    movable = w > 1e-14 * max(w[-1], W[0, 0])
    stick = -Q[:, movable] @ (b[movable] / w[movable])
    if np.hypot(*stick) <= mu:
        return np.array([1.0, *stick])
    return np.array([1.0, *(-mu * (Q @ _keeps_on(w, b, mu)))])


def _keeps_on(w, b, mu):
    """The direction ``d`` with ``W_tn - μ W_tt d = g d`` and ``g > 0``, in principal axes.

    ``|(μ W_tt + g)⁻¹ W_tn| = 1`` has one solution, as the left side falls from above 1 to 0.
    """
    low, high = 0.0, float(np.hypot(*b))
    for _ in range(100):
        g = (low + high) / 2
        if np.hypot(*(b / (mu * w + g))) > 1:
            low = g
        else:
            high = g
    d = b / (mu * w + high)
    return d / np.hypot(*d)
