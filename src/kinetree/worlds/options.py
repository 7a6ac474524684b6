"""Options of a world, checked when it is made: its first step may come much later."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

from kinetree.contact.finding.pairs import check_coefficient
from kinetree.contact.settings import TimeStepping, check_settings
from kinetree.errors import ModelError
from kinetree.model import Model
from kinetree.simulation.forces.actuators import check_motors
from kinetree.simulation.forces.friction import friction_of
from kinetree.simulation.forces.limits import limits_of
from kinetree.spelling import no_argument

SETTINGS = tuple(
    f.name for f in fields(TimeStepping) if f.name not in ("scene", "tolerance", "flight")
)
"""Settings of ``TimeStepping`` that are options of a world."""


def check_options(constructor: Callable, base: Model, options: Mapping[str, Any]) -> None:
    """Raise an error that names an invalid option of ``World``.

    Args:
        constructor: of the world, for the names of its parameters.
        base: the world without parts.
        options: all of them by name.
    """
    own = [x.name for x in signature(constructor).parameters.values() if x.kind is x.KEYWORD_ONLY]
    known = [*own, *SETTINGS, "motors"]
    unknown = [key for key in options if key not in known]
    if unknown:
        raise TypeError(no_argument("World", unknown[0], known))
    if not isinstance(base.name, str):
        hint = "; world.add(model) puts a robot into it" if isinstance(base.name, Model) else ""
        raise ModelError(f"name of a world must be a string, got {base.name!r}{hint}")
    for key in ("friction", "restitution"):
        if not callable(options[key]):
            check_coefficient(key, options[key], f"world {base.name!r}")
    tolerance = options["tolerance"]
    if not (isinstance(tolerance, (int, float)) and 0 < tolerance < 1):
        raise ModelError(
            f"tolerance of world {base.name!r} must be between 0 and 1, got {tolerance!r}"
        )
    for key in ("sleeping", "strict"):
        if not isinstance(options[key], (bool, np.bool_)):
            raise ModelError(
                f"{key} of world {base.name!r} must be True or False, got {options[key]!r}"
            )
    friction_of(base, _law(options["joint_friction"], "exact"), "joint_friction")
    limits_of(base, _law(options["limits"], "rigid"))
    check_motors(options.get("motors"))
    check_settings({key: options[key] for key in SETTINGS if key in options})


def options_of(joints: Mapping[str, Any]) -> dict[str, Any]:
    """``World`` options ``limits``, ``friction`` and ``motors`` from joint laws by name."""
    names = {"limits": "limits", "friction": "joint_friction", "motors": "motors"}
    return {name: joints[own] for own, name in names.items() if own in joints}


def corners_of(motors: Mapping[str, Any]) -> dict[str, Any]:
    """Torque–speed curves as dicts of speeds and forces, by actuator name."""
    return {name: {"speeds": x.speeds, "forces": x.forces} for name, x in motors.items()}


def _law(law, usual):
    """Joint law given by an option, with the default for ``"auto"``."""
    return usual if isinstance(law, str) and law == "auto" else law
