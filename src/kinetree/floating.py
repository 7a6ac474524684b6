"""Floating bases: mechanisms whose base moves, with every quantity relative to the base.

    base = kt.floating.of(kt.samples.quadruped())
    a_0, qdd = kt.floating.forward_dynamics(base, q, v_0, qd, tau, gravity=(0, 0, -9.81))

A model on a free joint counts the base as body 1 and its motion among the joint variables. Here the
base is body 0 again, ``q`` and ``qd`` are those of the real joints, and velocity ``v_0``, gravity,
external forces and the acceleration ``a_0`` are in the coordinates of the base: where in the world
it is, does not matter. Both views give the same motion; ``joint_state`` leads from the one to the
other.

Loops work. Joint forces are then the smallest of many, as those of ``kt.inverse_dynamics``;
coefficients of the equation of motion belong to independent coordinates of the joints, as those of
``kt.mass_matrix`` do.
"""

from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms import floating_base
from kinetree.algorithms.closed.inverse_dynamics import actuated_freedoms
from kinetree.algorithms.jacobians import frame_jacobian
from kinetree.arguments import guard_module
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike, common, is_foreign, namespace
from kinetree.codegen.program import Argument
from kinetree.errors import ModelError, ShapeError, names_itself
from kinetree.functional.kernel import kernel
from kinetree.joints import Free
from kinetree.model import Model
from kinetree.model.arrays import as_given, as_model
from kinetree.model.edit import floating, grounded
from kinetree.model.memo import remember
from kinetree.quantities.closed_chains import actuator_forces
from kinetree.quantities.dynamics import Names
from kinetree.quantities.dynamics import forward_dynamics as closed_forward_dynamics
from kinetree.quantities.loops import allowed_velocities, require_no_choice
from kinetree.spatial import Force, Inertia, Motion

__all__ = [
    "EquationOfMotion", "FloatingBase", "base_state", "equation_of_motion", "forward_dynamics",
    "generalized_jacobian", "inverse_dynamics", "joint_state", "momentum", "of",
    "reduced_equation",
]  # fmt: skip


class FloatingBase(NamedTuple):
    """A mechanism with the inertia of its floating base."""

    tree: Model
    """The mechanism, with the floating base as its base."""
    inertia: Inertia
    """Inertia of the base."""


class EquationOfMotion(NamedTuple):
    """``[[I0c, F], [Fᵀ, H]] [a_0; qdd] + [p0c; C] = [0; tau]`` — RBDA (9.13)."""

    I0c: Any
    """Inertia of the whole mechanism, frozen, (..., 6, 6)."""
    F: Any
    """Forces at the base for unit joint accelerations, (..., 6, nv)."""
    H: Any
    """Inertia of the joints with the base held, (..., nv, nv)."""
    p0c: Any
    """Force at the base at zero acceleration, (..., 6)."""
    C: Any
    """Joint forces at zero acceleration, (..., nv)."""


@names_itself
def of(model: Model) -> FloatingBase:
    """Floating base of a model whose only body on the base has a free joint."""
    roots = [b for b in as_model(model).bodies if b.parent == 0]
    if len(roots) != 1 or not isinstance(roots[0].joint, Free):
        found = ", ".join(f"{b.name!r} on a {type(b.joint).__name__} joint" for b in roots)
        raise ModelError(
            f"model {model.name!r} has no floating base: a single body on a Free joint was "
            f"expected, found {found or 'no bodies'}. kinetree.edit.floating sets a base free"
        )
    return FloatingBase(grounded(model), roots[0].inertia)


