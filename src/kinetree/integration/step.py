"""One step of a simulation, as compiled code where everything in it can be traced."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.runtime.kernel import Kernel
from kinetree.errors import SimulationError
from kinetree.expr.repeat import repeat
from kinetree.functional.kernel import kernel, one_copy, select
from kinetree.integration.breakdown import NamingTime, check_finite_state
from kinetree.integration.integrator import Stages, Stepped
from kinetree.integration.interpolation import Interpolant
from kinetree.integration.recording import KernelRecorder

DEFECT = 1e-9  # last correction of Newton's method, relative to the speed, that will do


@dataclass
class Step:
    """A step that was taken. Hooks may shorten it (``cut``), or change where it ends.

    Attributes:
        t0: time at its start; ``q0`` and ``qd0`` are the state there.
        tau: what is held during the step: joint forces of the controller, or ``Field.inputs``.
        t1: time at its end; ``q1`` and ``qd1`` are the state there.
        work: of all joint forces [J].
        stepper: that took it.
        events: records of events in it.
        stop: whether the simulation ends with it.
        error: estimated errors of local coordinates and velocities, or None.
        stages: rates inside the step, or None.
    """

    t0: float
    q0: Any
    qd0: Any
    tau: Any
    t1: float
    q1: Any
    qd1: Any
    work: Any
    stepper: Any = field(default=None, repr=False)
    events: list = field(default_factory=list)
    stop: bool = False
    error: Any = field(default=None, repr=False)
    stages: Any = field(default=None, repr=False)

    @cached_property
    def interpolant(self) -> Interpolant:
        """``Interpolant`` of the step: a function of time to ``q, qd, work``."""
        return Interpolant(self)

    def at(self, t: float) -> tuple[Array, Array]:
        """State ``q, qd`` at a time inside the step, by interpolation."""
        return self.interpolant(t)[:2]

    def cut(self, t: float) -> "Step":
        """Step from the same start that ends at time ``t``, recomputed."""
        after = self.stepper.take(self.t0, t - self.t0, self.q0, self.qd0, self.tau)
        return replace(after, t1=t, events=self.events, stop=self.stop)


# --- kernels -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scheme:
    """Step of an integrator in a field, which kernels take for an option; the results are arrays.

    Attributes:
        method: the integrator.
        field: all forces.
        full: whether results have the error estimate and the stages, too.
    """

    method: Any
    field: Any
    full: bool = False

    def advance(self, model, t, h, q, qd, inputs) -> Stepped:
        """State after a step of ``h`` seconds by the scheme's method and field."""
        return self.method.advance(OneCopy(self.field), model, t, h, q, qd, inputs)

    def __call__(self, model, t, h, q, qd, inputs) -> tuple:
        """State, work, and what a method has besides, after a step."""
        after = self.advance(model, t, h, q, qd, inputs)
        results = [after.q, after.qd, after.work]
        if self.method.solves:
            results.append(after.defect)
        if self.method.closes:
            results.append(after.checks)
        if self.full and after.error is not None:
            results += after.error
        if self.full and after.stages is not None:
            results += after.stages
        return tuple(results)


@kernel
def _step(model, t, h, q, qd, inputs, *, scheme):
    """Kernel of one integration step of a ``Scheme``: method and field."""
    return scheme(model, t, h, q, qd, inputs)


@kernel
def _steps(model, t, h, q, qd, inputs, count, *, scheme):
    """Kernel of ``count`` steps of a scheme with equal inputs."""
    method = scheme.method

    def body(state):
        t, q, qd, work, worst = state
        after = scheme.advance(model, t, h, q, qd, inputs)
        if method.solves:
            worst = select(worst < after.defect, after.defect, worst)
        return t + h, after.q, after.qd, work + after.work, worst

    _, *results, worst = repeat(body, (t, q, qd, 0 * t, 0 * t), count)
    return (*results, worst) if method.solves else tuple(results)


@one_copy
@kernel
def _accelerations(model, t, q, qd, inputs, *, field):
    """Kernel of the accelerations and power of a field."""
    return field(model, t, q, qd, inputs)


