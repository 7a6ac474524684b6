"""Models as plain data: dictionaries, lists, strings and numbers that JSON can hold.

Floats survive exactly, because Python writes the shortest digits that read back as the same
number; so a model that went through a file has the fingerprint of the original.

Parts are written and read field by field. Bodies and joints stand by their names; what a part did
not have when the format began is left out where it is not there, and older files are without it.
"""

import math
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

import kinetree.joints
from kinetree.errors import KinetreeError, ModelError
from kinetree.joints import AbstractJoint
from kinetree.model.cameras import Camera, for_constructor
from kinetree.model.constraint_function import require_none_written
from kinetree.model.coupling import Coupling, GravityCompensation, as_given, require_written
from kinetree.model.fingerprint import ADDED_LATER, is_default
from kinetree.model.fluid import FluidForce
from kinetree.model.geometry import SHAPES, ContactPair, Geometry, Shape, Surface
from kinetree.model.muscle import Muscle
from kinetree.model.names import Group
from kinetree.model.parts import (
    OF_BODIES,
    OF_JOINTS,
    Actuator,
    Body,
    Frame,
    JointDynamics,
    Limits,
    Loop,
    Posture,
    is_identity,
)
from kinetree.model.schema import check_fields, holds_numbers
from kinetree.model.sensors import Sensor
from kinetree.model.tendon import Pulley, Tendon, Wrap
from kinetree.spatial import Inertia, Plucker

FORMAT = "kinetree model 1"
_PARTS = {
    "bodies": Body, "frames": Frame, "loops": Loop, "couplings": Coupling, "geometry": Geometry,
    "actuators": Actuator, "postures": Posture, "tendons": Tendon,
    "gravity_compensation": GravityCompensation, "contact_pairs": ContactPair, "sensors": Sensor,
    "groups": Group, "cameras": Camera, "fluid_forces": FluidForce,
}  # fmt: skip
_NOT_ALWAYS = (
    "contact_pairs",
    "sensors",
    "groups",
    "cameras",
    "fluid_forces",
)  # only where there are some
_RANGES = ("control", "effort", "activation_range", "integral_range")
_NULL = ("color", "limits", "dynamics")  # written as null where there is none

# --- numbers, transforms, limits and joints ------------------------------------------------------


def plain(x, what):
    """Value as plain Python numbers, lists and dictionaries, ready for JSON."""
    if isinstance(x, (np.ndarray, np.number)):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [plain(item, what) for item in x]
    if isinstance(x, AbstractJoint):
        return _joint(x, what)
    if isinstance(x, (Plucker, Inertia)):
        names = ("E", "r") if isinstance(x, Plucker) else ("mass", "first_moment", "rotational")
        return {name: plain(getattr(x, name), what) for name in names}
    if isinstance(x, Limits):
        given = {f.name: getattr(x, f.name) for f in fields(x)}
        return {
            name: _bounds(y)
            for name, y in given.items()
            if y or ("Limits", name) not in ADDED_LATER
        }
    if isinstance(x, Surface):
        return surface(x)
    if isinstance(x, Shape):
        return {"type": type(x).__name__} | _fields(x, what)
    if isinstance(x, (Wrap, Pulley)):
        return {f: y for f, y in _fields(x, what).items() if y != ""}
    if isinstance(x, Muscle):
        return _fields(x, what)
    if isinstance(x, JointDynamics):
        return {f: y for f, y in _fields(x, what).items() if y or not f.startswith("active_")}
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    raise ModelError(
        f"{what} holds a {type(x).__name__}, which plain data cannot express; only models of "
        f"floats can be written"
    )


def _fields(x, what):
    """Fields of a part as plain values, by name."""
    return {f.name: plain(getattr(x, f.name), what) for f in fields(x)}


def surface(given):
    """Fields of a contact surface that differ from the defaults."""
    usual = vars(Surface())
    return {name: x for name, x in vars(given).items() if x != usual[name]}


def _bounds(values):
    """Bounds as a list; infinite ones become None, which JSON can hold."""
    return [x if math.isfinite(x) else None for x in values]


def _read_bounds(data):
    """Bounds read from a list, in which None is infinite."""
    lower, upper = data
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def _read_limits(data):
    """Limits read from lists in a file, in which None means no bound."""
    free = {"lower": -math.inf, "effort_lower": -math.inf}
    values = {
        name: tuple(free.get(name, math.inf) if x is None else x for x in values)
        for name, values in data.items()
    }
    return Limits(**_all_numbers(values, "limits"))


