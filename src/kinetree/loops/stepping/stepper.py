"""Steps that end on the constraints, each looked at, and taken again where it must be."""

import warnings
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from kinetree.algorithms.closed.rank import rank_policy
from kinetree.errors import MisalignmentWarning, ShapeError, SimulationError, SingularError
from kinetree.integration.breakdown import NamingTime, remedy
from kinetree.integration.step import Stepper, step_length
from kinetree.loops.kinematics.compiled_projection import close_loops
from kinetree.loops.kinematics.constraint import error, loop_gaps, with_misalignment
from kinetree.loops.stepping.choice import better_choice
from kinetree.loops.stepping.health import Judge, refine_step
from kinetree.loops.stepping.projected import Checks, projected_steps
from kinetree.loops.stepping.singular_passes import Passes

_MORE = 12  # Newton's steps when those of a step were not enough
_OPEN = 1e-9  # error, in pure numbers, with which a simulation does not go on


class ProjectedStepper(Stepper):
    """Steps of a ``Projected`` method.

    Args:
        model: the mechanism.
        method: a ``Projected`` integrator.
        field: ``Constrained``.
        compiled: as for ``Stepper``.
        health: of the constraint equations at the start, or next to it; (...) for a batch.
        refine: whether steps are halved close to singular configurations.
    """

    def __init__(self, model, method, field, *, compiled, health, refine):
        super().__init__(model, method, field, compiled=compiled)
        self.judge, self.refine = Judge(model, health), refine
        self.passes = Passes(model, method.chosen)
        self.refined = self.substeps = 0

    # --- steps -------------------------------------------------------------------------------

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State and work after a step of ``h`` seconds, with loops closed."""
        after = self._close(t + h, super().end_of_step(t, h, q, qd, tau, full=full))
        if q.shape[:-1] != self.judge.health.shape:
            return after  # one sample of a batch, to locate an event
        again = ~self._is_fine(Checks.of(after.checks))
        if np.any(again):
            after = self._with_care(t, h, q, qd, tau, after, again)
        self.judge.learn(Checks.of(after.checks[None]))
        health = Checks.of(after.checks).health
        self.passes.look(t + h, after.q, after.qd, health, self.judge.health)
        return after

    def walk(self, instants, q, qd, tau, dt):
        """States after several steps; only doubtful steps are repeated with care."""
        states, done, stride = [], 0, len(instants)
        while done < len(instants) - 1:
            ahead = instants[done : done + stride + 1]
            found = self._hurry(ahead, q, qd, tau, dt)
            states += found
            if len(found) < len(ahead) - 1:  # one step with care, then on, a little slower
                q, qd = found[-1][:2] if found else (q, qd)
                t, end = ahead[len(found) : len(found) + 2]
                h = step_length(t, end, dt)
                with NamingTime(self.model, t, qd, h, self.method.name):
                    states.append(self.step(t, h, q, qd, tau))
                stride = 0
            q, qd = states[-1][:2]
            done, stride = len(states), max(2 * stride, 1)
        return states

    def _hurry(self, instants, q, qd, tau, dt):
        """States after steps, up to the first step that needs care."""
        states, checks = [], []
        for t, end in pairwise(instants):
            try:
                after = super().end_of_step(t, step_length(t, end, dt), q, qd, tau)
            except (ShapeError, SingularError):  # after a step that was not fine, or now: with care
                break
            q, qd = after.q, after.qd
            states.append(after[:3])
            checks.append(after.checks)
        if not states:
            return []
        checks = Checks.of(np.array(checks))
        fine = self._is_fine(checks)
        fine = fine.all(axis=tuple(range(1, fine.ndim)))
        count = len(states) if fine.all() else int(np.argmin(fine))
        if count:
            self.judge.learn(Checks(*(c[:count] for c in checks)))
            for k in sorted({0, count - 1}):  # next to those with care
                q, qd = states[k][:2]
                self.passes.look(instants[k + 1], q, qd, checks.health[k], self.judge.health)
        return states[:count]

    def _is_fine(self, checks):
        """Mask of steps that are closed, healthy and far from singular passes."""
        closed = checks.position <= self.judge.closed
        near = self.judge.is_unhealthy(checks) | self.passes.is_near(checks, self.judge)
        return closed & ~near

    def steps(self, t, h, q, qd, tau, count):
        """State and work after ``count`` steps with constant ``tau``."""
        numbers = (np.array(x, dtype=float) for x in (t, h))
        *results, worst = self._many.call(*numbers, q, qd, tau, np.array(count, dtype=float))
        if np.all(self._is_fine(Checks.of(worst))):
            self.judge.learn(Checks.of(worst[None]))
            return results
        states = self.walk([t + k * h for k in range(count + 1)], q, qd, tau, h)
        return *states[-1][:2], sum(state[2] for state in states)

    @cached_property
    def _many(self):
        """Compiled kernel of several projected steps."""
        return self._kernel(projected_steps, 1.0)

    # --- care --------------------------------------------------------------------------------

    def _close(self, t, after):
        """Step result with further Newton iterations where loops are still open."""
        position = after.checks[..., 0]
        if np.all(position <= self.judge.closed) or not np.all(np.isfinite(after.qd)):
            return after
        q, qd, *found = close_loops(
            self.model.at(t), after.q, after.qd, chosen=self.method.chosen, iterations=_MORE
        )
        checks = np.array(after.checks)
        checks[..., 0], checks[..., 1] = found[:2]
        return after._replace(q=q, qd=qd, checks=checks)

    def _with_care(self, t, h, q, qd, tau, after, again):
        """Step result with some samples redone: better equations, smaller steps."""
        q1, qd1, work, checks = (np.array(x) for x in (*after[:3], after.checks))
        for index in map(tuple, np.argwhere(again)):
            state = q[index], qd[index]
            chosen = better_choice(self.model.at(t), state[0], self.method.chosen)
            stepper = self if chosen is None else self._with(chosen, alone=not index)
            if chosen is not None:
                one = stepper.plain(t, h, *state, tau[index])
                q1[index], qd1[index], work[index], checks[index] = *one[:3], one.checks
            if self.refine and self.judge.badness(Checks.of(checks[index]), index) > 1:
                found = refine_step(
                    stepper.plain,
                    lambda c, i=index: self.judge.badness(c, i),
                    t,
                    h,
                    state,
                    tau[index],
                )
                q1[index], qd1[index], work[index], checks[index], taken = found
                self.refined, self.substeps = self.refined + 1, self.substeps + taken
            self._require_closed(t + h, h, q1[index], index)
        changed = np.any(q1 != after.q) or np.any(qd1 != after.qd)
        stages = None if changed else after.stages
        return after._replace(q=q1, qd=qd1, work=work, checks=checks, stages=stages)

    def plain(self, t, h, q, qd, tau):
        """Result of a step that is not examined for singular passes."""
        return self._close(t + h, super().end_of_step(t, h, q, qd, tau))

    def _with(self, chosen, *, alone):
        """Stepper with other chosen equations: this one itself if it has a single sample."""
        other = self if alone else copy(self)
        for name in ("_one", "_full", "_many", "_rates"):
            other.__dict__.pop(name, None)
        other.method = replace(self.method, chosen=chosen)
        other.field = self.field.choosing(chosen)
        return other

    def _require_closed(self, t, h, q, index):
        """Raise SimulationError if a loop stays open at the end of a step."""
        chosen = self.method.chosen
        if not np.all(np.isfinite(q)):
            return
        model = self.model.at(t)
        far = chosen.largest_error(np.asarray(error(model, q)))
        if far <= _OPEN:
            return
        part, gap = max(loop_gaps(model, q).items(), key=lambda item: item[1])
        raise SimulationError(
            f"the simulation of {self.model.name!r} cannot close {part} at the end of the step to "
            f"t = {t:.6g} s{f' in sample {index}' if index else ''}: it stays open by {gap:.3g} m "
            f"or rad; {_advice(model, q, chosen) or remedy(self.model, h, self.method.name)}"
        )


def _advice(model, q, chosen):
    """Advice if nearly redundant constraints keep a loop open, else ""."""
    e = np.abs(np.asarray(error(model, q)) * np.array(chosen.every))
    others = [k for k in range(len(e)) if k not in chosen.rows]
    policy = rank_policy(model)
    allowed = rank_policy(with_misalignment(model, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MisalignmentWarning)
        text = allowed.explanation() if policy.tolerance < allowed.tolerance else ""
    if text:
        return (
            f"{text}, but Loop.misalignment keeps them, which locks the mechanism. "
            f"kinetree.loops.with_misalignment(model, None) drops them"
        )
    if len(others) and np.max(e[others]) > 10 * np.max(e[list(chosen.rows)], initial=0.0):
        why = policy.explanation() or (
            f"constraints that are redundant at the start are violated here, by "
            f"{np.max(e[others]):.2g} rad, or fraction of the size of the loop"
        )
        return (
            f"{why}. Make the placements of its joints agree to more digits, or close the loop by "
            f"a joint with fewer constraints (kinetree.loops.mobility names some)"
        )
    return ""
