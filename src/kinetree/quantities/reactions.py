"""Joint reactions: what every joint transmits, and what its bearing has to carry.

    f = kt.joint_reactions(arm, q, qd, qdd)                      # (..., joints, 6)
    n, f = np.split(kt.joint_reactions(arm, q, qd, qdd, joint="elbow", part="bearing"), 2, -1)

A result has a row for each joint of the tree, in the order of ``model.joint_names``, and then one
for each joint that closes a loop (``model.loop_names``). Moments come first, forces last.
"""

from typing import Any, Literal

import numpy as np

from kinetree.algorithms import aba
from kinetree.algorithms import reactions as texts
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.inverse_dynamics import actuated_freedoms, loop_slices
from kinetree.algorithms.closed.rank import count_values, rank_policy, scaling
from kinetree.algorithms.closed.scaling import rows_of
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import IndeterminateWarning, LoopError, ShapeError, UnknownNameError, warn
from kinetree.model import Model
from kinetree.model.array_arguments import ArrayArgument as Argument
from kinetree.model.arrays import as_configuration, as_given, as_model
from kinetree.model.define import quantity, register
from kinetree.model.memo import remember
from kinetree.quantities import closed_chains
from kinetree.quantities.dynamics import Forces, forward_dynamics
from kinetree.quantities.external_forces import external_forces
from kinetree.spelling import did_you_mean

__all__ = ["joint_reactions", "unique_reactions"]

Part = Literal["total", "bearing", "drive"]


def _joint_reactions(model, q, qd, qdd=None, *, tau=None, f_ext=None, loop_tau=None, **options):
    """Joint reactions for calls without compiled code, or with loops."""
    loops = as_model(model).loops
    if qdd is None and tau is None:
        raise ShapeError("joint_reactions needs the motion qdd or the joint forces tau")
    if qdd is not None and tau is not None and not loops:
        raise ShapeError(
            "joint_reactions needs the motion qdd or the joint forces tau, not both: of a tree, "
            "the motion determines the reactions"
        )
    _check(model, options["joint"], options["part"], options["frame"])
    if loops:
        _warn(model)
        if tau is None:
            return _of_closed_motion(model, q, qd, qdd, f_ext, loop_tau, **options)
    given = {"tau": tau, "f_ext": f_ext, "loop_tau": loop_tau or None, **options}
    return joint_reactions.definition(model, q, qd, qdd, **given)


def _names(model):
    """Names of all tree and loop joints."""
    return (*model.joint_names, *model.loop_names)


def _check(model, joint, part, frame):
    """Raise an error for unknown joints, parts or frames."""
    if part not in texts.PARTS:
        choices = ", ".join(map(repr, texts.PARTS))
        raise UnknownNameError(f"part of a reaction must be one of {choices}, got {part!r}")
    if not isinstance(frame, str):
        raise UnknownNameError(f"frame must be a name, got {frame!r}")
    if frame not in texts.FRAMES:
        try:
            model.frame(frame)
        except UnknownNameError as error:
            choices = ", ".join(map(repr, texts.FRAMES))
            raise UnknownNameError(f"frame must be one of {choices}, or a name: {error}") from None
    names = _names(model)
    if joint is not None and joint not in names:
        raise UnknownNameError(
            f"model {model.name!r} has no joint {joint!r}; {did_you_mean(joint, names)}"
        )


def _along_loops(model, loop_tau):
    """Forces along all loop joints in order, (..., nv_L)."""
    slices = loop_slices(model)
    parts = {name: np.zeros(at.stop - at.start) for name, at in slices.items()}
    for name, given in loop_tau.items():
        if name not in slices:
            raise UnknownNameError(
                f"loop_tau: model {model.name!r} has no loop joint {name!r}; "
                f"{did_you_mean(name, slices, 'it has none')}"
            )
        f, n = as_given(given, f"loop_tau[{name!r}]"), len(parts[name])
        f = f[None] if f.ndim == 0 else f
        if f.shape[-1:] != (n,):
            raise ShapeError(f"loop_tau[{name!r}] must have shape (..., {n}), got {f.shape}")
        parts[name] = f
    batch = np.broadcast_shapes(*(f.shape[:-1] for f in parts.values()))
    return np.concatenate([np.broadcast_to(f, batch + f.shape[-1:]) for f in parts.values()], -1)


# --- algorithms ----------------------------------------------------------------------------------


