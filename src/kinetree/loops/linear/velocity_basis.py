"""All velocities of a closed mechanism from independent ones — Spencer 2.4, A.3.2.

With ``yd = R qd`` for the independent coordinates and the constraint ``K qd = 0``,

    [R; K] qd = [yd; 0]        qd = G yd        G = [R; K]⁻¹ [1; 0]

Redundant rows of ``K`` do no harm: the system is then solved in the sense of least squares, and it
is consistent. CPU only.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kinetree.algorithms.closed import joint_space
from kinetree.algorithms.closed.joint_space import (
    CLOSURE_TOLERANCE,
    ClosureErrors,
    check_constraints_hold,
)
from kinetree.algorithms.closed.links import ClosedChain, link_states
from kinetree.algorithms.closed.rank import RANK_TOLERANCE, scaling
from kinetree.errors import SingularError, UnreachableError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.functional.products import jvp
from kinetree.loops.kinematics.constraint import Constraint, closure_error, constraint
from kinetree.loops.kinematics.space import space_of
from kinetree.loops.linear.coordinates import Coordinates
from kinetree.loops.state_space.multipliers import solved_inertia
from kinetree.quantities.dynamics import inverse_dynamics, mass_matrix, passive_force

_STEPS = 50


class VelocityBasis(NamedTuple):
    """Velocities from independent ones, ``qd = G yd``, and what solves for them."""

    G: np.ndarray
    """(..., nv, p): columns that span the null space of ``K``."""
    inverse: np.ndarray
    """A left inverse of ``[R; K]``, (..., nv, p + nc)."""


def velocity_basis(model, q, K, chosen: Coordinates) -> VelocityBasis:
    """``VelocityBasis`` of coordinates; SingularError if they do not determine the motion."""
    units, p = scaling(model), len(chosen.names)
    R = np.broadcast_to(coordinate_jacobian(model, q, chosen), (*K.shape[:-2], p, model.nv))
    size = np.linalg.norm(R * units.columns, axis=-1)
    of_K = np.broadcast_to(units.rows, K.shape[:-1])
    left = np.concatenate([1 / np.maximum(size, np.finfo(float).tiny), of_K], axis=-1)
    X = left[..., None] * np.concatenate([R, K], axis=-2) * units.columns
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    if model.nv and np.any(s[..., -1] <= RANK_TOLERANCE * s[..., 0]):
        raise SingularError(
            f"{', '.join(map(repr, chosen.names))} do not determine the motion of model "
            f"{model.name!r} in this configuration: choose other joints as independent, or leave "
            f"the choice to kinetree with independent=None"
        )
    V, U_T = np.swapaxes(Vt, -1, -2), np.swapaxes(U, -1, -2)
    inverse = units.columns[:, None] * ((V / s[..., None, :]) @ U_T) * left[..., None, :]
    return VelocityBasis(inverse[..., :p], inverse)


# --- the coordinates themselves ------------------------------------------------------------------


def velocities(model, q, yd, basis: VelocityBasis):
    """Joint velocities (..., nv) from coordinate rates ``yd``, plus prescribed ones."""
    G, inverse = basis
    qd = np.einsum("...np,...p->...n", G, yd)
    moving = np.asarray(constraint(model, q, np.zeros((*np.shape(q)[:-1], model.nv))).rate)
    return qd - np.einsum("...nc,...c->...n", inverse[..., G.shape[-1] :], moving)


def coordinate_jacobian(model, q, chosen):
    """Matrix ``R`` of the coordinates ``yd = R qd``, (..., p, nv)."""
    if not chosen.loops:
        return chosen.rows
    J = _loop_gradient(model, q, np.zeros(model.nv))
    R = np.broadcast_to(chosen.rows, (*J.shape[:-2], *chosen.rows.shape[-2:])).copy()
    for row, k in chosen.loops:
        R[..., row, :] = J[..., k, :]
    return R


def coordinate_values(model, q, chosen):
    """Coordinates ``y`` (..., p), counted from the joints' neutral positions."""
    y = np.einsum("...pn,...n->...p", chosen.rows, model.difference(model.neutral(), q))
    for row, k in chosen.loops:
        y[..., row] = _loop_position(model, q)[..., k]
    return y


