"""Table of the options of a simulation that are not compatible.

Errors of ``simulate``, ``rollout`` and ``rollout_gradient``, the table in docs/simulation.md and
the refusals that tests expect all come from ``CONFLICTS``, and from ``REFUSALS`` what is found
where it arises. A ``Feature`` finds something in a
``Setup``, such as an implicit integrator, and says how an error calls it; a ``Conflict`` is a pair
of features with the reason and what to do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kinetree.errors import (
    JointError,
    KinetreeError,
    LoopError,
    ModelError,
    ShapeError,
    TraceError,
    UnknownNameError,
)
from kinetree.integration.explicit import ExplicitRungeKutta, SemiImplicitEuler
from kinetree.integration.field import is_traceable
from kinetree.integration.refusals import REFUSALS
from kinetree.integration.registry import INTEGRATORS
from kinetree.joints.prescribed import PrescribedInstant
from kinetree.loops.stepping.options import AscherChin, Baumgarte, Projection, Uncorrected
from kinetree.simulation.forces.applied import name_of
from kinetree.simulation.forces.loop_joints import first_exact, first_rigid
from kinetree.simulation.forces.stateful import stateful_forces

if TYPE_CHECKING:
    from kinetree.simulation.setup import Setup


@dataclass(frozen=True)
class Feature:
    """Something that a simulation may have."""

    title: str
    """In the documentation."""
    found: Callable[[Setup], str]
    """How an error calls it in a setup; "" for setups without it."""


@dataclass(frozen=True)
class Conflict:
    """Two features that cannot be combined."""

    first: Feature
    """The one that cannot do it."""
    second: Feature
    """What it cannot do."""
    reason: str
    """Why, in Markdown."""
    instead: str
    """What to do instead."""
    error: type[KinetreeError]
    """Class of the error."""

    def message(self, setup: Setup) -> str:
        """Error message of the conflict; "" for setups that do not have both features."""
        first = self.first.found(setup)
        second = self.second.found(setup) if first else ""
        if not second:
            return ""
        text = f"{first} cannot be combined with {second}: {self.reason}; {self.instead}"
        return text.replace("`", "")


def conflicts(setup: Setup) -> Iterator[tuple[Conflict, str]]:
    """Conflicts between features of a setup, each with its error message, as in ``CONFLICTS``."""
    for conflict in CONFLICTS:
        message = conflict.message(setup)
        if message:
            yield conflict, message


def refuse_conflicts(setup: Setup) -> None:
    """Raise the error of a setup's first conflict, if there is one."""
    for conflict, message in conflicts(setup):
        raise conflict.error(message)


def conflict_table() -> str:
    """Markdown table of all features that cannot be combined, for the documentation."""
    rows = ["| this | cannot be combined with | because, and instead |", "|---|---|---|"]
    for c in CONFLICTS:
        rows.append(f"| {c.first.title} | {c.second.title} | {c.reason}; {c.instead} |")
    for r in REFUSALS:
        rows.append(f"| {r.first} | {r.second} | {r.reason}; {r.instead} |")
    return "\n".join(rows)


# --- features ------------------------------------------------------------------------------------


def _integrators(which) -> str:
    """Comma-separated names of the integrators that satisfy a predicate."""
    return ", ".join(f"`{name!r}`" for name, method in INTEGRATORS.items() if which(method))


def _integrator(which):
    """Function of a setup to "integrator 'name'", if its method satisfies a predicate, else ""."""
    return lambda s: f"integrator {s.method.name!r}" if which(s.method) else ""


def _integrators_of(which):
    """``Feature`` of setups whose integrator satisfies a predicate."""
    return Feature(f"integrators {_integrators(which)}", _integrator(which))


def _is_implicit(method):
    """Whether an integrator differentiates the field, as implicit methods do."""
    return method.differentiates


def _is_runge_kutta(method):
    """Whether an integrator has a Butcher tableau."""
    return hasattr(getattr(method, "tableau", None), "b")


def _moves_states(method):
    """Whether an integrator can advance the internal states of forces stage by stage."""
    explicit = isinstance(method, (ExplicitRungeKutta, SemiImplicitEuler))
    return explicit and not getattr(method, "looped", False)


