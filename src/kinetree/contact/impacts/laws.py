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

from dataclasses import dataclass

import numpy as np

from kinetree.contact.impacts.path import Course, follow
from kinetree.errors import UnknownNameError
from kinetree.spelling import did_you_mean

__all__ = ["LAWS", "require_law", "single_impact"]

LAWS = ("newton", "poisson", "energetic")
"""Names of the laws."""


def require_law(law):
    """Raise UnknownNameError for what is not a law of restitution."""
    if law not in LAWS:
        hint = did_you_mean(law, LAWS, f"use one of {LAWS}")
        raise UnknownNameError(f"there is no law of restitution {law!r}; {hint}")


def single_impact(W, zeta, restitution, friction, law="energetic"):
    """Impulse at a point where bodies approach, (3,): normal, tangent 1, tangent 2.

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
    squeezed = follow(Course.start(W, zeta, friction), _Speed(0.0))
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
        return self.target == 0

    def distance(self, course):
        return course.zeta[0] - self.target

    def impulse(self, course, k):
        return (self.target - course.zeta[0]) / k if k > 0 else np.inf


@dataclass(frozen=True)
class _Impulse:
    """Up to a normal impulse."""

    target: float
    is_rest = False

    def distance(self, course):
        return course.impulse[0] - self.target

    def impulse(self, course, k):
        return self.target - course.impulse[0]


@dataclass(frozen=True)
class _Work:
    """Up to the work of the normal impulse, in restitution, where it grows."""

    target: float
    is_rest = False

    def distance(self, course):
        return course.work - self.target

    def impulse(self, course, k):
        if k <= 0:
            return np.inf
        rest, zeta = self.target - course.work, course.zeta[0]
        root = np.sqrt(zeta**2 + 2 * k * rest)
        return 2 * rest / (zeta + root) if zeta > 0 else (root - zeta) / k
