"""Relations of several joints: couplings; and gravity compensation.

A coupling makes a joint follow others: gears, mimic joints, cams, differentials — RBDA §3.2, §9.6.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, warn
from kinetree.joints.jet import Jet
from kinetree.spatial import Plucker


@dataclass(frozen=True)
class Coupling:
    """A joint that follows other joints; each of them has one variable.

    A polynomial ``q = c0 + c1 x + c2 x² + ...`` of the leader: ``x`` is the position of the joint
    ``source``, or the sum ``w1 q_1 + w2 q_2 + ...`` over the joints ``sources``. Any other smooth
    law is a ``function`` of the positions of the leaders, written with ``kinetree.spatial.ops`` and
    without an ``if`` on a value; it is differentiated automatically. With a ``tendon`` the position
    is the length of that tendon, as of a rope's end or of a rotor that the rope turns.

    The follower has no independent variable: ``q`` holds the independent positions only, and
    ``model.expand(q)`` those of all joints.

    Attributes:
        name: unique name, among the joints.
        joint: number of the joint that follows, which is that of the body it moves.
        source: number of the joint that leads, if there is one; 0 for none, which holds the joint
            at ``c0``, and for several.
        coefficients: of the polynomial, the constant first.
        sources: numbers of the joints that lead, where they are several or for a ``function``.
        weights: factors of the ``sources``; 1 by default.
        function: from the positions of the leaders, one argument each, to that of the joint.
        tendon: name of a tendon whose length it follows, or empty; the model then fills in the
            leaders, which are the joints that move the tendon, and the law.
    """

    name: str
    joint: int
    source: int = 0
    coefficients: tuple[float, ...] = (0.0, 1.0)
    sources: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    function: Callable[..., Any] | None = None
    tendon: str = ""

    def __post_init__(self):
        if self.source and self.sources:
            raise ModelError(
                f"coupling {self.name!r} has a source and sources; give the one or the others"
            )
        if len(self.weights) not in (0, len(self.sources)):
            raise ModelError(
                f"coupling {self.name!r} has {len(self.sources)} sources and "
                f"{len(self.weights)} weights; it needs one for each"
            )
        if self.function is not None and (self.weights or not self.leaders):
            raise ModelError(
                f"coupling {self.name!r}: a function takes the positions of its sources as they "
                f"are; it needs sources and no weights"
            )

    @property
    def leaders(self) -> tuple[int, ...]:
        """Numbers of the joints that the coupled joint follows; none for a fixed position."""
        return self.sources or ((self.source,) if self.source else ())

    @property
    def shares(self) -> tuple[float, ...]:
        """Weight of each leading joint in the sum ``x``."""
        return self.weights or (1.0,) * len(self.leaders)

    @property
    def is_linear(self) -> bool:
        """Whether the velocity ratio is constant."""
        return self.function is None and len(self.coefficients) <= 2

    @property
    def is_mimic(self) -> bool:
        """Whether one joint leads, by a factor and an offset, as ``mimic`` in URDF."""
        return self.is_linear and bool(self.source) and len(self.coefficients) == 2

    def position(self, leaders: ArrayLike) -> Any:
        """Position of the coupled joint for the positions of its leaders."""
        if self.function is not None:
            return self.function(*leaders)
        return _polynomial(self.coefficients, self._sum(leaders))[0]

    def slopes(self, leaders: ArrayLike) -> Any:
        """Deprecated name of ``derivatives``."""
        message = "Coupling.slopes is deprecated: use Coupling.derivatives"
        warn(message, DeprecationWarning)
        return self.derivatives(leaders)

    def derivatives(self, leaders: ArrayLike) -> Any:
        """First (n,) and second (n, n) derivatives of the position by those of the leaders."""
        n = len(self.leaders)
        if self.function is None:
            w = [exact(x) for x in self.shares]
            _, dp, ddp = _polynomial(self.coefficients, self._sum(leaders))
            return [dp * a for a in w], [[ddp * a * b for b in w] for a in w]
        along = [[self._along(leaders, (i, j)) for j in range(i + 1)] for i in range(n)]
        first = [along[i][i].first for i in range(n)]
        second: list = [[0] * n for _ in range(n)]
        for i in range(n):
            second[i][i] = along[i][i].second
            for j in range(i):  # the second derivative along e_i + e_j, by polarisation
                rest = along[i][j].second - along[i][i].second - along[j][j].second
                second[i][j] = second[j][i] = rest / 2
        return first, second

    def with_held(self, positions: Mapping[int, Any]) -> Any:
        """Coupling that remains when some of the leaders are fixed at given positions.

        Args:
            positions: where they are, by joint number.
        """
        if not any(i in positions for i in self.leaders):
            return self
        left = tuple(i for i in self.leaders if i not in positions)
        if self.function is not None:
            return replace(self, sources=left, function=self._partly(positions))
        terms = list(zip(self.leaders, self.shares, strict=True))
        still = sum(w * positions[i] for i, w in terms if i in positions)
        law = np.polynomial.Polynomial(self.coefficients)(np.polynomial.Polynomial([still, 1.0]))
        weights = tuple(w for i, w in terms if i not in positions)
        coefficients = tuple(float(c) for c in law.coef)
        return replace(self, sources=left, weights=weights, coefficients=coefficients)

    def _partly(self, positions):
        """Coupling function of the remaining leaders, with the others at fixed positions."""
        function: Any = self.function
        leaders = self.leaders

        def of_the_others(*x):
            moving = iter(x)
            return function(*(positions[i] if i in positions else next(moving) for i in leaders))

        return of_the_others

    def _along(self, leaders, moving):
        """Coupling function with derivatives along some of the leaders, as a jet."""
        x = [Jet(a, 1 if k in moving else 0) for k, a in enumerate(leaders)]
        found = self.function(*x)  # type: ignore[misc]
        return found if isinstance(found, Jet) else Jet(found)

    def _sum(self, leaders):
        """Weighted sum ``x`` of the leaders' positions."""
        terms = [exact(w) * x for w, x in zip(self.shares, leaders, strict=True)]
        return sum(terms[1:], terms[0]) if terms else 0


