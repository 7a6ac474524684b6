"""Surfaces with a memory: a patch without mass on springs and dampers — RBDA §11.8, Figure 11.10.

The patch at ``z`` follows the body at ``p`` while they touch, ``f = -K z - D pd``, and comes back
on its own when the body leaves, which may be while the body is still below the undisturbed surface:
``zd = -(K z + f)/D``, RBDA (11.73), (11.74).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.contact.complementarity.rows import less
from kinetree.contact.soft.laws import (
    TOUCHING,
    NormalLaw,
    Stiction,
    TangentialLaw,
    positive,
    require_positive,
)
from kinetree.errors import ModelError
from kinetree.functional.kernel import select


@dataclass(frozen=True)
class Patch(NormalLaw):
    """A patch on a spring and a damper.

    It needs no integration: ``z = p`` in contact, and ``z0 exp(-K (t - t0)/D)`` after it.

    Args:
        stiffness: ``K`` [N/m].
        damping: ``D`` [N·s/m].
        integrated: whether ``z`` is integrated anyway, which must give the same result.
    """

    spelling: ClassVar = "patch"
    suggestion: ClassVar = "1e5 N/m and 1e3 N·s/m: 100 N give a penetration of 1 mm"
    stiffness: float
    damping: float
    integrated: bool = False
    size = 1

    @property
    def usual_friction(self) -> TangentialLaw:
        """Default friction: ``Stiction`` with the same stiffness and damping."""
        return Stiction(self.stiffness, self.damping)

    def __post_init__(self):
        require_positive(self, stiffness=self.stiffness, damping=self.damping)

    @property
    def rate(self) -> float:
        """Decay rate of the patch's deformation if it is integrated, else 0 [1/s]."""
        return self.stiffness / self.damping if self.integrated else 0.0

    def _left(self, z, elapsed):
        """Deformation of an unloaded patch after ``elapsed`` seconds of free recovery."""
        return z * np.exp(-self.stiffness / self.damping * elapsed)

    def __call__(self, z, p, pd, elapsed):
        """Forces and rates of ``z``."""
        z = z[..., 0]
        there = z if self.integrated else self._left(z, elapsed)
        f = positive(-self.stiffness * p - self.damping * pd)
        f = select(less(p, there + TOUCHING), f, 0 * f)
        zd = -(self.stiffness * z + f) / self.damping if self.integrated else 0 * z
        return f, zd[..., None]

    def start(self, p: ArrayLike) -> Array:
        """Initial deformation (..., 1) of a patch in touch with the other body."""
        return select(less(p, 0), p, 0 * p)[..., None]

    def end_states(self, z0: ArrayLike, z1: ArrayLike, p: ArrayLike, h: float) -> Array:
        """Deformations at the end of a step: at least the overlap, equal to it in touch."""
        z = z1[..., 0] if self.integrated else self._left(z0[..., 0], h)
        return select(less(p, z + TOUCHING) & less(p, 0), p, z)[..., None]

    def energy(self, z: ArrayLike) -> Array:
        """Elastic energy of the deformed patch [J]."""
        return self.stiffness * z[..., 0] ** 2 / 2


@dataclass(frozen=True)
class NonlinearPatch(NormalLaw):
    """A patch on any spring and damper: ``f = S(-z) - D(-z) pd``; ``zd = (S(-z) - f)/D(-z)``.

    Args:
        spring: function of the depth [m] that returns a force [N]; zero at zero, growing.
        damper: function of the depth that returns a coefficient [N·s/m], positive also at zero: a
            patch without damper would come back at once.
        rate: fastest ``S'/D`` [1/s]; steps must be short compared with its inverse.
    """

    spring: Any
    damper: Any
    rate: float = 0.0
    size = 1

    def __post_init__(self):
        if not self.damper(0.0) > 0:
            raise ModelError(
                f"the damper of NonlinearPatch must be positive at depth 0, where the patch would "
                f"otherwise move infinitely fast; got {self.damper(0.0)!r}. HuntCrossley has a "
                f"damper that begins at zero, and no patch"
            )

    def __call__(self, z, p, pd, elapsed):
        """Forces and rates of ``z``."""
        z = z[..., 0]
        depth = positive(-p)
        f = positive(self.spring(depth) - self.damper(depth) * pd)
        f = select(less(p, z + TOUCHING), f, 0 * f)
        back = positive(-z)
        return f, ((self.spring(back) - f) / self.damper(back))[..., None]

    def start(self, p: ArrayLike) -> Array:
        """Initial deformation (..., 1) of a patch in touch with the other body."""
        return select(less(p, 0), p, 0 * p)[..., None]

    def end_states(self, z0: ArrayLike, z1: ArrayLike, p: ArrayLike, h: float) -> Array:
        """Deformations at the end of a step, at most 0 and in touch where overlapping."""
        z = select(less(z1[..., 0], 0), z1[..., 0], 0 * z1[..., 0])
        return select(less(p, z + TOUCHING) & less(p, 0), p, z)[..., None]


