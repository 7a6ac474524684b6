"""States in which a mechanism stays at rest, when only some joints are driven."""

from typing import NamedTuple

import numpy as np

from kinetree.arrays.functions import on_host
from kinetree.control.closed_equilibria import closed_equilibrium
from kinetree.control.motors import holding_forces
from kinetree.errors import EquilibriumError
from kinetree.functional.differentiate import differentiate
from kinetree.loops.linear.coordinates import velocity_columns
from kinetree.model.arrays import as_configuration, as_model

__all__ = ["Equilibrium", "equilibrium"]

_STEPS = 100


class Equilibrium(NamedTuple):
    """A configuration and the forces of the motors that hold it."""

    q: np.ndarray
    """(..., nq)"""
    tau: np.ndarray
    """(..., nv), zero at joints that are not driven"""


@on_host
def equilibrium(model, q0, *, actuated=None, hold=()):
    """The configuration near ``q0`` at which the driven joints can hold the mechanism at rest.

        q, tau = kt.control.equilibrium(m, q0, actuated=["shoulder"])

    Newton's method with the smallest step that does it, shortened where the error would grow.

    Args:
        model: the mechanism. Loops and couplings carry their part of the load, and stay closed.
        q0: where to start, (..., nq).
        actuated: names of the driven joints; all by default, and then ``q0`` itself will do.
        hold: names of joints that must stay as they are in ``q0``.

    Returns:
        An ``Equilibrium``: the acceleration at ``q``, at rest and with ``tau``, is zero. Of the
        forces that hold a mechanism with more motors than freedoms these are the smallest.

    Raises:
        EquilibriumError: there is none, or it was not found; with the joints that are to blame.
    """
    q0 = as_configuration(as_model(model), q0)
    driven = velocity_columns(model, actuated, "actuated")
    idle = np.setdiff1d(np.arange(model.nv), driven)
    movable = np.setdiff1d(np.arange(model.nv), velocity_columns(model, hold, "hold"))
    q = np.array(q0, dtype=np.result_type(q0, np.float64))
    if model.loops:
        held, tau = np.setdiff1d(np.arange(model.nv), movable), np.zeros((*q.shape[:-1], model.nv))
        for sample in np.ndindex(q.shape[:-1]):
            q[sample], tau[sample] = closed_equilibrium(model, q[sample], driven, held)
        return Equilibrium(q, tau)
    for sample in np.ndindex(q.shape[:-1]):
        q[sample] = _balanced(model, q[sample], idle, movable, sample)
    tau = np.array(holding_forces(model, q))
    tau[..., idle] = 0.0
    return Equilibrium(q, tau)


_stiffness = differentiate(holding_forces, wrt="q")


def _balanced(model, q, idle, movable, sample):
    """Newton's method for the load that rests on joints which are not driven."""
    if not idle.size:
        return q
    force = holding_forces(model, q)[idle]
    for _ in range(_STEPS):
        K = _stiffness(model, q)
        slope = K[np.ix_(idle, movable)]
        size = np.max(np.abs(K), initial=np.max(np.abs(force)))  # torque per radian, and torque
        if np.max(np.abs(force)) <= 4e-15 * max(size, np.finfo(float).tiny):
            return q
        step = np.zeros(model.nv)
        step[movable] = -np.linalg.pinv(slope, rcond=1e-9) @ force
        length = np.linalg.norm(step)
        step *= min(1.0, 1.0 / length) if length else 0.0  # at most about a radian at once
        found = _shorter(model, q, idle, step, force)
        if found is None:
            break
        q, force = found
    if np.max(np.abs(force)) <= 1e-11 * size:
        return q
    raise EquilibriumError(_explanation(model, idle, slope, force, sample))


def _shorter(model, q, idle, step, force):
    """Where a part of the step leads that reduces the force, or None."""
    for part in 0.5 ** np.arange(30):
        moved = model.integrate(q, part * step)
        left = holding_forces(model, moved)[idle]
        if np.linalg.norm(left) < (1 - 0.1 * part) * np.linalg.norm(force):
            return moved, left
    return None


def _explanation(model, idle, slope, force, sample):
    at = model.v_slice
    blamed = np.zeros(model.nv, bool)
    blamed[idle] = np.abs(force) > 0.1 * np.max(np.abs(force))
    names = [n for i, n in enumerate(model.joint_names, start=1) if np.any(blamed[at[i]])]
    where = f"sample {sample}: " if sample else ""
    reason = (
        "no joint that may move changes that"
        if np.linalg.norm(slope) <= 1e-9 * np.linalg.norm(force)
        else "no small motion makes it less; start elsewhere, drive more joints or hold fewer"
    )
    return (
        f"{where}model {model.name!r} finds no rest: {np.max(np.abs(force)):.4g} N or N·m of its "
        f"load stay on the joints {', '.join(map(repr, names))}, which are not driven, and "
        f"{reason}"
    )
