"""Models, frames, Jacobians, forces on bodies and joint vectors, to and from MuJoCo.

Joints are matched by name. Positions, velocities, accelerations and forces are (..., n) arrays;
leading axes are a batch. What goes into ``to_*`` is kinetree's, the configuration too; what goes
into ``from_*`` is MuJoCo's.
"""

from functools import partial
from typing import Any, Literal

import numpy as np

from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.arrays.batch import over_batch
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import (
    InteropError,
    LoadError,
    ModelWarning,
    ShapeError,
    UnknownNameError,
    warn,
)
from kinetree.interop.states import JointPair, States
from kinetree.joints import Free
from kinetree.loaders.mjcf.compiled import from_compiled
from kinetree.loaders.mjcf.joints import anchor, map_of, variables
from kinetree.loaders.mjcf.values import (
    body_names,
    compile_quietly,
    joint_names,
    model_name,
    mujoco,
)
from kinetree.loaders.report import EFFECTS
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_numbers, check_finite
from kinetree.model.rotors import rotors_of
from kinetree.quantities.dynamics import external_forces
from kinetree.writers.mjcf import to_mjcf
from kinetree.writers.mjcf.elements import JointElement, parts_of

_SHOWN = 10


def from_model(mj_model: Any, *, lump: bool = True, floating_base: bool = False) -> Model:
    """Kinetree model of the mechanism in an ``MjModel`` or ``MjSpec``.

    Joints and bodies keep their names; unnamed ones are called after the body, or its number.
    Several joints in a body become a chain with massless bodies in between. A body without a
    joint becomes a frame on the body that carries it; sites become frames. Our bodies sit at
    their joint; where MuJoCo's sits elsewhere, its frame is called ``<body>_link``.

    Args:
        mj_model: the ``mujoco.MjModel`` or ``mujoco.MjSpec``.
        lump: merge bodies without a joint into those that carry them.
        floating_base: put such bodies, if they are on the world, on free joints.

    Warns:
        ModelWarning: for what the model does not represent, such as tendons.
    """
    library = mujoco()
    if isinstance(mj_model, library.MjSpec):
        spec = mj_model
        try:
            mj_model, _ = compile_quietly(lambda: spec.copy().compile())
        except (ValueError, RuntimeError, library.FatalError, library.UnexpectedError) as error:
            raise InteropError(
                f"MuJoCo cannot compile the spec: {' '.join(str(error).split())}"
            ) from None
    if not isinstance(mj_model, library.MjModel):
        raise InteropError(
            f"from_model needs a mujoco.MjModel or MjSpec, got {type(mj_model).__name__}; of an "
            f"MjData, give data.model"
        )
    notes = []

    def note(tag, name, why, effect="motion"):
        notes.append((EFFECTS.index(effect), f"{tag} {name!r}: {why}" if name else f"{tag}: {why}"))

    try:
        model = from_compiled(mj_model, note, lump=lump, floating_base=floating_base)
    except LoadError as error:
        raise InteropError(str(error)) from None
    if floating_base and not any(isinstance(j, Free) for j in model.joint[1:]):
        note("floating_base=True", "", "the world has no body without a joint to set free")
    if notes:
        notes = list(dict.fromkeys(text for _, text in sorted(notes, key=lambda note: note[0])))
        more = f"; and {len(notes) - _SHOWN} more" if len(notes) > _SHOWN else ""
        warn(
            f"model {model.name!r}: not converted: {'; '.join(notes[:_SHOWN])}{more}", ModelWarning
        )
    return model


def to_model(model: Model) -> Any:
    """MuJoCo model (``mujoco.MjModel``) of a kinetree model."""
    library, text = mujoco(), to_mjcf(model)
    try:
        return compile_quietly(lambda: library.MjSpec.from_string(text).compile())[0]
    except (ValueError, RuntimeError, library.FatalError, library.UnexpectedError) as error:
        raise InteropError(
            f"MuJoCo rejects model {model.name!r}: {' '.join(str(error).split())}"
        ) from None


# --- Frames, poses and Jacobians -----------------------------------------------------------------


def frame_name(
    model: Model, mj_model: Any, name: str, kind: Literal["body", "site"] = "body"
) -> str:
    """Name of the kinetree frame that is MuJoCo's body or site ``name``."""
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
    """Whether a MuJoCo body's origin is at its last joint, where kinetree's frame is."""
    last = int(mj_model.body_jntadr[b] + mj_model.body_jntnum[b]) - 1
    return mj_model.body_jntnum[b] == 0 or not np.any(anchor(mj_model, last))