def _all_numbers(values, what):
    """The values, after an error unless they are numbers or lists of numbers."""
    for name, x in values.items():
        if not holds_numbers(x):
            raise ModelError(f"{name} of {what} must hold numbers, got {x!r}")
    return values


def _read_numbers(x, what):
    """Array of numbers read from a file; ModelError for anything else."""
    numbers = np.array(x)
    if numbers.dtype.kind not in "if" or not holds_numbers(x):
        raise ModelError(f"{what} must hold numbers, got {x!r}")
    return numbers


def _read_placement(data):
    """Placement read from ``E`` and ``r`` in a file."""
    return Plucker(_read_numbers(data["E"], "E"), _read_numbers(data["r"], "r"))


def _read_inertia(data):
    """Inertia read from numbers in a file."""
    numbers = {name: _read_numbers(x, name) for name, x in data.items()}
    return Inertia(**{name: x if x.ndim else x.item() for name, x in numbers.items()})


def _read_shape(data):
    """Shape read from its ``type`` and sizes in a file."""
    shape = {name: _tuples(x) for name, x in data.items()}
    kinds = {kind.__name__: kind for kind in SHAPES}
    kind = shape.pop("type")
    if kind not in kinds:
        raise ModelError(f"unknown shape {kind!r}; known: {sorted(kinds)}")
    return kinds[kind](**shape)


def _tuples(x) -> Any:
    """Lists as tuples, nested ones too."""
    return tuple(map(_tuples, x)) if isinstance(x, list) else x


def _read_path(data):
    """Path of a tendon read from names and dictionaries of wraps and pulleys."""
    return tuple(
        x if not isinstance(x, dict) else Pulley(**x) if "divisor" in x else Wrap(**x) for x in data
    )


_READ = {
    "placement": _read_placement, "predecessor_placement": _read_placement,
    "successor_placement": _read_placement, "reference_placement": _read_placement,
    "inertia": _read_inertia, "limits": _read_limits,
    "dynamics": lambda data: JointDynamics(**_all_numbers(data, "dynamics")), "shape": _read_shape,
    "path": _read_path,
    "muscle": lambda data: Muscle(**data),
    "surface": lambda data: Surface(**{name: _tuples(x) for name, x in data.items()}),
    **dict.fromkeys(_RANGES, _read_bounds),
}  # fmt: skip
"""Inverse of ``plain`` for the fields that are not numbers, texts or lists of them."""


def known_joints(more=()):
    """Joint classes by name: kinetree's, registered ones, and ``more``."""
    return {c.__name__: c for c in (*kinetree.joints.known_joints(), *more)}


def _joint(given, what):
    """Joint as a dictionary of its class name and parameters."""
    if not is_dataclass(given):
        raise ModelError(
            f"{what} is a {type(given).__name__}, which is not a dataclass: its parameters cannot "
            f"be listed"
        )
    return {"type": type(given).__name__} | _fields(given, what)


def _read_joint(data, known):
    """Joint read from a dictionary of its class name and parameters."""
    kind = data["type"]
    if kind not in known:
        raise ModelError(
            f"unknown joint type {kind!r}; known: {sorted(known)}. Pass classes of your own as "
            f"Model.from_dict(data, joints=[...])"
        )
    values = {name: _read_value(x, known) for name, x in data.items() if name != "type"}
    result = known[kind](**values)
    for name, value in values.items():
        # The constructor may have normalised an axis once more, which moves its last digit.
        object.__setattr__(result, name, value)
    return result


def _read_value(x, known):
    """Field value read from a file: lists become tuples; joints and placements are made."""
    if isinstance(x, list):
        return tuple(_read_value(item, known) for item in x)
    if isinstance(x, dict):
        return _read_joint(x, known) if "type" in x else _read_placement(x)
    return x


# --- models and their parts ----------------------------------------------------------------------


def to_dict(model):
    """Model as plain dictionaries, lists, strings and numbers."""
    require_none_written(model, "a dictionary")
    top = {"format": FORMAT, "name": model.name, "base_name": model.base_name}
    top["gravity"] = plain(model.gravity, "gravity")
    parts = {key: [_part(p, model) for p in getattr(model, key)] for key in _PARTS}
    return top | {key: x for key, x in parts.items() if x or key not in _NOT_ALWAYS}


