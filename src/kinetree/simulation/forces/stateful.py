"""Stateful forces: their own states are integrated along with the motion.

A force with ``force_and_rate``, ``start``, ``end_states`` and ``state_size``, such as
``kt.contact.SoftContact``, depends on its own states, whose rates it returns with the joint
forces. An explicit Runge–Kutta method integrates them: at every stage they are where the rates of
the stages before have taken them.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kinetree.errors import SimulationError
from kinetree.functional.kernel import kernel
from kinetree.integration.explicit import weighted_sum
from kinetree.integration.step import Scheme, Stepper
from kinetree.loops.stepping.projected import DOUBTFUL

_FASTEST = 2.5  # rate times step: the smallest stability limit is 2


def stateful_forces(forces) -> list:
    """Forces of a tuple that have internal states."""
    return [f for f in forces if getattr(f, "state_size", 0)]


@dataclass(frozen=True)
class StatefulField:
    """A field without its stateful forces, and these."""

    field: Any
    """All other forces; with prescribed joints and constraints, if there are any."""
    forces: tuple
    """The stateful ones."""

    @classmethod
    def of(cls, field) -> "StatefulField":
        """``StatefulField``: a field split into stateful forces and the rest."""
        forces = tuple(stateful_forces(field.forces))
        return cls(_with_forces(field, tuple(f for f in field.forces if f not in forces)), forces)

    def acting(self, force):
        """Field with ``force`` in place of the stateful forces."""
        return _with_forces(self.field, (*self.field.forces, force))

    def at(self, s):
        """Field at an instant with known internal states ``s``."""
        return self.acting(lambda model, t, q, qd: self(model, t, q, qd, s, 0.0)[0])

    @property
    def size(self) -> int:
        """Total number of internal states of all forces."""
        return sum(f.scene.candidates.size * f.state_size for f in self.forces)

    def start(self, model, q):
        """Initial internal states of all forces, (..., n)."""
        return self._join([f.start(model, q) for f in self.forces], q.shape[:-1])

    def __call__(self, model, t, q, qd, s, elapsed):
        """Joint forces of the stateful ones, and rates of their states."""
        total, rates = 0 * qd, []
        for force, state in zip(self.forces, self._split(s), strict=True):
            joint_force, rate = force.force_and_rate(model, t, q, qd, state, elapsed)
            total = total + joint_force
            rates.append(rate)
        return total, self._join(rates, np.shape(s)[:-1])

    def end_states(self, model, q, before, after, h):
        """Internal states at the end of a step, adjusted to its configuration, (..., n)."""
        parts = zip(self.forces, self._split(before), self._split(after), strict=True)
        ends = [f.end_states(model, q, old, new, h) for f, old, new in parts]
        return self._join(ends, np.shape(before)[:-1])

    def of_each(self, forces, s) -> tuple:
        """Internal states of each of some forces; None for forces without any."""
        parts = dict(zip(map(id, self.forces), self._split(s), strict=True))
        return tuple(parts.get(id(force)) for force in forces)

    def _split(self, s):
        """Internal states of each force, (..., contacts, state_size), from the vector."""
        sizes = [(f.scene.candidates.size, f.state_size) for f in self.forces]
        parts = np.split(s, np.cumsum([n * k for n, k in sizes])[:-1], axis=-1)
        shapes = ((*part.shape[:-1], *size) for part, size in zip(parts, sizes, strict=True))
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    @staticmethod
    def _join(parts, batch):
        """Vector (..., n) of all forces' internal states."""
        return np.concatenate([part.reshape((*batch, -1)) for part in parts], axis=-1)


def _with_forces(field, forces):
    """Copy of a field, also of one with loops, with other applied forces."""
    inner = getattr(field, "field", None)
    if inner is not None:
        return replace(field, field=replace(inner, forces=forces))
    return replace(field, forces=forces)


