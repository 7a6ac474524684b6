"""Position errors of the loops of a model, and their Jacobian by differences."""

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, joint_transforms


def loop_errors(model, q):
    """Errors of all loop joints, one after the other — RBDA (8.23)."""
    X_0 = base_transforms(model, joint_transforms(model, q)[0])
    errors = [np.zeros(0)]
    for loop in model.loops:
        X_p = loop.predecessor_placement @ X_0[loop.predecessor]
        X_s = loop.successor_placement @ X_0[loop.successor]
        errors.append(loop.joint.loop_error(X_s @ X_p.inverse()))
    return np.concatenate(errors).astype(float)


def loop_jacobian(model, q, step=1e-6):
    """Derivative of the errors with respect to the velocity variables, by central differences."""

    def at(dv):
        return loop_errors(model, model.integrate(q, dv))

    return np.column_stack([(at(step * e) - at(-step * e)) / (2 * step) for e in np.eye(model.nv)])


def mobility(model, q):
    """Degrees of freedom that the loops leave at ``q``, n - r — RBDA (8.52)."""
    return model.nv - np.linalg.matrix_rank(loop_jacobian(model, q), tol=1e-7)