def _joint(which):
    """Function of a setup to the description of its first joint that satisfies a predicate."""

    def find(s):
        for name, body in zip(s.model.joint_names, s.model.bodies, strict=True):
            if which(s, body.joint):
                kind = type(body.joint).__name__
                return f"joint {name!r} of model {s.model.name!r}, which is a {kind}"
        return ""

    return find


def _has_no_group(s, joint):
    """Whether the configurations of a joint form neither a vector space nor a Lie group."""
    return not joint.rates_are_velocities and joint.bracket is None


def _moves_with_time(s, joint):
    """Whether a joint's parameters depend on time."""
    return joint.at(s.t0) != joint


def _loops(s):
    """Description of a setup's loops or constraints; "" if it has none."""
    if s.model.constraints and not s.model.loops:
        return f"constraint {s.model.constraints[0].name!r} of model {s.model.name!r}"
    return f"the loops of model {s.model.name!r}" if s.model.loops else ""


def _own(which):
    """Function of a setup to its first user-defined constraint that satisfies a predicate."""

    def find(s):
        for c in s.model.constraints:
            if which(c):
                kind = c.kind.partition(", ")[2]
                return f"constraint {c.name!r} of model {s.model.name!r}, which is {kind}"
        return ""

    return find


def _kept_loops(s):
    """Description of loops kept by ``constraints=``; "" if contact steps keep them, or none."""
    return _loops(s) if s.attached.stepper is None else ""


def _prescribed_joints(s):
    """Description of a setup's prescribed joints; "" if it has none."""
    if s.prescription is None:
        return ""
    return f"prescribed joints ({', '.join(map(repr, s.prescription.names))})"


def _python_force(s):
    """Description of the first force that is a Python function; "" if there is none."""
    plain = [force for force in s.forces if not is_traceable(force)]
    if not plain:
        return ""
    return f"force {name_of(plain[0])!r}, a Python function"


def _python_motion(s):
    """Description of prescribed motions that are Python functions; "" if there are none."""
    if s.prescription is None or s.prescription.traceable:
        return ""
    return f"Python functions for prescribed joints ({', '.join(map(repr, s.prescription.names))})"


def _constraint(which):
    """Function of a setup to "constraints='name'", if its method satisfies a predicate."""

    def find(s):
        chosen = _kept_loops(s) and which(s.constraint)
        return f"constraints={s.constraint.name!r}" if chosen else ""

    return find


def _leaves_prescribed(constraint):
    """Whether a method of closing loops leaves prescribed joints on their motion."""
    kept = isinstance(constraint, (Projection, AscherChin, Baumgarte, Uncorrected))
    return kept and not getattr(constraint, "energy", False)


def _has_name(name):
    """Predicate on constraint methods: whether the method has this name."""
    return lambda constraint: constraint.name == name


def _contact(which):
    """Function of a setup to "contact=Class", if its contact model satisfies a predicate."""
    return lambda s: f"contact={type(s.contact).__name__}" if which(s.attached) else ""


def _without_rows(s):
    """Description of steps that support no rows of tendons and loop joints; "" if they do."""
    if not s.attached.equal_steps:
        return f"{s.function} without contact=TimeStepping(...)"
    if s.function in DERIVATIVES:
        return s.function
    return RELAXED.found(s)


def _law_of_parts(option, what, first):
    """Function of a setup to its first loop joint or tendon with a law, in words."""

    def find(s):
        part = first(s.model, s.options[option])
        return f"{what} of {part}" if part else ""

    return find


def _is_event_driven(attached):
    """Whether the contact model takes its own steps of varying length."""
    return attached.stepper is not None and not attached.equal_steps


