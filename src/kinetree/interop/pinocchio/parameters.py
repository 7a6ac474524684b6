"""Inertial parameters of one mechanism, from kinetree to Pinocchio and back.

Both libraries have the same ten parameters of a body in the same order and in the same frame:
``m, h_x, h_y, h_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz``. They may number the bodies differently,
and Pinocchio has no bodies on fixed joints.
"""

import numpy as np

from kinetree.errors import InteropError, ShapeError
from kinetree.interop.pinocchio.leaves import leaves
from kinetree.joints import Fixed
from kinetree.spatial import Inertia

__all__ = ["from_parameters", "to_parameters"]


def to_parameters(model, pin_model, p):
    """Pinocchio's parameters, (10 (njoints - 1),), from kinetree's, (10 body_count,).

    Bodies on fixed joints become part of the body they are fixed to.
    """
    theirs = np.zeros((pin_model.njoints - 1, 10))
    joint = _joint_of(model, pin_model)
    for i, row in enumerate(_rows(p, model.body_count), start=1):
        I, body = Inertia.from_parameters(row), i
        while body and isinstance(model.joint[body], Fixed):
            I, body = I.inverse_transformed(model.tree_transform[body]), model.parent[body]
        if body and body in joint:
            theirs[joint[body] - 1] += I.parameters()
        elif body and np.any(row):
            raise InteropError(
                f"body {model.body_names[i]!r} has inertia, but moves with part of a composite "
                f"joint of Pinocchio's, which carries none"
            )
    return theirs.ravel()


def from_parameters(model, pin_model, p):
    """Kinetree's parameters, (10 body_count,), from Pinocchio's, (10 (njoints - 1),).

    What Pinocchio has no body for, such as the inner parts of composite joints, gets zeros.
    """
    fixed = [
        b.name
        for b in model.bodies
        if isinstance(b.joint, Fixed) and np.any(b.inertia.parameters())
    ]
    if fixed:
        raise InteropError(
            f"Pinocchio has the inertia of body {fixed[0]!r}, on a fixed joint, as part of "
            f"another body's: it cannot be told apart"
        )
    rows, ours = _rows(p, pin_model.njoints - 1), np.zeros((model.body_count, 10))
    for i, number in _joint_of(model, pin_model).items():
        ours[i - 1] = rows[number - 1]
    return ours.ravel()


def _joint_of(model, pin_model):
    """Number of the joint of Pinocchio's that carries each body of ours."""
    carriers = {leaf.name: leaf.number for leaf in leaves(pin_model) if leaf.last}
    found = {i: carriers[n] for i, n in enumerate(model.joint_names, start=1) if n in carriers}
    missing = set(carriers) - set(model.joint_names)
    if missing:
        raise InteropError(
            f"model {model.name!r} has no joint {min(missing)!r}, which Pinocchio's model "
            f"{pin_model.name!r} has; joints are matched by name"
        )
    return found


def _rows(p, count):
    p = np.asarray(p, dtype=float)
    if p.shape != (10 * count,):
        raise ShapeError(f"parameters must have shape ({10 * count},) here, got {p.shape}")
    return p.reshape(count, 10)
