"""Runs of equal steps, and the record of a run."""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from time import monotonic
from typing import Any

import numpy as np

from kinetree.contact.engine.summary import FASTEST
from kinetree.contact.history import worst_of
from kinetree.integration.breakdown import NamingTime, check_finite_state, largest_size
from kinetree.integration.manifold import settle
from kinetree.integration.step import Step, step_length
from kinetree.simulation.later import Later

_CHUNK = 10_000  # steps in one call of compiled code, so that it can be interrupted
_BLOCK = 100  # steps that are looked at together
_FIRST = 8  # steps in the first call,
_LARGE = 512  # or as many as have this many velocities in all
_LOOKS = 16  # calls of a simulation whose progress is watched, at least
_EPS = float(np.finfo(float).eps)
_BREATH = 0.05  # about how long compiled code may run on [s], so that it can be interrupted


@dataclass(frozen=True)
class Clock:
    """Times of a simulation: from ``start`` to ``end`` [s] in steps of ``dt``; the last shorter.

    Times are ``origin + k dt``, so that one that goes on has those of the one before.
    """

    start: float
    end: float
    dt: float
    counted: tuple[float, int] | None = None
    """Time from which steps are counted [s], and how many there are up to the start, if not 0."""

    @property
    def origin(self) -> float:
        """Time from which steps are counted [s]."""
        return self.start if self.counted is None else self.counted[0]

    @property
    def first(self) -> int:
        """Number of steps from the origin to the start."""
        return 0 if self.counted is None else self.counted[1]

    @classmethod
    def of(cls, start, duration, dt, memory) -> "Clock":
        """``Clock`` that goes on counting the steps in ``memory`` if step and start agree."""
        origin, first, before = memory.get("clock", (start, 0.0, dt))
        goes_on = before == dt and origin + first * dt == start
        return cls(start, start + duration, dt, (float(origin), int(first)) if goes_on else None)

    def copy_memory(self) -> dict[str, np.ndarray]:
        """Memory by which a next simulation continues the step count; {} after a short step."""
        whole = self.origin + (self.first + self.count) * self.dt == self.end
        found = np.array([self.origin, self.first + self.count, self.dt])
        return {"clock": found} if whole else {}

    @cached_property
    def count(self) -> int:
        """Number of steps, rounding errors of the times aside."""
        n = (self.end - self.start) / self.dt
        rounding = 4 * _EPS * (abs(self.end) + abs(self.start)) / self.dt
        return round(n) if abs(n - round(n)) < 1e-6 + rounding else ceil(n)

    @cached_property
    def last(self) -> float:
        """Length of the last step [s], ``dt`` up to rounding unless it is shorter."""
        return step_length(self.time(self.count - 1), self.end, self.dt)

    def times(self, steps) -> np.ndarray:
        """Times at which the numbered steps begin [s], an array."""
        found = self.origin + (self.first + steps) * self.dt
        found[steps >= self.count] = self.end
        return found

    def time(self, k):
        """Time at which step ``k`` begins [s]."""
        return self.end if k >= self.count else self.origin + (self.first + k) * self.dt


@dataclass
class RunningMotion:
    """The present state of a simulation, its controller, and the hooks called after each step."""

    q: Any
    qd: Any
    work: Any
    controller: Any
    hooks: tuple = ()
    turns_over: Any = None
    """The model, if steps may begin in other variables than the last one ended in."""
    watched: bool = False
    """Whether someone wants to know how far it is."""
    record: Any = None
    """What the run has stored so far, also when an error ends it."""

    @property
    def holds(self) -> bool:
        """Whether the controller is called at every interval, its forces held between."""
        return not self.is_constant and not hasattr(self.controller, "next_instant")

    @property
    def is_constant(self) -> bool:
        """Whether the held inputs never change."""
        return getattr(self.controller, "is_constant", False)

    def control_kernel(self, stepper):
        """Compiled controller for the stepper, or None if it cannot call one."""
        kernel = getattr(self.controller, "as_kernel", lambda: None)()
        return kernel if kernel is not None and stepper.can_call(kernel) else None

    def tau(self, t, before=None):
        """Joint forces from time ``t`` on: ``before`` if still held, else the controller's."""
        if before is not None and self.holds:
            return before
        return self.controller(t, self.q, self.qd)

    def advance(self, step):
        """Move the motion's state to the end of a step."""
        self.q, self.qd, self.work = step.q1, step.qd1, self.work + step.work
        if self.turns_over is not None:  # before the controller sees the state
            self.q, self.qd = settle(self.turns_over, self.q, self.qd)


