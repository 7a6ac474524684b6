"""Events located in time: a hook that searches every step.

A step is searched through its interpolant; the instant of an event is then located on the step
itself, taken again with other lengths until it ends there. The next step begins at the event, with
what the event's action made of the state.
"""

import numpy as np

from kinetree.errors import SimulationError
from kinetree.integration.events import EventRecord
from kinetree.integration.interpolation import states_inside
from kinetree.integration.roots import FRACTIONS, FRESH, bracket, may_cross, root
from kinetree.quantities import dynamics

_CUTS = 4  # of a step, each at an event that the one before has brought forward
_ZENO = (1e-6, 3)  # seconds between an event and itself, times in a row: it will never end


def mechanical_energy(model, q, qd):
    """Kinetic plus gravitational potential energy [J]."""
    return dynamics.kinetic_energy(model, q, qd) + dynamics.potential_energy(model, q)


class Watcher:
    """A hook that looks at every step for events.

    Args:
        model: the mechanism.
        groups: what to look for: objects like ``UserEvents``.
        batch: shape of the batch.
        settle: function ``(t, q, qd, tau, index)`` called after the state of a sample has changed,
            which decides what the sample does next; or None.
    """

    def __init__(self, model, groups, batch, settle=None):
        self.model, self.groups, self.settle = model, list(groups), settle
        self.watches: list = [watch for group in groups for watch in group.watches]
        self.stopped = np.zeros(batch, dtype=bool)
        self._fresh: dict = {}  # sample -> numbers of the watches that happened as the step began
        self._last: dict = {}  # sample and watch -> when it happened last, how often in a row

    def __call__(self, step):
        """The step, shortened to the first event in any sample, its end changed by actions."""
        if self.stopped.any():
            step = self._with_stopped(step)
        found, now = self._crossings(step), []
        for _ in range(_CUTS):
            if not found:
                break
            first = min(time for time, _, _ in found)
            now = [f for f in found if f[0] <= first + self.watches[f[2]].tolerance]
            if step.t1 - first <= self.watches[now[0][2]].tolerance:
                break
            step = step.cut(first)
            if self.stopped.any():
                step = self._with_stopped(step)
            # A shorter step is another one where forces depend on its length, as directions of
            # sliding do: have bodies met before its end?
            if any(getattr(watch, "meets", False) for watch in self.watches):
                found = [f for f in self._crossings(step) if self._is_earlier(f, first)]
            else:
                break
        self._fresh = {}
        if not now:
            return step
        _ = step.interpolant  # of the motion up to the event
        step.q1, step.qd1, step.work = (np.array(x) for x in (step.q1, step.qd1, step.work))
        for index in sorted({index for _, index, _ in now}):
            self._happen(step, index, [k for _, i, k in now if i == index])
        step.stop = bool(self.stopped.all())
        return step

    # --- when ------------------------------------------------------------------------------------

    def _crossings(self, step):
        """Time, sample and watch number of the first events in a step."""
        theta = FRESH if self._fresh else FRACTIONS
        q, qd = states_inside(step, theta)
        t = step.t0 + theta * (step.t1 - step.t0)
        tau, stepper = step.tau, step.stepper
        values = np.concatenate([g.values(t, q, qd, tau, stepper) for g in self.groups], axis=-1)
        found, latest = [], np.inf
        for *index, k in np.argwhere(may_cross(values)):
            index, k = tuple(int(i) for i in index), int(k)
            if self.stopped[index]:
                continue
            watch, look = self.watches[k], _Look(step, self.watches[k], index)
            fresh = k in self._fresh.get(index, ())
            there = values[(slice(None), *index, k)]
            inside = bracket(look.interpolate, theta, there, watch.direction, fresh)
            if inside is None or step.t0 + inside[0] * look.h > latest:
                continue
            time = look.locate(*inside)
            latest = min(latest, time + watch.tolerance)
            found.append((time, index, k))
        return found

    def _is_earlier(self, found, first):
        """Whether shapes meet before the first event, by more than its tolerance."""
        watch = self.watches[found[2]]
        return getattr(watch, "meets", False) and found[0] < first - watch.tolerance

    # --- what happens ----------------------------------------------------------------------------

    def _happen(self, step, index, numbers):
        """Apply all events of a sample at the end of the step, in the order of the watches."""
        before = step.q1[index].copy(), step.qd1[index].copy()
        q, qd, tau = *before, step.tau[index]
        for k in numbers:
            watch = self.watches[k]
            q1, qd1 = watch.act(step.t1, q, qd)
            energy = mechanical_energy(self.model, q1, qd1) - mechanical_energy(self.model, q, qd)
            step.events.append(
                EventRecord(float(step.t1), watch.name, q, qd, q1, qd1, float(energy), index)
            )
            step.work[index] += energy
            q, qd = q1, qd1
            if getattr(watch, "ended", False):  # such as sliding that has come to rest
                self._last.pop((index, k), None)
            else:
                self._check_zeno(step.t1, index, k)
            if watch.terminal:
                self.stopped[index] = True
        step.q1[index], step.qd1[index] = q, qd
        if self.settle is not None:
            self.settle(step.t1, q, qd, tau, index)
        self._fresh[index] = set(numbers)

    def _check_zeno(self, t, index, k):
        """Raise SimulationError if an event recurs without end (Zeno behaviour)."""
        apart, times = _ZENO
        last, count = self._last.get((index, k), (-np.inf, 0))
        count = count + 1 if t - last < apart else 0
        self._last[index, k] = (t, count)
        if count >= times and not self.watches[k].terminal:
            sample = f" of sample {index}" if index else ""
            raise SimulationError(
                f"event {self.watches[k].name!r}{sample} happens faster and faster, the last time "
                f"{t - last:.2g} s after the one before, at t = {t:.9g} s, and will not end: "
                f"{self.watches[k].remedy}"
            )

    def _with_stopped(self, step):
        """Step in which samples that have ended stay where they were."""
        step.q1, step.qd1, step.work = (np.array(x) for x in (step.q1, step.qd1, step.work))
        at = self.stopped
        step.q1[at], step.qd1[at], step.work[at] = step.q0[at], step.qd0[at], 0
        step.__dict__["interpolant"] = _Stopped(step, at)
        return step


