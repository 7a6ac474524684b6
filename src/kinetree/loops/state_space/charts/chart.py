"""What a chart is: independent states that give the whole state, at least nearby — Spencer §2.2."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from kinetree.errors import SingularError
from kinetree.loops.state_space.system import ConstrainedSystem

__all__ = ["AbstractChart", "ChartPoint", "inverted", "row_condition"]


class ChartPoint(NamedTuple):
    """A state found from its coordinates, with what was computed on the way."""

    q: np.ndarray
    """Configuration, (nq,)."""
    v: np.ndarray
    """Velocities ``K y_v``, (n,)."""
    K: np.ndarray
    """Null-space basis of the chart, (n, p)."""
    c: np.ndarray
    """``Kdot y_v``: accelerations are ``K ydd + c``, (n,)."""
    condition: float
    """How well the coordinates determine the state here: 1 at best."""
    iterations: int
    """Steps of Newton's method."""


class AbstractChart(ABC):
    """Coordinates ``y`` of the states ``(q, v)`` that satisfy the constraints.

    ``state`` is the local parametrisation ψ of the text, ``coordinates`` its inverse. Since ψ is
    implicit it takes iterations, which start from the state that was found last. A chart holds near
    the state that it was made for; ``health`` tells how near its end is.

    Attributes:
        system: the constrained system, with independent constraints.
        health: condition of the state that was computed last: 1 at best, infinite where the
            coordinates fail.
    """

    system: ConstrainedSystem
    health: float

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of coordinates, P = 2p."""

    @abstractmethod
    def state(self, y, guess=None) -> Any:
        """``q, v`` that have the coordinates ``y``: ψ.

        Args:
            y: coordinates, (P,).
            guess: a state ``(q, v)`` nearby; by default the one that was found last.
        """

    @abstractmethod
    def coordinates(self, q, v) -> Any:
        """``y`` of a state, (P,): ψ⁻¹."""

    @abstractmethod
    def derivative(self, q, v) -> Any:
        """``Dψ`` at a state of the manifold, (2n, P); its columns span the tangent space."""

    @abstractmethod
    def inverse_derivative(self, q, v) -> Any:
        """``Dψ⁻¹`` at a state of the manifold, (P, 2n)."""

    @abstractmethod
    def rate(self, t, y, *, acceleration=None, guess=None) -> Any:
        """``dy/dt``, (P,) — Spencer (2.15).

        Args:
            t: time [s].
            y: coordinates, (P,).
            acceleration: function of ``t, q, v``; by default what the system says.
            guess: a state nearby, as for ``state``.
        """

    def rate_by_pseudo_inverse(self, t, y, acceleration):
        """``dy/dt`` as the least-squares solution of ``Dψ ydot = f``, (P,) — Spencer (2.13)."""
        q, v = self.state(y)
        f = np.concatenate([v, acceleration(t, q, v)])
        return np.linalg.lstsq(self.derivative(q, v), f, rcond=None)[0]


def row_condition(A, inverse) -> float:
    """Condition of a square matrix with rows scaled to length 1: 1 at best.

    Equations of different units are thus comparable: no scaling of rows is better than this one by
    more than the square root of their number (van der Sluis).
    """
    squares = np.einsum("ij,ij->i", A, A)
    total = squares @ np.einsum("ij,ij->j", inverse, inverse)  # of the inverse, columns scaled
    return float(np.sqrt(total / len(A))) if len(A) else 1.0


def inverted(A, what):
    """Inverse of a square matrix, or a SingularError."""
    try:
        inverse = np.linalg.inv(A)
    except np.linalg.LinAlgError as error:
        raise SingularError(f"{what}: the coordinates do not determine the state") from error
    if not np.isfinite(inverse.sum()):
        raise SingularError(f"{what}: the coordinates do not determine the state")
    return inverse