@dataclass
class MotionRecord:
    """Stored instants, events, and counts.

    Attributes:
        t, q, qd, tau, work: lists of what was stored.
        events: records of events.
        steps: steps that were taken.
        rejected: steps that were thrown away because of their error.
        largest_step: longest step [s].
        largest_advance: largest displacement of a joint in one step [rad or m].
        notes: a stepper's records of contact, or None.
        source: the controller, whose ``last`` controls are stored where there are any.
        controls: of actuators, where there are any.
        recorded: what compiled code has stored, by name, or None.
    """

    t: Any = field(default_factory=list)
    q: Any = field(default_factory=list)
    qd: Any = field(default_factory=list)
    tau: Any = field(default_factory=list)
    work: Any = field(default_factory=list)
    events: list = field(default_factory=list)
    steps: int = 0
    rejected: int = 0
    largest_step: float = 0.0
    largest_advance: float = 0.0
    notes: Any = None
    source: Any = None
    controls: Any = field(default_factory=list)
    recorded: Any = None

    def keep(self, t, q, qd, tau, work):
        """Store time, state, held input and work of one instant."""
        for name, value in (("t", t), ("q", q), ("qd", qd), ("work", work)):
            getattr(self, name).append(value)
        self.hold(tau)
        if self.notes is not None:
            self.notes.keep(q)

    def hold(self, tau):
        """Store the held joint forces and controls from an instant on."""
        self.tau.append(tau)
        controls = getattr(self.source, "last", None)
        if controls is not None:
            self.controls.append(controls)

    def fill(self, stepper, times, *, spread, part=False):
        """Take over the arrays that compiled code has stored at given times.

        Args:
            stepper: that took the steps.
            times: [s].
            spread: whether what was held at the start stands for all of them.
            part: whether an error has ended the run after these times.
        """
        found, self.t = stepper.stored_arrays(len(times) if part else None), times
        self.q, self.qd, self.work = (found[name] for name in ("q", "qd", "work"))
        self.recorded = found if "kinetic" in found else None
        if spread:
            self.tau, self.controls = (
                _repeat(x[0], len(times)) if len(x) else None for x in (self.tau, self.controls)
            )

    @cached_property
    def contact(self):
        """Contact history of the run, possibly as a ``Later``; None without contact."""
        later = (self.recorded or {}).get("history")
        if later is not None:
            return Later(later)
        return None if self.notes is None else self.notes.history()

    @property
    def worst(self):
        """Worst contact residuals of the run; None without contact."""
        summary = (self.recorded or {}).get("summary")
        if summary is not None:
            return worst_of(summary)
        history: Any = self.contact
        return None if history is None else history.worst

    def take(self, step):
        """Count a step in the motion's record, and store the step's events."""
        self.count(step.t1 - step.t0, step.qd1)
        self.events += step.events

    def count(self, h, qd, steps=1):
        """Count steps of length ``h`` that end with velocities ``qd``."""
        self.count_fastest(h, largest_size(qd), steps)

    def count_fastest(self, h, speed, steps):
        """Count steps of length ``h`` whose largest joint speed is ``speed``."""
        self.steps += steps
        self.largest_step = max(self.largest_step, h)
        self.largest_advance = max(self.largest_advance, h * speed)

    def arrays(self) -> dict[str, Any]:
        """All stored arrays of the motion by name, with time as first axis."""
        found = {name: getattr(self, name) for name in ("t", "q", "qd", "tau", "work")}
        if isinstance(self.controls, Later) or (self.controls is not None and len(self.controls)):
            found["controls"] = self.controls
        for name, x in found.items():
            if type(x) is list:
                found[name] = np.asarray(x)
        return found


