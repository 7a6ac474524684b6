"""Equilibria: states in which a mechanism stays at rest, when only some joints are driven."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kinetree.algorithms.closed.independent import velocity_columns
from kinetree.algorithms.closed.rank import RANK_TOLERANCE
from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.control.motors import joint_names
from kinetree.errors import EquilibriumError, LoopError
from kinetree.functional.differentiate import differentiate
from kinetree.functional.kernel import kernel
from kinetree.loops.kinematics.constraint import closure_error, constraint
from kinetree.loops.kinematics.projection import project_configuration
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.derivatives import forces_along
from kinetree.loops.linear.velocity_basis import MotionState, velocity_basis
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model
from kinetree.notebook import block, matrix
from kinetree.quantities.dynamics import (
    bias_force,
    forward_dynamics,
    gravity_force,
    inverse_dynamics,
    passive_force,
)

_STEPS = 100


# --- Forces of the motors ------------------------------------------------------------------------
# ``inverse_dynamics`` gives the sum of all forces along a joint. Springs, dampers and friction of
# the joints (``passive_force``) are part of it; motors supply the rest.


def motor_forces(model, q, qd, qdd):
    """Motor forces that produce the accelerations ``qdd``, (..., nv)."""
    return inverse_dynamics(model, q, qd, qdd) - passive_force(model, q, qd)


def holding_forces(m, q):
    """Motor forces that hold the mechanism at rest, (..., nv); of least norm with loops."""
    if m.is_constrained:  # which forces these are is decided on the CPU
        return gravity_force(m, q) - passive_force(m, q, np.zeros(m.nv))
    return _holding_forces(m, q)


@kernel
def _holding_forces(m, q):
    """Motor forces that hold a tree at rest while prescribed joints move, (..., nv)."""
    return bias_force(m, q, m.zero_velocity) - passive_force(m, q, m.zero_velocity)


def motion_under(model, q, qd, tau, f_ext=None):
    """Accelerations that motor forces ``tau`` produce, (..., nv)."""
    return forward_dynamics(model, q, qd, tau + passive_force(model, q, qd), f_ext)


# --- Equilibria ----------------------------------------------------------------------------------


class Equilibrium(NamedTuple):
    """A configuration and the forces of the motors that hold it."""

    q: np.ndarray
    """(..., nq)"""
    tau: np.ndarray
    """(..., nv), zero at joints that are not driven"""

    def _repr_html_(self):
        """HTML table of this object for notebooks."""
        return block("Equilibrium", matrix("q", self.q), matrix("tau", self.tau))


@on_host
def equilibrium(
    model: Model, q0: ArrayLike, *, actuated: Sequence[str] | None = None, hold: Sequence[str] = ()
) -> Equilibrium:
    """Equilibrium near ``q0``: a configuration that driven joints can hold at rest.

        q, tau = kt.control.equilibrium(m, q0, actuated=["shoulder"])

    Newton's method with least-norm steps, shortened where the error would grow.

    Args:
        model: the mechanism. Loops and couplings carry their part of the load, and stay closed.
        q0: where to start, (..., nq).
        actuated: names of the driven joints; all by default, with which ``q0`` is the result.
        hold: names of joints that must stay as they are in ``q0``.

    Returns:
        An ``Equilibrium`` whose acceleration at ``q``, at rest and with ``tau``, is zero. If there
        are more motors than degrees of freedom, these are the smallest forces that hold it.

    Raises:
        EquilibriumError: there is none, or it was not found; the message names the loaded joints.
    """
    q0 = as_configuration(as_model(model), q0)
    driven = velocity_columns(model, actuated, "actuated")
    idle = np.setdiff1d(np.arange(model.nv), driven)
    movable = np.setdiff1d(np.arange(model.nv), velocity_columns(model, hold, "hold"))
    q = np.array(q0, dtype=np.result_type(q0, np.float64))
    if model.is_constrained:
        held, tau = np.setdiff1d(np.arange(model.nv), movable), np.zeros((*q.shape[:-1], model.nv))
        for sample in np.ndindex(q.shape[:-1]):
            q[sample], tau[sample] = closed_equilibrium(model, q[sample], driven, held)
        return Equilibrium(q, tau)
    for sample in np.ndindex(q.shape[:-1]):
        q[sample] = _balance(model, q[sample], idle, movable, sample)
    tau = np.array(holding_forces(model, q))
    tau[..., idle] = 0.0
    return Equilibrium(q, tau)


_stiffness = differentiate(_holding_forces, wrt="q")


def _balance(model, q, idle, movable, sample):
    """Configuration in which undriven joints carry no load, by Newton's method."""
    if not idle.size:
        return q
    force = holding_forces(model, q)[idle]
    for _ in range(_STEPS):
        K = _stiffness(model, q)
        stiffness = K[np.ix_(idle, movable)]
        size = np.max(np.abs(K), initial=np.max(np.abs(force)))  # torque per radian, and torque
        if np.max(np.abs(force)) <= 4e-15 * max(size, np.finfo(float).tiny):
            return q
        step = np.zeros(model.nv)
        step[movable] = -np.linalg.pinv(stiffness, rcond=1e-9) @ force

        def at(change, q=q):
            moved = model.integrate(q, change)
            return moved, holding_forces(model, moved)[idle]

        found = _reduce(at, step, force)
        if found is None:
            break
        q, force = found
    if np.max(np.abs(force)) <= 1e-11 * size:
        return q
    raise EquilibriumError(_explanation(model, idle, stiffness, force, sample))


