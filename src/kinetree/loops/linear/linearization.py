"""Linear equations of motion of closed mechanisms, on the manifold — Spencer chapter 4.

A mechanism with ``p`` degrees of freedom has a linear model of ``2 p`` states ``x = (dy, dyd)``,
the deviations of its independent coordinates:

    dx/dt = A x + B dtau        A = [[0, 1], [A21, A22]]

Perturbing the ``nv`` joint variables one by one would leave the manifold, and give the model of
something else. At an equilibrium the eigenvalues of ``A`` do not depend on the coordinates; on the
way they do (Theorem 4.1.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from kinetree import notebook
from kinetree.algorithms.closed.rank import scaling
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import Array, ArrayLike
from kinetree.errors import LoopError, ShapeError, SingularError, UnknownNameError
from kinetree.functional.products import brackets
from kinetree.loops.kinematics.constraint import constraint, require_holonomic
from kinetree.loops.linear.coordinates import (
    Coordinates,
    are_names,
    coordinates,
    coordinates_by_name,
    far_from_dependent,
)
from kinetree.loops.linear.derivatives import (
    MotionDerivatives,
    force_derivatives,
    motion_derivatives,
)
from kinetree.loops.linear.tangent_dynamics import TangentDynamics, plan_blocks, tangent_dynamics
from kinetree.loops.linear.velocity_basis import (
    MotionState,
    VelocityBasis,
    accelerations,
    coordinate_accelerations,
    coordinate_jacobian,
    coordinate_rates,
    loop_coordinates_along,
    require_closed,
    velocity_basis,
)
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model
from kinetree.quantities.dynamics import external_forces
from kinetree.quantities.few_samples import are_few
from kinetree.spelling import from_textbook


@dataclass(frozen=True)
class LinearModel:
    """``dx/dt = A x + B dtau`` for ``x = (dy, dyd)``; ``A, B = ...`` takes it apart.

    Attributes:
        A: (..., 2 p, 2 p).
        B: (..., 2 p, nv), for the forces of the motors at all joints of the tree.
        rate: ``(yd, ydd)`` at the state itself, (..., 2 p): about a fixed point of the motion the
            model is ``d(x - x0)/dt = rate + A (x - x0) + B dtau``. Zero at an equilibrium. Of a
            discrete model, what it adds in a step.
        coordinates: names of the coordinates ``y``.
        G: ``dq = G dy`` and, for the change of velocity alone, ``dqd = G dyd``, (..., nv, p).
        qdd: accelerations at the state, (..., nv).
        chosen: the coordinates in full.
    """

    A: Any
    B: Any
    rate: Any
    coordinates: tuple
    G: Any
    qdd: Any
    chosen: Coordinates

    def __iter__(self):
        return iter((self.A, self.B))

    def _repr_html_(self):
        """HTML view of the linear model's matrices and eigenvalues, for notebooks."""
        names = ", ".join(self.coordinates)
        parts = notebook.matrix("A", self.A), notebook.matrix("B", self.B)
        values = notebook.eigenvalues(self.A)
        title = "Linear model of x = (dy, dyd)"
        return notebook.block(title, notebook.line(f"y: {names}"), values, *parts)

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of the state matrix ``A``, (..., 2 p)."""
        return np.linalg.eigvals(self.A)


@on_host
def linearize_in_coordinates(
    model: Model,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    f_ext: ArrayLike | dict | None = None,
    *,
    independent: Sequence[str] | str | ArrayLike | None = None,
    method: str = "equations",
) -> LinearModel:
    """``LinearModel`` of the equations of motion in independent coordinates.

    ``kt.linearize`` gives the same for every mechanism, in continuous or discrete time; here the
    method of Spencer's thesis can be chosen.

    Args:
        model: the mechanism; without loops all its variables are independent.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        tau: forces of the motors, (..., nv). Springs, dampers and friction of the joints are part
            of the linear system.
        f_ext: forces acting on bodies, as in ``inverse_dynamics``; they are constant in base
            coordinates.
        independent: names of joints whose variables are the coordinates ``y``, joints that close
            loops among them; ``"tangent"``: orthonormal directions of the tangent space; a matrix
            ``R`` (p, nv): ``yd = R qd``; None: a good choice of tree joints.
        method: ``"equations"``, derivatives of the equations of motion and of the constraints, for
            any joints; ``"recursion"``, Spencer's recursions over all links; ``"differences"``, by
            moving the independent coordinates, to check the others.

    Returns:
        Matrices ``A`` and ``B``, the rate at the state, and the names of the coordinates.
    """
    return linear_model(model, q, qd, tau, f_ext, independent, method)


def linear_model(model, q, qd, tau, f_ext, independent, method="equations") -> LinearModel:
    """``LinearModel`` for NumPy arrays, by one of several methods."""
    if method not in _METHODS:
        raise UnknownNameError(
            f"kinetree.loops.linearize_in_coordinates has no method {method!r}; use one of "
            f"{list(_METHODS)}"
        )
    require_holonomic(as_model(model))
    if method == "equations" and not _are_few(as_model(model), q, qd, tau):
        found = _by_plan(model, q, qd, tau, f_ext, independent)
        if found is not None:
            return found
    state, chosen, basis = motion_state(model, q, qd, tau, f_ext, independent)
    blocks = equations if method == _METHODS[0] else from_textbook("linear_recursions", method)
    return _assemble(state, chosen, basis.G, *blocks(state, chosen, basis))


def _are_few(model, *arrays):
    """Whether few enough samples are linearised that compiling a plan would not pay."""
    return model.is_constrained and are_few(model, ("linear_model",), arrays, [1, 1, 1])


def _assemble(state, chosen, G, A21, A22, B2, turning=None):
    """``LinearModel`` assembled from its lower blocks ``A21``, ``A22``, ``B2``."""
    model, q, qd, qdd, *_ = state
    batch, p = qdd.shape[:-1], len(chosen.names)
    sizes = ((2 * p, 2 * p), (2 * p, model.nv), (2 * p,))
    A, B, rate = (np.zeros((*batch, *size)) for size in sizes)
    if not chosen.flat:
        unknown = turning is None
        A[..., :p, :p] = chosen.rows @ brackets(model, q, qd) @ G if unknown else turning
    A[..., :p, p:] = np.eye(p)
    A[..., p:, :p], A[..., p:, p:], B[..., p:, :] = A21, A22, B2
    rate[..., :p] = coordinate_rates(model, q, qd, chosen)
    rate[..., p:] = coordinate_accelerations(model, q, qd, qdd, chosen)
    return LinearModel(A, B, rate, chosen.names, G, qdd, chosen)


# --- the compiled way: LN-17, a few forward dynamics ---------------------------------------------


def _by_plan(model, q, qd, tau, f_ext, independent):
    """``LinearModel`` by ``tangent_dynamics``; None where its elimination plan does not fit.

    Names of tree joints have their own plan. Other coordinates ``yd = R qd`` follow from those
    ``z`` of the best plan: with ``T = R G``,

        dy = T dz     dyd = L dz + T dzd     L = R V + ∂R/∂q .. qd
    """
    q, qd, tau = (np.asarray(a) for a in (q, qd, tau))
    if f_ext is not None:
        f_ext = external_forces(as_model(model), f_ext)
    wanted = _read_coordinates(as_model(model), independent)
    if wanted is None or not model.nv:
        return None
    if wanted.at is not None and model.is_constrained:
        t = plan_blocks(model, wanted.at, q, qd, tau, f_ext)
    else:
        t = tangent_dynamics(model, None, q, qd, tau, f_ext)
    if t is None:
        return None
    fits = t.health >= 1
    if isinstance(t, TangentDynamics):
        if not np.all(fits):
            return None
        state = MotionState(model, q, qd, t.qdd, tau, f_ext)
        if wanted.at is None:
            return _in_other_coordinates(state, t, independent)
        return _in_variables(state, t, wanted.chosen, list(wanted.at))
    A, B, rate, G, qdd, _ = t
    linear = LinearModel(A, B, rate, wanted.chosen.names, G, qdd, wanted.chosen)
    if np.all(fits):
        return linear
    state = MotionState(model, q, qd, qdd, tau, f_ext)
    return _solve_poor_samples(linear, state, wanted.chosen, ~fits) if np.any(fits) else None


def _solve_poor_samples(linear, state, chosen, poor):
    """``LinearModel`` with ill-conditioned samples solved generally; None if unsolvable.

    None where these cannot be solved, for the error to name the sample.
    """
    model, *arrays = state
    shapes = (model.nq, model.nv, model.nv, model.nv)
    q, qd, _, tau = (
        np.broadcast_to(a, (*poor.shape, n))[poor] for a, n in zip(arrays[:4], shapes, strict=True)
    )
    f_ext = state.f_ext
    if f_ext is not None:
        f_ext = np.broadcast_to(f_ext, (*poor.shape, model.body_count, 6))[poor]
    try:
        of_poor = motion_state(model, q, qd, tau, f_ext, chosen.names)
        rest = _assemble(of_poor[0], chosen, of_poor[2].G, *equations(*of_poor))
    except (LoopError, ShapeError, SingularError):
        return None
    parts = {name: np.array(getattr(linear, name)) for name in ("A", "B", "rate", "G", "qdd")}
    for name, part in parts.items():
        part[poor] = getattr(rest, name)
    return replace(linear, **parts)


def _in_variables(state, t, chosen, at):
    """``LinearModel`` in a plan's own variables, reordered as requested."""
    order = [t.columns.index(k) for k in at]
    G, W, U, B = t.G[..., order], t.W[..., order], t.U[..., order], t.B[..., order, :]
    turning = t.turning if np.ndim(t.turning) == 0 else t.turning[..., at, :][..., order]
    return _assemble(state, chosen, G, W[..., at, :], U[..., at, :], B, turning)