def _repeat(row, times) -> Later:
    """``Later`` with the same row for every time."""
    kept = row.copy()
    return Later(lambda: np.full((times, *kept.shape), kept))


def run_equal_steps(stepper, clock, motion, store_every, progress) -> MotionRecord:
    """Run steps of equal length from the clock's start to its end, or until a hook stops."""
    record = motion.record = MotionRecord(notes=stepper.notes, source=motion.controller)
    records = not (motion.hooks or motion.turns_over) and clock.count > 0
    with NamingTime(stepper.model, clock.start, motion.qd, clock.dt, stepper.method.name):
        records = records and stepper.records(motion.q)  # which may compile a step
    if records:
        try:
            _run_recorded(stepper, clock, motion, store_every, progress, record)
        except BaseException:
            _fill_up_to_error(stepper, clock, store_every, record)
            raise
        return record
    if stepper.walks and not motion.hooks and motion.is_constant:
        _run_chunks(stepper, clock, motion, store_every, progress, record)
        return record
    k, t, tau = 0, clock.start, None
    while k < clock.count:
        on_grid = t == clock.time(k)
        tau = motion.tau(t, before=None if on_grid else tau)
        if on_grid and k % store_every == 0:
            record.keep(t, motion.q, motion.qd, tau, motion.work)
            progress(t)
        step = _step(stepper, t, clock.time(k + 1), motion, tau, clock.dt)
        record.take(step)
        motion.advance(step)
        t = step.t1
        k += t >= clock.time(k + 1)
        if step.stop:
            break
    record.keep(t, motion.q, motion.qd, motion.tau(t), motion.work)
    progress(t)
    return record


def _step(stepper, t, end, motion, tau, dt):
    """Take one step with hooks; errors name the time at which it failed."""
    q, qd = motion.q, motion.qd
    h = end - t if motion.hooks else step_length(t, end, dt)  # hooks look for times within it
    named = (h, stepper.method.name)
    with NamingTime(stepper.model, t, qd, *named), np.errstate(all="ignore"):
        if motion.hooks:
            step = stepper.take(t, h, q, qd, tau)
            step.t1 = end
        else:  # nothing needs the motion inside the step
            q1, qd1, work = stepper.step(t, h, q, qd, tau)
            step = Step(t, q, qd, tau, end, q1, qd1, work, stepper)
    check_finite_state(stepper.model, end, step.q1, step.qd1, *named)
    return after_hooks(step, motion.hooks)


def after_hooks(step, hooks):
    """Step after all hooks, each of which may replace it."""
    for hook in hooks:
        step = hook(step) or step
    return step


