"""Laws of restitution for an impact at one point: Newton's, Poisson's, Stronge's.

An impact has a phase of compression, until the bodies no longer approach, and one of restitution,
which ends when

    newton      the speed of separation is e times that of approach
    poisson     the normal impulse of restitution is e times that of compression
    energetic   the normal impulse has done e² times the work in restitution that it absorbed in
                compression (Stronge)

Without friction, and wherever sliding keeps its direction, all three are the same. Where it stops
or reverses they differ: Newton's may then create energy, which is an error here; the energetic law
never does.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from kinetree.errors import ImpactError, require_known
from kinetree.integration.explicit import DORMAND_PRINCE
from kinetree.integration.roots import root

LAWS = ("newton", "poisson", "energetic")
"""Names of the laws."""


def require_law(law):
    """Raise UnknownNameError for an unknown law of restitution."""
    require_known(law, LAWS, f"there is no law of restitution {law!r}", f"use one of {LAWS}")


def single_impact(W, zeta, restitution, friction, law="energetic"):
    """Impulse (3,) of an impact at one contact, integrated along the normal impulse.

    Args:
        W: velocity change per impulse, (3, 3).
        zeta: relative velocity before, (3,).
        restitution: coefficient, from 0 to 1.
        friction: coefficient.
        law: one of ``LAWS``.
    """
    if not zeta[0] < 0:
        return np.zeros(3)
    if not friction:
        return np.array([-(1 + restitution) * zeta[0] / W[0, 0], 0, 0])
    squeezed = follow(ImpactState.start(W, zeta, friction), _Speed(0.0))
    ends = {
        "newton": _Speed(-restitution * zeta[0]),
        "poisson": _Impulse((1 + restitution) * squeezed.impulse[0]),
        "energetic": _Work((1 - restitution**2) * squeezed.work),
    }
    return follow(squeezed, ends[law]).impulse


@dataclass(frozen=True)
class _Speed:
    """Up to a normal velocity."""

    target: float

    @property
    def is_rest(self):
        """Whether the target normal speed is zero, the end of compression."""
        return self.target == 0

    def distance(self, course):
        """Normal speed minus its target; negative before the goal is reached."""
        return course.zeta[0] - self.target

    def impulse(self, course, k):
        """Normal impulse until the normal speed reaches its target, at rate ``k``."""
        return (self.target - course.zeta[0]) / k if k > 0 else np.inf


@dataclass(frozen=True)
class _Impulse:
    """Up to a normal impulse."""

    target: float
    is_rest = False

    def distance(self, course):
        """Normal impulse minus its target; negative before the goal is reached."""
        return course.impulse[0] - self.target

    def impulse(self, course, k):
        """Normal impulse left until the target impulse."""
        return self.target - course.impulse[0]


@dataclass(frozen=True)
class _Work:
    """Up to the work of the normal impulse, in restitution, where it grows."""

    target: float
    is_rest = False

    def distance(self, course):
        """Work done minus its target; negative before the goal is reached."""
        return course.work - self.target

    def impulse(self, course, k):
        """Normal impulse until the work reaches its target, at rate ``k`` of normal speed."""
        if k <= 0:
            return np.inf
        rest, zeta = self.target - course.work, course.zeta[0]
        root = np.sqrt(zeta**2 + 2 * k * rest)
        return 2 * rest / (zeta + root) if zeta > 0 else (root - zeta) / k


# --- The course of an impact with friction: Routh's method ---------------------------------------
# An impact takes no time, but it has a course: the normal impulse ``p`` grows, and with it the
# friction impulse and the relative velocity,
#
#     dλ = (1, -μ d) dp  while the bodies slide in the direction d,      dζ = W dλ
#
# until sliding stops. Then they stick, ``dλ_t/dp = -W_tt⁻¹ W_tn``, if the cone allows that, or
# slide off in the one direction in which they can keep on sliding. In a plane, and wherever else
# ``d`` stays the same, this is piecewise linear. Otherwise ``d`` turns, faster and faster as
# sliding slows down; ``dp = s dτ`` with the sliding speed ``s`` makes a smooth differential
# equation of it. Coordinates are (normal, tangent 1, tangent 2). NumPy only.

_ARRESTED = 1e-13  # of the relative velocity: slower sliding counts as rest
_WEDGED = 1e-12  # of the mobility: less of it along the normal counts as zero
_NOISE = 1e-11  # of the relative velocity: left of an approach that is over


@dataclass(frozen=True)
class ImpactState:
    """State of an impact on its way."""

    W: np.ndarray
    """Velocity change per impulse, (3, 3), symmetric and positive semidefinite."""
    friction: float
    """Coefficient of friction."""
    zeta: np.ndarray
    """Relative velocity, (3,)."""
    impulse: np.ndarray
    """So far, (3,)."""
    work: float
    """Of the normal impulse so far [J]."""
    scale: float
    """Relative speed at the start [m/s]."""
    arrested: bool = False
    """Whether sliding has stopped just now."""

    @classmethod
    def start(cls, W, zeta, friction):
        """State of a contact before the impact: no impulse, no work."""
        return cls(W, friction, zeta, np.zeros(3), 0.0, float(np.linalg.norm(zeta)))

    @property
    def sliding(self) -> bool:
        """Whether the bodies slide at the contact."""
        return not self.arrested and np.hypot(*self.zeta[1:]) > _ARRESTED * self.scale

    def along(self, c, p) -> "ImpactState":
        """State after normal impulse ``p`` with the impulse direction ``dλ/dp = c``."""
        rate = self.W @ c
        work = self.work + self.zeta[0] * p + rate[0] * p * p / 2
        return replace(
            self, zeta=self.zeta + rate * p, impulse=self.impulse + c * p, work=work, arrested=False
        )


def follow(course: ImpactState, goal) -> ImpactState:
    """State of an impact when it reaches a goal, through sliding and sticking phases.

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
    """State after sliding until the goal or until sliding stops, and whether at the goal."""
    W, mu, speed = course.W, course.friction, np.hypot(*course.zeta[1:])
    d = course.zeta[1:] / speed
    c = np.array([1.0, *(-mu * d)])
    turn, slow = np.array([-d[1], d[0]]) @ (W @ c)[1:], d @ (W @ c)[1:]
    if abs(turn) > 1e-14 * np.linalg.norm(W[1:]) * (1 + mu):
        return swerve(course, goal)
    to_goal = goal.impulse(course, (W @ c)[0])
    to_stop = -speed / slow if slow < 0 else np.inf
    if to_goal < to_stop:
        return course.along(c, to_goal), True
    stopped = course.along(c, to_stop)
    return replace(stopped, zeta=np.array([stopped.zeta[0], 0, 0]), arrested=True), False


