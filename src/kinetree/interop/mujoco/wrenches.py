"""Forces on bodies: MuJoCo's ``xfrc_applied`` and our ``f_ext``.

MuJoCo has a force at the mass centre of each body and a torque, in world coordinates; we have a
moment about the origin of the base and a force, in base coordinates.
"""

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.arrays.batch import over_batch
from kinetree.errors import InteropError, ShapeError
from kinetree.interop.mujoco.frames import frame_name
from kinetree.interop.mujoco.states import from_q
from kinetree.loaders.mjcf.names import body_names
from kinetree.model.arrays import as_configuration, as_numbers, check_finite
from kinetree.quantities.dynamics import external_forces

__all__ = ["from_f_ext", "to_f_ext"]


def from_f_ext(model, mj_model, qpos, xfrc):
    """Our ``f_ext``, (..., body_count, 6), from ``xfrc_applied``, (..., mj_model.nbody, 6)."""
    q, xfrc = from_q(model, mj_model, qpos), check_finite(as_numbers(xfrc, "xfrc"), "xfrc", core=2)
    if xfrc.ndim < 2 or xfrc.shape[-2:] != (mj_model.nbody, 6):
        raise ShapeError(
            f"MuJoCo's xfrc_applied must have shape (..., {mj_model.nbody}, 6), got {xfrc.shape}"
        )
    force, torque = xfrc[..., :3], xfrc[..., 3:]
    moment = torque + np.cross(_centers(model, mj_model, q), force)
    out = np.zeros((*moment.shape[:-2], model.body_count, 6))
    for b, body in enumerate(_bodies(model, mj_model)):
        if body > 0:
            out[..., body - 1, :3] += moment[..., b, :]
            out[..., body - 1, 3:] += force[..., b, :]
    return out


def to_f_ext(model, mj_model, q, f_ext):
    """``xfrc_applied``, (..., mj_model.nbody, 6), from our ``f_ext`` in any of its forms."""
    q, f_ext = as_configuration(model, q), external_forces(model, f_ext)
    names = body_names(mj_model)
    centers = _centers(model, mj_model, q)
    batch = np.broadcast_shapes(centers.shape[:-2], f_ext.shape[:-2])
    out = np.zeros((*batch, mj_model.nbody, 6))
    for i, name in enumerate(model.body_names[1:], start=1):
        moment, force = f_ext[..., i - 1, :3], f_ext[..., i - 1, 3:]
        if name in names:
            b = names.index(name)
            out[..., b, :3] = force
            out[..., b, 3:] = moment - np.cross(centers[..., b, :], force)
        elif np.any(f_ext[..., i - 1, :]):
            raise InteropError(
                f"a force acts on body {name!r}, which is only a joint in MuJoCo's model; apply "
                f"it to the body that it carries"
            )
    return out


def _bodies(model, mj_model):
    """The number of our body for each of MuJoCo's."""
    frames = [frame_name(model, mj_model, name) for name in body_names(mj_model)[1:]]
    return [0, *(model.frame(frame).body for frame in frames)]


def _centers(model, mj_model, q):
    """Mass centres of MuJoCo's bodies in the world, (..., nbody, 3)."""
    frames = [model.frame(frame_name(model, mj_model, n)) for n in body_names(mj_model)[1:]]

    def one(q):
        X_0 = base_transforms(model, joint_transforms(model, q)[0])
        X = [frame.placement @ X_0[frame.body] for frame in frames]
        places = [x.inverse().point(c) for x, c in zip(X, mj_model.body_ipos[1:], strict=True)]
        return np.array([np.zeros(3), *places], dtype=float)

    return over_batch(one, {"q": q}, core=[1], shape=(mj_model.nbody, 3))