def _run_recorded(stepper, clock, motion, store_every, progress, record):
    """Run steps that compiled code takes and stores, many per call."""
    stored = np.arange(0, clock.count + store_every, store_every)
    stored[-1] = clock.count
    control, held = motion.control_kernel(stepper), motion.tau(clock.start)
    origin = clock.origin, -clock.first
    if hasattr(control, "expect"):
        control.expect(clock.times(stored))
    stepper.begin(motion.q, motion.qd, store_every, clock.count, origin, control)
    together = motion.is_constant or control is not None
    progress(clock.start)
    most = -(-clock.count // _LOOKS) if motion.watched else clock.count
    first = stepper.pace or max(_FIRST, _LARGE // max(stepper.model.nv, 1))
    k, many, since = 0, min(first, most), monotonic()
    shorter = int(clock.count > 0 and clock.last != clock.dt)  # steps that are
    while k < clock.count:
        t = clock.time(k)
        held = held if together or not k else motion.tau(t)
        if not k or (k % store_every == 0 and not together):
            record.hold(held)
        end = min(k + (many if together else 1), max(clock.count - shorter, k + 1))
        h = clock.dt if end < clock.count else clock.last
        stepper.record(t, h, held, end)
        if not together:  # which the controller is given
            motion.q, motion.qd = stepper.last_state()
        now, full = monotonic(), end - k >= many
        k = record.steps = end
        progress(clock.time(k))
        many = min(_pace(many, now - since), most)
        since, stepper.pace = now, many if full else stepper.pace
    if not together:
        motion.q, motion.qd = stepper.last_state()
        record.hold(motion.tau(clock.end))
    record.fill(stepper, clock.times(stored), spread=together)
    if control is not None:
        record.tau = np.asarray(control.call(record.t, record.q, record.qd))
    left, summary = clock.count - record.steps, (record.recorded or {}).get("summary")
    if summary is None:
        record.count(clock.dt, record.qd, left)
    else:
        record.count_fastest(clock.dt, float(summary[:, FASTEST].max()), left)


def _fill_up_to_error(stepper, clock, store_every, record):
    """Take over the states stored before an error."""
    if not record.steps or record.t:
        return
    stored = np.arange(0, record.steps + 1, store_every)
    record.fill(stepper, clock.times(stored), spread=False, part=True)
    for held in (record.tau, record.controls):
        if len(held):  # what is held from the last instant on may be what failed
            held[:] = [*held, *[held[-1]] * len(stored)][: len(stored)]


def _pace(many, spent):
    """Number of steps for the next call, so that it takes about ``_BREATH`` seconds."""
    if spent > _BREATH:
        return 1 + many // 2
    if spent < _BREATH / 8:
        return int(many * min(_BREATH / (4 * spent), 64)) if spent > 0 else 64 * many
    return many


def _run_chunks(stepper, clock, motion, store_every, progress, record):
    """Run steps in chunks between stored times, each chunk in one compiled call."""
    held = motion.tau(clock.start)
    if store_every == 1:
        _run_each(stepper, clock, motion, held, progress, record)
        return
    k = 0
    while k < clock.count:
        t = clock.time(k)
        if k % store_every == 0:
            record.keep(t, motion.q, motion.qd, held, motion.work)
            progress(t)
        many = min(store_every - k % store_every, _CHUNK, clock.count - k)
        if many > 1 and k + many == clock.count:
            many -= 1  # the last step may be shorter
        h = step_length(t, clock.time(k + 1), clock.dt) if many == 1 else clock.dt
        named = (h, stepper.method.name)
        with NamingTime(stepper.model, t, motion.qd, *named), np.errstate(all="ignore"):
            q, qd, work = stepper.steps(t, h, motion.q, motion.qd, held, many)
        k += many
        check_finite_state(stepper.model, clock.time(k), q, qd, *named)
        motion.q, motion.qd, motion.work = q, qd, motion.work + work
        record.count(h, qd, many)
    record.keep(clock.time(k), motion.q, motion.qd, held, motion.work)
    progress(clock.time(k))


def _run_each(stepper, clock, motion, held, progress, record):
    """Take the steps of a motion in blocks, storing the state after every step."""
    record.keep(clock.start, motion.q, motion.qd, held, motion.work)
    for first in range(0, clock.count, _BLOCK):
        last = min(first + _BLOCK, clock.count)
        instants = [clock.time(k) for k in range(first, last + 1)]
        progress(instants[0])
        with np.errstate(all="ignore"):
            steps = stepper.walk(instants, motion.q, motion.qd, held, clock.dt)
        for t, (q, qd, work) in zip(instants[1:], steps, strict=True):
            motion.q, motion.qd, motion.work = q, qd, motion.work + work
            record.keep(t, q, qd, held, motion.work)
        qd = np.array([step[1] for step in steps])
        if not np.all(np.isfinite(qd)):
            for t, (q, qd, _) in zip(instants[1:], steps, strict=True):
                check_finite_state(stepper.model, t, q, qd, clock.dt, stepper.method.name)
        record.count(np.max(np.diff(instants)), qd, last - first)
    progress(clock.end)