def coordinate_rates(model, q, qd, chosen):
    """Rates ``yd`` (..., p) of independent coordinates from joint velocities."""
    yd = np.einsum("...pn,...n->...p", chosen.rows, qd)
    for row, k in chosen.loops:
        yd[..., row] = _loop_velocity(model, q, qd)[..., k]
    return yd


def coordinate_accelerations(model, q, qd, qdd, chosen):
    """Accelerations ``ydd`` (..., p) of independent coordinates from joint motion."""
    ydd = np.einsum("...pn,...n->...p", chosen.rows, np.broadcast_arrays(qdd, qd)[0])
    for row, k in chosen.loops:
        ydd[..., row] = _loop_motion(model, q, qd, qdd)[1][..., k]
    return ydd


def coordinate_changes(model, q0, q, chosen):
    """Coordinate differences of ``q`` from ``q0``, (..., p)."""
    dy = np.einsum("...pn,...n->...p", chosen.rows, model.difference(q0, q))
    for row, k in chosen.loops:
        dy[..., row] = (_loop_position(model, q) - _loop_position(model, q0))[..., k]
    return dy


def move_coordinates(model, q, dy, chosen, near=None):
    """Closed configuration (nq,) whose coordinates differ from those of ``q`` by ``dy``.

    Newton's method, from ``q`` or a better guess ``near``.

    Raises:
        UnreachableError: no configuration with these coordinates was found.
    """
    start, left = q, np.inf
    q = q if near is None else near
    for _ in range(_STEPS):
        wanted = dy - coordinate_changes(model, start, q, chosen)
        error = np.concatenate([wanted, -closure_error(model, q)])
        K = constraint(model, q, np.zeros(model.nv)).K
        step = velocity_basis(model, q, K, coordinates_at(model, start, q, chosen)).inverse @ error
        before, left = left, float(np.max(np.abs(step / scaling(model).columns), initial=0))
        if left <= 4e-16 or (before < 1e-12 and left >= before / 2):
            return q
        q = model.integrate(q, step)
    raise UnreachableError(
        f"model {model.name!r} finds no closed configuration with {', '.join(chosen.names)} "
        f"changed by {np.asarray(dy)}: start nearer, or choose other independent joints"
    )


def coordinates_at(model, q0, q, chosen):
    """``Coordinates`` whose rates at ``q`` are those of ``coordinate_changes`` from ``q0``.

    The same, where rates are derivatives; displacements of free and ball joints turn their axes.
    """
    if chosen.flat:
        return chosen
    gradient = space_of(model).difference_gradient(q0, q)
    return replace(chosen, rows=chosen.rows @ gradient)


def loop_coordinates_along(state, chosen, dq, dqd):
    """Changes of loop-joint coordinates' ``yd``, ``ydd`` along columns, beyond ``R``.

    Nothing for variables of the tree; those of loop joints are functions of the state.
    """
    size = (*dq.shape[:-2], len(chosen.names), dq.shape[-1])
    y, z = np.zeros(size), np.zeros(size)
    if chosen.loops:
        motion = (state.model, state.q, state.qd, state.qdd)
        v, a = along_columns(_loop_rate, *motion, tangents=(dq, dqd))
        velocity = _loop_gradient(state.model, state.q, state.qd) @ dqd
        for row, k in chosen.loops:
            y[..., row, :], z[..., row, :] = (v - velocity)[..., k, :], a[..., k, :]
    return y, z


@kernel
def _loop_motion(m, q, qd, qdd):
    """Kernel of velocities and accelerations of the loop joints."""
    states = link_states(ClosedChain(m), q, qd, qdd)
    return states.v[m.nv :], states.vdot[m.nv :]


@kernel
def _loop_velocity(m, q, qd):
    """Kernel of the velocities of the loop joints."""
    return link_states(ClosedChain(m), q, qd, m.zero_velocity).v[m.nv :]


@kernel
def _loop_position(m, q):
    """Kernel of the positions of the loop joints."""
    return link_states(ClosedChain(m), q, m.zero_velocity, m.zero_velocity).q_v