def from_pose(xpos: ArrayLike, xmat: ArrayLike) -> Array:
    """Poses (..., 4, 4) from MuJoCo's ``xpos`` (..., 3) and ``xmat`` (..., 9)."""
    xpos, xmat = np.asarray(xpos, dtype=float), np.asarray(xmat, dtype=float)
    if xpos.shape[-1:] != (3,) or xmat.shape[-1:] != (9,):
        raise ShapeError(
            f"from_pose needs xpos (..., 3) and xmat (..., 9), got {xpos.shape} and {xmat.shape}"
        )
    T = np.zeros((*np.broadcast_shapes(xpos.shape[:-1], xmat.shape[:-1]), 4, 4))
    T[..., :3, :3] = xmat.reshape(*xmat.shape[:-1], 3, 3)
    T[..., :3, 3], T[..., 3, 3] = xpos, 1
    return T


def to_pose(T: ArrayLike) -> tuple[Array, Array]:
    """MuJoCo's ``xpos`` (..., 3) and ``xmat`` (..., 9) of poses (..., 4, 4)."""
    T = np.asarray(T, dtype=float)
    if T.shape[-2:] != (4, 4):
        raise ShapeError(f"a pose has shape (..., 4, 4), got {T.shape}")
    return T[..., :3, 3].copy(), T[..., :3, :3].reshape(*T.shape[:-2], 9)


def from_jacobian(
    model: Model, mj_model: Any, qpos: ArrayLike, jacp: ArrayLike, jacr: ArrayLike
) -> Array:
    """Aligned Jacobian (..., 6, nv) from MuJoCo's ``jacp`` and ``jacr`` of ``mj_jac``.

    Args:
        model: kinetree's model.
        mj_model: MuJoCo's model.
        qpos: MuJoCo's configuration, (..., mj_model.nq).
        jacp: translational Jacobian, (..., 3, mj_model.nv).
        jacr: rotational Jacobian, (..., 3, mj_model.nv).
    """
    rows = np.concatenate([np.asarray(jacr, dtype=float), np.asarray(jacp, dtype=float)], axis=-2)
    return from_tau(model, mj_model, np.asarray(qpos)[..., None, :], rows)


def to_jacobian(model: Model, mj_model: Any, q: ArrayLike, J: ArrayLike) -> tuple[Array, Array]:
    """MuJoCo's ``jacp`` and ``jacr``, (..., 3, mj_model.nv), from an aligned Jacobian."""
    rows = to_tau(model, mj_model, np.asarray(q)[..., None, :], J)
    return rows[..., 3:, :], rows[..., :3, :]


# --- Forces on bodies: ``xfrc_applied`` and ``f_ext`` --------------------------------------------
# MuJoCo has a force at the mass centre of each body and a torque, in world coordinates; we have a
# moment about the origin of the base and a force, in base coordinates.


def from_f_ext(model: Model, mj_model: Any, qpos: ArrayLike, xfrc: ArrayLike) -> Array:
    """External forces ``f_ext``, (..., body_count, 6), from MuJoCo's ``xfrc_applied``."""
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


def to_f_ext(model: Model, mj_model: Any, q: ArrayLike, f_ext: ArrayLike) -> Array:
    """MuJoCo's ``xfrc_applied``, (..., mj_model.nbody, 6), from kinetree's ``f_ext``."""
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
    """Number of kinetree's body for each of MuJoCo's."""
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


_KINDS = ("free", "ball", "slide", "hinge")  # mjtJoint


def to_q(model: Model, mj_model: Any, q: ArrayLike) -> Array:
    """MuJoCo's ``qpos``, (..., mj_model.nq), from kinetree's configuration, (..., nq)."""
    return _states(model, mj_model).to_position(q)


def from_q(model: Model, mj_model: Any, qpos: ArrayLike) -> Array:
    """Kinetree's configuration from MuJoCo's ``qpos``; quaternions come back with unit length."""
    return _states(model, mj_model).from_position(qpos, "qpos")


def to_v(model: Model, mj_model: Any, q: ArrayLike, qd: ArrayLike) -> Array:
    """MuJoCo's ``qvel`` from kinetree's configuration and velocity."""
    return _states(model, mj_model).to_tangent("velocity", q, qd=qd)