class _Requested(NamedTuple):
    """Coordinates that are variables of the tree; or others, if there are None."""

    chosen: Any = None
    at: Any = None
    """Their numbers, in the order in which they were named."""


def _read_coordinates(model, independent):
    """Requested coordinates; None for what only the general method can reject."""
    if isinstance(independent, str) or independent is None or not are_names(independent):
        return _Requested()
    key = ("named coordinates", tuple(independent))
    if key not in model.memo:
        model.memo[key] = _read_names(model, independent)
    return model.memo[key]


def _read_names(model, names):
    """Requested tree variables by name; None for what the general method must reject."""
    chosen = coordinates_by_name(model, names)
    if chosen.loops or not chosen.names:
        return _Requested()
    at = [int(np.argmax(row)) for row in chosen.rows]
    if len(set(at)) != len(at) or (not model.is_constrained and len(at) != model.nv):
        return None
    return _Requested(chosen, tuple(at))


def _in_other_coordinates(state, t, independent):
    """``LinearModel`` in coordinates ``yd = R qd``, from that in a plan's variables."""
    model, q, qd, *_ = state
    state = state._replace(q=np.broadcast_to(q, (*t.qdd.shape[:-1], model.nq)))
    state = state._replace(qd=np.broadcast_to(qd, t.qdd.shape))
    if independent is None:
        chosen = far_from_dependent(model, t.G)
        if np.array_equal(chosen.rows.argmax(axis=-1), t.columns):
            return _in_variables(state, t, chosen, list(t.columns))
    else:
        chosen = coordinates(model, constraint(model, state.q, state.qd).K, independent)
    R = coordinate_jacobian(model, state.q, chosen)
    T, units = R @ t.G, scaling(model).columns
    sizes = np.linalg.norm(R * units, axis=-1)[..., None] * np.linalg.norm(
        t.G / units[:, None], axis=-2, keepdims=True
    )
    s = np.linalg.svd(T / np.maximum(sizes, np.finfo(float).tiny), compute_uv=False)
    if T.shape[-1] != T.shape[-2] or not np.all(s[..., -1] > _DETERMINED):
        return None  # the general way decides, and says what is wrong
    y1, z1 = loop_coordinates_along(state, chosen, t.G, t.V)
    _, z2 = loop_coordinates_along(state, chosen, np.zeros_like(t.G), t.G)
    inverse = np.linalg.inv(T)
    A22 = (R @ t.U + z2) @ inverse
    A21 = (R @ t.W + z1 - A22 @ (R @ t.V + y1)) @ inverse
    turning = t.turning if np.ndim(t.turning) == 0 else chosen.rows @ t.turning @ inverse
    return _assemble(state, chosen, t.G @ inverse, A21, A22, T @ t.B, turning)