def _part(part, model):
    """Dictionary of a model part, with names instead of numbers."""
    kind = type(part).__name__
    names = (None, *model.joint_names)
    if isinstance(part, Coupling):
        require_written(part, "a dictionary")
        part = as_given(part)
    found: dict[str, Any] = {}
    for f in fields(part):
        x = getattr(part, f.name)
        if _is_left_out(part, f, x):
            continue
        if f.name in OF_BODIES:
            x = model.body_names[x]
        elif f.name in OF_JOINTS and kind in ("Coupling", "Tendon"):
            x = names[x] if isinstance(x, int) else [names[i] for i in x]
        what = f"{f.name} of {kind.lower()} {getattr(part, 'name', '')!r}"
        if f.name == "joint" and kind in ("Body", "Loop"):
            what = f"joint {getattr(part, 'joint_name', part.name)!r}"
        bounded = kind == "Actuator" and f.name in _RANGES
        found[f.name] = _bounds(x) if bounded else plain(x, what)
    if isinstance(part, Actuator):  # a joint of the tree or of a loop
        found["joint"] = model.driven_joint(part)
        found.pop("loop", None)
    elif isinstance(part, Tendon):
        found["joints"] = dict(zip(found["joints"], found.pop("coefficients"), strict=True))
        found["lower"], found["upper"] = _bounds((part.lower, part.upper))
    return found


def _is_left_out(part, f, x):
    """Whether a field has its usual value and is not written."""
    if isinstance(part, (Sensor, Camera, FluidForce)):
        return is_identity(x) if isinstance(x, Plucker) else is_default(part, f.name, x)
    if f.name in _NULL:
        return False
    return x is None or (
        (type(part).__name__, f.name) in ADDED_LATER and is_default(part, f.name, x)
    )


def from_dict(cls, data, joints=(), strict=True):
    """Model of class ``cls`` from the dictionary that ``to_dict`` made."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ModelError(f"expected a dictionary with format {FORMAT!r}, got {found!r}")
    try:
        return _read(cls, data, known_joints(joints), strict)
    except KinetreeError:
        raise
    except KeyError as error:
        raise ModelError(
            f"the data of model {data.get('name')!r} have no {error}: an entry is missing, or a "
            f"body that others refer to"
        ) from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise ModelError(
            f"the data of model {data.get('name')!r} do not describe a model: {error}"
        ) from error


def _read(cls, data, known, strict):
    """Model read from a dictionary."""
    bodies = {data["base_name"]: 0}
    bodies |= {b["name"]: i for i, b in enumerate(data["bodies"], start=1)}
    numbers = {
        "body": bodies,
        "joint": {None: 0, "": 0} | {b["joint_name"]: i for i, b in enumerate(data["bodies"], 1)},
        "loop": {loop["name"]: i for i, loop in enumerate(data["loops"], start=1)},
    }
    always = ("bodies", "frames", "loops")
    parts = {
        key: tuple(
            _read_part(kind, part, numbers, known)
            for part in (data[key] if key in always else data.get(key, ()))
        )
        for key, kind in _PARTS.items()
    }
    top = {key: data[key] for key in ("name", "base_name")}
    for key, x in top.items():
        if not isinstance(x, str):
            raise ModelError(f"the {key} of a model must be a text, got {x!r}")
    gravity = _read_numbers(data["gravity"], "gravity")
    parts = for_constructor(parts)
    return cls(parts.pop("bodies"), gravity=gravity, strict=strict, **parts, **top)


def _read_part(kind, data, numbers, known):
    """Tendon, actuator or another part from its entry in a file."""
    given = dict(data)
    if kind is Tendon:
        given["coefficients"] = list(given["joints"].values())
        given["lower"], given["upper"] = _read_bounds((given["lower"], given["upper"]))
    elif kind is Actuator and given["joint"] in numbers["loop"]:
        given["loop"] = numbers["loop"][given.pop("joint")]
    values = {f.name: given[f.name] for f in fields(kind) if _is_needed(kind, f)} | given
    for name, x in values.items():
        if name in OF_BODIES:
            values[name] = numbers["body"][x]
        elif name in OF_JOINTS and isinstance(x, dict) and kind is not Tendon:
            values[name] = _read_joint(x, known)
        elif name in OF_JOINTS and kind is not Group:
            joint = numbers["joint"]
            values[name] = (
                joint[x] if x is None or isinstance(x, str) else tuple(joint[i] for i in x)
            )
        elif x is not None:
            values[name] = _READ.get(name, _tuples)(x)
    check_fields(kind, values, f"{kind.__name__.lower()} {given.get('name', '')!r}")
    return kind(**values)


def _is_needed(kind, f):
    """Whether a field must be in a file: it existed when the format began."""
    if kind in (Sensor, Posture, ContactPair, Group, Actuator, Camera, FluidForce):
        return f.default is MISSING and f.default_factory is MISSING
    return f.name not in _NULL and (kind.__name__, f.name) not in ADDED_LATER