class StagewiseForce:
    """A force for one step: counts the stages, and moves the states from one to the next.

    Args:
        stateful: ``StatefulField``.
        method: the integrator, an explicit one; prescribed joints and projection may wrap it.
        h: length of the step [s].
        s: states at its start.
    """

    __hash__ = None  # pyright: ignore[reportAssignmentType]  it holds traced numbers: see ``OneCopy``

    def __init__(self, stateful, method, h, s):
        self.stateful, self.h, self.s, self.rates = stateful, h, s, []
        while hasattr(method, "inner"):
            method = method.inner
        table = getattr(method, "tableau", None)
        self.a, self.b, self.c = (((),), (1.0,), (0.0,)) if table is None else _table(table)

    @property
    def field(self):
        """Field whose stateful forces advance their states stage by stage."""
        return self.stateful.acting(self)

    def __call__(self, model, t, q, qd):
        """Joint forces at the next stage."""
        i = len(self.rates)
        s = self.s + self.h * weighted_sum(self.a[i], self.rates) if self.a[i] else self.s
        total, rate = self.stateful(model, t, q, qd, s, self.c[i] * self.h)
        self.rates.append(rate)
        return total

    def after(self, model, q):
        """Internal states at the end of the step, from the rates of all stages."""
        moved = self.s + self.h * weighted_sum(self.b, self.rates)
        return self.stateful.end_states(model, q, self.s, moved, self.h)


def _table(table):
    """Coefficients ``a``, ``b``, ``c`` of a Butcher tableau."""
    return table.a, table.b, table.c


def unroll_stages(method):
    """Copy of an integrator with unrolled stages, as internal states need them."""
    if hasattr(method, "inner"):
        return replace(method, inner=unroll_stages(method.inner))
    return replace(method, looped=False) if getattr(method, "looped", False) else method


@kernel
def _stateful_step(model, t, h, q, qd, inputs, s, *, scheme):
    """Kernel of a step with the internal states of forces at its end."""
    stages = StagewiseForce(scheme.field, scheme.method, h, s)
    results = replace(scheme, field=stages.field)(model, t, h, q, qd, inputs)
    return (*results, stages.after(model, results[0]))


@kernel
def _stateful_accelerations(model, t, q, qd, inputs, s, *, stateful):
    """Kernel of accelerations under forces with internal states ``s``."""
    return stateful.at(s)(model, t, q, qd, inputs)


