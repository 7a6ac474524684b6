"""A simulation as it is composed: field, method, constraint and contact.

- The field gives accelerations: of a tree, of a closed chain, with prescribed joints.
- The method takes steps: an ``Integrator``.
- The constraint keeps loops: ``Projection``, ``Charts``, ``Baumgarte``, ``GeneralizedAlpha``.
- Contact adds forces, or takes steps itself.

Each is a separate value. ``compatibility`` has the table of those that do not go together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kinetree.contact.attached import Attached, attach
from kinetree.contact.settings import TimeStepping
from kinetree.errors import KinetreeError, SimulationWarning, refuse_formulas, warn
from kinetree.functional.parameters import with_some
from kinetree.integration.events import UserEvents
from kinetree.integration.field import Field, PrescribedField, is_traceable
from kinetree.integration.integrator import Integrator
from kinetree.integration.on_arrays import FieldOnArrays, choose_arrays
from kinetree.integration.prescription import PrescribedSteps, Prescription, as_prescription
from kinetree.integration.registry import MASSLESS, STIFF, integrator_named
from kinetree.integration.step import Stepper
from kinetree.integration.stiffness import NO_INERTIA, SAFE, fastest_motion, seconds
from kinetree.integration.watcher import Watcher
from kinetree.loops.stepping.options import (
    ConstrainedStart,
    GeneralizedAlpha,
    constrained_stepper,
    constraint_named,
    projection_method,
)
from kinetree.model import Model
from kinetree.model.limits import has_passive_forces
from kinetree.simulation.compatibility import DERIVATIVES, conflicts, refuse_conflicts
from kinetree.simulation.forces.actuators import drive_of
from kinetree.simulation.forces.applied import as_force
from kinetree.simulation.forces.friction import friction_can_be_exact, friction_of
from kinetree.simulation.forces.limits import StiffLimits, limits_of
from kinetree.simulation.forces.loop_joints import has_rows_of_engine, tendon_rows_of
from kinetree.simulation.forces.modes import Modes
from kinetree.simulation.forces.passive import passive_of
from kinetree.simulation.forces.stateful import StatefulStepper, stateful_forces, unroll_stages


@dataclass(frozen=True)
class Setup:
    """Parts of a simulation."""

    function: str
    """That was called, ``"simulate"`` or one of rollouts."""
    model: Model
    """The mechanism."""
    method: Integrator
    """The integrator."""
    constraint: Any
    """How loops are kept."""
    contact: Any
    """As given, or None."""
    attached: Attached
    """What it adds to the simulation."""
    forces: tuple
    """Of the user and of contact."""
    prescription: Prescription | None
    """Prescribed joints, or None."""
    t0: float = 0.0
    """Time at the start [s]."""
    adaptive: bool = False
    """Whether steps are as long as their error allows."""
    batch: tuple = ()
    """Shape of the batch."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Friction, limits and motors, as for ``effects_of``."""
    reason: str = ""
    """Why ``integrator="auto"`` is an implicit method, if it is."""
    servos: Any = None
    """Actuators whose forces follow the state while controls are held, or None."""
    parameters: tuple = ()
    """Names of parameters of the model that samples have their own of."""

    @cached_property
    def effects(self) -> Effects:
        """``JointEffects``: springs, friction, limits and motors of the joints."""
        shown = with_some(self.model, "friction", self.parameters)
        found = effects_of(shown, **self.options, rows=isinstance(self.contact, TimeStepping))
        return dataclasses.replace(found, model=self.model)

    @cached_property
    def field(self) -> Field:
        """``Field`` of accelerations of the spanning tree, prescribed joints included."""
        given = (self.forces, self.effects.passive, self.effects.drive, self.servos)
        if self.prescription is None:
            return Field(*given)
        return PrescribedField(*given, self.prescription)

    @cached_property
    def steps(self) -> Integrator:
        """Integrator, extended to set prescribed joints after each step."""
        if self.prescription is None:
            return self.method
        return PrescribedSteps(self.method, self.prescription)

    @cached_property
    def compiled(self) -> bool:
        """Whether a step can be compiled into one kernel."""
        motions = self.prescription is None or self.prescription.traceable
        return motions and all(map(is_traceable, self.forces))

    def stepper(self, q, qd, events, dt) -> tuple[Stepper, tuple]:
        """Stepper for an initial state, and hooks that locate events in its steps.

        Args:
            q: positions at the start, (..., nq).
            qd: velocities at the start, (..., nv).
            events: of the user.
            dt: length of a step [s].
        """
        model, given = self.model, (self.steps, self.field)
        if self.attached.stepper is not None:
            return self.attached.stepper(self.effects, *given, q, events, compiled=self.compiled)
        groups: list = [UserEvents(events, model)] if events else []
        if self.effects.friction is not None or self.effects.limits is not None:
            effects = self.effects
            modes = Modes(model, effects.friction, effects.limits, self.batch, self.prescription)
            modes.check_start(q)
            return modes.stepper(*given, groups, compiled=self.compiled)
        if stateful_forces(self.forces):
            given = self.rollout_step(q, qd)
            stepper: Stepper = StatefulStepper(model, *given, q, compiled=self.compiled)
        elif model.is_constrained:
            start = ConstrainedStart(q, qd, self.t0, dt)
            given = model, *given, start
            options = {"compiled": self.compiled, "adaptive": self.adaptive}
            stepper = constrained_stepper(self.constraint, *given, **options)
        elif self.compiled and not self.adaptive and choose_arrays(model, *given):
            field = FieldOnArrays(model, self.field)
            stepper = Stepper(model, self.steps, field, compiled=False)
        else:
            stepper = Stepper(model, *given, compiled=self.compiled)
        return stepper, (Watcher(model, groups, self.batch),) if groups else ()

    @cached_property
    def known(self) -> dict:
        """Cache of facts from the last run, for simulations with the same start."""
        return {}

    def taking(self, method: Integrator, reason: str) -> Setup:
        """Copy of the setup with another integrator, and the reason for it."""
        other = dataclasses.replace(self, method=method, reason=reason)
        vars(other).update(effects=self.effects, field=self.field, compiled=self.compiled)
        return other

    def rollout_step(self, q, qd) -> tuple[Integrator, Any]:
        """Integrator and field of a rollout's steps from starts (n, nq) and (n, nv)."""
        if not self.model.is_constrained:
            return self.steps, self.field
        method, field = projection_method(self.model, self.steps, self.field, q, qd, self.t0)
        return unroll_stages(method) if stateful_forces(self.forces) else method, field


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Options of a simulation, as for ``simulate``, and what its function knows beside them."""

    integrator: Any = "auto"
    constraints: Any = "projection"
    contact: Any = None
    forces: Any = ()
    friction: Any = "auto"
    limits: Any = "auto"
    motors: Any = None
    prescribed: Any = None
    t0: float = 0.0
    adaptive: bool = False
    batch: tuple = ()
    servos: Any = None
    parameters: tuple = ()


def compose_setup(function: str, model: Model, **options: Any) -> Setup:
    """``Setup`` of a call from its options, the fields of ``Choices``."""
    given = Choices(**options)
    _require_numbers(model, function)
    attached = attach(given.contact, model)
    rigid = isinstance(given.contact, TimeStepping)
    if rigid and (function in DERIVATIVES or getattr(given.contact, "relaxation", 0)):
        rigid = not has_rows_of_engine(model)
    friction, limits = laws_of(model, given.friction, given.limits, rigid=rigid)
    closed = model.is_constrained
    return Setup(
        function,
        model,
        integrator_named(given.integrator, adaptive=given.adaptive, constrained=closed),
        constraint_named(given.constraints),
        given.contact,
        attached,
        (*attached.forces, *as_forces(given.forces)),
        as_prescription(model, given.prescribed),
        given.t0,
        given.adaptive,
        given.batch,
        {"friction": friction, "limits": limits, "motors": given.motors},
        servos=given.servos,
        parameters=given.parameters,
    )


MOST_SETUPS = 8
"""Setups that a scene keeps."""


def checked_setup(function: str, model: Model, **options: Any) -> Setup:
    """``Setup`` of a call without conflicts, cached with the scene if possible.

    Setups of rigid contact that hold nothing but settings are kept with the scene: so the field of
    the next call is the same object, and what was made for it, such as an engine, is found again.
    """
    contact: Any = options.get("contact")
    key = None
    of_user = any(options.get(name) for name in ("forces", "prescribed"))
    if isinstance(contact, TimeStepping) and not of_user:
        key = function, id(model), *(options.get(name) for name in _KEYED)
        motors = options.get("motors")
        key += (*motors.items(),) if isinstance(motors, Mapping) else (motors,)
    try:
        kept = {} if key is None else contact.scene.memo.setdefault("setups", {})
        found = kept.get(key)
    except TypeError:  # settings of the user without a hash
        kept, found = {}, None
    if found is None:
        found = compose_setup(function, model, **options)
        refuse_conflicts(found)
        for name in list(kept)[: 1 - MOST_SETUPS]:
            kept.pop(name, None)
        kept[key] = found
    return found


_KEYED = (  # the time matters for integrators alone
    "contact", "integrator", "constraints", "friction", "limits", "adaptive", "batch", "servos",
    "parameters",
)  # fmt: skip


def with_stable_method(setup: Setup, integrator: Any, q: Any, dt: float) -> Setup:
    """Setup with an integrator that is stable at the start, if it is ``"auto"``.

    Warns of an explicit method that is not.

    Args:
        setup: of the call.
        integrator: as it was given.
        q: positions at the start, (..., nq).
        dt: length of a step [s].
    """
    model, method, auto = setup.model, setup.method, integrator == "auto"
    if model.is_constrained and isinstance(setup.constraint, GeneralizedAlpha):
        return setup
    if isinstance(setup.contact, TimeStepping) and not setup.contact.flight:
        return setup  # whose steps are implicit in all that is stiff
    key = q.tobytes(), dt, auto
    start, known = setup.known.get("suited", (None, setup))
    if start == key:
        return known
    free = None if setup.prescription is None else setup.prescription.others(model)
    servos = setup.servos is not None
    found = fastest_motion(model, method, q, free=free, servos=servos, step=dt / SAFE)
    if found is None or dt <= (SAFE if auto else 1.0) * found.step:
        setup.known["suited"] = key, setup
        return setup
    why = f"{found}, and {method.name!r} is stable in steps up to {seconds(found.step)}"
    advice = f"take integrator={STIFF.name!r}, or a dt below {seconds(SAFE * found.step)}"
    if auto:
        reason, refused = f"{why}; dt is {seconds(dt)}", []
        for method in (MASSLESS, STIFF) if dt > NO_INERTIA * found.time else (STIFF,):
            other = setup.taking(method, reason)
            refused = [message for _, message in conflicts(other)]
            if not refused:
                setup.known["suited"] = key, other
                return other
        advice = f"take a dt below {seconds(SAFE * found.step)}. {refused[0]}"
    if dt > found.step and not setup.adaptive:
        warn(
            f"{setup.function} of {model.name!r}: {why}, while dt is {seconds(dt)}: {advice}",
            SimulationWarning,
        )
    return setup


def as_forces(forces: Any) -> tuple:
    """Tuple of applied forces from one or several."""
    several = tuple(forces) if isinstance(forces, Iterable) and not callable(forces) else (forces,)
    return tuple(map(as_force, several))


def _require_numbers(model, function):
    """Raise an error if a model has symbols instead of numbers."""
    if model.scalar_type().kind == "O":  # fractions are numbers, symbols are not
        try:
            model.map_numbers(float)
        except (TypeError, KinetreeError) as error:
            refuse_formulas(function, (model,), error)


# --- Effects of joints in a simulation: springs, dampers, friction, limits and motors ------------


@dataclass(frozen=True)
class Effects:
    """Effects at the joints of a mechanism."""

    model: Any
    """The mechanism."""
    passive: Any
    """Springs, dampers, smooth friction and stiff limits, which can be compiled; or None."""
    friction: Any
    """Exact friction, or None."""
    limits: Any
    """Rigid limits, or None."""
    drive: Any
    """Torque–speed curves, or None."""
    tendons: Any = None
    """Rigid limits and exact friction of tendons and loop joints, as rows of steps, or None."""
    known: dict = dataclasses.field(default_factory=dict, compare=False, repr=False)
    """What was made of them, for the next simulation."""


def laws_of(model, friction: Any, limits: Any, *, rigid: bool) -> tuple[Any, Any]:
    """Friction and limits options of a call with ``"auto"`` resolved.

    Steps of rigid contact have rigid limits and exact friction, which cost them a row each;
    integrators have stiff limits and smooth friction, which they can integrate. So do mechanisms
    with friction in joints that follow others by a ratio that varies, with limits or friction of
    tendons and loop joints in derivatives, and on a GPU. See docs/defaults.md.

    Args:
        model: the mechanism.
        friction: as for ``simulate``.
        limits: as for ``simulate``.
        rigid: whether steps are those of rigid contact, on the CPU.
    """
    if isinstance(friction, str) and friction == "auto":
        friction = "exact" if rigid and friction_can_be_exact(model) else "smooth"
    if isinstance(limits, str) and limits == "auto":
        limits = "rigid" if rigid else "stiff"
    return friction, limits


def effects_of(model, *, friction="smooth", limits="stiff", motors=None, rows=False) -> Effects:
    """``JointEffects`` of a model for given friction, limits and motors.

    Args:
        model: the mechanism.
        friction: ``"smooth"``, ``"exact"``, None or a ``Friction``.
        limits: ``"stiff"``, ``"rigid"``, None, ``StiffLimits`` or ``RigidLimits``.
        motors: torque–speed curves by name of the actuator.
        rows: whether steps have rows for rigid limits and exact friction of tendons; they are
            rejected otherwise.
    """
    law, stops = friction_of(model, friction), limits_of(model, limits)
    held = tendon_rows_of(model, friction, limits) if rows else None
    passive = passive_of(model, friction, limits, held)
    laws = passive.friction, passive.limits, passive.loops, passive.tendons
    if not has_passive_forces(model) and all(law is None for law in laws):
        passive = None
    return Effects(
        model,
        passive,
        law if law is not None and law.exact else None,
        None if isinstance(stops, StiffLimits) else stops,
        drive_of(model, motors),
        held,
    )