class OneCopy:
    """A field whose accelerations compiled steps call, where they are long: one copy for all.

    Fields that hold traced numbers are copied.
    """

    def __init__(self, field):
        self._field = field
        try:
            hash(field)
        except TypeError:
            self.is_called = False
        else:
            self.is_called = True

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_field"), name)

    def __call__(self, model, t, q, qd, tau):
        """Joint accelerations (..., nv), and the power of all joint forces [W], (...)."""
        if not self.is_called or np.asarray(q).dtype != object:
            return self._field(model, t, q, qd, tau)
        return _accelerations(model, t, q, qd, tau, field=self._field)


def step_length(t, end, dt) -> float:
    """Step length between two instants [s]: ``dt`` if they differ by rounding only."""
    rounding = 4 * np.spacing(max(abs(t), abs(end)))
    return dt if abs(end - t - dt) <= rounding else end - t


class Stepper:
    """Steps of one integrator on one model under one field.

    Args:
        model: the mechanism.
        method: the integrator.
        field: gives its accelerations.
        compiled: whether a step is one kernel; otherwise its stages run in Python, on arrays.

    Attributes:
        constraints: how loops and couplings are kept, if there are any.
        notes: records of contact, if there are any.
        pace: steps that take a short time, as far as is known.
    """

    constraints: str | None = None
    notes: Any = None
    pace: int = 0

    def __init__(self, model, method, field, *, compiled):
        self.model, self.method, self.field, self.compiled = model, method, field, compiled

    @property
    def walks(self) -> bool:
        """Whether several steps may be taken before the first of them is stored."""
        return self.compiled

    def step(self, t, h, q, qd, tau):
        """State and work after a step of ``h`` seconds."""
        return self.end_of_step(t, h, q, qd, tau)[:3]

    def end_of_step(self, t, h, q, qd, tau, *, full=False) -> Stepped:
        """State and work after a step of ``h`` seconds; ``full`` adds error and stages."""
        if not self.compiled:
            after = self.method.advance(self.field, self.model, t, h, q, qd, tau)
            if self.method.solves:
                self._check_defect(t, h, after.defect)
            return after
        kernel = self._full if full else self._one
        return self._unpack(t, h, kernel.call(_number(t), _number(h), q, qd, tau))

    def walk(self, instants, q, qd, tau, dt) -> list:
        """State and work after each of several steps with constant ``tau``.

        Args:
            instants: times at which steps begin, and at which the last one ends [s].
            q: positions at the first.
            qd: velocities at the first.
            tau: joint forces.
            dt: length of a step [s], but for rounding errors of the times.
        """
        states = []
        for t, end in pairwise(instants):
            h = step_length(t, end, dt)
            with NamingTime(self.model, t, qd, h, self.method.name):
                q, qd, work = self.step(t, h, q, qd, tau)
            states.append((q, qd, work))
        return states

    # --- steps that compiled code takes and stores ------------------------------------------

    def records(self, q) -> bool:
        """Whether compiled code can take and store the steps of a motion from ``q``."""
        plain = type(self) is Stepper and self.compiled and not self.method.closes
        return plain and q.ndim == 1 and self.model.nv > 0 and isinstance(self._one, Kernel)

    def can_call(self, kernel) -> bool:
        """Whether recorded steps can call a kernel ``(t, q, qd)`` as controller."""
        return True

    def begin(self, q, qd, every, steps, origin, control=None):
        """Start recording steps in compiled code: every ``every``-th state, and the last.

        Args:
            q: positions, (nq,).
            qd: velocities, (nv,).
            every: steps between stored states.
            steps: how many there will be.
            origin: a time [s], and the number of the step that begins then, from the first one on.
            control: kernel ``(t, q, qd)`` of what steps hold, or None.
        """
        self._recorder = KernelRecorder(self._one, self.model, self.field.inputs(self.model))
        if control is not None:
            self._recorder.control(control)
        self._recorder.begin(q, qd, every, 1 + -(-steps // every), origin)

    def record(self, t, h, held, last):
        """Take recorded steps of ``h`` seconds until ``last`` steps are done."""
        w, name = self._recorder.walk, self.method.name
        while not self._recorder.take(held, h, t, last):  # with more care, or the error says why
            self._recorder.answer()
            now = float(w.time[0])
            if not np.all(np.isfinite(w.held)):
                raise SimulationError(f"the controller returned {w.held} at t = {now:.6g} s")
            with NamingTime(self.model, now, w.v, h, name), np.errstate(all="ignore"):
                after = self.step(now, h, w.q.copy(), w.v.copy(), w.held.copy())
            check_finite_state(self.model, now + h, after[0], after[1], h, name)
            self._recorder.add(*after)
        if self.method.solves:
            self._check_defect(t, h, w.worst)

    def last_state(self) -> tuple[Array, Array]:
        """Positions and velocities after the last recorded step: copies."""
        return self._recorder.walk.q.copy(), self._recorder.walk.v.copy()

    def stored_arrays(self, times: int | None = None) -> dict[str, Any]:
        """Arrays stored by recorded steps, by name; the first ``times`` rows or all."""
        return {name: x[:times] for name, x in self._recorder.finish().items()}

    # --- what steps leave for the next -------------------------------------------------------

    def copy_memory(self) -> dict[str, Array]:
        """Copy of what steps pass on beside the state, such as contact forces, by name."""
        return {}

    def snapshot(self) -> Callable[[], dict[str, Array]]:
        """Function that returns the present ``copy_memory``, callable after later steps."""
        memory = self.copy_memory()
        return lambda: memory

    def restore(self, memory: dict[str, Array]) -> None:
        """Set the memory to one of ``copy_memory``; ignored if of other steps."""

    def release(self) -> None:
        """Return reusable resources for the next simulation; no step may follow."""

    def steps(self, t, h, q, qd, tau, count):
        """State and work after ``count`` steps with constant ``tau``, compiled."""
        results = self._many.call(_number(t), _number(h), q, qd, tau, _number(count))
        if self.method.solves:
            self._check_defect(t, h, results[3])
        return results[:3]

    def take(self, t, h, q, qd, tau) -> Step:
        """``Step`` of ``h`` seconds with error estimate and interpolant."""
        after = self.end_of_step(t, h, q, qd, tau, full=True)
        return Step(
            t,
            q,
            qd,
            tau,
            t + h,
            after.q,
            after.qd,
            after.work,
            self,
            error=after.error,
            stages=after.stages,
        )

    def accelerations(self, t, q, qd, tau):
        """Joint accelerations, and the power of all joint forces, at one instant."""
        if self.compiled:
            return self._rates.call(_number(t), q, qd, tau)
        return self.field(self.model, t, q, qd, tau)

    def _unpack(self, t, h, results):
        """``Stepped`` from compiled results; SimulationError if Newton's method failed."""
        q, qd, work, *rest = results
        if self.method.solves:
            self._check_defect(t, h, rest.pop(0))
        checks = rest.pop(0) if self.method.closes else None
        error = (rest.pop(0), rest.pop(0)) if rest and self.method.error_order else None
        return Stepped(q, qd, work, error, Stages(*rest) if rest else None, checks=checks)

    def _check_defect(self, t, h, defect):
        """Raise SimulationError if an implicit step's equations were not solved."""
        worst = np.max(defect)
        if not worst <= DEFECT:
            raise SimulationError(
                f"integrator {self.method.name!r} did not find the state at the end of a step of "
                f"{h:.3g} s from t = {t:.6g} s: its last correction was {worst:.2g} of the speed, "
                f"at most {DEFECT:g} will do; take a smaller dt"
            )

    # --- compiled when first needed ----------------------------------------------------------

    @cached_property
    def _one(self):
        """Compiled kernel of one integration step."""
        return self._kernel(_step)

    @cached_property
    def _full(self):
        """Compiled kernel of one step with error estimate and stages."""
        return self._kernel(_step, full=True)

    @cached_property
    def _many(self):
        """Compiled kernel of several integration steps with equal inputs."""
        return self._kernel(_steps, 1.0)

    @cached_property
    def _rates(self):
        """Compiled kernel of joint accelerations and the power of the forces."""
        q, v, held = self._zeros()
        return _accelerations.compiled(self.model, 0.0, q, v, held, field=self.field)

    def _kernel(self, kernel, *more, full=False):
        """Compiled step kernel with this stepper's method and field."""
        arguments = (0.0, 1.0, *self._zeros(), *more)
        scheme = Scheme(self.method, self.field, full)
        return kernel.compiled(self.model, *arguments, scheme=scheme)

    def _zeros(self):
        """Example state and inputs with which kernels are traced."""
        return self.model.neutral(), np.zeros(self.model.nv), self.field.inputs(self.model)


def _number(x):
    """Float array of a number."""
    return np.array(x, dtype=float)
