"""Normal forces of compliant surfaces, as functions of how far and how fast they are pressed.

A law takes its states ``z`` (..., k), the gap ``p`` [m], negative where bodies overlap, its rate
``pd`` and the time ``elapsed`` since the states were known. It returns the force, which never
pulls, and the rates of the states; ``end_states`` gives the states at the end of a step. Laws
without states are smooth enough for rollouts and derivatives. Written for numbers of any kind,
many contacts at a time.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.complementarity.rows import less
from kinetree.errors import ModelError, UnknownNameError
from kinetree.functional.kernel import select
from kinetree.spatial import ops

_each_root = np.frompyfunc(ops.sqrt, 1, 1)


TOUCHING = 1e-10
"""Gap [m] between a body and the surface that it presses, up to which rounding may have put it."""


class NormalLaw(ABC):
    """Base class of normal force laws.

    Attributes:
        size: number of states of a contact, ``k``.
        rate: fastest decay of a state [1/s] that an integrator has to follow.
        spelling: name by which ``SoftContact(law=...)`` makes one of a stiffness and a damping;
            empty: it is given as an object only.
        suggestion: a stiffness and a damping to begin with, for messages.
    """

    size: int = 0
    rate: float = 0.0
    spelling: ClassVar[str] = ""
    suggestion: ClassVar[str] = ""

    @property
    def usual_friction(self) -> "TangentialLaw":
        """Default law of tangential friction for this normal law."""
        return Regularized()

    def energy(self, p: ArrayLike) -> Array:
        """Stored energy at a gap [J]; raises an error for laws with memory."""
        raise UnknownNameError(f"{type(self).__name__} has no energy of positions alone")

    @abstractmethod
    def __call__(self, z, p, pd, elapsed) -> tuple[Any, Any]:
        """Forces [N], (...,), and rates of the states, (..., k)."""

    def start(self, p: ArrayLike) -> Array:
        """Initial contact states (..., k) in equilibrium with their load."""
        return np.zeros((*np.shape(p), self.size))

    def end_states(self, z0: ArrayLike, z1: ArrayLike, p: ArrayLike, h: float) -> Array:
        """Contact states at the end of a step, adjusted to the gaps there.

        Args:
            z0: at its start.
            z1: as they were integrated.
            p: gaps at the end.
            h: length of the step [s].
        """
        return z1


@dataclass(frozen=True)
class Linear(NormalLaw):
    """A spring and a damper, ``max(0, -K p - D pd)`` while ``p < 0`` — RBDA (11.74) with ``z = p``.

    The surface is taken to follow the body at once; ``Patch`` recovers in its own time after the
    body has left. The force jumps where the body arrives.

    Args:
        stiffness: ``K`` [N/m].
        damping: ``D`` [N·s/m].
    """

    spelling: ClassVar = "linear"
    suggestion: ClassVar = "1e5 N/m and 1e3 N·s/m: 100 N give a penetration of 1 mm"
    stiffness: float
    damping: float

    def __post_init__(self):
        require_positive(self, stiffness=self.stiffness)
        require_positive(self, zero=True, damping=self.damping)

    def __call__(self, z, p, pd, elapsed):
        """Forces; no states."""
        f = positive(-self.stiffness * p - self.damping * pd)
        return select(less(p, 0), f, 0 * f), z

    def energy(self, p: ArrayLike) -> Array:
        """Elastic energy at gap ``p`` [J], zero when open."""
        return self.stiffness * select(less(p, 0), p, 0 * p) ** 2 / 2


@dataclass(frozen=True)
class HuntCrossley(NormalLaw):
    """Spring and damper that grow with the area of contact: ``k δⁿ (1 - 3/2 α pd)``, ``δ = -p``.

    The force begins at zero, and so do its derivatives for ``n > 1``. For ``α v ≪ 1`` a body that
    arrives with the speed ``v`` leaves with ``(1 - α v) v`` (Hunt and Crossley; Marhefka and Orin).

    Args:
        stiffness: ``k`` [N/mⁿ].
        dissipation: ``α`` [s/m].
        exponent: ``n``, a multiple of 1/2, at least 1; 3/2 for spheres (Hertz).
    """

    spelling: ClassVar = "hunt_crossley"
    suggestion: ClassVar = "1e6 N/m^1.5 and 0.5 s/m: 100 N give a penetration of 2 mm"
    stiffness: float
    dissipation: float = 0.0
    exponent: float = 1.5

    def __post_init__(self):
        require_positive(self, stiffness=self.stiffness)
        require_positive(self, zero=True, dissipation=self.dissipation)
        if not (self.exponent >= 1 and float(2 * self.exponent).is_integer()):
            raise ModelError(
                f"the exponent of HuntCrossley must be 1, 1.5, 2, 2.5, ..., got {self.exponent!r}"
            )

    def __call__(self, z, p, pd, elapsed):
        """Forces; no states."""
        f = self._spring(p) * positive(1 - 1.5 * self.dissipation * pd)
        return select(less(p, 0), f, 0 * f), z

    def _spring(self, p):
        """Elastic force at gap ``p`` [N], proportional to a power of the depth."""
        depth = select(
            less(p, 0), -p, 0 * p + 1
        )  # keep roots and their derivatives finite in the air
        whole, half = divmod(round(2 * self.exponent), 2)
        return self.stiffness * depth**whole * (root(depth) if half else 1)

    def energy(self, p: ArrayLike) -> Array:
        """Elastic energy at gap ``p`` [J], zero when open."""
        stored = self._spring(p) * -p / (self.exponent + 1)
        return select(less(p, 0), stored, 0 * stored)


def root(x):
    """Elementwise square roots of an array in which some numbers may be traced."""
    return _each_root(x) if np.asarray(x).dtype == object else np.sqrt(x)


def positive(x):
    """Elementwise ``max(0, x)``, traceable."""
    return select(less(0, x), x, 0 * x)


def require_positive(law, *, zero=False, **values):
    """Raise ModelError for law parameters that are not finite and positive."""
    for name, value in values.items():
        if not (
            np.ndim(value) == 0 and np.isfinite(value) and (value > 0 or (zero and value == 0))
        ):
            what = "must not be negative" if zero else "must be positive"
            raise ModelError(f"{name} of {type(law).__name__} {what} and finite, got {value!r}")


# --- Friction — RBDA §11.8 -----------------------------------------------------------------------
# A law takes its states ``x`` (..., 2), the sliding velocity ``v`` (..., 2) of the point of the
# body that is in contact now, the normal force (...,) and the coefficient of friction (...,). It
# returns the force on the body (..., 2) and the rates of its states. Anything that does so is a
# law: friction models of your own go here. Components are along any two axes of the tangent
# plane; a law that treats them alike does not depend on which.


class TangentialLaw(ABC):
    """Base class of friction laws.

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
        speed = root(_square(v) + self.velocity**2)
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
    def rate(self) -> float:
        """Decay rate of the bristle deflection ``x`` during slip [1/s]."""
        return self.stiffness / self.damping

    def __call__(self, x, v, f_n, mu):
        """Forces and rates of ``x``."""
        f = cut(-self.stiffness * x - self.damping * v, mu * f_n)
        return f, -(self.stiffness * x + f) / self.damping


@dataclass(frozen=True)
class Dahl(TangentialLaw):
    """Dahl friction, gradually yielding bristles: ``f = -K x``, ``xd = v - |v| x K/(μ f_n)``.

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
    def rate(self) -> float:
        """Recovery rate of the deflection without load [1/s]."""
        return self.recovery

    def __call__(self, x, v, f_n, mu):
        """Forces and rates of ``x``."""
        limit = mu * f_n
        loaded = less(0, limit)
        safe = select(loaded, limit, 0 * limit + 1)
        speed = root(_square(v) + 1e-24)
        bent = v - (speed * self.stiffness / safe)[..., None] * x
        f = cut(-self.stiffness * x, limit)
        on = loaded[..., None]
        return f, select(on, bent, -self.recovery * x)


def cut(f, limit):
    """Vectors (..., 2) shortened to the length ``limit`` where they are longer."""
    square = _square(f)
    long = less(limit**2, square)
    length = root(select(long, square, 0 * square + 1))
    return select(long, limit / length, 0 * square + 1)[..., None] * f


def _square(v):
    """Squared length of tangential vectors (..., 2)."""
    return v[..., 0] * v[..., 0] + v[..., 1] * v[..., 1]
