"""``simulate``: from a model and a state to a motion."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from kinetree.arrays.batch import common_shape
from kinetree.arrays.kinds import ArrayLike
from kinetree.codegen import tiers
from kinetree.codegen.progress import clock_reporter
from kinetree.contact.attached import warn_of_ground
from kinetree.errors import ModelError, ShapeError
from kinetree.integration.events import Event
from kinetree.integration.integrator import Integrator
from kinetree.integration.manifold import settled, turns_over
from kinetree.integration.prescription import check_rates, prescribed_start, require_untouched
from kinetree.loops.stepping.choice import closed_start
from kinetree.loops.stepping.health import passes_of
from kinetree.loops.stepping.stepper import ProjectedStepper
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_joint_vector, as_model, as_seconds
from kinetree.model.parts import Posture
from kinetree.simulation.compatibility import refuse_conflicts
from kinetree.simulation.controllers import ServoControls, as_controller, at_instants, read_by_part
from kinetree.simulation.forces.actuators import TorqueSpeed, servos_of
from kinetree.simulation.forces.friction import Friction
from kinetree.simulation.forces.limits import RigidLimits, StiffLimits, warn_outside
from kinetree.simulation.results.observables import driven_motion, loop_errors, observe
from kinetree.simulation.results.report import check_result
from kinetree.simulation.results.state import State
from kinetree.simulation.results.trajectory import Trajectory
from kinetree.simulation.runs import Clock, Motion, Tolerance, run_adaptive_steps, run_equal_steps
from kinetree.simulation.setup import composed, suited
from kinetree.spelling import explains


@explains
def simulate(
    model: Model | Any, q0: ArrayLike | None = None, qd0: ArrayLike | None = None, *,
    duration: float, dt: float | None = None, controller: Callable | None = None,
    controls: Callable | ArrayLike | str | Posture | None = None,
    integrator: str | Integrator = "auto", forces: Callable | Sequence[Callable] = (),
    friction: str | Friction | None = "auto",
    limits: str | StiffLimits | RigidLimits | None = "auto",
    motors: Mapping[str, TorqueSpeed] | None = None, events: Event | Sequence[Event] = (),
    hooks: Callable | Sequence[Callable] = (), store_every: int = 1, t0: float | None = None,
    rtol: float | None = None, atol: float | None = None, max_step: float = np.inf,
    constraints: Any = "projection", prescribed: Mapping[str, Callable] | None = None,
    contact: Any = None, progress: Callable[[float], Any] | bool | None = None,
) -> Trajectory:  # fmt: skip
    """Simulate the motion of a mechanism.

        trajectory = kt.simulate(m, q0, qd0, duration=5.0)

    ``integrator``, ``constraints``, ``contact`` and the effects of joints are values that compose;
    a table in docs/simulation.md lists those that cannot be combined.

    Steps have the length ``dt``; or, where ``rtol`` or ``atol`` is given, any length that keeps
    their estimated error below ``atol + rtol * size``.

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
            the start of every interval, held until its end. Also ``kt.Sampled``, which is called
            at its own rate, and ``kt.Recorded``. Of a world also by part, ``{"dog": tau}``.
        controls: in place of a controller: a function ``(t, q, qd)`` that returns the controls of
            the model's actuators, (..., n), called as a controller is; n numbers; or a ``Posture``
            of the model or its name, whose controls and activations are taken. Servos act on the
            state at every moment, see ``Actuator``. Without controls actuators exert nothing. Of a
            world also by part.
        integrator: one of ``kinetree.simulation.INTEGRATORS`` or its name. By default ``"rk4"``;
            ``"dopri5"`` for steps that adapt, ``"rk6"`` for mechanisms with loops; and
            ``"rosenbrock_w"`` where springs, dampers or servos are too stiff for these, as the
            report then says.
        forces: a function ``(model, t, q, qd)`` that returns joint forces and acts all the time, or
            several, or ``kt.ExternalForce``. Under ``@kinetree.kernel`` it becomes part of compiled
            code; otherwise it is called in Python at every stage of a step.
        friction: of joints that have some: ``"smooth"``; ``"exact"``, with joints that come to rest
            exactly; a ``kt.Friction``; or None, for none. ``"auto"``: exact with rigid contact,
            else smooth, as in all doors, see docs/defaults.md.
        limits: of joints that have some: ``"stiff"``, springs that push back; ``"rigid"``, stops
            with impacts; ``kt.StiffLimits`` or ``kt.RigidLimits``; or None, for none. ``"auto"``:
            rigid with rigid contact, else stiff.
        motors: ``kt.TorqueSpeed`` by name of the actuator.
        events: ``kt.Event`` s to locate.
        hooks: functions of a ``Step`` called after it; they may shorten it or change its end.
        store_every: store every n-th interval ``dt``, and the last.
        t0: time at the start [s]; by default 0, and that of a world or a ``State``.
        rtol: tolerated error of a step relative to the size of the state; 1e-6 if only ``atol`` is
            given.
        atol: tolerated error in addition [m, rad, m/s, rad/s]; 1e-9 if only ``rtol`` is given.
        max_step: longest step that adapts [s].
        constraints: how loops and couplings are kept. ``"projection"``: every step ends on them,
            to rounding error; close to singular configurations steps are taken in parts.
            ``"projection+energy"``: velocities are then scaled to the energy that the joint forces
            left. ``"ascher_chin"``: errors are reduced after every step. ``"baumgarte"`` and
            ``"sequential_regularization"``: they decay; ``"none"``: they grow. Or an instance, such
            as ``kt.Projection`` or ``kt.Baumgarte``.
        prescribed: motions by the names of prescribed joints, such as ``{"shoulder": motion}``,
            whatever force they take; only the other joints are integrated. A motion is a function
            of time [s] that returns position, velocity and acceleration variables ``(q, qd, qdd)``
            of the joint, or ``kt.RecordedMotion``. Under ``@kinetree.kernel`` it becomes part of
            compiled code. The start must agree with it, but for ``qd0`` where none is given.
            Forces of the controller are ignored for these joints: their ``tau`` is what the
            motion takes.
        contact: contact model: ``kt.contact.TimeStepping`` and others of
            ``kinetree.contact``; without one, bodies pass through each other. Its ``scene`` defines
            what can touch.
        progress: True for a bar on standard error; or a function that is called with the time
            reached [s].

    Returns:
        A ``Trajectory`` with arrays ``t, q, qd, tau, energy, work, loop_error``, with controls also
        ``controls`` and ``activation``; ``events``, ``contact``, and ``report``, checks of the
        result.

    Warns:
        SimulationWarning: the report has a reason not to trust the result; bodies
            start inside each other; there is a ground, and neither ``contact`` nor ``forces``; or
            the integrator is not stable, because springs, dampers or servos are too stiff.
    """
    of_world = getattr(model, "simulated", None)
    if of_world is not None:
        own: Any = of_world()
        if own.give is not None:
            raise ModelError(
                f"simulate takes one world, and these worlds {own.model.name!r} have their own "
                f"numbers: kinetree.rollout(worlds, steps=...), worlds.step(), or worlds[k]"
            )
        model, q0 = own.model, own.state if q0 is None else q0
        dt, contact = own.timestep if dt is None else dt, contact or own.contact
        friction, limits = own.laws(friction, limits)
        controller = read_by_part(controller, own.read[0], model)
        controls = read_by_part(controls, own.read[1], model)
    if q0 is None:
        raise TypeError("simulate needs the positions at the start, q0, such as model.neutral()")
    dt = 1e-3 if dt is None else dt
    start = _start(as_model(model), q0, qd0, t0)
    q, qd, events = start.q, start.qd, _as_events(events)
    if turns_over(model):
        q, qd = settled(model, q, qd)
    hooks, clock = _as_hooks(hooks), _clock(start, duration, dt, store_every)
    with tiers.task(clock.count * prod(q.shape[:-1])) as task:
        adaptive = rtol is not None or atol is not None
        setup = composed(
            "simulate", model, integrator=integrator, constraints=constraints, contact=contact,
            forces=forces, friction=friction, limits=limits, motors=motors, prescribed=prescribed,
            t0=clock.start, adaptive=adaptive, batch=q.shape[:-1],
            servos=None if controls is None else servos_of(model),
        )  # fmt: skip
        refuse_conflicts(setup)
        prescription = setup.prescription
        if prescription is not None:
            q, qd = prescribed_start(prescription, model, clock.start, q, qd, at_rest=qd0 is None)
            check_rates(prescription, model, clock.start, clock.end, clock.dt)
            if events:  # whose actions might move prescribed joints
                hooks = (*hooks, require_untouched(prescription, model))
        if limits is not None and setup.effects.limits is None:  # rigid stops reject it
            warn_outside(model, q)
        warn_of_ground(model, contact, setup.forces)
        q, qd = closed_start(model.at(clock.start), q, qd)
        setup = suited(setup, integrator, q, clock.dt)
        stepper, watchers = setup.stepper(q, qd, events, clock.dt)
        given = controls, setup.servos, start.activation
        control = as_controller(controller, model, qd.shape, *given)
        stepper.restore(start.memory)
        if isinstance(control, ServoControls):
            control.restore(start.memory)
        hooks = (*at_instants(control), *watchers, *hooks)
        motion = Motion(
            q, qd, np.zeros(qd.shape[:-1]), control, hooks, model if turns_over(model) else None
        )
        with clock_reporter(
            progress, clock.start, clock.end, f"simulating {model.name}"
        ) as reached:
            if adaptive:
                tolerance = _tolerance(rtol, atol, max_step)
                record = run_adaptive_steps(stepper, clock, motion, store_every, reached, tolerance)
            else:
                record = run_equal_steps(stepper, clock, motion, store_every, reached)
        tier, arrays = task.tier, record.arrays()
        arrays |= driven_motion(stepper, setup.servos, arrays)
        record.events = _with_passes(record.events, stepper, arrays, store_every, adaptive)
        seen = observe(model, arrays["q"], arrays["qd"], record.recorded)
        open_by = loop_errors(model, *(arrays[name] for name in ("t", "q", "qd")))
        return Trajectory(
            model,
            energy=seen.kinetic + seen.gravity + seen.elastic,
            loop_error=open_by[0],
            events=tuple(record.events),
            report=check_result(
                model,
                stepper,
                record,
                arrays,
                seen,
                open_by,
                adaptive=adaptive,
                reason=setup.reason,
                tier=tier,
            ),
            contact=record.contact,
            acted=stepper,
            end=_end(start, clock, stepper, control, arrays),
            **arrays,
        )


# --- inputs --------------------------------------------------------------------------------------


def _start(model, q0, qd0, t0) -> State:
    """The state to start from: positions and velocities are arrays with the same batch axes."""
    time, activation, memory = 0.0 if t0 is None else t0, np.zeros(0), {}
    if isinstance(q0, State):
        given, qd0 = q0, q0.qd if qd0 is None else qd0
        time = given.time if t0 is None else t0
        q0, activation, memory = given.q, given.activation, given.memory
    q = as_configuration(model, q0, "q0").astype(float)
    qd = np.zeros(model.nv) if qd0 is None else as_joint_vector(model, qd0, "qd0").astype(float)
    batch = common_shape(("q0", "qd0"), (q.shape[:-1], qd.shape[:-1]))
    q, qd = np.broadcast_to(q, (*batch, model.nq)), np.broadcast_to(qd, (*batch, model.nv))
    return State(time, np.array(q), np.array(qd), activation, memory)


def _end(start, clock, stepper, control, arrays) -> State:
    """The state at the end, to go on from."""
    memory, held = stepper.saved() | clock.saved(), getattr(control, "held", None)
    if held is not None:
        memory["held"] = np.array(held)
    activation = arrays["activation"][-1] if "activation" in arrays else start.activation
    t, q, qd = (arrays[name][-1].copy() for name in ("t", "q", "qd"))
    return State(float(t), q, qd, np.array(activation), memory)


def _clock(start, duration, dt, store_every):
    t0, dt = as_seconds(start.time, "t0"), as_seconds(dt, "dt", least=0.0)
    duration = as_seconds(duration, "duration", least=-np.finfo(float).tiny)
    if store_every not in range(1, 2**62):
        raise ShapeError(f"store_every must be an integer number of steps, got {store_every!r}")
    return Clock.of(t0, duration, dt, start.memory)


def _tolerance(rtol, atol, max_step):
    rtol, atol = 1e-6 if rtol is None else rtol, 1e-9 if atol is None else atol
    if not (rtol >= 0 and atol >= 0 and rtol + atol > 0 and max_step > 0):
        raise ShapeError(
            f"rtol and atol must not be negative, nor both zero, and max_step positive; got "
            f"rtol={rtol!r}, atol={atol!r}, max_step={max_step!r}"
        )
    return Tolerance(float(rtol), float(atol), float(max_step))


def _with_passes(events, stepper, arrays, store_every, adaptive):
    """Events, and where the mechanism was close to a singular configuration, in order of time."""
    chosen = getattr(stepper.field, "chosen", None)
    if isinstance(stepper, ProjectedStepper) and not adaptive:  # steps that count, all of them
        passes = stepper.passes.found
    elif chosen is None or not chosen.rows or len(arrays["t"]) < 3:
        return events
    else:
        t, q, qd = (arrays[name] for name in ("t", "q", "qd"))
        passes = passes_of(stepper.model, chosen, t, q, qd, store_every)
    return sorted([*events, *passes], key=lambda event: event.t) if passes else events


def _as_hooks(hooks):
    hooks = (hooks,) if callable(hooks) else hooks
    if not isinstance(hooks, (tuple, list)) or not all(map(callable, hooks)):
        raise ShapeError(f"hooks must be functions of a step, got {hooks!r}")
    return tuple(hooks)


def _as_events(events):
    return tuple(events) if isinstance(events, Iterable) else (events,)
