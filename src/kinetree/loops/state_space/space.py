"""Where configurations live: a vector space, or the configuration manifold of a model.

Charts need three operations: moving from a configuration along a tangent vector, the tangent
vector from one configuration to another, and the rate of that vector along a velocity.
"""

from typing import Any, Protocol

import numpy as np

from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel

__all__ = ["ModelSpace", "Space", "VectorSpace", "space_of"]


class Space(Protocol):
    """Configurations and the tangent vectors between them."""

    flat: bool
    """Whether velocities are the derivatives of configurations, which then add like vectors."""

    def move(self, q, u) -> Any:
        """The configuration that ``u`` leads to from ``q``."""
        ...

    def difference(self, q0, q) -> Any:
        """The ``u`` that leads from ``q0`` to ``q``."""
        ...

    def difference_gradient(self, q0, q) -> Any:
        """What takes a velocity of ``q`` to the rate of ``difference(q0, q)``, (n, n)."""
        ...


class VectorSpace:
    """Coordinates whose derivatives are the velocities."""

    flat = True

    def move(self, q, u):
        """``q + u``."""
        return q + u

    def difference(self, q0, q):
        """``q - q0``."""
        return q - q0

    def difference_gradient(self, q0, q):
        """One."""
        return np.eye(len(q))


class ModelSpace:
    """The configurations of a model: ``model.integrate`` and ``model.difference``, compiled."""

    flat = False

    def __init__(self, model):
        self.model = model

    def move(self, q, u):
        """``model.integrate(q, u)``."""
        return _move(self.model, q, u)

    def difference(self, q0, q):
        """``model.difference(q0, q)``."""
        return _difference(self.model, q, q0)

    def difference_gradient(self, q0, q):
        """Derivative of ``model.difference(q0, q)``, (nv, nv)."""
        return _difference_gradient(self.model, q, q0)


def space_of(model) -> Space:
    """The space in which the configurations of a model live."""
    flat = all(body.joint.rates_are_velocities for body in model.bodies)
    return VectorSpace() if flat else ModelSpace(model)


@kernel
def _move(model, q, u):
    return model.integrate(q, u)


@kernel
def _difference(model, q, q0):
    return model.difference(q0, q)


_difference_gradient = differentiate(_difference, wrt="q")
