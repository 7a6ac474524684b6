"""Motions of constrained systems over time, by every form of the thesis — Spencer §3.2.

Fixed steps of the classical Runge-Kutta method on the underlying differential equation, in local
coordinates where configurations are not vectors. What keeps the motion on the constraints is a
choice: nothing, Baumgarte's method, the post-stabilisation of Ascher and Chin, or projection after
every step. ``kt.simulate`` is what to use for models; this is for systems of the user's own, and
for comparisons.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import (
    ShapeError,
    SimulationError,
    SingularError,
    SingularityWarning,
    UnknownNameError,
    names_itself,
    warn,
)
from kinetree.loops.state_space import multipliers
from kinetree.loops.state_space.multipliers import Stabilization
from kinetree.loops.state_space.system import ConstrainedSystem
from kinetree.textbook.chart_motion import instants, runge_kutta_step
from kinetree.textbook.regularization import recovered_multipliers, regularized_acceleration
from kinetree.textbook.svd_form import THRESHOLD, SingularityWatch, SVDForm, arbitrary
from kinetree.textbook.system_invariants import (
    Drift,
    drift,
    post_stabilize,
    project_all,
    project_position,
    project_velocity,
)

BAUMGARTE = Stabilization(10.0, 10.0)
"""The value of the thesis [1/s]."""
FORMS = ("multipliers", "svd", "regularized")
HOLDS = ("nothing", "baumgarte", "ascher_chin", "projection", "all", "energy")


class SystemMotion(NamedTuple):
    """A motion with its diagnostics; entry 0 is the start."""

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
    kinetic: np.ndarray
    """Kinetic energy [J], (steps,)."""
    potential: np.ndarray
    """Potential energy [J], (steps,); NaN if the system has no ``energy``."""


@names_itself
def integrate_system(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    step: float,
    *,
    form: str = "svd",
    hold: str = "projection",
    stabilization: Stabilization = BAUMGARTE,
    tolerance: float | None = None,
    rank: int | None = None,
    threshold: float = THRESHOLD,
    damping: float = 0.0,
    near: float = 50.0,
) -> SystemMotion:
    """``SystemMotion`` of a constrained system by a choice of formulations.

    Args:
        system: the constrained system.
        q: configuration at the start, consistent with the constraints.
        v: velocity at the start, likewise.
        duration: how long [s].
        step: of the integration [s]; the last one is shorter where it must be.
        form: of the equation of motion: ``"svd"``, which passes singularities; ``"multipliers"``,
            that of Lagrange; or ``"regularized"``, sequential regularisation by Ascher and Lin.
        hold: what keeps the constraints. ``"nothing"``; ``"baumgarte"``; ``"ascher_chin"``, two
            corrections of positions and velocities together after every step; ``"projection"`` of
            positions and then of velocities after every step; ``"all"``, both at once;
            ``"energy"``, both at once with the energy of the start.
        stabilization: of Baumgarte's method.
        tolerance: of projections: by default 1e-3, for all at once as for positions, which the
            thesis uses.
        rank: number of independent constraints; counted by default, as ``SVDForm`` does.
        threshold: singular values below this times the largest count as zero in the form
            ``"svd"``. Values from 1e-3 or so soften the constraints near singularities.
        damping: ``mu`` of the damped inverse of the form ``"svd"``, which softens them as well.
        near: condition of ``G`` from which an approach to a singularity is reported.

    Warns:
        SingularityWarning: a step begins right at a singularity, where the accelerations of the
            form ``"svd"`` are arbitrary.
    """
    q, v = (np.asarray(x, dtype=float) for x in (q, v))
    if form != "svd" and (threshold, damping) != (THRESHOLD, 0.0):
        raise ShapeError(
            f"threshold and damping soften the inverse of form 'svd'; form {form!r} has none"
        )
    svd = SVDForm(
        system,
        rank=rank,
        threshold=threshold,
        damping=damping,
        stabilization=stabilization if hold == "baumgarte" else None,
    )
    acceleration, settle = _form(system, svd, form), _hold(system, hold, q, v, tolerance)
    watch, times, said = SingularityWatch(near), instants(duration, step), ""
    states, logged = [], []
    for t, end in zip(times, (*times[1:], None), strict=True):
        seen = svd.evaluate(t, q, v, warn=False)
        watch.update(t, seen)
        said = said or (arbitrary(t, seen) if seen.is_arbitrary and form == "svd" else "")
        vdot = seen.vdot if form == "svd" else acceleration(t, q, v)
        states.append((q, v))
        lam = recovered_multipliers(system, t, q, v, vdot)
        logged.append((seen.kappa, seen.indicator, lam, v @ system.M(q) @ v / 2))
        if end is not None:
            q, v = _step(system, acceleration, t, end - t, q, v, vdot)
            if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
                raise SimulationError(
                    f"the motion blew up in the step from t = {t:.6g} s, by form {form!r}"
                )
            q, v = settle(q, v)
    if said:
        warn(said, SingularityWarning)
    return _motion(system, watch, times, states, logged)


def _motion(system, watch, times, states, logged) -> SystemMotion:
    """``SystemMotion`` from the states and diagnostics stored at every step."""
    q, v = (np.array(part) for part in zip(*states, strict=True))
    kappa, indicator, lam, kinetic = (np.array(part) for part in zip(*logged, strict=True))
    total = np.nan if system.energy is None else system.energy(q[0], v[0])
    held = drift(system, q, v)
    return SystemMotion(
        times,
        q,
        v,
        held,
        kappa,
        indicator,
        lam,
        watch.passes,
        kinetic,
        total + held.energy - kinetic,
    )


def _step(system, acceleration, t, h, q, v, vdot):
    """State after a Runge-Kutta step of ``h`` seconds, in local coordinates about ``q``."""
    n, space = system.n, system.space

    def rate(t, x):
        at = x[:n] if space.flat else space.move(q, x[:n])
        along = x[n:] if space.flat else space.difference_gradient(q, at) @ x[n:]
        return np.concatenate([along, acceleration(t, at, x[n:])])

    start = q if space.flat else np.zeros(n)
    x = runge_kutta_step(rate, t, np.concatenate([start, v]), h, np.concatenate([v, vdot]))
    return x[:n] if space.flat else space.move(q, x[:n]), x[n:]


def _form(system, svd, form):
    """Function ``(t, q, v)`` of accelerations, by the name of a formulation."""
    if form == "svd":
        return lambda t, q, v: svd.evaluate(t, q, v, warn=False).vdot
    if form not in FORMS:
        raise UnknownNameError(f"no form is called {form!r}; use one of {FORMS}")
    lagrange, penalty = multipliers.acceleration, regularized_acceleration
    kind: Callable = lagrange if form == "multipliers" else penalty
    return lambda t, q, v: kind(system, t, q, v, stabilization=svd.stabilization)


def _hold(system, hold, q, v, tolerance):
    """Function that corrects a state after each step, by the name of a method."""
    if hold not in HOLDS:
        raise UnknownNameError(
            f"nothing to hold constraints is called {hold!r}; use one of {HOLDS}"
        )
    if hold == "energy" and system.energy is None:
        raise ShapeError("the system has no energy function: give it one, or hold 'all'")
    tolerance = 1e-3 if tolerance is None else tolerance

    def project(q, v):
        q = project_position(system, q, tolerance=tolerance)
        return q, project_velocity(system, q, v)

    energy = system.energy(q, v) if hold == "energy" else None
    if hold in ("nothing", "baumgarte"):
        return lambda q, v: (q, v)
    if hold == "ascher_chin":
        return lambda q, v: post_stabilize(system, q, v)
    if hold == "projection":
        return project
    return lambda q, v: project_all(system, q, v, energy=energy, tolerance=tolerance)


# --- comparisons: Spencer §3.2 -------------------------------------------------------------------

_SHOWN = ("form", "hold", "max |g|", "max |Gv|", "max |dE| [J]", "max kappa", "max |lam|", "passes")


class FormComparison(NamedTuple):
    """Comparison of one motion by several forms, each with several methods of stabilisation."""

    motions: dict[tuple[str, str], SystemMotion]
    """By form and hold."""
    failures: dict[tuple[str, str], str]
    """What ended those that did not arrive."""

    def __str__(self):
        rows = [_SHOWN, *((*key, *_figures(motion)) for key, motion in self.motions.items())]
        wide = [max(len(row[i]) for row in rows) for i in range(len(_SHOWN))]
        lines = ["  ".join(x.ljust(w) for x, w in zip(row, wide, strict=True)) for row in rows]
        failed = [f"{form}, {hold}: {why}" for (form, hold), why in self.failures.items()]
        return "\n".join([*(line.rstrip() for line in lines), *failed])


def _figures(motion):
    """Summary row of a motion: drift, condition, multipliers, singular passes."""
    drift, lam = motion.drift.largest(), np.abs(motion.multipliers).max(initial=0.0)
    times = " ".join(f"{event.time:.4f}" for event in motion.passes)
    numbers = (*drift, np.max(motion.kappa), lam)
    return (*(f"{number:.2g}" for number in numbers), times)


@names_itself
def compare_forms(
    system: ConstrainedSystem,
    q: ArrayLike,
    v: ArrayLike,
    duration: float,
    step: float,
    *,
    forms: Sequence[str] = ("multipliers", "svd"),
    holds: Sequence[str] = ("nothing", "baumgarte", "projection", "energy"),
    **options: Any,
) -> FormComparison:
    """Comparison of one motion by all formulations and stabilisations (Spencer §3.2).

    Print the result for a table; its motions have angles, condition, drift, energies, multipliers
    and indicator. Forms without stabilisation are the same differential equation: what differs
    between them comes from rounding near singularities.

    Args:
        system: the constrained system.
        q: configuration at the start, consistent with the constraints.
        v: velocity at the start, likewise.
        duration: how long [s].
        step: of the integration [s].
        forms: as for ``integrate_system``.
        holds: as for ``integrate_system``.
        **options: for ``integrate_system``.

    Raises:
        SingularError: no form arrives at the end, because of a singular point.
        SimulationError: no form arrives at the end.
    """
    motions, failures, last = {}, {}, None
    for form in forms:
        for hold in holds:
            try:
                motions[form, hold] = integrate_system(
                    system, q, v, duration, step, form=form, hold=hold, **options
                )
            except (SimulationError, SingularError) as error:
                failures[form, hold], last = str(error), error
    if last is not None and not motions:
        raise last
    return FormComparison(motions, failures)
