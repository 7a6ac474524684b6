"""``simulate``: from a model and a state to a motion."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from kinetree.arrays.batch import common_shape
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen import tiers
from kinetree.codegen.progress import clock_reporter
from kinetree.contact.attached import warn_of_ground
from kinetree.contact.soft.history import SoftHistory, SoftTerms, soft_contacts
from kinetree.errors import ShapeError
from kinetree.integration.events import Event
from kinetree.integration.integrator import Integrator
from kinetree.integration.manifold import settle, turns_over
from kinetree.integration.prescription import check_rates, prescribed_start, require_untouched
from kinetree.integration.refusals import OWN_NUMBERS
from kinetree.loops.stepping.choice import closed_start
from kinetree.loops.stepping.singular_passes import passes_of
from kinetree.loops.stepping.stepper import ProjectedStepper
from kinetree.model import Model
from kinetree.model.arrays import (
    as_configuration,
    as_joint_vector,
    as_model,
    as_seconds,
    whole_number,
)
from kinetree.model.parts import Posture
from kinetree.simulation.adaptive_runs import Tolerance, run_adaptive_steps
from kinetree.simulation.controllers import ServoControls, as_controller, at_instants, read_by_part
from kinetree.simulation.forces.actuators import TorqueSpeed, servos_of
from kinetree.simulation.forces.friction import Friction
from kinetree.simulation.forces.limits import RigidLimits, StiffLimits, warn_outside
from kinetree.simulation.later import Later
from kinetree.simulation.results.observables import driven_motion, loop_errors, observe
from kinetree.simulation.results.report import check_result
from kinetree.simulation.results.state import State
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.runs import Clock, RunningMotion, run_equal_steps
from kinetree.simulation.setup import Setup, checked_setup, with_stable_method
from kinetree.spelling import explains


@explains
def simulate(
    model: Model | Any,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    *,
    duration: float,
    dt: float | None = None,
    controller: Callable | None = None,
    controls: Callable | ArrayLike | str | Posture | None = None,
    integrator: str | Integrator = "auto",
    forces: Callable | Sequence[Callable] = (),
    friction: str | Friction | None = "auto",
    limits: str | StiffLimits | RigidLimits | None = "auto",
    motors: Mapping[str, TorqueSpeed] | None = None,
    events: Event | Sequence[Event] = (),
    hooks: Callable | Sequence[Callable] = (),
    store_every: int = 1,
    t0: float | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    max_step: float = np.inf,
    constraints: Any = "projection",
    prescribed: Mapping[str, Callable] | None = None,
    contact: Any = None,
    progress: Callable[[float], Any] | bool | None = None,
) -> Trajectory:
    """Simulate the motion of a mechanism.

        trajectory = kt.simulate(m, q0, qd0, duration=5.0)

    Steps have the length ``dt``; or, where ``rtol`` or ``atol`` is given, any length that keeps
    their estimated error below ``atol + rtol * size``. See docs/simulation.md for what compose.

    Args:
        model: the mechanism. Springs, dampers and friction of its joints act. Loops and couplings
            hold, see ``constraints``. Or a ``kinetree.World``, which is not changed: then state,
            step, contact, friction and limits are those of the world where none are given.
        q0: joint positions at the start [m, rad], (..., nq); or a ``State`` such as
            ``trajectory.state``, with which the motion goes on as if it had not ended.
        qd0: joint velocities at the start [m/s, rad/s], (..., nv); at rest by default.
        duration: how long [s].
        dt: length of a step, and interval of calls of a controller [s]; 1 ms by default.
        controller: function ``(t, q, qd)`` that returns joint forces [N, N·m], (..., nv); called at
            the start of every interval, held until its end. Also ``kt.Sampled`` and
            ``kt.Recorded``. Of a world also by part, ``{"dog": tau}``.
        controls: in place of a controller: a function ``(t, q, qd)`` to the controls of the model's
            actuators, (..., n); n numbers; or a ``Posture`` or its name, whose controls and
            activations are taken. Without them actuators exert nothing. Of a world also by part.
        integrator: one of ``kinetree.simulation.INTEGRATORS`` or its name. By default ``"rk4"``;
            ``"dopri5"`` for steps that adapt, ``"rk6"`` for mechanisms with loops, and
            ``"rosenbrock_w"`` for forces that are too stiff for these, as the report then says.
        forces: a function ``(model, t, q, qd)`` that returns joint forces and acts all the time, or
            several, or ``kt.ExternalForce``. Under ``@kinetree.kernel`` it becomes part of compiled
            code; otherwise it is called in Python at every stage of a step.
        friction: of joints that have some: ``"smooth"``; ``"exact"``, with joints that come to rest
            exactly; a ``kt.Friction``; or None. ``"auto"``: exact with rigid contact, else smooth.
        limits: ``"stiff"``, springs that push back; ``"rigid"``, stops with impacts; an instance of
            ``kt.StiffLimits`` or ``kt.RigidLimits``; or None. ``"auto"``: as for ``friction``.
        motors: ``kt.TorqueSpeed`` by name of the actuator.
        events: ``kt.Event`` s to locate.
        hooks: functions of a ``Step`` called after it; they may shorten it or change its end.
        store_every: store every n-th interval ``dt``, and the last.
        t0: time at the start [s]; by default 0, and that of a world or a ``State``.
        rtol: tolerated error of a step relative to the state; 1e-6 if only ``atol`` is given.
        atol: tolerated error in addition [m, rad, m/s, rad/s]; 1e-9 if only ``rtol`` is given.
        max_step: longest step that adapts [s].
        constraints: how loops and couplings are kept: ``"projection"``, every step ends on them to
            rounding error; ``"projection+energy"``, ``"ascher_chin"``, ``"baumgarte"``,
            ``"sequential_regularization"``, ``"none"``; or an instance such as ``kt.Projection``.
        prescribed: motions by the names of prescribed joints, whatever force they take: functions
            of time [s] that return ``(q, qd, qdd)`` of the joint, or ``kt.RecordedMotion``. The
            start must agree with them. The ``tau`` of these joints is what the motion takes.
        contact: contact model of ``kinetree.contact``, such as ``TimeStepping``, whose ``scene``
            defines what can touch; without one, bodies pass through each other.
        progress: True for a bar on standard error; or a function of the time reached [s].

    Returns:
        A ``Trajectory`` with arrays ``t, q, qd, tau, energy, work, loop_error``, of actuators also
        ``controls`` and ``activation``; ``events``, ``contact``; and ``report``, with checks.

    Warns:
        SimulationWarning: the report has a reason not to trust the result; bodies start inside each
            other or fall through a ground; or forces are too stiff for the integrator.
    """
    return _Call(**locals()).trajectory()


# --- inputs --------------------------------------------------------------------------------------


@dataclass
class _Call:
    """Arguments of ``simulate``, completed by a world."""

    model: Any
    q0: Any
    qd0: Any
    duration: Any
    dt: Any
    controller: Any
    controls: Any
    integrator: Any
    forces: Any
    friction: Any
    limits: Any
    motors: Any
    events: Any
    hooks: Any
    store_every: Any
    t0: Any
    rtol: Any
    atol: Any
    max_step: Any
    constraints: Any
    prescribed: Any
    contact: Any
    progress: Any
    starts_there: bool = False
    """Whether the start is the state of a world."""

    def trajectory(self) -> Trajectory:
        """``Trajectory`` of the simulation that the call describes."""
        self.of_world()
        start, self.events = self.start(), _as_events(self.events)
        clock = _clock(start, self.duration, self.dt, self.store_every)
        with tiers.task(clock.count * prod(start.q.shape[:-1])) as task:
            setup = self.setup(start, clock)
            q, qd = _checked_start(setup, start, clock, at_rest=self.qd0 is None)
            hooks = _as_hooks(self.hooks)
            if setup.prescription is not None and self.events:  # which might move these joints
                hooks = (*hooks, require_untouched(setup.prescription, setup.model))
            setup = with_stable_method(setup, self.integrator, q, clock.dt)
            stepper, watchers = setup.stepper(q, qd, self.events, clock.dt)
            run = _Run(setup, stepper, clock, self.store_every, self.is_adaptive)
            control = self.controller_of(setup, start, qd.shape)
            run.go_on_from(start, control)
            motion = run.motion(q, qd, control, watchers, hooks)
            return run.whole(motion, self.progress, self.tolerance, start, lambda: task.tier)

    def setup(self, start, clock) -> Setup:
        """``Setup`` of the simulation, without conflicts."""
        return checked_setup(
            "simulate",
            self.model,
            integrator=self.integrator,
            constraints=self.constraints,
            contact=self.contact,
            forces=self.forces,
            friction=self.friction,
            limits=self.limits,
            motors=self.motors,
            prescribed=self.prescribed,
            t0=clock.start,
            adaptive=self.is_adaptive,
            batch=start.q.shape[:-1],
            servos=None if self.controls is None else servos_of(self.model),
        )

    @property
    def is_adaptive(self) -> bool:
        """Whether step lengths adapt to an error tolerance."""
        return self.rtol is not None or self.atol is not None

    @property
    def tolerance(self) -> Tolerance | None:
        """Error tolerance of adaptive steps; None for equal steps."""
        return _tolerance(self.rtol, self.atol, self.max_step) if self.is_adaptive else None

    def of_world(self) -> None:
        """Replace a world by its model, filling open options from the world."""
        of_world = getattr(self.model, "simulation_start", None)
        if of_world is not None:
            own: Any = of_world()
            if own.give is not None:
                raise OWN_NUMBERS.of(
                    "simulate", f"worlds {own.model.name!r} with their own numbers"
                )
            self.starts_there = self.q0 is None
            self.model, self.q0 = own.model, own.state if self.q0 is None else self.q0
            self.dt = own.timestep if self.dt is None else self.dt
            self.contact = self.contact or own.contact
            vars(self).update(own.laws(self.friction, self.limits, self.motors))
            self.controller = read_by_part(self.controller, own.read[0], self.model)
            self.controls = read_by_part(self.controls, own.read[1], self.model)
        if self.q0 is None:
            raise TypeError(
                "simulate needs the positions at the start, q0, such as model.neutral()"
            )
        self.dt = 1e-3 if self.dt is None else self.dt

    def start(self) -> State:
        """Initial ``State``, with rotation variables away from their wrap-around."""
        if self.starts_there and self.qd0 is None:  # which the world has checked
            start = self.q0 if self.t0 is None else self.q0._replace(time=self.t0)
        else:
            start = _start(as_model(self.model), self.q0, self.qd0, self.t0)
        if not turns_over(self.model):
            return start
        q, qd = settle(self.model, start.q, start.qd)
        return start._replace(q=q, qd=qd)

    def controller_of(self, setup, start, shape):
        """Function of the inputs that steps hold: joint forces, or controls."""
        given = self.controls, setup.servos, start.activation
        return as_controller(self.controller, setup.model, shape, *given)


def _checked_start(setup, start, clock, *, at_rest):
    """Initial positions and velocities, on prescribed motions and with loops closed.

    Args:
        setup: of the call.
        start: as given.
        clock: times.
        at_rest: whether no velocities were given.
    """
    model, q, qd = setup.model, start.q, start.qd
    prescription = setup.prescription
    if prescription is not None:
        q, qd = prescribed_start(prescription, model, clock.start, q, qd, at_rest=at_rest)
        check_rates(prescription, model, clock.start, clock.end, clock.dt)
    if setup.options["limits"] is not None and setup.effects.limits is None:
        warn_outside(model, q)  # which rigid stops reject
    warn_of_ground(model, setup.contact, setup.forces)
    return closed_start(model.at(clock.start), q, qd)


def _start(model, q0, qd0, t0) -> State:
    """``State`` to start from, positions and velocities with equal batch axes."""
    time, activation, memory = 0.0 if t0 is None else t0, np.zeros(0), {}
    if isinstance(q0, State):
        given, qd0 = q0, q0.qd if qd0 is None else qd0
        time = given.time if t0 is None else t0
        q0, activation, memory = given.q, given.activation, given.memory
    q = as_configuration(model, q0, "q0").astype(float)
    qd = np.zeros(model.nv) if qd0 is None else as_joint_vector(model, qd0, "qd0").astype(float)
    if q.shape[:-1] != qd.shape[:-1]:
        batch = common_shape(("q0", "qd0"), (q.shape[:-1], qd.shape[:-1]))
        q, qd = np.broadcast_to(q, (*batch, model.nq)), np.broadcast_to(qd, (*batch, model.nv))
    return State(time, np.array(q), np.array(qd), activation, memory)


_BELOW_ZERO = -float(np.finfo(float).tiny)


def _clock(start, duration, dt, store_every):
    """``Clock`` of a simulation; an error for invalid times."""
    t0, dt = as_seconds(start.time, "t0"), as_seconds(dt, "dt", least=0.0)
    duration = as_seconds(duration, "duration", least=_BELOW_ZERO)
    whole_number(store_every, "store_every", least=1)
    return Clock.of(t0, duration, dt, start.memory)


def _tolerance(rtol, atol, max_step):
    """``Tolerance`` of adaptive steps; ShapeError for invalid values."""
    rtol, atol = 1e-6 if rtol is None else rtol, 1e-9 if atol is None else atol
    if not (rtol >= 0 and atol >= 0 and rtol + atol > 0 and max_step > 0):
        raise ShapeError(
            f"rtol and atol must not be negative, nor both zero, and max_step positive; got "
            f"rtol={rtol!r}, atol={atol!r}, max_step={max_step!r}"
        )
    return Tolerance(float(rtol), float(atol), float(max_step))


def _as_hooks(hooks):
    """Hooks as a tuple of functions; ShapeError for anything else."""
    hooks = (hooks,) if callable(hooks) else hooks
    if not isinstance(hooks, (tuple, list)) or not all(map(callable, hooks)):
        raise ShapeError(f"hooks must be functions of a step, got {hooks!r}")
    return tuple(hooks)


def _as_events(events):
    """Events as a tuple, from one or several."""
    return tuple(events) if isinstance(events, Iterable) else (events,)


# --- the run -------------------------------------------------------------------------------------


@dataclass
class _Run:
    """A simulation from its first step to its trajectory."""

    setup: Setup
    stepper: Any
    clock: Clock
    store_every: int
    adaptive: bool

    def go_on_from(self, start, control):
        """Restore the memory that steps before the start have left."""
        self.stepper.restore(start.memory)
        if isinstance(control, ServoControls):
            control.restore(start.memory)

    def motion(self, q, qd, control, watchers, hooks) -> RunningMotion:
        """``RunningMotion`` with the initial state, controller and hooks."""
        model = self.setup.model
        called = (*at_instants(control), *watchers, *hooks)
        turning = model if turns_over(model) else None
        return RunningMotion(q, qd, np.zeros(qd.shape[:-1]), control, called, turning)

    def whole(self, motion, progress, tolerance, start, tier) -> Trajectory:
        """``Trajectory`` of the run; errors get the part simulated so far."""
        try:
            record = self.take_steps(motion, progress, tolerance)
        except BaseException as error:
            self.attach(error, motion, start, tier)
            raise
        return self.trajectory(record, start, motion.controller, tier)

    def take_steps(self, motion, progress, tolerance):
        """``MotionRecord`` of all steps, adaptive if there is a tolerance."""
        clock, name = self.clock, f"simulating {self.setup.model.name}"
        motion.watched = bool(progress)
        given = self.stepper, clock, motion, self.store_every
        if not (progress or self.adaptive):
            return run_equal_steps(*given, _nobody)
        with clock_reporter(progress, clock.start, clock.end, name) as reached:
            if self.adaptive:
                return run_adaptive_steps(*given, reached, tolerance)
            return run_equal_steps(*given, reached)

    def trajectory(self, record, start, control, tier) -> Trajectory:
        """``Trajectory`` with its report; returns a borrowed engine to its pool."""
        setup, stepper, tier = self.setup, self.stepper, tier()
        model, arrays = setup.model, record.arrays()
        arrays |= driven_motion(stepper, setup.servos, arrays)
        record.events = self._with_passes(record.events, arrays)
        t, q, qd = (arrays[name] for name in ("t", "q", "qd"))
        seen = observe(model, q, qd, record.recorded)
        open_by, shape = loop_errors(model, t, q, qd) if model.is_constrained else None, q.shape
        closed: Any = Later(lambda: np.zeros(shape[:-1])) if open_by is None else open_by[0]
        found = Trajectory(
            model,
            energy=seen.energy,
            loop_error=closed,
            events=tuple(record.events),
            report=check_result(
                stepper,
                record,
                arrays,
                seen,
                open_by,
                adaptive=self.adaptive,
                reason=setup.reason,
                tier=tier,
            ),
            contact=self._contact(record, arrays),
            acted=stepper,
            end=_end(start, self.clock, stepper, control, arrays),
            **arrays,
        )
        stepper.release()
        return found

    def attach(self, error, motion, start, tier):
        """Attach the trajectory so far to an error or interruption, if any was stored."""
        record = motion.record
        if record is None or len(record.t) < 2:
            return
        end = replace(self.clock, end=float(record.t[-1]))
        with suppress(Exception), warnings.catch_warnings():  # the first error is what to read
            warnings.simplefilter("ignore")
            run = replace(self, clock=end)
            error.trajectory = run.trajectory(record, start, motion.controller, tier)

    def _contact(self, record, arrays):
        """Contact history at the stored times; None without contact."""
        softs = soft_contacts(self.setup.forces)
        if record.contact is not None or not softs:
            return record.contact
        model, stepper, (t, q, qd) = (
            self.setup.model,
            self.stepper,
            map(arrays.get, ("t", "q", "qd")),
        )

        def find():
            if not hasattr(stepper, "states_at"):
                return SoftTerms(softs).along(model, q, qd)
            return SoftTerms(softs, stepper.stateful).along(model, q, qd, stepper.states_at(t))

        return SoftHistory(softs, find)

    def _with_passes(self, events, arrays):
        """Events merged with passes near singular loop configurations, in order."""
        stepper = self.stepper
        chosen = getattr(stepper.field, "chosen", None)
        if isinstance(stepper, ProjectedStepper) and not self.adaptive:  # all steps that count
            passes = stepper.passes.found
        elif chosen is None or not chosen.rows or len(arrays["t"]) < 3:
            return events
        else:
            t, q, qd = (arrays[name] for name in ("t", "q", "qd"))
            passes = passes_of(stepper.model, chosen, t, q, qd, self.store_every)
        return sorted([*events, *passes], key=lambda event: event.t) if passes else events


def _nobody(t):
    """Progress callback that does nothing."""


def _end(start, clock, stepper, control, arrays) -> Later:
    """Final ``State`` with solver memory as a ``Later``."""
    saved, held = stepper.snapshot(), getattr(control, "held", None)
    held = None if held is None else np.array(held)
    activation = arrays["activation"][-1] if "activation" in arrays else start.activation
    activation, t = np.array(activation), float(arrays["t"][-1])
    q, qd = arrays["q"][-1].copy(), arrays["qd"][-1].copy()

    def put_together():
        memory = saved() | clock.copy_memory()
        if held is not None:
            memory["held"] = held
        return State(t, q, qd, activation, memory)

    return Later(put_together)