def _without_sliding(course):
    """Impulse direction ``dλ/dp`` from rest: sticking, or the start of new sliding."""
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
    """Sliding direction ``d`` from rest with ``W_tn - μ W_tt d = g d`` and ``g > 0``.

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


# --- Swerve: sliding whose direction turns --------------------------------------------------------
# With ``ζ_t = s (cos φ, sin φ)`` and ``dp = s dτ``, all of
#
#     dφ/dτ = d⊥·r,   d(ln s)/dτ = d·r,   dp/dτ = s,   dλ_t/dτ = -μ s d,   r = W_tn - μ W_tt d
#
# is smooth, also where sliding slows down to nothing. Steps are those of Dormand and Prince.

_ERROR = tuple(b - e for b, e in zip(DORMAND_PRINCE.b, DORMAND_PRINCE.b_embedded, strict=True))
_TOLERANCE = 1e-11
_GONE = math.log(1e-14)  # of the speed at the start: sliding has stopped


def swerve(course, goal):
    """State after sliding with turning direction, to the goal or stop; whether at the goal."""
    path = _Path(course)
    y, h = path.start, 0.1 / np.linalg.norm(course.W) / (1 + course.friction)
    while True:
        after, error = path.step(y, h)
        if error > 1:
            h *= max(0.2, 0.9 * error**-0.2)
            continue
        there = goal.distance(path.course(after))
        if there >= 0:
            return path.course(path.step(y, _to_goal(path, goal, y, h, there))[0]), True
        if after[1] - path.start[1] < _GONE:
            return _stop(path.course(after)), False
        y, h = after, h * min(5.0, 0.9 * max(error, 1e-8) ** -0.2)


class _Path:
    """The differential equation: states ``φ, ln s, p, λ_t, work``. Plain floats: few, and quick."""

    def __init__(self, course):
        self.given, self.mu, self.W = course, course.friction, course.W.tolist()
        self.zeta_n = float(course.zeta[0])
        s = float(np.hypot(*course.zeta[1:]))
        angle = math.atan2(course.zeta[2], course.zeta[1])
        self.start = [angle, math.log(s), 0.0, 0.0, 0.0, float(course.work)]
        size = s / float(np.linalg.norm(course.W))  # of impulses
        self.size = [1.0, 1.0, size, size, size, size * course.scale]

    def rates(self, y):
        """Rates of sliding angle, log speed, impulses and work along the sliding path."""
        (nn, n1, n2), (_, a, b), (_, _, c) = self.W
        d1, d2, s, mu = math.cos(y[0]), math.sin(y[0]), math.exp(y[1]), self.mu
        r1, r2 = n1 - mu * (a * d1 + b * d2), n2 - mu * (b * d1 + c * d2)
        zeta_n = self.zeta_n + nn * y[2] + n1 * y[3] + n2 * y[4]
        turn, slow = d1 * r2 - d2 * r1, d1 * r1 + d2 * r2
        return turn, slow, s, -mu * s * d1, -mu * s * d2, zeta_n * s

    def step(self, y, h):
        """Sliding state after a Runge-Kutta step ``h``, and its error relative to tolerance."""
        k, state = [], y
        for a in DORMAND_PRINCE.a:
            state = _move(y, h, a, k)
            k.append(self.rates(state))
        error = _move([0.0] * 6, h, _ERROR, k)
        least = [0.0, 0.0, *(abs(x) for x in y[2:])]
        sizes = (max(a, b) for a, b in zip(self.size, least, strict=True))
        return state, max(abs(e) / (_TOLERANCE * z) for e, z in zip(error, sizes, strict=True))

    def course(self, y):
        """``ImpactState`` at a point ``y`` of the sliding path."""
        impulse = np.array(y[2:5])
        zeta = self.given.zeta + self.given.W @ impulse
        total = self.given.impulse + impulse
        return replace(self.given, zeta=zeta, impulse=total, work=float(y[5]))


def _move(y, h, weights, k):
    """Runge-Kutta combination ``y + h Σ w k`` of a state and weighted rates."""
    if not weights:
        return y
    return [
        x + h * sum(w * rate for w, rate in zip(weights, rates, strict=True))
        for x, *rates in zip(y, *k, strict=True)
    ]


def _to_goal(path, goal, y, h, at_end):
    """Length of the path step that ends exactly at the goal."""

    def distance(length):
        return goal.distance(path.course(path.step(y, length)[0]))

    return root(distance, 0.0, goal.distance(path.course(y)), h, at_end, 4 * np.spacing(h))


def _stop(course):
    """State with sliding set exactly to zero by a final tangential impulse."""
    rest = np.linalg.lstsq(course.W[1:, 1:], -course.zeta[1:], rcond=1e-14)[0]
    impulse = np.array([0, *rest])
    zeta = course.zeta + course.W @ impulse
    return replace(
        course, zeta=np.array([zeta[0], 0, 0]), impulse=course.impulse + impulse, arrested=True
    )