def _shape(model, options):
    """Shape of the result: for one joint or all."""
    return (6,) if options["joint"] is not None else (len(_names(model)), 6)


def _of_motion(
    model,
    q,
    qd,
    qdd,
    f_ext=None,
    lam=None,
    loop_tau=None,
    *,
    part="total",
    frame="joint",
    joint=None,
):
    """Joint reactions from a motion and the forces of loop joints."""
    wanted = None
    if joint is not None or model.loops:
        names = _names(model)
        wanted = tuple(range(1, len(names) + 1)) if joint is None else (names.index(joint) + 1,)
    frame = frame if frame in texts.FRAMES else model.frame(frame)
    given = {"f_ext": f_ext, "lam": lam, "loop_tau": loop_tau}
    f = texts.joint_reactions(model, q, qd, qdd, **given, joints=wanted, part=part, frame=frame)
    return f if joint is None else f[0]


def _of_state(model, q, qd, qdd=None, tau=None, f_ext=None, loop_tau=None, *, part, frame, joint):
    """Joint reactions from a motion, from joint forces, or both."""
    forces, lam = texts.add_loop_forces(model, q, f_ext, loop_tau), None
    if qdd is None and model.is_general:
        qdd = aba.forward_dynamics(model, q, qd, tau, forces)
    elif qdd is None:
        given: Any = None
        if forces is not None:
            given = np.array([f.to_array() for f in forces[1:]]).reshape(-1, 6)
        qdd = forward_dynamics(model, q, qd, tau, given)
    if model.loops:
        lam = texts.multipliers(model, q, qd, qdd, tau, forces)
    options = {"part": part, "frame": frame, "joint": joint}
    return _of_motion(model, q, qd, qdd, f_ext, lam, loop_tau, **options)


def _of_whole_tree(model, options):
    """Whether the compiled code for all joints of a tree serves the call."""
    drives = any(b.dynamics is not None and b.dynamics.drive for b in model.bodies)
    return (
        options["joint"] is None
        and options["frame"] in texts.FRAMES
        and not (drives or model.is_constrained)
    )


_ALONG = Argument((lambda model, _: sum(loop.joint.nv for loop in model.loops),))


@quantity(
    _shape,
    _of_state,
    arrays={"loop_tau": _ALONG},
    read={"f_ext": external_forces, "loop_tau": _along_loops},
    otherwise=_joint_reactions,
    general=True,
    general_for=_of_whole_tree,
)
def joint_reactions(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike | None = None,
    *,
    tau: ArrayLike | None = None,
    f_ext: Forces = None,
    loop_tau: dict[str, ArrayLike] | None = None,
    part: Part = "total",
    frame: str = "joint",
    joint: str | None = None,
) -> Array:
    """Forces across the joints: what each predecessor exerts on its successor — RBDA §5.3.

    Give the motion ``qdd``, or the joint forces ``tau`` that cause it. Where constraints of loops
    are redundant, reactions are not unique: an ``IndeterminateWarning`` names the joints, the
    smallest constraint forces are returned, and ``unique_reactions`` tells which components are
    unique.

    Args:
        model: the mechanism. With loops, ``tau`` is traced and compiled; from ``qdd`` alone the
            forces of the actuators are found first, as ``inverse_dynamics`` does.
        q: joint positions [m, rad], (..., nq).
        qd: joint velocities [m/s, rad/s], (..., nv).
        qdd: joint accelerations [m/s², rad/s²], (..., nv).
        tau: joint forces [N, N·m], (..., nv), as in ``forward_dynamics``: those of the actuators
            plus ``passive_force``. With loops, both may be given, if they belong together.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``.
        loop_tau: forces along loop joints by name [N, N·m], each (..., nv_k), besides ``tau``.
        part: ``"total"``; ``"bearing"``, the load ``T lam`` that neither actuator nor spring nor
            gear carries, and which does no work; ``"drive"``, the rest, ``T_a Sᵀ f``. For ``T_a``
            see ``JointDynamics.active_predecessor``.
        frame: coordinates of the result. ``"joint"``: in the joint's successor frame, at its
            origin; ``"predecessor"``: in its predecessor frame; ``"body"``: in the frame of the
            successor body, which for joints of the tree is that of the joint; ``"aligned"``: at
            the origin of the successor frame, along the axes of the base; ``"world"``: about the
            origin of the base, as in ``f_ext``. Or the name of a frame or body of the model.
        joint: name of a single joint, for a result (..., 6); all joints by default.

    Returns:
        Moments [N·m] and forces [N], (..., joints, 6).
    """