class _Stopped:
    """The interpolant of a step in which some samples do not move."""

    def __init__(self, step, at):
        self._of, self._at = step.interpolant, at
        self.q, self.qd = step.q0, step.qd0

    def __getattr__(self, name):
        return getattr(self._of, name)

    def __call__(self, t):
        q, qd, work = self._of(t)
        q[self._at], qd[self._at], work[self._at] = self.q[self._at], self.qd[self._at], 0
        return q, qd, work


class _Look:
    """One sample of a step and one watch: values of the function inside the step."""

    def __init__(self, step, watch, index):
        self.step, self.watch, self.index = step, watch, index
        self.h = step.t1 - step.t0
        self.stepper = for_sample(step.stepper, index)
        self.start = (step.q0[index], step.qd0[index], step.tau[index])

    def interpolate(self, theta):
        """Event function values (n,) at fractions of the step, by interpolation."""
        q, qd = states_inside(self.step, theta)
        at = (slice(None), *self.index)
        t = self.step.t0 + theta * self.h
        return self.watch.values(t, q[at], qd[at], self.start[2], self.stepper)

    def value_after(self, theta):
        """Event function value at the end of a step of this fraction of the length."""
        end = self.stepper.take(self.step.t0, theta * self.h, *self.start)
        q, qd = np.asarray(end.q1)[None], np.asarray(end.qd1)[None]
        return self.watch.values([end.t1], q, qd, self.start[2], self.stepper)[0]

    def locate(self, a, g_a, b, g_b):
        """Time [s] at which the event function changes its sign, between two fractions."""
        tolerance = max(self.watch.tolerance, 4 * np.spacing(abs(self.step.t1))) / self.h
        ends = self._narrow(a, g_a, b, g_b, tolerance)
        if ends is None:
            ends = a, self.value_after(a) if a > 0 else g_a, b, self.value_after(b)
        if ends[1] * g_a > 0 and ends[3] * g_a <= 0:
            theta = root(self.value_after, *ends, tolerance)
        else:  # so flat that the interpolant has it on the other side
            theta = root(self._interpolated_at, a, g_a, b, g_b, tolerance)
        return self.step.t0 + max(theta, tolerance) * self.h

    def _interpolated_at(self, theta):
        """Event function value at one fraction of the step, by interpolation."""
        return self.interpolate(np.array([theta]))[0]

    def _narrow(self, a, g_a, b, g_b, tolerance):
        """Two close fractions that bracket the sign change, with their values; None if not found.

        Steps are taken where the interpolant, which costs a tenth of them, is zero, and twice as
        far from there as its slope and its error say.
        """
        x = root(self._interpolated_at, a, g_a, b, g_b, tolerance)
        beside = np.clip([x - 1e-3 * (b - a), x + 1e-3 * (b - a)], a, b)
        slope = float(np.diff(self.interpolate(beside))[0] / np.diff(beside)[0])
        g = self.value_after(x)
        off = 2 * g / slope if slope else np.inf
        y = x - np.copysign(max(abs(off), tolerance / 2), off if g else slope * g_a)
        if not a < y < b:
            return None
        (lo, g_lo), (hi, g_hi) = sorted([(x, g), (y, self.value_after(y))])
        return (lo, g_lo, hi, g_hi) if g_lo * g_a > 0 and g_hi * g_a <= 0 else None


def for_sample(stepper, index):
    """Stepper for one sample of a batch."""
    return stepper.for_sample(index) if index and hasattr(stepper, "for_sample") else stepper