def as_floats(given, what) -> tuple[float, ...]:
    """A number or a sequence of numbers as a tuple of floats; an error otherwise."""
    try:
        value = np.atleast_1d(np.asarray(given, dtype=float))
    except (TypeError, ValueError):
        raise ModelError(f"{what} must hold numbers, got {given!r}") from None
    return tuple(float(x) for x in value)


def as_numbers(given, what):
    """Tuple of numbers, exact ones such as fractions and formulas unchanged."""
    value = np.atleast_1d(np.asarray(given)).ravel()
    if value.dtype == object and all(hasattr(x, "__truediv__") for x in value):
        return tuple(float(x) if isinstance(x, (int, float)) else x for x in value)
    return as_floats(given, what)


def exact(x):
    """Integer value of a number that is integral, so that zeros and ones count as structure."""
    return int(x) if float(x).is_integer() else x


def _polynomial(coefficients, x):
    """Value and first two derivatives of a polynomial, by Horner's rule."""
    p = dp = ddp = 0
    for c in reversed(coefficients):
        p, dp, ddp = p * x + exact(c), dp * x + p, ddp * x + 2 * dp
    return p, dp, ddp


def as_given(coupling):
    """Coupling as the user gave it: a law derived from a tendon is removed."""
    if not coupling.tendon:
        return coupling
    return Coupling(coupling.name, coupling.joint, tendon=coupling.tendon)


def require_written(coupling, where):
    """Raise ModelError for a coupling law that is a function, which no file can hold."""
    if coupling.function is not None and not coupling.tendon:
        raise ModelError(
            f"coupling {coupling.name!r} follows a function of Python, which {where} cannot hold; "
            f"add it after loading: model.replace(couplings=...)"
        )


# --- Gravity compensation: a force beside those of joints and tendons -----------------------------


@dataclass(frozen=True)
class GravityCompensation:
    """A force ``-mass * gravity`` at a point of a body, which balances part of its weight.

    Part of ``passive_force``. Several on a body add up.

    Attributes:
        body: number of the body.
        mass: the mass whose weight is balanced [kg].
        center: point at which the force acts, in body coordinates [m], (3,).
    """

    body: int
    mass: Any
    center: Any = (0.0, 0.0, 0.0)

    def __post_init__(self):
        if not isinstance(self.body, (int, np.integer)):
            raise ModelError(
                f"GravityCompensation is a part of models and needs the number of a body, got a"
                f" {type(self.body).__name__}; kinetree.control.GravityCompensation is a controller"
            )
        object.__setattr__(self, "center", as_numbers(self.center, "center"))

    def moved(self, body: int, X: Plucker) -> "GravityCompensation":
        """Compensation moved to another body; ``X`` transforms to the new coordinates."""
        return replace(self, body=body, center=tuple(X.E.T @ self.center + X.r))