@names_itself
def forward_dynamics(
    base: FloatingBase,
    q: ArrayLike,
    v_0: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    f_ext: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Accelerations of floating base and joints for joint forces — RBDA Table 9.4.

    Args:
        base: a ``FloatingBase``; loops are supported.
        q: joint positions, without the base, (..., nq). With loops, a configuration that closes
            them.
        v_0: velocity of the base, angular first, in its own coordinates, (..., 6).
        qd: joint velocities, (..., nv).
        tau: joint forces, (..., nv).
        gravity: acceleration of gravity in the coordinates of the base [m/s²], (..., 3).
        f_ext: forces on base and bodies, in the coordinates of the base,
            (..., body_count + 1, 6); the first is that on the base.

    Returns:
        ``a_0``, the spatial acceleration of the base, (..., 6), and ``qdd``, (..., nv).
    """
    if _tree_of(base).is_constrained:
        return _on_free_joint(base, q, v_0, qd, tau, gravity, f_ext)
    return _call(_forward, base, (q, v_0, qd, tau, gravity), f_ext)


@names_itself
def inverse_dynamics(
    base: FloatingBase,
    q: ArrayLike,
    v_0: ArrayLike,
    qd: ArrayLike,
    qdd: ArrayLike,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    f_ext: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """Acceleration of the floating base and joint forces, for joint accelerations — Table 9.6.

    Only ``f_ext`` acts on the base, which moves freely. Arguments and results
    as in ``forward_dynamics``. With loops, which ``qdd`` must keep closed, the forces are those of
    ``kinetree.inverse_dynamics``: the smallest of the actuated joints, and those of springs and
    dampers.
    """
    a_0, tau = _call(_inverse, base, (q, v_0, qd, qdd, gravity), f_ext)
    if not base.tree.is_constrained:
        return a_0, tau
    return a_0, _smallest_forces(base, q, v_0, qd, a_0, qdd, gravity, f_ext)


@names_itself
def equation_of_motion(
    base: FloatingBase,
    q: ArrayLike,
    v_0: ArrayLike,
    qd: ArrayLike,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    f_ext: ArrayLike | None = None,
    *,
    independent: Names = None,
) -> EquationOfMotion:
    """Coefficients of the equation of motion of floating base and joints — RBDA Table 9.5.

    With loops, ``ydd`` of the independent coordinates takes the place of ``qdd``, and ``Gᵀ tau``
    that of ``tau``; ``independent`` names them, ``kinetree.loops.independent(base.tree)`` those
    by default. Other arguments are as in ``forward_dynamics``.
    """
    options = {"independent": _choice(base, independent)}
    return EquationOfMotion(*_call(_equation, base, (q, v_0, qd, gravity), f_ext, **options))


@names_itself
def reduced_equation(
    base: FloatingBase,
    q: ArrayLike,
    v_0: ArrayLike,
    qd: ArrayLike,
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    f_ext: ArrayLike | None = None,
    *,
    independent: Names = None,
) -> tuple[Array, Array]:
    """Joint equation ``H qdd + C = tau``, the base eliminated — RBDA (9.14)–(9.16).

    With loops, of ``H ydd + C = Gᵀ tau`` for the coordinates of ``equation_of_motion``.
    """
    options = {"independent": _choice(base, independent)}
    return _call(_reduced_equation, base, (q, v_0, qd, gravity), f_ext, **options)


@names_itself
def momentum(base: FloatingBase, q: ArrayLike, v_0: ArrayLike, qd: ArrayLike) -> Array:
    """Momentum of the whole mechanism about the base origin, (..., 6)."""
    return _call(_momentum, base, (q, v_0, qd), None)


@names_itself
def generalized_jacobian(base: FloatingBase, q: ArrayLike, frame: str) -> Array:
    """Generalised Jacobian of a frame at zero total momentum, (..., 6, nv).

    In coordinates of the base. The base recoils as the momentum stays zero; internal impulses
    change velocities by the same matrix — RBDA Example 9.4.
    """
    return _call(_jacobian, base, (q,), None, frame=frame)


# --- the two views -------------------------------------------------------------------------------


@names_itself
def base_state(
    model: Model, q: ArrayLike, qd: ArrayLike, f_ext: ArrayLike | None = None
) -> tuple[Array, ...]:
    """State, gravity and forces relative to the base: ``q, v_0, qd, gravity``, ``f_ext``.

    Args:
        model: a free-floating model.
        q: joint positions, the base first, (..., nq).
        qd: joint velocities, the base first, (..., nv).
        f_ext: external forces on all bodies in world coordinates, (..., body_count, 6). If given,
            the result has a fifth part: the same forces in the coordinates of the base, as the
            functions of ``kinetree.floating`` take them — RBDA §9.4.
    """
    of(model)
    q, qd = as_given(q, "q"), as_given(qd, "qd")
    state = q[..., 7:], qd[..., :6], qd[..., 6:], _gravity(model, q)
    return state if f_ext is None else (*state, _forces_at_base(model, q, f_ext))


def joint_state(q_0: ArrayLike, q: ArrayLike, v_0: ArrayLike, qd: ArrayLike) -> tuple[Array, Array]:
    """State ``q, qd`` of the model on a free joint with the position ``q_0``, (..., 7)."""
    named = {"q_0": q_0, "q": q, "v_0": v_0, "qd": qd}
    parts = [as_given(x, name) for name, x in named.items()]
    common("joint_state", [Argument(name, (0,)) for name in named], parts)
    xp = namespace(*parts)
    batch = np.broadcast_shapes(*(x.shape[:-1] for x in parts))
    q_0, q, v_0, qd = (xp.broadcast_to(x, (*batch, x.shape[-1])) for x in parts)
    return xp.concatenate([q_0, q], -1), xp.concatenate([v_0, qd], -1)


# --- loops ---------------------------------------------------------------------------------------


def _on_free_joint(base, q, v_0, qd, tau, gravity, f_ext):
    """Forward dynamics of a floating mechanism with loops, by a free joint at the origin.

    There its coordinates are those of the world, and its velocity variables ``v_0``. Gravity is
    left out, and comes in with ``a_0``: falling together, no joint notices.
    """
    v_0, tau, gravity = as_given(v_0, "v_0"), as_given(tau, "tau"), as_given(gravity, "gravity")
    xp = namespace(v_0)
    zero = 0 * v_0[..., :3]
    if is_foreign(v_0) and not is_foreign(gravity):  # numbers go wherever the arrays are
        gravity = xp.stack([zero[..., 0] + float(g) for g in gravity], -1)
    zero = zero + 0 * gravity
    origin = xp.concatenate([zero, zero[..., :1] + 1, zero], -1)
    q, v = joint_state(origin, q, v_0, qd)
    _, forces = joint_state(origin, origin, 0 * v_0, tau)
    f_ext = None if f_ext is None else _forces(base, f_ext)
    qdd = closed_forward_dynamics(_floating(base), q, v, forces, f_ext)
    a_0 = xp.concatenate([qdd[..., :3], qdd[..., 3:6] + gravity], -1)
    return a_0, qdd[..., 6:]


def _floating(base) -> Model:
    """Model on a free joint, without gravity."""

    def make():
        return floating(base.tree.replace(gravity=(0.0, 0.0, 0.0)), inertia=base.inertia)

    return remember(base.tree, ("floating", *base.inertia.parameters().tolist()), make)


@on_host
def _smallest_forces(base, q, v_0, qd, a_0, qdd, gravity, f_ext):
    """Joint forces of least norm of a floating mechanism with loops."""
    model = _floating(base)
    names = ("q", "v_0", "qd", "a_0", "qdd", "gravity")
    q, v_0, qd, a_0, qdd, gravity = (
        np.asarray(as_given(x, n))
        for n, x in zip(names, (q, v_0, qd, a_0, qdd, gravity), strict=True)
    )
    falling = np.concatenate([np.zeros(3), -gravity])
    origin = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    q, v = joint_state(origin, q, v_0, qd)
    _, a = joint_state(origin, q, a_0 + falling, qdd)
    driven = [n for n in actuated_freedoms(model).names if n != model.joint_names[0]]
    forces = None if f_ext is None else _forces(base, f_ext)
    return actuator_forces(model, actuated_freedoms(model, driven), q, v, a, forces).tau[..., 6:]


def _choice(base, independent):
    """Coordinate names as a kernel option; an error for mechanisms without loops."""
    if not _tree_of(base).is_constrained:
        require_no_choice(base.tree, independent)
    return independent if independent is None or isinstance(independent, str) else (*independent,)


# --- compiled ------------------------------------------------------------------------------------


def _call(function, base, arrays, f_ext, **options):
    """Call a kernel with a floating base and forces on all bodies, zero by default."""
    count = _tree_of(base).body_count + 1
    forces = np.zeros((count, 6)) if f_ext is None else _forces(base, f_ext)
    rows = forces.reshape(*forces.shape[:-2], -1)  # one axis, whose length kernels find out
    return function(base.tree, *arrays, base.inertia.parameters(), rows, **options)


def _tree_of(base) -> Model:
    """Tree of a floating base; an error for anything else."""
    if not isinstance(base, FloatingBase):
        raise TypeError(
            f"expected a FloatingBase, such as kinetree.floating.of(model) returns, got "
            f"{type(base).__name__}"
        )
    return base.tree


def _forces(base, f_ext):
    """Forces on the base and all bodies as an array, zero by default."""
    forces, rows = as_given(f_ext, "f_ext"), base.tree.body_count + 1
    if forces.shape[-2:] != (rows, 6):
        raise ShapeError(
            f"f_ext must have shape (..., {rows}, 6), a row for the base and one for each body, "
            f"got {forces.shape}"
        )
    return forces


def _read(v_0, inertia, forces):
    """Velocity, inertia and forces as spatial objects."""
    forces = [Force.from_array(f) for f in np.reshape(forces, (-1, 6))]
    return Inertia.from_parameters(inertia), Motion(v_0[:3], v_0[3:]), forces


def _falling(gravity):
    """Spatial acceleration of free fall."""
    return Motion(np.zeros(3, int), gravity)


@kernel
def _forward(m, q, v_0, qd, tau, gravity, inertia, forces):
    """Kernel: accelerations of floating base and joints."""
    I_0, v_0, forces = _read(v_0, inertia, forces)
    a_g = _falling(gravity)
    a_0, qdd = floating_base.forward_dynamics(m, I_0, q, v_0, qd, tau, a_g, forces)
    return a_0.to_array(), qdd


@kernel
def _inverse(m, q, v_0, qd, qdd, gravity, inertia, forces):
    """Kernel: acceleration of the floating base, and joint forces."""
    I_0, v_0, forces = _read(v_0, inertia, forces)
    a_g = _falling(gravity)
    a_0, tau = floating_base.inverse_dynamics(m, I_0, q, v_0, qd, qdd, a_g, forces)
    return a_0.to_array(), tau


def _coefficients(m, q, v_0, qd, gravity, inertia, forces):
    """Coefficients of the floating-base equation of motion of one sample."""
    I_0, v_0, forces = _read(v_0, inertia, forces)
    return floating_base.equation_of_motion(m, I_0, q, v_0, qd, _falling(gravity), forces)


def _close(m, q, v_0, qd, *rest, independent):
    """Motion basis of a mechanism with loops, ``qdd = G ydd + g``, for coefficients."""
    equation = _coefficients(m, q, v_0, qd, *rest)
    if not m.is_constrained:
        return equation
    found = allowed_velocities(m, q, qd, independent=independent)
    return floating_base.in_coordinates(equation, found[:, :-1], found[:, -1])


@kernel
def _equation(m, q, v_0, qd, gravity, inertia, forces, *, independent):
    """Kernel: coefficients of the floating-base equation of motion."""
    I0c, *rest = _close(m, q, v_0, qd, gravity, inertia, forces, independent=independent)
    return I0c.to_matrix(), *rest


@kernel
def _reduced_equation(m, q, v_0, qd, gravity, inertia, forces, *, independent):
    """Kernel: joint equation with the floating base eliminated."""
    equation = _close(m, q, v_0, qd, gravity, inertia, forces, independent=independent)
    return floating_base.reduced_equation(equation)


@kernel
def _momentum(m, q, v_0, qd, inertia, forces):
    """Kernel: momentum of the floating mechanism."""
    equation = _coefficients(m, q, v_0, qd, np.zeros(3, int), inertia, forces)
    return floating_base.momentum(equation, Motion(v_0[:3], v_0[3:]), qd)


@kernel
def _jacobian(m, q, inertia, forces, *, frame):
    """Kernel: generalised Jacobian of a frame."""
    still = np.zeros(6, int)
    equation = _coefficients(m, q, still, m.zero_velocity, still[:3], inertia, forces)
    J = frame_jacobian(m, q, m.frame(frame), "world")
    return J + floating_base.jacobian_correction(equation)


def _to_base(m, q):
    """Transform from world to base coordinates."""
    X_J, *_ = m.jcalc(1, q, m.zero_velocity)
    return X_J @ m.tree_transform[1]


@kernel
def _gravity(m, q):
    """Kernel: gravity in base coordinates."""
    return (_to_base(m, q) @ m.a_g).linear


@kernel
def _forces_at_base(m, q, f_ext):
    """Kernel: external forces in base coordinates."""
    X_0 = _to_base(m, q)
    return np.array([(X_0.star @ Force.from_array(f)).to_array() for f in f_ext])


guard_module(__name__)
