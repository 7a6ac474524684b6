"""``rollout``: many simulations at the speed of compiled code.

    motion = kt.rollout(m, q0, qd0, tau, steps=1000, dt=1e-3, store_every=10)
    motion.q  # (101, ..., nq)

The whole step, forces and controller included, is one compiled function, which runs again and again
without coming back to Python until a state is to be stored. ``kinetree.simulate`` also handles
events, hooks, and steps that adapt, also to singular configurations.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kinetree.arrays.kinds import ArrayLike, is_foreign
from kinetree.errors import ModelError, SimulationWarning, warn
from kinetree.integration.integrator import Integrator
from kinetree.integration.refusals import (
    FOLLOWED_ACTIVATIONS,
    INTEGRALS,
    NATIVE_CONTROL,
    OTHERS_MEMORY,
    OWN_RELAXED,
)
from kinetree.model.arrays import as_model, as_seconds, whole_number
from kinetree.model.parts import Posture
from kinetree.simulation.controllers import of_posture, read_by_part
from kinetree.simulation.forces.actuators import TorqueSpeed, servos_of
from kinetree.simulation.forces.friction import Friction
from kinetree.simulation.forces.limits import StiffLimits, beyond_effort
from kinetree.simulation.rollouts.engine_run import run_by_engine
from kinetree.simulation.rollouts.inputs import (
    RolloutArrays,
    closed_arrays,
    collect,
    contact_arguments,
    prescribed_arrays,
    require_kernel,
    with_activation,
)
from kinetree.simulation.rollouts.other_arrays import ArrayRollout, foreign_arrays, rollout_of
from kinetree.simulation.rollouts.result import Rollout
from kinetree.simulation.rollouts.run import Run, new_arrays
from kinetree.simulation.rollouts.transition import Transition
from kinetree.simulation.setup import checked_setup, with_stable_method
from kinetree.spelling import explains, takes_former


@takes_former(policy="controller")
@explains
def rollout(
    model: Any,
    q0: ArrayLike | None = None,
    qd0: ArrayLike | None = None,
    tau: ArrayLike | None = None,
    *,
    steps: int,
    dt: float | None = None,
    integrator: str | Integrator = "auto",
    forces: Callable | Sequence[Callable] = (),
    controller: Callable | None = None,
    friction: str | Friction | None = "auto",
    limits: str | StiffLimits | None = "auto",
    inputs: Mapping[str, ArrayLike] | None = None,
    arguments: Mapping[str, ArrayLike] | None = None,
    parameters: Mapping[str, ArrayLike] | None = None,
    store_every: int = 1,
    t0: float | None = None,
    prescribed: Mapping[str, Callable] | None = None,
    contact: Any = None,
    out: Rollout | None = None,
    motors: Mapping[str, TorqueSpeed] | None = None,
    controls: Callable | ArrayLike | str | Posture | None = None,
) -> Rollout | ArrayRollout:
    """Simulate a batch of motions, each with a fixed number of equal steps.

    Start, forces, arrays and parameters may have batch axes, which broadcast. Samples run side by
    side in SIMD registers and on several threads (``kinetree.set_threads``); each is the same
    whatever the number of threads and whatever else is in the batch.

    Args:
        model: the mechanism; or a ``kinetree.World`` or a batch of them, whose state, time step,
            contact and numbers are the defaults of what follows. Every step ends on its loops and
            couplings, as in ``simulate``, but none is taken in parts close to a singular
            configuration.
        q0: joint positions at the start [m, rad], (..., nq).
        qd0: joint velocities at the start, (..., nv); at rest by default.
        tau: joint forces [N, N·m] held during each step, time first: (steps, ..., nv), or
            (1, ..., nv) for the same during all steps, or (nv,).
        steps: how many.
        dt: length of a step [s].
        integrator: name of an integrator, see ``kinetree.simulation.INTEGRATORS``, or an instance;
            by default ``"rk4"``, ``"rk6"`` for mechanisms with loops, and ``"rosenbrock_w"`` where
            springs or dampers are too stiff for these (``Rollout.integrator``).
        forces: kernels ``(model, t, q, qd)`` that return joint forces and act all the time.
        controller: kernel ``(model, t, q, qd, ...)`` of joint forces, computed at the start of a
            step, held during it, and added to ``tau``. It takes what it needs of ``t``, ``q``,
            ``qd``, ``inputs`` and ``arguments``, by name. Or a ``WholeBody``, in rigid contact.
        friction: of joints that have some: ``"smooth"``, a ``kt.Friction``, or None, for none;
            ``"exact"`` with rigid contact. ``"auto"``: as in all doors, see docs/defaults.md.
        motors: ``kt.TorqueSpeed`` by name of the actuator, as in ``simulate``.
        limits: of joints that have some: ``"stiff"``, springs that push back: implicit in
            rigid contact, otherwise for short steps; ``kt.StiffLimits``; or None, for none;
            ``"rigid"`` with rigid contact. ``"auto"`` likewise.
        inputs: arrays by name with a value for every step: (steps or 1, ..., shape of one sample).
        arguments: arrays by name that stay the same: (..., shape of one sample).
        parameters: parameters of the model by name, such as ``{"mass:link7": array}``; each with
            any batch axes. See ``kinetree.functional.parameters``.
        store_every: store every n-th step, and the last.
        t0: time at the start [s]; by default 0, and that of a world.
        prescribed: motions of prescribed joints, see ``simulate``; all are kernels.
        contact: soft contact, ``kinetree.contact.SoftContact``; or rigid contact,
            ``kinetree.contact.TimeStepping``, whose steps take the place of the integrator's; on
            a GPU its pairs have closed forms.
            ``arguments={"contact_friction": (..., contacts)}`` gives every motion its own
            friction. In float32 forces are found to 1e-6 m/s or better where
            contacts are few, see ``Rollout.residuals``, and energies are not balanced.
        out: a ``Rollout`` of the same shape whose arrays are used again.
        controls: of the model's actuators, in place of joint forces: an array held during each
            step, (steps, ..., n), (1, ..., n) or (n,); a ``Posture`` of the model or its name; or a
            kernel like a controller that returns them, (n,). Servos act all the time.

    Returns:
        A ``Rollout`` with arrays ``t``, ``q``, ``qd``, ``work``, time first. For arrays of other
        libraries an ``ArrayRollout`` with their arrays, which can be differentiated.
    """
    return _of_any_arrays(dict(locals()))


def _of_any_arrays(options):
    """``Rollout`` for the arguments of ``rollout`` by name, for arrays of any library."""
    model, q0, qd0, tau, out, store_every = (
        options.pop(name) for name in ("model", "q0", "qd0", "tau", "out", "store_every")
    )
    start, own = (q0, qd0), OfWorld()
    if hasattr(model, "simulation_start"):
        model, start, own = _of_world(model, start, options)
    elif q0 is None:
        raise TypeError("rollout needs the positions at the start, q0, such as model.neutral()")
    options["dt"] = 1e-3 if options["dt"] is None else options["dt"]
    options["t0"] = options["t0"] or 0.0
    groups = tuple(options[x] for x in ("inputs", "arguments", "parameters"))
    foreign = foreign_arrays(*start, tau, options["controls"], groups)
    taken = partial(_rollout, own=own)
    if not foreign:
        return taken(model, *start, tau, store_every=store_every, out=out, **options)
    if getattr(options["contact"], "state_size", 0):
        raise OTHERS_MEMORY.of(
            f"arrays of other libraries ({', '.join(foreign)})", "soft contact with a memory"
        )
    given, with_own = (model, (*start, tau), options), own.give is not None
    every = {"store_every": store_every, "own_numbers": with_own}
    return rollout_of(taken, run_of, *given, foreign=foreign, **every)


class OfWorld(NamedTuple):
    """Part of a run that comes from worlds, beside states and options."""

    give: Any = None
    """Gives a ``Machine`` the numbers of its worlds, or None."""
    activation: Any = ()
    """Activations at the start, unless controls are those of a posture."""
    memory_of: Any = None
    """Function from the number of a motion to what steps have left there, or None."""


def _of_world(world, start, options):
    """Model, initial state and ``OfWorld`` data of a world or batch, for a rollout.

    Args:
        world: the world.
        start: positions and velocities, as given.
        options: of ``run_of``, completed here.
    """
    found, (q0, qd0) = world.simulation_start(), start
    if q0 is None or not is_foreign(q0):
        found.check(q0)
    at, own = found.state, OfWorld(found.give)
    if q0 is None:
        memory_of = (lambda k: at.memory) if at.memory else found.memory_of
        own = OfWorld(found.give, at.activation, memory_of)
        options["t0"] = at.time if options["t0"] is None else options["t0"]
    options["parameters"] = {**(found.parameters or {}), **(options["parameters"] or {})}
    options["dt"] = found.timestep if options["dt"] is None else options["dt"]
    if isinstance(options["controller"], Mapping):
        options["controller"] = read_by_part(options["controller"], found.read[0], found.model)
    options["contact"] = options["contact"] or found.contact
    options |= found.laws(options["friction"], options["limits"], options["motors"])
    return found.model, (at.q if q0 is None else q0, at.qd if qd0 is None else qd0), own


def _rollout(model, q0, qd0, tau, *, store_every, out=None, **options) -> Rollout:
    """``Rollout`` of NumPy arrays."""
    run = run_of(model, q0, qd0, tau, **options)
    for given in run.arrays.given:
        if given.kind == "tau":
            _warn_of_effort(model, given, run)
    marks = run.marks(store_every)
    q, qd, work = new_arrays(run, len(marks), out)
    with run.watched_task():
        run.fill(marks, q, qd, work)
    found = Rollout(run, marks, q, qd, work)
    warn_of_failures(run, found.failed)
    return found


_NO_WORLD = OfWorld()


@dataclass(kw_only=True)
class RolloutCall:
    """Arguments of a rollout, as ``rollout`` takes them, and of what is made of one."""

    model: Any
    q0: Any
    qd0: Any = None
    tau: Any = None
    steps: int
    dt: float = 1e-3
    integrator: Any = "auto"
    forces: Any = ()
    controller: Any = None
    friction: Any = "auto"
    limits: Any = "auto"
    motors: Any = None
    inputs: Any = None
    arguments: Any = None
    parameters: Any = None
    t0: float = 0.0
    prescribed: Any = None
    contact: Any = None
    controls: Any = None
    costs: tuple = ()
    """Kernels that take arrays, too."""
    function: str = "rollout"
    """That was called."""
    dtype: Any = None
    """Precision of the steps; by default that of the arrays."""
    on_device: bool = False
    """Without derivatives, on a GPU."""
    own: OfWorld = _NO_WORLD
    """What comes from worlds."""

    def run(self) -> Run:
        """``Run`` of the call: setup, checked arrays and compiled transition."""
        self.steps = whole_number(self.steps, "steps")
        self.dt, self.t0 = as_seconds(self.dt, "dt", least=0.0), as_seconds(self.t0, "t0")
        drive = _Driving.of(self)
        setup = checked_setup(
            self.function,
            as_model(self.model),
            integrator=self.integrator,
            contact=self.contact,
            forces=self.forces,
            friction=self.friction,
            limits=self.limits,
            prescribed=self.prescribed,
            t0=self.t0,
            servos=drive.servos,
            motors=self.motors,
            parameters=tuple(self.parameters or ()),
        )
        arrays, given = self._arrays(setup, drive)
        unrolled = self.function != "rollout" or getattr(self.contact, "relaxation", 0.0) > 0
        if unrolled and self.own.give is not None:
            raise OWN_RELAXED.of(
                f"{self.function} with relaxation or derivatives",
                "worlds with their own masses, sizes or friction",
            )
        if setup.attached.rollout_step is not None and self.dtype is None and not unrolled:
            run = run_by_engine(setup, arrays, given, self.own.give, self.own.memory_of)
            if run is not None:
                return run
        if drive.control is not None:
            raise NATIVE_CONTROL.of(
                self.function, f"controller {self.controller!r} of model {self.model.name!r}"
            )
        precision = self.dtype or arrays.dtype
        return given.unrolled_run(setup, arrays, self.integrator, precision, self.on_device)

    def _arrays(self, setup, drive) -> "tuple[RolloutArrays, Called]":
        """``RolloutArrays`` that go into steps, and the names of those called."""
        model = self.model
        kernels = [k for k in (drive.controller, *self.costs) if k is not None]
        kernels += contact_arguments(self.contact, self.arguments)
        arrays = collect(self, drive.controls, kernels)
        servos = drive.servos
        if servos is not None and servos.integrals:
            raise INTEGRALS.of(
                self.function, f"actuators of model {model.name!r} with integral action"
            )
        if servos is not None and servos.states:
            _require_known(model, drive.controls)
            start = drive.activation if len(drive.activation) else self.own.activation
            start = start if len(start) else np.zeros(servos.states)
            arrays = with_activation(arrays, model, servos, start, self.t0, self.dt)
        given = Called(
            tuple(g.argument for g in arrays.given if g.kind != "parameters"),
            tuple(g.name for g in arrays.given if g.kind == "parameters"),
            drive.controller,
            self.steps,
            self.dt,
            self.t0,
            drive.control,
        )
        if setup.prescription is not None:
            times, still = (self.t0, self.dt, self.steps), self.qd0 is None
            arrays = prescribed_arrays(setup.prescription, model, arrays, *times, at_rest=still)
        return closed_arrays(model, arrays, self.t0), given


@takes_former(policy="controller")
def run_of(model, q0, qd0=None, tau=None, **options) -> Run:
    """The ``Run`` of a rollout, whose options are the fields of ``RolloutCall``."""
    return RolloutCall(model=model, q0=q0, qd0=qd0, tau=tau, **options).run()


class _Driving(NamedTuple):
    """Source of the joint forces in each step."""

    controller: Any
    """A kernel, or None."""
    control: Any
    """A controller that is no kernel and has separate compiled code, or None."""
    controls: Any
    """Of actuators, as arrays, or None."""
    servos: Any
    """The actuators, where there are controls."""
    activation: Any
    """Activations of a posture, or nothing."""

    @classmethod
    def of(cls, call) -> "_Driving":
        """``_Driving`` of a call: its controller, controls and servos."""
        controller, control = _as_control(call.model, call.controller, call.tau, call.controls)
        if call.controls is None:
            return cls(controller, control, None, None, ())
        kernel, *rest = _as_controls(call.model, call.controls, controller, call.tau)
        return cls(kernel, control, *rest)


class Called(NamedTuple):
    """Arguments of a run: arguments and parameters by name, a controller, and times.

    ``control`` is a controller that is no kernel and has separate compiled code.
    """

    arguments: tuple
    parameters: tuple
    controller: Any
    steps: int
    dt: float
    t0: float
    control: Any = None

    def unrolled_run(self, setup, arrays, integrator, dtype, on_device) -> Run:
        """``Run`` whose step is compiled for the mechanism, with contact or an integrator."""
        model, step = setup.model, None
        if setup.attached.rollout_step is not None:
            given = setup.effects, setup.prescription, dtype
            step = setup.attached.rollout_step(*given, on_device=on_device)
            method, field = setup.steps, setup.field
        else:
            setup = with_stable_method(setup, integrator, arrays.q0, self.dt)
            method, field = setup.rollout_step(arrays.q0, arrays.qd0)
        transition = Transition(
            model, method, field, self.controller, self.arguments, self.parameters, step
        )
        return Run(transition, arrays, self.steps, self.dt, self.t0)


def _as_control(model, controller, tau, controls):
    """Controller as a kernel, or its separately compiled form; one of the two is None."""
    made = getattr(controller, "compiled_control", None)
    if made is None:
        return require_kernel(controller, "controller"), None
    if tau is not None or controls is not None:
        raise ModelError(
            f"give joint forces (tau=), controls= or controller={controller!r}, not two"
        )
    control = made(model)
    if control is None:
        raise TypeError(
            f"controller {controller!r} calls Python, for references or stances that depend on "
            f"time, and becomes no part of a compiled loop; kinetree.simulate takes any controller"
        )
    return None, control


def _as_controls(model, controls, controller, tau):
    """Controls as kernel or array, the servos, and a posture's activations."""
    if tau is not None or controller is not None:
        raise ModelError(
            "give joint forces (tau=, controller=) or the controls of actuators (controls=), "
            "not both"
        )
    controls, held = of_posture(as_model(model), controls)
    servos = servos_of(model, always=True)
    if callable(controls):
        return require_kernel(controls, "controls"), None, servos, held
    return None, controls, servos, held


def _require_known(model, controls):
    """Raise an error for kernel controls of actuators with activation dynamics."""
    if controls is None:
        raise FOLLOWED_ACTIVATIONS.of(
            "controls of a kernel in a rollout",
            f"actuators of model {model.name!r} that have activations",
        )


def warn_of_failures(run, failed):
    """Warn of motions with rigid contact whose state became non-finite."""
    if failed is not None and failed.any():
        warn(
            f"{np.sum(failed)} of {failed.size} motions of {run.model.name!r} became non-finite "
            f"and were stopped (see `failed`), the first is "
            f"{np.argwhere(failed)[0].tolist()}: forces or velocities are too large for steps of "
            f"{run.dt:g} s",
            SimulationWarning,
        )


def _warn_of_effort(model, given, run):
    """Warn if given joint forces exceed the joints' effort limits."""
    tau = given.array if given.timed else given.array[None]
    message = beyond_effort(model, tau, run.t0 + run.dt * np.arange(len(tau)))
    if message:
        warn(f"the rollout of {model.name!r}: {message}", SimulationWarning)
