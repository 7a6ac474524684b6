"""Runs of steps whose length follows from an estimate of their error — RBDA §10.1."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kinetree.errors import ContactError, SimulationError
from kinetree.integration.breakdown import joint_of
from kinetree.simulation.runs import MotionRecord, after_hooks

_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 5.0


@dataclass(frozen=True)
class Tolerance:
    """How large the error of a step may be: ``atol + rtol`` times the size, for each variable.

    The size of a joint position that is not a plain number, such as an orientation, is one.
    """

    rtol: float
    """Relative to the size of positions and velocities."""
    atol: float
    """In addition [m, rad, m/s, rad/s]."""
    longest: float = np.inf
    """Longest step [s]."""

    def ratios(self, model, step):
        """Ratios of estimated to tolerated errors of positions and velocities, (..., 2 nv)."""
        position = np.maximum(_sizes(model, step.q0), _sizes(model, step.q1))
        velocity = np.maximum(np.abs(step.qd0), np.abs(step.qd1))
        size = np.concatenate([position, velocity], axis=-1)
        return np.abs(np.concatenate(step.error, axis=-1)) / (self.atol + self.rtol * size)


def _sizes(model, q):
    """Magnitude (..., nv) of the position behind each velocity variable; 1 for rotations."""
    sizes = np.ones((*q.shape[:-1], model.nv))
    for i, body in enumerate(model.bodies, start=1):
        if body.joint.rates_are_velocities:
            sizes[..., model.v_slice[i]] = np.abs(q[..., model.q_slice[i]])
    return sizes


class _Pace:
    """Length of the next step from the errors of the last two: a PI controller (Gustafsson)."""

    def __init__(self, order, h):
        self.h, self.previous = h, 1.0
        self.alpha, self.beta = 0.7 / (order + 1), 0.4 / (order + 1)

    def accept(self, error, h, limited):
        """Update the next step length after an accepted step (PI controller)."""
        error = max(error, 1e-8)
        factor = _SAFETY * error**-self.alpha * self.previous**self.beta
        proposed = h * min(max(factor, _SHRINK), _GROW)
        self.h = max(self.h, proposed) if limited else proposed  # shortened to arrive in time
        self.previous = error

    def reject(self, error, h):
        """Shorten the next step length after a rejected step."""
        factor = _SAFETY * error ** -(self.alpha + self.beta) if np.isfinite(error) else 0.0
        self.h = h * min(max(factor, _SHRINK), 0.9)


def run_adaptive_steps(stepper, clock, motion, store_every, progress, tolerance) -> MotionRecord:
    """Run adaptive steps from the clock's start to its end, storing multiples of its ``dt``.

    One step serves a whole batch: its worst sample decides. With a controller, which is called at
    every multiple of ``dt``, steps end there.
    """
    record = motion.record = MotionRecord(notes=stepper.notes, source=motion.controller)
    pace = _Pace(stepper.method.error_order, min(clock.dt, tolerance.longest))
    k, t, tau = 0, clock.start, motion.tau(clock.start)
    record.keep(t, motion.q, motion.qd, tau, motion.work)
    while t < clock.end:
        stop = clock.time(k + 1) if motion.holds else clock.end
        step = _next_step(stepper, t, stop, motion, tau, pace, tolerance, record)
        step = after_hooks(step, motion.hooks)
        record.take(step)
        while k < clock.count and clock.time(k + 1) <= step.t1:
            k += 1
            now = clock.time(k)
            if now < step.t1 and k % store_every == 0:
                q, qd, work = step.interpolant(now)
                record.keep(now, q, qd, tau, motion.work + work)
        motion.advance(step)
        t = step.t1
        on_grid = t == clock.time(k)
        tau = motion.tau(t, before=None if on_grid else tau)
        if step.stop or t >= clock.end or (on_grid and k % store_every == 0):
            record.keep(t, motion.q, motion.qd, tau, motion.work)
            progress(t)
        if step.stop:
            break
    return record


def _next_step(stepper, t, stop, motion, tau, pace, tolerance, record):
    """Next accepted step, after as many shorter attempts as needed."""
    model, smallest = stepper.model, 16 * np.spacing(max(abs(t), abs(stop)))
    while True:
        h = min(pace.h, tolerance.longest)
        limited = t + h * (1 + 1e-9) >= stop
        h = stop - t if limited else h
        step, worst, cause = _try_step(stepper, t, h, motion, tau, tolerance)
        if worst <= 1:
            pace.accept(worst, h, limited)
            step.t1 = stop if limited else t + h
            return step
        record.rejected += 1
        if h <= smallest:
            raise SimulationError(
                f"the step of the simulation of {model.name!r} became too small at t = {t:.6g} s: "
                f"{h:.3g} s, and still the error is {worst:.3g} of what is tolerated{cause}. "
                f"Accelerations may jump there; make it an event, or smooth the force"
            )
        pace.reject(worst, h)


def _try_step(stepper, t, h, motion, tau, tolerance) -> tuple[Any, float, str]:
    """Attempted step, its worst error relative to tolerance, and the variable concerned."""
    model = stepper.model
    try:
        with np.errstate(all="ignore"):
            step = stepper.take(t, h, motion.q, motion.qd, tau)
            ratios = tolerance.ratios(model, step)
    except ContactError:  # a shorter step begins with the same contacts
        raise
    except (ArithmeticError, ValueError) as error:  # it went where there is no answer
        return None, np.inf, f" ({error})"
    worst = np.sqrt(np.mean(ratios**2, axis=-1)).max(initial=0.0) if model.nv else 0.0
    if not np.isfinite(worst):
        worst = np.inf
    joint = np.maximum(*np.split(ratios, 2, axis=-1)) if model.nv else None
    cause = f", most of it in joint {joint_of(model, joint)!r}" if joint is not None else ""
    return step, worst, cause