@dataclass(frozen=True)
class SeriesSpring(NormalLaw):
    """A spring and damper side by side, and one more spring before them (Zener's solid).

    The force begins at zero and grows at a finite rate: ``f = K_s (y - p)``, where ``y`` is the
    deformation of the damped part, ``D yd = -K y - f``. Bodies leave where ``p = y``.

    Args:
        stiffness: ``K`` beside the damper [N/m].
        damping: ``D`` [N·s/m].
        series: ``K_s`` [N/m].
    """

    stiffness: float
    damping: float
    series: float
    size = 1

    def __post_init__(self):
        require_positive(self, stiffness=self.stiffness, damping=self.damping, series=self.series)

    @property
    def rate(self) -> float:
        """Decay rate of the damper's deformation ``y`` [1/s]."""
        return (self.stiffness + self.series) / self.damping

    def __call__(self, z, p, pd, elapsed):
        """Forces and rates of ``y``."""
        y = z[..., 0]
        f = positive(self.series * (y - p))
        return f, (-(self.stiffness * y + f) / self.damping)[..., None]

    def energy(self, z: ArrayLike, p: ArrayLike) -> Array:
        """Elastic energy of both springs [J]."""
        y = z[..., 0]
        return (self.stiffness * y**2 + self.series * positive(y - p) ** 2) / 2


@dataclass(frozen=True)
class TwoSurfaces(NormalLaw):
    """Two compliant surfaces, each a ``Patch``; in contact their deformations add up to ``p``.

    Args:
        first: ``Patch`` of the one.
        second: of the other.
    """

    first: Patch
    second: Patch
    size = 2

    @property
    def rate(self) -> float:
        """Faster decay rate of the two surfaces' deformations [1/s]."""
        return max(s.stiffness / s.damping for s in (self.first, self.second))

    def __call__(self, z, p, pd, elapsed):
        """Forces and rates of both."""
        a, b = self.first, self.second
        back = [-s.stiffness * z[..., k] / s.damping for k, s in enumerate((a, b))]
        apart = z[..., 0] + z[..., 1] - p  # zero in contact: what is not is brought back
        f = (back[0] + back[1] - pd + self.rate * apart) / (1 / a.damping + 1 / b.damping)
        f = select(less(-TOUCHING, apart), positive(f), 0 * f)
        return f, np.stack([back[0] - f / a.damping, back[1] - f / b.damping], axis=-1)

    def start(self, p: ArrayLike) -> Array:
        """Initial deformations (..., 2) with equal forces on both surfaces."""
        k = self.first.stiffness, self.second.stiffness
        depth = select(less(p, 0), p, 0 * p)
        return np.stack([depth * k[1] / sum(k), depth * k[0] / sum(k)], axis=-1)

    def end_states(self, z0: ArrayLike, z1: ArrayLike, p: ArrayLike, h: float) -> Array:
        """Deformations at the end of a step, made equal in sum to the overlap."""
        apart = z1[..., 0] + z1[..., 1] - p
        too_much = select(less(-TOUCHING, apart) & less(p, 0), apart, 0 * apart)
        return z1 - too_much[..., None] / 2


def lumped(first: Patch, second: Patch) -> Patch:
    """Single ``Patch`` equivalent to two surfaces of equal ``K/D`` in series (RBDA §11.8)."""
    ratios = first.stiffness / first.damping, second.stiffness / second.damping
    if not np.isclose(*ratios, rtol=1e-9, atol=0):
        raise ModelError(
            f"surfaces whose stiffness over damping differ, {ratios[0]:.6g} and {ratios[1]:.6g} "
            f"1/s, recover at their own paces and cannot be lumped; use TwoSurfaces"
        )

    def in_series(x, y):
        return x * y / (x + y)

    return Patch(
        in_series(first.stiffness, second.stiffness), in_series(first.damping, second.damping)
    )