DERIVATIVES = ("rollout_gradient", "final_state_derivatives")
SIMULATION = Feature("any simulation", lambda s: s.function)
ROLLOUT = Feature(
    "`rollout`, `rollout_gradient`, `final_state_derivatives`, `learning.Environment`",
    lambda s: s.function if s.function != "simulate" else "",
)
SIMULATE = Feature("`simulate`", lambda s: s.function if s.function == "simulate" else "")
SMOOTH_ROLLOUT = Feature(
    "`rollout` and so on, unless with `contact=TimeStepping(...)`",
    lambda s: s.function if s.function != "simulate" and not s.attached.equal_steps else "",
)
GRADIENT = Feature(
    "`rollout_gradient`, `final_state_derivatives`",
    lambda s: s.function if s.function in DERIVATIVES else "",
)
LEARNING = Feature(
    "`learning.Environment`", lambda s: s.function if s.function == "Environment" else ""
)
IMPLICIT = _integrators_of(_is_implicit)
VARIATIONAL = Feature("integrator `'variational'`", _integrator(lambda m: m.by_action))
WITHOUT_ERRORS = _integrators_of(lambda m: not m.error_order)
NOT_RUNGE_KUTTA = _integrators_of(lambda m: not _is_runge_kutta(m))
STATELESS = _integrators_of(lambda m: not _moves_states(m))
LOOPS = Feature("loops and user-defined constraints", _loops)
NO_MANIFOLD = Feature(
    "nonholonomic and rheonomic constraints", _own(lambda c: not c.holonomic or c.rheonomic)
)
RHEONOMIC = Feature("rheonomic constraints, functions of time", _own(lambda c: c.rheonomic))
KEPT_LOOPS = Feature(
    "loops and constraints, unless `contact=TimeStepping(...)` keeps them", _kept_loops
)
NO_GROUP = Feature("joints of your own whose rates are not velocities", _joint(_has_no_group))
INSTANT = Feature(
    "`model.at(t)` of a model with `Prescribed` joints",
    _joint(lambda s, joint: isinstance(joint, PrescribedInstant)),
)
TIMED = Feature("`Prescribed` joints, functions of time", _joint(_moves_with_time))
PRESCRIBED = Feature("`prescribed=`", _prescribed_joints)
PYTHON_FORCE = Feature("`forces=` in plain Python", _python_force)
PYTHON_MOTION = Feature("`prescribed=` in plain Python", _python_motion)
EXACT_FRICTION = Feature(
    "`friction='exact'`", lambda s: "exact friction" if s.effects.friction is not None else ""
)
RIGID_LIMITS = Feature(
    "`limits='rigid'`", lambda s: "rigid limits" if s.effects.limits is not None else ""
)
EXACT_PARTS = Feature(
    "`friction='exact'` of tendons and joints that close loops",
    _law_of_parts("friction", "exact friction", first_exact),
)
RIGID_PARTS = Feature(
    "`limits='rigid'` of tendons and joints that close loops",
    _law_of_parts("limits", "rigid limits", first_rigid),
)
WITHOUT_ROWS = Feature(
    "`simulate` and so on without `contact=TimeStepping(...)`, derivatives, `relaxation`",
    _without_rows,
)
ADAPTIVE = Feature("`rtol=`, `atol=`", lambda s: "adaptive steps" if s.adaptive else "")
CHARTS = Feature("`constraints='charts'`", _constraint(_has_name("charts")))
ENERGY = Feature("`constraints='projection+energy'`", _constraint(_has_name("projection+energy")))
ALPHA = Feature("`constraints='generalized_alpha'`", _constraint(_has_name("generalized_alpha")))
MOVES_ALL = Feature(
    "`constraints='projection+energy'`, `'charts'`, `'generalized_alpha'`",
    _constraint(lambda constraint: not _leaves_prescribed(constraint)),
)
NOT_PROJECTED = Feature(
    "`constraints=` other than `'projection'`",
    _constraint(lambda constraint: constraint.name != "projection"),
)
TIME_STEPPING = Feature("`contact=TimeStepping(...)`", _contact(lambda a: a.equal_steps))
RELAXED = Feature(
    "`contact=TimeStepping(relaxation=...)`",
    lambda s: "contact=TimeStepping(relaxation=...)" if getattr(s.contact, "relaxation", 0) else "",
)
EVENT_DRIVEN = Feature("`contact=EventDriven(...)`", _contact(_is_event_driven))
STEPS_ITSELF = Feature(
    "`contact=TimeStepping(...)`, `EventDriven(...)`", _contact(lambda a: a.stepper is not None)
)
STATEFUL = Feature(
    "soft contact with `law='patch'` or `Stiction`",
    lambda s: "soft contact with a memory" if stateful_forces(s.forces) else "",
)
IDLE = Feature(
    "mechanisms without degrees of freedom",
    lambda s: f"model {s.model.name!r}, in which nothing moves" if not s.model.nv else "",
)
BATCH = Feature("a batch", lambda s: f"a batch of shape {s.batch}" if s.batch else "")