def _reduce(at, step, load):
    """State after the largest part of a step that reduces the load norm, or None.

    Args:
        at: function of a step to the state there, the load last, or to None.
        step: from here, (nv,); shortened to about a radian.
        load: here.
    """
    step = step / max(1.0, float(np.linalg.norm(step)))
    for part in 0.5 ** np.arange(30):
        found = at(part * step)
        if found is not None and np.linalg.norm(found[-1]) < (1 - 0.1 * part) * np.linalg.norm(
            load
        ):
            return found
    return None


def _explanation(model, idle, stiffness, force, sample):
    """Reason why there is no equilibrium, with the joints that cannot carry the load."""
    blamed = np.zeros(model.nv, bool)
    blamed[idle] = np.abs(force) > 0.1 * np.max(np.abs(force))
    where = f"sample {sample}: " if sample else ""
    reason = (
        "no joint that may move changes that"
        if np.linalg.norm(stiffness) <= 1e-9 * np.linalg.norm(force)
        else "no small motion makes it less; start elsewhere, drive more joints or hold fewer"
    )
    return (
        f"{where}model {model.name!r} has no equilibrium here: {np.max(np.abs(force)):.4g} N or "
        f"N·m of its load stay on the joints {joint_names(model, blamed)}, which are not driven, "
        f"and {reason}"
    )


# --- Mechanisms with loops and couplings: motors carry what the loops do not ---------------------


def load_on_freedoms(model, q):
    """Static load (nv,), gravity less springs, and an orthonormal basis of allowed motions.

    The load is gravity less the forces of springs; loops carry what is normal to the directions.
    """
    still = np.zeros(model.nv)
    if model.is_rheonomic:
        name = next(c.name for c in model.constraints if c.rheonomic)
        raise LoopError(
            f"model {model.name!r} is never at rest: its constraint {name!r} moves with time"
        )
    K = constraint(model, q, still).K
    basis = velocity_basis(model, q, K, coordinates(model, K, "tangent"))
    return MotionState(model, q, still, still, still).constraint_force(), basis


def closed_holding_forces(model, q, driven):
    """Least driven forces that hold the mechanism, (nv,), and the load that remains.

    Both (nv,); of the load, what neither motors nor loops carry.
    """
    load, (G, _) = load_on_freedoms(model, q)
    B, tau = G[driven].T, np.zeros(model.nv)
    tau[driven] = np.linalg.pinv(B, rcond=RANK_TOLERANCE) @ G.T @ load
    return tau, G @ (G.T @ (load - tau))


def closed_equilibrium(model, q, driven, held):
    """Equilibrium of a mechanism with loops near ``q``, and its driven forces.

    Newton's method on the manifold of closed configurations, with the shortest step that does it.
    """
    q = project_configuration(model, q)
    tau, left = closed_holding_forces(model, q, driven)
    for _ in range(_STEPS):
        load, basis = load_on_freedoms(model, q)
        G, stiffness = basis.G, _closed_stiffness(model, q, tau, basis)
        size = max(np.max(np.abs(stiffness), initial=0), np.max(np.abs(load), initial=0))
        if np.max(np.abs(left), initial=0) <= 1e-14 * size:
            return q, tau
        # degrees of freedom in which no motor acts, and motions that leave the held joints alone
        idle, free = G @ _null(G[driven]), _null(G[held])
        step = G @ free @ -(np.linalg.pinv(idle.T @ stiffness @ free, rcond=1e-9) @ (idle.T @ left))

        def at(change, q=q):
            moved = _close(model, model.integrate(q, change), held)
            return None if moved is None else (moved, *closed_holding_forces(model, moved, driven))

        found = _reduce(at, step, left)
        if found is None:
            break
        q, tau, left = found
    if np.max(np.abs(left)) <= 1e-10 * size:
        return q, tau
    raise EquilibriumError(_closed_explanation(model, left, driven))


def _closed_stiffness(model, q, tau, basis):
    """Stiffness: derivative of the static load along the basis, (nv, p)."""
    still = np.zeros(model.nv)
    state, held = MotionState(model, q, still, still, tau), np.zeros_like(basis.G)
    return forces_along(state, state.multipliers(basis), basis.G, held, held)


def _null(A):
    """Orthonormal basis of the null space of ``A``, as columns."""
    _, s, Vt = np.linalg.svd(A)
    return Vt[np.sum(s > RANK_TOLERANCE * np.max(s, initial=0)) :].T


def _close(model, q, held):
    """Configuration near ``q`` with closed loops and the held joints fixed, or None."""
    for _ in range(20):
        error = closure_error(model, q)
        if np.max(np.abs(error)) <= 1e-13:
            return q
        K = constraint(model, q, np.zeros(model.nv)).K
        rows = np.concatenate([K, np.eye(model.nv)[held]])
        step = np.linalg.pinv(rows, rcond=1e-9)[:, : len(error)] @ -error
        q = model.integrate(q, step)
    return None


def _closed_explanation(model, left, driven):
    """Error message about joints whose load neither loops nor driven joints carry."""
    blamed = np.abs(left) > 0.1 * np.max(np.abs(left))
    blamed[driven] = False
    return (
        f"model {model.name!r} has no equilibrium here: {np.max(np.abs(left)):.4g} N or N·m of its "
        f"load are carried neither by its loops nor by the driven joints, and show at the joints "
        f"{joint_names(model, blamed)}; start elsewhere, drive more joints or hold fewer"
    )