class StatefulStepper(Stepper):
    """Steps that integrate the states of forces, too.

    What follows a step begins where it ends, or, if an event or a better step length cut it short,
    where it began: the states at both are kept.

    Args:
        model: the mechanism.
        method: the integrator, an explicit one; projected, where there are loops.
        field: all forces, stateful ones among them.
        q: positions at the start, (..., nq).
        compiled: as for ``Stepper``.
    """

    def __init__(self, model, method, field, q, *, compiled):
        super().__init__(model, unroll_stages(method), field, compiled=compiled)
        self.stateful = StatefulField.of(field)
        self.fastest = max(f.rate for f in self.stateful.forces)
        self.constraints = "projection" if method.closes else None
        self._first = self.stateful.start(model, q)
        self._start = np.nan, self._first  # when the step began, and states
        self._ends: list = []  # of steps from there
        self._history: dict = {}  # states at the times at which steps ended
        self._sorted = np.zeros(0)
        self._kernels: dict = {}

    def copy_memory(self):
        """Copy of the forces' internal states after the last step, by name."""
        return {"states": np.array(self._ends[-1][1] if self._ends else self._start[1])}

    def restore(self, memory):
        """Set the initial internal states from ``copy_memory``, if of the same size."""
        if "states" in memory and memory["states"].shape == self._first.shape:
            self._first = np.array(memory["states"])
            self._start = np.nan, self._first

    def state(self, t):
        """Internal states at the start of a step at time ``t``."""
        if t != self._start[0]:
            nearest = min(self._ends or [self._start], key=lambda end: abs(end[0] - t))
            self._start, self._ends = (t, nearest[1]), []
        return self._start[1]

    def for_sample(self, index):
        """Stepper of one sample of a batch."""
        other = copy.copy(self)
        other._start, other._ends = (self._start[0], self._start[1][index]), []
        other._history = {}
        return other

    def end_of_step(self, t, h, q, qd, tau, *, full=False):
        """State and work after a step of ``h`` seconds; internal states are kept."""
        if h * self.fastest > _FASTEST:
            raise SimulationError(
                f"a step of {h:.3g} s is too long for surfaces that recover at {self.fastest:.3g} "
                f"per second: take a dt below {_FASTEST / self.fastest:.3g} s, more damping, or "
                f"less stiffness"
            )
        s = self.state(t)
        if not self.compiled:
            stages = StagewiseForce(self.stateful, self.method, h, s)
            after = self.method.step(stages.field, self.model, t, h, q, qd, tau)
            s = stages.after(self.model, after.q)
        else:
            scheme = Scheme(self.method, self.stateful, full)
            *results, s = self._compile(_stateful_step, scheme=scheme).call(
                *(np.array(x, dtype=float) for x in (t, h)), q, qd, tau, s
            )
            after = self._unpack(t, h, results)
        self._check_loops(t, h, after)
        self._history[float(t + h)] = s
        self._ends.append((t + h, s))
        return after

    def _check_loops(self, t, h, after):
        """Raise SimulationError if a step leaves loops open beyond tolerance."""
        worst = np.max(after.checks[..., 0], initial=0.0) if self.method.closes else 0.0
        if not worst <= DOUBTFUL:
            raise SimulationError(
                f"a step of {h:.3g} s from t = {t:.6g} s leaves the loops of model "
                f"{self.model.name!r} open by {worst:.2g}, and soft contact with a memory does not "
                f"take such steps in parts: take a smaller dt, or a law without a memory"
            )

    def field_at(self, t):
        """Field at the end of a past step, with the internal states of that time."""
        return self.stateful.at(self._state_at(t))

    def _state_at(self, t):
        """Internal states at the end of a past step at time ``t``."""
        if len(self._sorted) != len(self._history):
            self._sorted = np.sort(list(self._history))
        k = np.searchsorted(self._sorted, t - 1e-9 * max(abs(t), 1.0))
        if k == len(self._sorted) or self._sorted[k] > t + 1e-9 * max(abs(t), 1.0):
            return self._first  # at the start
        return self._history[float(self._sorted[k])]

    def states_at(self, times):
        """Internal states at ends of past steps, (T, ..., n)."""
        return np.array([self._state_at(t) for t in times])

    def steps(self, t, h, q, qd, tau, count):
        """State and work after ``count`` steps with constant ``tau``."""
        work: Any = 0.0
        for k in range(count):
            q, qd, more = self.step(t + k * h, h, q, qd, tau)
            work = work + more
        return q, qd, work

    def accelerations(self, t, q, qd, tau):
        """Accelerations and power with the internal states of the nearest known time."""
        s = min([self._start, *self._ends], key=lambda end: abs(end[0] - t))[1]
        if not self.compiled:
            return self.stateful.at(s)(self.model, t, q, qd, tau)
        compiled = self._compile(_stateful_accelerations, stateful=self.stateful)
        return compiled.call(np.array(t, dtype=float), q, qd, tau, s)

    def _compile(self, kernel, *, scheme=None, **options):
        """Compiled kernel with internal states as its last input, made once."""
        key = (kernel.__name__, scheme is not None and scheme.full)
        if key not in self._kernels:
            zeros, first = self._zeros(), (0.0,)
            s = self.stateful.start(self.model, zeros[0])
            if scheme is not None:
                first, options = (0.0, 1.0), {"scheme": scheme}
            self._kernels[key] = kernel.compiled(self.model, *first, *zeros, s, **options)
        return self._kernels[key]
