"""Where configurations live: a vector space, or the configuration manifold of a model.

Charts need three operations: moving from a configuration along a tangent vector, the tangent
vector from one configuration to another, and the rate of that vector along a velocity. Linear
models need the brackets of directions that do not commute, too.
"""

from typing import Any, Protocol

import numpy as np

from kinetree.algorithms import crba
from kinetree.errors import ShapeError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import brackets


class Space(Protocol):
    """Configurations and the tangent vectors between them."""

    flat: bool
    """Whether velocities are the derivatives of configurations, which then add like vectors."""

    def move(self, q, u) -> Any:
        """Configuration reached from ``q`` by the displacement ``u``, (n,)."""
        ...

    def difference(self, q0, q) -> Any:
        """Displacement ``u`` (n,) that leads from ``q0`` to ``q``."""
        ...

    def difference_gradient(self, q0, q) -> Any:
        """Matrix (n, n) from velocities of ``q`` to rates of ``difference(q0, q)``."""
        ...

    def brackets(self, q, v) -> Any:
        """Matrix (n, n) of the map ``dq -> [dq, v]``; zero if all directions commute."""
        ...


class VectorSpace:
    """Coordinates whose derivatives are the velocities."""

    flat = True

    def move(self, q, u):
        """Configuration ``q + u`` reached by the displacement ``u``."""
        return q + u

    def difference(self, q0, q):
        """Displacement ``q - q0`` between two configurations."""
        return q - q0

    def difference_gradient(self, q0, q):
        """Derivative (n, n) of ``difference``: the identity matrix."""
        return np.eye(len(q))

    def brackets(self, q, v):
        """Lie brackets with ``v`` as a matrix (n, n): zero, as directions commute."""
        return np.zeros((len(v), len(v)))


class ModelSpace:
    """The configurations of a model: ``model.integrate`` and ``model.difference``, compiled."""

    flat = False

    def __init__(self, model):
        self.model = model

    def move(self, q, u):
        """Configuration ``model.integrate(q, u)`` reached by the displacement ``u``."""
        return _move(self.model, q, u)

    def difference(self, q0, q):
        """Displacement ``model.difference(q0, q)``, (nv,)."""
        return _difference(self.model, q, q0)

    def difference_gradient(self, q0, q):
        """Derivative of ``model.difference(q0, q)``, (nv, nv)."""
        return difference_gradient(self.model, q, q0)

    def brackets(self, q, v):
        """Lie brackets of joint motion axes with ``v``, (nv, nv)."""
        return brackets(self.model, q, v)


def space_of(model) -> Space:
    """``Space`` of a model's configurations: a vector space where rates are velocities."""
    flat = all(body.joint.rates_are_velocities for body in model.bodies)
    return VectorSpace() if flat else ModelSpace(model)


@kernel
def _move(model, q, u):
    """Kernel of ``model.integrate``."""
    return model.integrate(q, u)


@kernel
def _difference(model, q, q0):
    """Kernel of ``model.difference``."""
    return model.difference(q0, q)


difference_gradient = differentiate(_difference, wrt="q")


# --- metrics -------------------------------------------------------------------------------------
# A metric is given by a matrix ``B`` with ``W⁻¹ = B Bᵀ``: a change ``dq = B z`` has the size
# ``|z|``.

_MASSLESS = 1e-9  # of the largest inertia: what a motion without inertia counts


@kernel
def tree_inertia(model, q):
    """Joint-space inertia matrix of the spanning tree, (..., nv, nv)."""
    return crba.joint_space_inertia(model, q)


def metric(model, q, weights):
    """Matrix ``B`` with ``W⁻¹ = B Bᵀ`` for the weights of a projection, (..., nv, nv).

    Args:
        model: the mechanism.
        q: where masses are evaluated, (..., nq).
        weights: ``"mass"``, the joint-space inertia matrix of the spanning tree; ``"plain"``, one
            for every velocity variable, whatever its unit; numbers (nv,), one for each velocity
            variable; or a symmetric positive definite matrix (nv, nv).
    """
    if isinstance(weights, str):
        if weights == "plain":
            return np.eye(model.nv)
        if weights == "mass":
            return _inverse_root(_regular(np.asarray(tree_inertia(model, q))))
        raise ShapeError(
            f"weights must be 'mass', 'plain', or an array of shape ({model.nv},) or "
            f"({model.nv}, {model.nv}), got {weights!r}"
        )
    W = np.asarray(weights, dtype=float)
    if W.shape == (model.nv,) and np.all(W > 0):
        return np.diag(1 / np.sqrt(W))
    if W.shape != (model.nv, model.nv) or not np.allclose(W, W.T):
        raise ShapeError(
            f"weights must be {model.nv} positive numbers or a symmetric positive definite matrix "
            f"({model.nv}, {model.nv}), one row for each velocity variable, got shape {W.shape}"
            f"{'' if W.shape != (model.nv,) else ' with entries that are not positive'}"
        )
    try:
        return _inverse_root(W)
    except np.linalg.LinAlgError:
        raise ShapeError("the matrix of weights must be positive definite") from None


def _inverse_root(W):
    """Matrix ``B`` with ``W⁻¹ = B Bᵀ``, by Cholesky factorisation."""
    return np.swapaxes(np.linalg.inv(np.linalg.cholesky(W)), -1, -2)


def _regular(H):
    """Inertia matrix ``H`` plus a little inertia for massless motions.

    Where nothing has any, all motions count the same.
    """
    size = np.trace(H, axis1=-2, axis2=-1)
    least = np.linalg.eigvalsh(H).min(axis=-1, initial=np.inf)
    lacking = np.maximum(_MASSLESS * size - least, 0) * (least < 1e-12 * size)
    lacking = np.where(size > 0, lacking, 1.0)
    return H + lacking[..., None, None] * np.eye(H.shape[-1])