_DETERMINED = 1e-5
"""Smallest singular value, of coordinates and columns of unit length, that leaves no doubt."""


def motion_state(
    model, q, qd, tau, f_ext, independent
) -> tuple[MotionState, Coordinates, VelocityBasis]:
    """``MotionState`` of a closed mechanism, its coordinates and velocity basis."""
    q = as_configuration(as_model(model), q)
    qd, tau = as_joint_vector(model, qd, "qd"), as_joint_vector(model, tau, "tau")
    batch = np.broadcast_shapes(*(a.shape[:-1] for a in (q, qd, tau)))
    q, qd, tau = (np.broadcast_to(a, (*batch, a.shape[-1])) for a in (q, qd, tau))
    f_ext = None if f_ext is None else external_forces(model, f_ext)
    c = constraint(model, q, qd)
    require_closed(model, q, qd, c)
    chosen = coordinates(model, c.K, independent)
    basis = velocity_basis(model, q, c.K, chosen)
    qdd = accelerations(model, q, qd, tau, f_ext, c, basis)
    return MotionState(model, q, qd, qdd, tau, f_ext), chosen, basis


def equations(state, chosen, basis):
    """Lower blocks of a linear model's ``A`` and ``B``, by the equations of Spencer (B.1)–(B.5)."""
    return lower_blocks(state, motion_derivatives(state, chosen, basis), basis)


def lower_blocks(state, motion: MotionDerivatives, basis):
    """Derivatives of coordinate accelerations by coordinates, their rates, and ``tau``."""
    f, G_T = force_derivatives(state, motion, basis), np.swapaxes(basis.G, -1, -2)
    blocks = (-G_T @ f.dy, -G_T @ f.dyd, G_T)
    return [np.linalg.solve(G_T @ f.dydd, block) for block in blocks]


_METHODS = ("equations", "recursion", "differences")
"""The first is in use, the others are texts of ``kinetree.textbook.linear_recursions``."""
