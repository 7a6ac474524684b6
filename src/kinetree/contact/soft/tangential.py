"""Friction of compliant surfaces: Coulomb's law without decisions on acceleration — RBDA §11.8.

A law takes its states ``x`` (..., 2), the sliding velocity ``v`` (..., 2) of the point of the body
that is in contact now, the normal force (...,) and the coefficient of friction (...,). It returns
the force on the body (..., 2) and the rates of its states. Anything that does so is a law: friction
models of your own go here. Components are along any two axes of the tangent plane; a law that
treats them alike does not depend on which.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from kinetree.contact.complementarity.rows import less
from kinetree.contact.soft.normal import require_positive, root
from kinetree.functional.choose import select

__all__ = ["Dahl", "Regularized", "Stiction", "TangentialLaw"]


class TangentialLaw(ABC):
    """What laws have in common.

    Attributes:
        size: number of states of a contact, 0 or 2: a vector in the tangent plane.
        rate: fastest decay of the states [1/s] that an integrator has to follow.
    """

    size: int = 0
    rate: float = 0.0

    @abstractmethod
    def __call__(self, x, v, f_n, mu) -> tuple[Any, Any]:
        """Forces [N], (..., 2), and rates of the states, (..., 2)."""


@dataclass(frozen=True)
class Regularized(TangentialLaw):
    """``-μ f_n v/√(v² + w²)``: no memory, smooth; contacts that should stick creep, slower than w.

    A step of h seconds needs about ``h μ f_n < w m`` with the mass ``m`` that the force meets.

    Args:
        velocity: ``w`` [m/s].
    """

    velocity: float = 1e-2

    def __post_init__(self):
        require_positive(self, velocity=self.velocity)

    def __call__(self, x, v, f_n, mu):
        """Forces; no states."""
        speed = root(_squared(v) + self.velocity**2)
        return -(mu * f_n / speed)[..., None] * v, x


@dataclass(frozen=True)
class Stiction(TangentialLaw):
    """A patch that sticks to the body, and slips when its force leaves the cone of friction.

    ``f_stick = -K x - D v`` cut to the length ``μ f_n``; ``xd = -(K x + f)/D``: RBDA (11.77) to
    (11.79) with two components. Bodies stick without creeping.

    Args:
        stiffness: ``K`` [N/m].
        damping: ``D`` [N·s/m].
    """

    stiffness: float
    damping: float
    size = 2

    def __post_init__(self):
        require_positive(self, stiffness=self.stiffness, damping=self.damping)

    @property
    def rate(self):
        """Decay of ``x`` while it slips [1/s]."""
        return self.stiffness / self.damping

    def __call__(self, x, v, f_n, mu):
        """Forces and rates of ``x``."""
        f = cut(-self.stiffness * x - self.damping * v, mu * f_n)
        return f, -(self.stiffness * x + f) / self.damping


@dataclass(frozen=True)
class Dahl(TangentialLaw):
    """Bristles that bend and give way gradually: ``f = -K x``, ``xd = v - |v| x K/(μ f_n)``.

    Args:
        stiffness: ``K`` [N/m].
        recovery: how fast bristles without load straighten [1/s].
    """

    stiffness: float
    recovery: float = 100.0
    size = 2

    def __post_init__(self):
        require_positive(self, stiffness=self.stiffness, recovery=self.recovery)

    @property
    def rate(self):
        """Recovery without load [1/s]."""
        return self.recovery

    def __call__(self, x, v, f_n, mu):
        """Forces and rates of ``x``."""
        limit = mu * f_n
        loaded = less(0, limit)
        safe = select(loaded, limit, 0 * limit + 1)
        speed = root(_squared(v) + 1e-24)
        bent = v - (speed * self.stiffness / safe)[..., None] * x
        f = cut(-self.stiffness * x, limit)
        on = loaded[..., None]
        return f, select(on, bent, -self.recovery * x)


def cut(f, limit):
    """Vectors (..., 2), shortened to the length ``limit`` where they are longer."""
    square = _squared(f)
    long = less(limit**2, square)
    length = root(select(long, square, 0 * square + 1))
    return select(long, limit / length, 0 * square + 1)[..., None] * f


def _squared(v):
    return v[..., 0] * v[..., 0] + v[..., 1] * v[..., 1]
