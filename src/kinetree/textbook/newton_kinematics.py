"""Newton's iteration for the joint positions that put a body somewhere — 6-D guide 2, Fig. 6.

This is the textbook's algorithm, with its limits. The error ``XtoV`` is good for small
displacements only: it vanishes for every rotation by 180°, so that the iteration can end with the
body turned the wrong way round. The Jacobian needs full row rank: six joints or more, away from
singular configurations. Joint limits play no part, and a target out of reach is not noticed, but
for the number of steps. ``kinetree.inverse_kinematics`` has none of these limits.
"""

import numpy as np

from kinetree.algorithms.jacobians import body_jacobian
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.algorithms.ltl import dense, ltdl, solve_ltdl
from kinetree.spatial import displacement_velocity


def newton_step(model, q, b, X_d):
    """Pose error ``Δp`` of body ``b`` from the frame ``X_d``, and the Newton step ``Δq``.

    Args:
        model: the mechanism.
        q: configuration, (nq,).
        b: number of the body.
        X_d: transform from base to target coordinates.

    Returns:
        ``Δp = XtoV(dXb)`` (6,), the same in body and target coordinates, and
        ``Δq = Jᵀ (J Jᵀ)⁻¹ Δp`` (nv,) — 6-D guide 2, (15), (16).

    Raises:
        SingularError: the Jacobian does not have full row rank.
    """
    kappa = model.support[b]
    X_b = base_transforms(model, joint_transforms(model, q, kappa)[0], kappa)[b]
    dp = displacement_velocity(X_d @ X_b.inverse()).to_array()
    J = X_b.apply(body_jacobian(model, q, b)).to_array()
    lam = dense(6)
    L = ltdl(J @ J.T, lam, lambda k: _rank_lost(model, b, k))
    return dp, J.T @ solve_ltdl(L, lam, dp)


def _rank_lost(model, b, k):
    """Error message about a Jacobian without full row rank."""
    return (
        f"the Jacobian of body {model.body_names[b]!r} has no full row rank: pivot {k} of J Jᵀ is "
        f"not above zero. The body has fewer than six degrees of freedom, or is in a singular "
        f"configuration; kinetree.inverse_kinematics damps its steps and takes both"
    )


def newton_history(model, q, b, X_d, *, tolerance=1e-10, steps=50):
    """Configurations and error norms of Newton's inverse-kinematics iteration.

    It ends when ``|Δp|``, radians and metres in one, is at most ``tolerance``, or after ``steps``.
    Only the text's own measure is used: a small last error need not mean that the body is there.
    """
    history, errors = [np.asarray(q)], []
    for _ in range(steps):
        dp, dq = newton_step(model, history[-1], b, X_d)
        errors.append(float(np.sqrt(dp @ dp)))
        if errors[-1] <= tolerance:
            break
        history.append(model.integrate(history[-1], dq))
    return history[: len(errors)], errors
