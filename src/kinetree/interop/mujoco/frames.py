"""Frames, poses and Jacobians of one mechanism in both libraries."""

import numpy as np

from kinetree.errors import ShapeError, UnknownNameError
from kinetree.interop.mujoco.states import from_tau, to_tau
from kinetree.loaders.mjcf.joints import anchor
from kinetree.loaders.mjcf.names import body_names, model_name

__all__ = ["frame_name", "from_jacobian", "from_pose", "to_jacobian", "to_pose"]


def frame_name(model, mj_model, name, kind="body") -> str:
    """The frame of kinetree's model that is MuJoCo's body or site ``name``."""
    if kind == "site":
        taken = name in body_names(mj_model)
        chosen = f"{name}_site" if taken or name not in model.frame_names else name
    elif kind == "body":
        names = body_names(mj_model)
        if name not in names:
            raise UnknownNameError(f"MuJoCo's model {model_name(mj_model)!r} has no body {name!r}")
        chosen = name if _at_its_joint(mj_model, names.index(name)) else f"{name}_link"
    else:
        raise UnknownNameError(f"kind must be 'body' or 'site', got {kind!r}")
    model.frame(chosen)
    return chosen


def _at_its_joint(mj_model, b):
    """Whether the frame of a body is where we put it: at its last joint."""
    last = int(mj_model.body_jntadr[b] + mj_model.body_jntnum[b]) - 1
    return mj_model.body_jntnum[b] == 0 or not np.any(anchor(mj_model, last))


def from_pose(xpos, xmat):
    """A pose as ``kt.pose`` gives it, (..., 4, 4), from ``xpos`` (..., 3) and ``xmat`` (..., 9)."""
    xpos, xmat = np.asarray(xpos, dtype=float), np.asarray(xmat, dtype=float)
    if xpos.shape[-1:] != (3,) or xmat.shape[-1:] != (9,):
        raise ShapeError(
            f"from_pose needs xpos (..., 3) and xmat (..., 9), got {xpos.shape} and {xmat.shape}"
        )
    T = np.zeros((*np.broadcast_shapes(xpos.shape[:-1], xmat.shape[:-1]), 4, 4))
    T[..., :3, :3] = xmat.reshape(*xmat.shape[:-1], 3, 3)
    T[..., :3, 3], T[..., 3, 3] = xpos, 1
    return T


def to_pose(T):
    """``xpos`` (..., 3) and ``xmat`` (..., 9) of a pose (..., 4, 4)."""
    T = np.asarray(T, dtype=float)
    if T.shape[-2:] != (4, 4):
        raise ShapeError(f"a pose has shape (..., 4, 4), got {T.shape}")
    return T[..., :3, 3].copy(), T[..., :3, :3].reshape(*T.shape[:-2], 9)


def from_jacobian(model, mj_model, qpos, jacp, jacr):
    """``kt.jacobian(..., frame="aligned")``, (..., 6, nv), from those of ``mj_jac`` and its kin.

    Args:
        model: kinetree's model.
        mj_model: MuJoCo's model.
        qpos: MuJoCo's configuration, (..., mj_model.nq).
        jacp: translational Jacobian, (..., 3, mj_model.nv).
        jacr: rotational Jacobian, (..., 3, mj_model.nv).
    """
    rows = np.concatenate([np.asarray(jacr, dtype=float), np.asarray(jacp, dtype=float)], axis=-2)
    return from_tau(model, mj_model, np.asarray(qpos)[..., None, :], rows)


def to_jacobian(model, mj_model, q, J):
    """``jacp`` and ``jacr``, (..., 3, mj_model.nv), from an aligned Jacobian (..., 6, nv)."""
    rows = to_tau(model, mj_model, np.asarray(q)[..., None, :], J)
    return rows[..., 3:, :], rows[..., :3, :]
