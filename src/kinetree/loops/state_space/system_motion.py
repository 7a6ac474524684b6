"""Motions of constrained systems over time, by every form of the thesis — Spencer §3.2.

Fixed steps of the classical Runge-Kutta method on the underlying differential equation. What keeps
the motion on the constraints is a choice: nothing, Baumgarte's method, or projection after every
step. ``kt.simulate`` is what to use for models; this is for systems of the user's own, and for
comparisons.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ShapeError, SimulationError, UnknownNameError, names_itself
from kinetree.loops.state_space import multipliers
from kinetree.loops.state_space.invariants import (
    Drift,
    drift,
    project_all,
    project_position,
    project_velocity,
)
from kinetree.loops.state_space.multipliers import Stabilization
from kinetree.loops.state_space.svd_form import SingularityWatch, SVDForm
from kinetree.loops.state_space.system import ConstrainedSystem

BAUMGARTE = Stabilization(10.0, 10.0)
"""The value of the thesis [1/s]."""
HOLDS = ("nothing", "baumgarte", "projection", "all", "energy")


class SystemMotion(NamedTuple):
    """A motion, and what it can be judged by; entry 0 is the start."""

    t: np.ndarray
    """Times [s], (steps,)."""
    q: np.ndarray
    """Configurations, (steps, nq)."""
    v: np.ndarray
    """Velocities, (steps, n)."""
    drift: Drift
    """Norms of ``g`` and ``G v``, change of the energy, (steps,) each."""
    kappa: np.ndarray
    """Ratio of the largest to the smallest singular value of ``G``, (steps,)."""
    indicator: np.ndarray
    """``|u_mᵀ Gdot v|``, small near singularities in a benign pass, (steps,)."""
    multipliers: np.ndarray
    """``lam``, the smallest that explain the accelerations, (steps, m)."""
    passes: list
    """Close approaches to kinematic singularities, ``SingularPass``."""


@names_itself
def integrate_system(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    step: float,
    *,
    form: str = "svd",
    hold: Sequence[str] | dict = "projection",
    stabilization: Stabilization = BAUMGARTE,
    tolerance: float | None = None,
    rank: int | None = None,
    near: float = 50.0,
) -> SystemMotion:
    """Follow a constrained system for some time.

    Args:
        system: the constrained system, in a vector space.
        q: configuration, and
        v: velocity at the start, consistent with the constraints.
        duration: how long [s].
        step: of the integration [s]; the last one is shorter where it must be.
        form: ``"svd"``, which passes singularities, or ``"multipliers"``.
        hold: what keeps the constraints. ``"nothing"``; ``"baumgarte"``; ``"projection"`` of
            positions and then of velocities after every step; ``"all"``, both at once;
            ``"energy"``, both at once with the energy of the start.
        stabilization: of Baumgarte's method.
        tolerance: of projections: by default 1e-3, for all at once as for positions, which the
            thesis uses.
        rank: number of independent constraints; all, by default.
        near: condition of ``G`` from which an approach to a singularity is reported.
    """
    if not system.space.flat:
        raise ShapeError("integrate_system needs configurations that are vectors; use charts.Atlas")
    q, v = (np.asarray(x, dtype=float) for x in (q, v))
    svd = SVDForm(system, rank=rank, stabilization=stabilization if hold == "baumgarte" else None)
    acceleration, settle = _form(system, svd, form), _hold(system, hold, q, v, tolerance)
    n, watch, times = system.n, SingularityWatch(near), instants(duration, step)
    states, kappa, indicator, lam = [], [], [], []

    def rate(t, x):
        return np.concatenate([x[n:], acceleration(t, x[:n], x[n:])])

    for t, end in zip(times, (*times[1:], None), strict=True):
        x = np.concatenate([q, v])
        seen = svd.evaluate(t, q, v)
        watch.update(t, seen)
        states.append(x)
        kappa.append(seen.kappa)
        indicator.append(seen.indicator)
        lam.append(multipliers.recovered_multipliers(system, t, q, v, seen.vdot))
        if end is not None:
            first = np.concatenate([v, seen.vdot]) if form == "svd" else None
            x = runge_kutta_step(rate, t, x, end - t, first)
            if not np.all(np.isfinite(x)):
                raise SimulationError(
                    f"the motion blew up in the step from t = {t:.6g} s, by form {form!r}"
                )
            q, v = settle(x[:n], x[n:])
    q, v = np.split(np.array(states), 2, axis=1)
    return SystemMotion(
        times, q, v, drift(system, q, v), np.array(kappa),
        np.array(indicator), np.array(lam), watch.passes,
    )  # fmt: skip


def instants(duration, step) -> np.ndarray:
    """Times from 0 to the duration, exactly, in steps of which the last may be shorter [s]."""
    if not (0 <= duration < np.inf and 0 < step < np.inf):
        raise ShapeError(
            f"a motion needs a duration [s] that is not negative and a step [s] above zero, got "
            f"duration = {duration} and step = {step}"
        )
    count = math.ceil(duration / step - 1e-6)  # of a step: rounding errors make no step
    return np.append(step * np.arange(count), float(duration))


def runge_kutta_step(rate: Callable, t, x, h, first=None):
    """One step of the classical method of order 4; ``first`` is ``rate(t, x)`` if known."""
    k1 = rate(t, x) if first is None else first
    k2 = rate(t + h / 2, x + h / 2 * k1)
    k3 = rate(t + h / 2, x + h / 2 * k2)
    k4 = rate(t + h, x + h * k3)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def _form(system, svd, form):
    if form == "svd":
        return svd.acceleration
    if form == "multipliers":
        return lambda t, q, v: multipliers.acceleration(
            system, t, q, v, stabilization=svd.stabilization
        )
    raise UnknownNameError(f"no form is called {form!r}; there are 'svd' and 'multipliers'")


def _hold(system, hold, q, v, tolerance):
    if hold not in HOLDS:
        raise UnknownNameError(
            f"nothing to hold constraints is called {hold!r}; use one of {HOLDS}"
        )
    if hold == "energy" and system.energy is None:
        raise ShapeError("the system does not know its energy: give it one, or hold 'all'")
    tolerance = 1e-3 if tolerance is None else tolerance

    def projected(q, v):
        q = project_position(system, q, tolerance=tolerance)
        return q, project_velocity(system, q, v)

    energy = system.energy(q, v) if hold == "energy" else None
    if hold in ("nothing", "baumgarte"):
        return lambda q, v: (q, v)
    if hold == "projection":
        return projected
    return lambda q, v: project_all(system, q, v, energy=energy, tolerance=tolerance)