def from_v(model: Model, mj_model: Any, qpos: ArrayLike, qvel: ArrayLike) -> Array:
    """Kinetree's velocity from MuJoCo's ``qpos`` and ``qvel``."""
    states = _states(model, mj_model)
    return states.from_tangent("velocity", qpos, position="qpos", qvel=qvel)


def to_a(model: Model, mj_model: Any, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> Array:
    """MuJoCo's ``qacc`` from kinetree's configuration, velocity and acceleration."""
    return _states(model, mj_model).to_tangent("acceleration", q, qd=qd, qdd=qdd)


def from_a(model: Model, mj_model: Any, qpos: ArrayLike, qvel: ArrayLike, qacc: ArrayLike) -> Array:
    """Kinetree's acceleration from MuJoCo's ``qpos``, ``qvel`` and ``qacc``."""
    states = _states(model, mj_model)
    return states.from_tangent("acceleration", qpos, position="qpos", qvel=qvel, qacc=qacc)


def to_tau(model: Model, mj_model: Any, q: ArrayLike, tau: ArrayLike) -> Array:
    """MuJoCo's joint forces from kinetree's: the same power at any velocity."""
    return _states(model, mj_model).to_tangent("velocity", q, tau=tau)


def from_tau(model: Model, mj_model: Any, qpos: ArrayLike, tau: ArrayLike) -> Array:
    """Kinetree's joint forces from MuJoCo's: the same power at any velocity."""
    return _states(model, mj_model).from_tangent("velocity", qpos, position="qpos", tau=tau)


def _states(model, mj_model):
    """Converter of states between a model and MuJoCo."""
    sizes = mj_model.nq, mj_model.nv
    rotors = {model.joint_names[i - 1] for i in rotors_of(model)}
    match = partial(_pairs, mj_model, rotors)
    return States(model, "MuJoCo", model_name(mj_model), *sizes, match, partial(_settle, model))


def _pairs(mj_model, rotors, model):
    """Joints with variables in both models, matched by name, without rotors."""
    theirs = {name: j for j, name in enumerate(joint_names(mj_model)[0])}
    left, pairs = set(theirs), []
    for i, name in enumerate(model.joint_names, start=1):
        joint = model.joint[i]
        if not joint.nq or name in rotors:
            continue
        parts = _parts(mj_model, joint, name, theirs)
        for part in parts:
            if part.name not in theirs:
                raise InteropError(
                    f"MuJoCo's model {model_name(mj_model)!r} has no joint {part.name!r}, which "
                    f"model {model.name!r} has; joints are matched by name"
                )
        at = [variables(mj_model, theirs[part.name]) for part in parts]
        for part, there in zip(parts, at, strict=True):
            if _KINDS[there.kind] != part.kind:
                raise InteropError(
                    f"joint {name!r} is {joint!r} in model {model.name!r}, and a "
                    f"{_KINDS[there.kind]} joint in MuJoCo's: not the same mechanism"
                )
        left -= {part.name for part in parts}
        mj_q = [k for there in at for k in range(there.q.start, there.q.stop)]
        mj_v = [k for there in at for k in range(there.v.start, there.v.stop)]
        reference = [x for there in at for x in [there.reference] * (there.q.stop - there.q.start)]
        where = (model.q_slice[i], model.v_slice[i], mj_q, mj_v)
        pairs.append(JointPair(name, *where, map_of(joint), np.array(reference)))
    if left:
        raise InteropError(
            f"model {model.name!r} has no joint {', '.join(map(repr, sorted(left)))}, which "
            f"MuJoCo's model {model_name(mj_model)!r} has; joints are matched by name"
        )
    return pairs, []


def _parts(mj_model, joint, name, theirs):
    """Converters of a joint's parts in MuJoCo."""
    if isinstance(joint, Free) and name in theirs:
        return (JointElement(name, "free", None, slice(0, 7), slice(0, 6)),)
    return parts_of(joint, name)


def _settle(model, pair, theirs, q):
    """Configuration with quaternions normalised to unit length."""
    for part in model.uncoupled.joint[model.uncoupled.joint_index(pair.name)].unit_parts:
        p = q[..., part]
        length = np.linalg.norm(p, axis=-1, keepdims=True)
        if np.any(length < 1e-12):
            raise ShapeError(f"MuJoCo's qpos, joint {pair.name!r}: a quaternion of length zero")
        off = np.abs(length - 1) > 8 * np.finfo(p.dtype).eps  # a unit quaternion stays as it is
        np.divide(p, length, out=p, where=off)
    return q
