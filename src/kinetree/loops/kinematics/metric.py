"""What "near" means for configurations and velocities: masses, nothing, or weights of one's own.

A metric is given by a matrix ``B`` with ``W⁻¹ = B Bᵀ``: a change ``dq = B z`` has the size ``|z|``.
"""

import numpy as np

from kinetree.algorithms import crba
from kinetree.errors import ShapeError
from kinetree.functional.kernel import kernel

__all__ = ["METRICS", "metric"]

METRICS = ("mass", "plain")
_MASSLESS = 1e-9  # of the largest inertia: what a motion without inertia counts


@kernel
def tree_inertia(model, q):
    """Joint-space inertia matrix of the spanning tree, (..., nv, nv)."""
    return crba.joint_space_inertia(model, q)


def metric(model, q, weights):
    """``B`` for weights: (nv, nv), or (n, nv, nv) for masses at configurations (n, nq).

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
    return np.swapaxes(np.linalg.inv(np.linalg.cholesky(W)), -1, -2)


def _regular(H):
    """``H`` with a little inertia for motions that have none, such as those of massless bodies.

    Where nothing has any, all motions count the same.
    """
    size = np.trace(H, axis1=-2, axis2=-1)
    least = np.linalg.eigvalsh(H).min(axis=-1, initial=np.inf)
    lacking = np.maximum(_MASSLESS * size - least, 0) * (least < 1e-12 * size)
    lacking = np.where(size > 0, lacking, 1.0)
    return H + lacking[..., None, None] * np.eye(H.shape[-1])
