"""The parameters that joint forces are linear in, with their names."""

import numpy as np

from kinetree.algorithms.regressors import joint_effects

__all__ = ["inertial_parameters", "parameter_names"]

TEN = ("m", "h_x", "h_y", "h_z", "I_xx", "I_xy", "I_yy", "I_xz", "I_yz", "I_zz")


def parameter_names(model, *, friction=False, rotors=False):
    """Names of the columns of ``regressor``: ``"link3.I_zz"``, then ``"joint3.viscous"``, ...

    Of a joint with several velocity variables ``"ball[0].viscous"``, ``"ball[1].viscous"``, ...
    """
    names = [f"{body}.{kind}" for body in model.body_names[1:] for kind in TEN]
    for effect in joint_effects(friction, rotors):
        names += [f"{variable}.{effect}" for variable in velocity_names(model)]
    return tuple(names)


def velocity_names(model):
    """A name for every velocity variable: that of its joint, with a number if it has several."""
    names = []
    for body in model.bodies:
        nv, name = body.joint.nv, body.joint_name
        names += [name] if nv == 1 else [f"{name}[{k}]" for k in range(nv)]
    return names


def inertial_parameters(model):
    """Parameters of all moving bodies, (10 body_count,), as ``Inertia.parameters`` has them."""
    return np.concatenate([np.zeros(0), *(I.parameters() for I in model.inertia[1:])])