_loop_gradient = differentiate(_loop_velocity, wrt="qd")
_loop_rate = jvp(_loop_motion, wrt=("q", "qd"))


# --- derivatives along columns -------------------------------------------------------------------


def along_columns(rate, model, *arrays, tangents, f_ext=None) -> Any:
    """Directional derivatives by a ``kinetree.jvp`` along each column of the tangents.

    Args:
        rate: the rate of a function that returns vectors.
        model: the mechanism.
        *arrays: arguments of the function, (..., n) each.
        tangents: matrices (..., n, p), one for each argument that changes.
        f_ext: forces on bodies, if the function takes them, (..., body_count, 6).

    Returns:
        For every vector (..., m) that the function returns a matrix (..., m, p).
    """
    arrays = [a[..., None, :] for a in arrays]
    if f_ext is not None:
        arrays.append(f_ext[..., None, :, :])
    found = rate(model, *arrays, tangents=tuple(np.swapaxes(t, -1, -2) for t in tangents))
    if isinstance(found, tuple):
        return tuple(np.swapaxes(part, -1, -2) for part in found)
    return np.swapaxes(found, -1, -2)


# --- state, forces and accelerations -------------------------------------------------------------


class MotionState(NamedTuple):
    """Inputs of ``forward_dynamics`` and its result; any leading batch axes."""

    model: Any
    q: Any
    qd: Any
    qdd: Any
    tau: Any
    """Forces of the motors, without those of springs, dampers and friction."""
    f_ext: Any = None
    """Forces on the bodies, (..., body_count, 6), or None."""

    def constraint_force(self):
        """Joint forces ``Kᵀ lam`` (..., nv) that the constraints must supply."""
        forces = () if self.f_ext is None else (self.f_ext,)
        total = inverse_dynamics(self.model.spanning_tree, self.q, self.qd, self.qdd, *forces)
        return total - passive_force(self.model, self.q, self.qd) - self.tau

    def multipliers(self, basis: VelocityBasis):
        """Constraint forces ``lam`` (..., nc), one of many if constraints are redundant.

        With the left inverse ``[G P]`` of ``[R; K]``, ``Rᵀ Gᵀ f + Kᵀ Pᵀ f = f`` for every force;
        one of the constraints does no work, ``Gᵀ f = 0``, so it is ``Kᵀ lam`` for ``lam = Pᵀ f``.
        """
        P = basis.inverse[..., basis.G.shape[-1] :]
        return np.einsum("...nc,...n->...c", P, self.constraint_force())


def accelerations(model, q, qd, tau, f_ext, c: Constraint, basis: VelocityBasis):
    """Joint accelerations ``G ydd + g`` under motor forces — Spencer (4.10), RBDA (8.46).

    Args:
        model: the mechanism.
        q: joint positions that close the loops, (..., nq).
        qd: joint velocities that keep them closed, (..., nv).
        tau: forces of the motors, (..., nv).
        f_ext: forces on the bodies, (..., body_count, 6), or None.
        c: the constraints in this state.
        basis: velocities from independent ones.
    """
    G, inverse = basis
    g = np.einsum("...nc,...c->...n", inverse[..., G.shape[-1] :], c.k)
    load = -MotionState(model, q, qd, g, tau, f_ext).constraint_force()
    G_T, H = np.swapaxes(G, -1, -2), mass_matrix(model.spanning_tree, q)
    ydd = solved_inertia(G_T @ H @ G, G_T @ load[..., None])
    return g + (G @ ydd)[..., 0]


def require_closed(model, q, qd, c: Constraint):
    """Raise ShapeError for a state whose loops are open beyond drift."""
    limit = CLOSURE_TOLERANCE / 10  # beyond it, the check with words decides
    errors = ClosureErrors.of(model, c, np.zeros_like(qd))
    suspect = (errors.position > limit) | (errors.velocity > limit)
    for sample in map(tuple, np.argwhere(suspect)):
        found = joint_space.constraint(model, q[sample], qd[sample])
        name = f" of sample {tuple(map(int, sample))}" if sample else ""
        check_constraints_hold(model, found, CLOSURE_TOLERANCE, name)