# --- the table -----------------------------------------------------------------------------------

_EXPLICIT = "use `'rk4'`, `'rk6'` or `'dopri5'`"
_LAWS = "use `law='hunt_crossley'` or `'linear'` with `Regularized` friction, which need no memory"

CONFLICTS = (
    Conflict(SIMULATION, TIMED,
             "its motion is a fixed function of time, not the result of forces",
             "use an ordinary joint and pass its motion as `prescribed=`, or use `model.at(t)`, in "
             "which the joint is fixed in its position at that time", JointError),
    Conflict(WITHOUT_ROWS, EXACT_PARTS,
             "only steps of rigid contact have equations for several joints at rest",
             "use `friction='smooth'`, `contact=TimeStepping(...)`, or make it a joint of the tree",
             ModelError),
    Conflict(WITHOUT_ROWS, RIGID_PARTS,
             "only steps of rigid contact have equations for stops of several joints",
             "use `limits='stiff'`, `contact=TimeStepping(...)`, or make it a joint of the tree",
             ModelError),
    Conflict(IMPLICIT, NO_GROUP,
             "derivatives of a step are known for spherical, free and planar joints, and for "
             "joints whose velocities are rates of their positions",
             "use the integrator `'rk4'`", JointError),
    Conflict(IMPLICIT, LOOPS,
             "it solves the equations of motion of a tree",
             "use `'rk4'` or `'dopri5'`, or `constraints='generalized_alpha'` of simulate for "
             "stiff forces", LoopError),
    Conflict(VARIATIONAL, INSTANT,
             "the action depends on the motion of the joint in time, which one instant does not "
             "give",
             "use `'rk4'` or `'implicit_midpoint'`, or give the motion to `prescribed=`",
             JointError),
    Conflict(IMPLICIT, PRESCRIBED,
             "it solves for all joints at once, also for prescribed ones",
             _EXPLICIT, UnknownNameError),
    Conflict(WITHOUT_ERRORS, ADAPTIVE,
             "it does not estimate the error of a step",
             f"use {_integrators(lambda m: m.error_order)}, or leave out `rtol` and `atol`",
             UnknownNameError),
    Conflict(ROLLOUT, EVENT_DRIVEN,
             "its steps end at events, and a rollout has fixed steps",
             "use `TimeStepping`, `SoftContact`, or `kinetree.simulate`", TraceError),
    Conflict(SIMULATE, RELAXED,
             "its contact engine supports only rigid laws",
             "use `kinetree.rollout`, or leave out `relaxation`", ModelError),
    Conflict(GRADIENT, STATEFUL,
             "its internal states jump where bodies touch or slip",
             _LAWS, TraceError),
    Conflict(LEARNING, IDLE,
             "there is nothing to act on",
             "leave joints free", ModelError),
    Conflict(LEARNING, STATEFUL,
             "episodes would have to begin with its internal states",
             _LAWS, TraceError),
    Conflict(ROLLOUT, PYTHON_FORCE,
             "forces become part of a compiled loop",
             "decorate it with `@kinetree.kernel`, or use `kinetree.simulate`, which takes any "
             "function", TraceError),
    Conflict(ROLLOUT, PYTHON_MOTION,
             "motions become part of a compiled loop",
             "decorate them with `@kinetree.kernel`, or use `kinetree.simulate`, which takes any "
             "function", TraceError),
    Conflict(SMOOTH_ROLLOUT, EXACT_FRICTION,
             "joints come to rest inside steps, and a rollout has fixed steps",
             "use `friction='smooth'`, or `kinetree.simulate`", UnknownNameError),
    Conflict(SMOOTH_ROLLOUT, RIGID_LIMITS,
             "joints reach their stops inside steps, and a rollout has fixed steps",
             "use `limits='stiff'`, or `kinetree.simulate`", UnknownNameError),
    Conflict(TIME_STEPPING, ADAPTIVE,
             "its steps have a fixed length",
             "leave out `rtol` and `atol`", UnknownNameError),
    Conflict(TIME_STEPPING, STATEFUL,
             "its steps do not integrate internal states of soft contact",
             _LAWS, TraceError),
    Conflict(IMPLICIT, TIME_STEPPING,
             "it needs derivatives of all forces, which contact does not have",
             "use `'rk4'` or another explicit one", UnknownNameError),
    Conflict(EVENT_DRIVEN, BATCH,
             "events belong to one motion at a time",
             "use `kinetree.sweep` for many, or `TimeStepping`", ShapeError),
    Conflict(EVENT_DRIVEN, NOT_RUNGE_KUTTA,
             "contacts are equations at every stage of its steps",
             "use `'rk4'`, `'dopri5'` or another explicit Runge–Kutta method", UnknownNameError),
    Conflict(EVENT_DRIVEN, RIGID_LIMITS,
             "events of stops do not take contacts into account",
             "use `limits='stiff'`, or `TimeStepping`", ModelError),
    Conflict(EVENT_DRIVEN, EXACT_FRICTION,
             "events of joint friction do not take contacts into account",
             "use `friction='smooth'`, or `TimeStepping`", ModelError),
    Conflict(EVENT_DRIVEN, STATEFUL,
             "its steps do not integrate internal states of soft contact",
             _LAWS, ModelError),
    Conflict(IMPLICIT, PYTHON_FORCE,
             "it needs derivatives of all forces",
             "decorate it with `@kinetree.kernel`, or use `'rk4'` or `'dopri5'`", TraceError),
    Conflict(EXACT_FRICTION, KEPT_LOOPS,
             "friction holds single joints, which loops couple to others",
             "use `friction='smooth'`", LoopError),
    Conflict(RIGID_LIMITS, KEPT_LOOPS,
             "stops hold single joints, which loops couple to others",
             "use `limits='stiff'`", LoopError),
    Conflict(IMPLICIT, EXACT_FRICTION,
             "it needs derivatives of all forces, which friction at rest does not have",
             "use `'rk4'` or `'dopri5'`", UnknownNameError),
    Conflict(IMPLICIT, RIGID_LIMITS,
             "it needs derivatives of all forces, which those of stops do not have",
             "use `'rk4'` or `'dopri5'`", UnknownNameError),
    Conflict(STATEFUL, NOT_PROJECTED,
             "its internal states are integrated only by projected steps",
             "use `'projection'`", LoopError),
    Conflict(STATEFUL, STATELESS,
             "its internal states are not integrated by implicit steps",
             "use `'rk4'`, `'dopri5'` or another explicit one, or `law='hunt_crossley'`",
             UnknownNameError),
    Conflict(STATEFUL, EXACT_FRICTION,
             "its internal states are not integrated in steps to events of friction",
             "use `friction='smooth'`, `law='hunt_crossley'` or `'linear'`", ModelError),
    Conflict(STATEFUL, RIGID_LIMITS,
             "its internal states are not integrated in steps to events of stops",
             "use `limits='stiff'`, `law='hunt_crossley'` or `'linear'`", ModelError),
    Conflict(MOVES_ALL, PRESCRIBED,
             "it changes the motion of all joints, also of prescribed ones",
             "use `'projection'` or `'baumgarte'`", LoopError),
    Conflict(CHARTS, NO_MANIFOLD,
             "charts need a manifold of admissible positions, the same at all times",
             "use `'projection'`, `'baumgarte'` or `'generalized_alpha'`", LoopError),
    Conflict(ENERGY, RHEONOMIC,
             "it scales velocities, which then violate the constraint",
             "use `'projection'`", LoopError),
    Conflict(STEPS_ITSELF, RHEONOMIC,
             "its steps treat constraints as independent of time",
             "use `SoftContact`", LoopError),
    Conflict(CHARTS, ADAPTIVE,
             "charts take steps of a fixed length",
             "leave out `rtol` and `atol`", UnknownNameError),
    Conflict(CHARTS, NOT_RUNGE_KUTTA,
             "charts take steps of an explicit Runge–Kutta method",
             "use `'rk4'` or another one", UnknownNameError),
    Conflict(ALPHA, ADAPTIVE,
             "it takes steps of a fixed length",
             "leave out `rtol` and `atol`", UnknownNameError),
    Conflict(ALPHA, PYTHON_FORCE,
             "it needs derivatives of all forces",
             "decorate it with `@kinetree.kernel`, or use `constraints='projection'`", TraceError),
)  # fmt: skip
"""In the order in which they are looked for."""