# --- motions of mechanisms with loops ------------------------------------------------------------

_ROWS = Argument((lambda model, _: len(rows_of(model)),))


@quantity(
    _shape,
    _of_motion,
    arrays={"lam": _ROWS, "loop_tau": _ALONG},
    read={"f_ext": external_forces},
    called="joint_reactions",
    public=False,
)
def _under(model, q, qd, qdd, f_ext=None, lam=None, loop_tau=None, *, part, frame, joint) -> Any:
    """Compiled joint reactions for known forces of the loop joints."""


@on_host
def _of_closed_motion(model, q, qd, qdd, f_ext, loop_tau, **options):
    """Joint reactions of a closed chain, with least actuator forces for the motion."""
    if loop_tau is not None:
        raise LoopError("with qdd alone, forces of loop joints are found: give tau with loop_tau")
    freedoms, f_ext = (
        actuated_freedoms(model),
        None if f_ext is None else external_forces(model, f_ext),
    )
    found = closed_chains.actuator_forces(model, freedoms, q, qd, qdd, f_ext)
    given = {"lam": found.lam} | ({} if f_ext is None else {"f_ext": f_ext})
    if freedoms.in_loop_joints:
        u = {n: found.u[..., at] for n, at in freedoms.slices.items() if n in model.loop_names}
        given["loop_tau"] = _along_loops(model, u)
    return _under(model, q, qd, qdd, **given, **options)


# --- which reactions are unique: RBDA §8.4, §8.10 ------------------------------------------------


@quantity((lambda model, _: len(rows_of(model)), "nv"), public=False, called="unique_reactions")
def _constraint_matrix(model, q) -> Any:
    """Constraint matrix ``K`` of the loop joints, a row per constraint."""
    return loop_constraints(model, q, model.zero_velocity).K


_IDLE = 1e-9  # part of a unit vector that counts as none


@register
@on_host
def unique_reactions(
    model: Model,
    q: ArrayLike,
    *,
    part: Part = "total",
    frame: str = "joint",
    joint: str | None = None,
) -> np.ndarray:
    """Mask of the components of ``joint_reactions`` that are unique, (..., joints, 6).

    Without redundant constraints, all are. Redundant constraints allow internal forces that cause
    no motion, whose size would depend on the stiffness of the bodies.
    Computed on the CPU, by singular values; arguments as in ``joint_reactions``.
    """
    q = as_configuration(as_model(model), q).astype(float)
    _check(model, joint, part, frame)
    options, batch = {"part": part, "frame": frame, "joint": joint}, q.shape[:-1]
    unique = np.ones((*batch, *_shape(model, options)), dtype=bool)
    if model.loops:
        units, zero = scaling(model), np.zeros(model.nv)
        K = _constraint_matrix(model, q)
        size = np.repeat([1.0, units.length], 3)  # forces count as moments over a length
        for index in np.ndindex(batch):
            U, s, _ = np.linalg.svd(units.apply(K[index]))
            idle = units.rows * U[:, int(count_values(s, units)) :].T
            lam = np.concatenate([np.zeros((1, idle.shape[1])), idle])
            f = _under(model, q[index], zero, zero, lam=lam, **options)
            unique[index] = np.all(np.abs(f[1:] - f[0]) * size < _IDLE, axis=0)
    return unique


def _warn(model):
    """Warn once for a model that some of its reactions are not unique."""

    def make():
        policy = rank_policy(model.numeric)
        rank, rows = policy.generic_rank(), len(rows_of(model))
        if policy.manifold.matrices is None or rank is None or rank == rows:
            return "unique"
        unique = unique_reactions(model.numeric, policy.manifold.q[0])
        open_ones = [n for n, u in zip(_names(model), unique, strict=True) if not u.all()]
        warn(
            f"model {model.name!r} has {rows - rank} redundant constraints in its loops: the "
            f"reactions of {', '.join(map(repr, open_ones))} are not unique, and the smallest "
            f"constraint forces are returned; kinetree.unique_reactions(model, q) says which "
            f"components are the same for all",
            IndeterminateWarning,
        )
        return "warned"

    remember(model, "uniqueness of reactions", make)
