"""Contact in a simulation: what ``contact=`` of ``simulate`` and ``rollout`` adds, by its type.

A contact model of your own registers its class:

    @attach.register
    def _(contact: MyContact, model) -> Attached:
        return Attached(forces=(...,))

Soft contact is a force like others. Time stepping and event-driven contact have their own
steppers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, singledispatch
from typing import Any

from kinetree.contact.event_driven.stepper import event_driven_stepper
from kinetree.contact.finding.pairs import all_pairs
from kinetree.contact.scene import Scene
from kinetree.contact.settings import EventDriven, TimeStepping
from kinetree.contact.soft.force import SoftContact
from kinetree.contact.stepping.choice import step_of_rollout, time_stepper
from kinetree.errors import ModelError, SimulationWarning, warn
from kinetree.model.geometry import HeightField, Plane


@dataclass(frozen=True)
class Attached:
    """Forces and steppers that contact adds to a simulation."""

    forces: tuple = ()
    """That act all the time, like those of ``simulate(forces=...)``."""
    stepper: Callable | None = None
    """Function ``(effects, method, field, q, events, *, compiled)`` that returns the stepper and
    hooks; None: those of a motion without contact."""
    equal_steps: bool = False
    """Whether steps must be equal."""
    rollout_step: Callable | None = None
    """Function ``(effects, prescription, dtype, *, on_device)`` that returns the ``ContactStep`` of
    a rollout; None: that of a motion without contact."""


@singledispatch
def attach(contact: Any, model) -> Attached:
    """Forces and stepper that a contact model adds to the simulation of ``model``."""
    kinds = sorted(kind.__name__ for kind in attach.registry if kind not in (object, type(None)))
    hint = "; say what happens there: TimeStepping(scene)" if isinstance(contact, Scene) else ""
    raise TypeError(
        f"contact must be one of {', '.join(kinds)} of kinetree.contact, or None; got "
        f"{type(contact).__name__}{hint}"
    )


@attach.register
def _attach_nothing(contact: None, model) -> Attached:
    """Empty ``Attached`` for a simulation without a contact model."""
    return Attached()


@attach.register
def _attach_soft_contact(contact: SoftContact, model) -> Attached:
    """``Attached`` with the forces of a ``SoftContact``, whose scene must be of ``model``."""
    _require_model(contact.scene, model)
    return Attached(forces=(contact,))


@attach.register
def _attach_time_stepping(contact: TimeStepping, model) -> Attached:
    """``Attached`` with the steppers of a ``TimeStepping``, whose scene must be of ``model``."""
    _require_model(contact.scene, model)
    return Attached(
        stepper=partial(time_stepper, contact),
        equal_steps=True,
        rollout_step=partial(step_of_rollout, contact),
    )


@attach.register
def _attach_event_driven(contact: EventDriven, model) -> Attached:
    """``Attached`` with the stepper of an ``EventDriven``, whose scene must be of ``model``."""
    _require_model(contact.scene, model)
    return Attached(stepper=partial(event_driven_stepper, contact))


def _require_model(scene, model):
    """Raise an error unless a scene belongs to the simulated model."""
    if scene.model != model:
        raise ModelError(
            f"the scene was made for model {scene.model.name!r}, which is not the one that is "
            f"simulated, {model.name!r}: Scene(model, ...) with the same model"
        )


def warn_of_ground(model, contact, forces):
    """Warn if a model has a ground, but the simulation has neither contact nor forces."""
    if contact is not None or forces:
        return
    ground = [
        g
        for g in model.geometry
        if g.collision and g.body == 0 and isinstance(g.shape, (HeightField, Plane))
    ]
    if not ground or not all_pairs(model, with_base_only=True):
        return
    names = ", ".join(repr(g.name) if g.name else type(g.shape).__name__ for g in ground)
    warn(
        f"model {model.name!r} has a ground, {names}, and bodies pass through it, since there "
        f"is no contact model. Give one, such as "
        f"contact=kinetree.contact.TimeStepping(kinetree.contact.Scene(model)), or simulate the "
        f"model without the ground",
        SimulationWarning,
    )
