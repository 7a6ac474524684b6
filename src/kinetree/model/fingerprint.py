"""A digest of a model's content: equal content, equal digest, in any process."""

import hashlib
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from types import CodeType, FunctionType

import numpy as np


def fingerprint(model) -> str:
    """SHA-256 over names, structure and parameters of a model, as a hexadecimal string."""
    parts, attached = [], (model.couplings, model.geometry, model.actuators, model.postures)
    _describe(
        [model.name, model.body_names, model.gravity, model.bodies, model.frames, model.loops],
        parts.append,
    )
    if any(attached):
        _describe(attached, parts.append)
    if model.tendons or model.gravity_compensation:
        _describe([model.tendons, model.gravity_compensation], parts.append)
    for added_later in (model.constraints, model.contact_pairs):
        if added_later:
            _describe(added_later, parts.append)
    if model.sensors:
        _describe(["sensors", model.sensors], parts.append)
    if model.groups:
        _describe(["groups", model.groups], parts.append)
    if model.cameras:
        _describe(["cameras", model.cameras], parts.append)
    if model.fluid_forces:
        _describe(["fluid_forces", model.fluid_forces], parts.append)
    return hashlib.sha256(b"".join(part + b"\0" for part in parts)).hexdigest()


_NAMED = {
    "JointDynamics": ("active_predecessor", "active_successor"),
    "Actuator": (
        "tendon", "frame", "reference", "gain", "bias", "activation", "time_constant",
        "activation_range", "deactivation_time", "muscle", "crank", "adhesion", "integral",
        "integral_zero", "integral_range",
    ),
    "Posture": ("controls", "activation"),
    "Limits": ("effort_lower", "effort_upper", "effort_compensation"),
    "Tendon": ("path",),
    "Coupling": ("tendon",),
}  # fmt: skip
"""Of what was added later, what is described with its name: others may look alike."""
ADDED_LATER = {
    ("Body", "dynamics"), ("Loop", "limits"), ("Loop", "dynamics"), ("Loop", "misalignment"),
    ("Geometry", "surface"), ("Geometry", "link"), ("Actuator", "loop"), ("Coupling", "sources"),
    ("Coupling", "weights"), ("Coupling", "function"),
    *((kind, name) for kind, names in _NAMED.items() for name in names),
}  # fmt: skip
"""What parts did not have when fingerprints began: where it is not there, it is not described."""


def _describe(x, add):
    """Feed bytes that describe a value completely, in a fixed order, to the function ``add``."""
    if isinstance(x, (list, tuple)):
        add(b"%d" % len(x))
        for item in x:
            if type(item) is float:  # most of what there is
                add(repr(item + 0.0).encode())
            else:
                _describe(item, add)
    elif isinstance(x, np.ndarray):
        _describe(x.tolist(), add)
    elif isinstance(x, (bool, str, bytes, type(None))):
        add(f"{type(x).__qualname__}:{x!r}".encode())
    elif isinstance(x, (int, float, np.integer, np.floating)):
        # Integers and floats count alike, and adding zero makes -0.0 and 0.0 one number.
        add(repr(float(x) + 0.0).encode())
    elif isinstance(x, FunctionType):  # its text, not its address
        add(_kind(x))
        _describe([x.__qualname__, x.__code__], add)
        _describe([c.cell_contents for c in x.__closure__ or ()], add)
        if x.__defaults__ or x.__kwdefaults__:
            _describe([*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).items()], add)
    elif isinstance(x, CodeType):
        _describe([x.co_code, x.co_names, x.co_consts], add)
    elif (names := _attributes(type(x))) is not None:
        add(_kind(x))
        for name in names:
            value, kind = getattr(x, name), type(x).__name__
            if (kind, name) not in ADDED_LATER or not is_default(x, name, value):
                _describe([name, value] if name in _NAMED.get(kind, ()) else value, add)
    elif type(x).__repr__ is object.__repr__:  # its repr would be an address
        add(_kind(x))
        for name, value in sorted(getattr(x, "__dict__", {}).items()):
            _describe([name, value], add)
    else:
        add(_kind(x) + f":{x!r}".encode())


def is_default(part, name, value):
    """Whether a field of a part has its default value, or is empty."""
    default = part.__dataclass_fields__[name].default
    return not value.size if isinstance(value, np.ndarray) else bool(value == default)


def _kind(x):
    """Name of a class, for digests."""
    return type(x).__qualname__.encode()


@lru_cache(maxsize=256)
def _attributes(kind):
    """Names of the attributes of a dataclass or spatial quantity; None for other classes."""
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    if kind.__module__.startswith("kinetree.spatial"):
        return [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    return None


def is_plain(model) -> bool:
    """Whether the fingerprint determines a model completely: no user classes or functions.

    It does for kinetree's own joints and for numbers. A function or class of the user's also
    depends on what it calls and on global variables, which no digest covers, and a symbol means
    nothing outside its own expression: what was compiled for such a model must not be taken for
    another with the same fingerprint in another process.
    """
    parts = (*model.bodies, *model.frames, *model.loops, *model.couplings, *model.geometry)
    parts += (*model.actuators, *model.postures, *model.constraints, *model.contact_pairs)
    parts += (*model.tendons, *model.gravity_compensation, *model.sensors, *model.groups)
    parts += (*model.cameras, *model.fluid_forces)
    return is_plain_value(model.gravity) and all(map(is_plain_value, parts))


def is_plain_value(x) -> bool:
    """Whether a value is built of numbers, strings and kinetree's own classes alone."""
    kind = type(x)
    if kind is np.ndarray:
        return x.dtype.kind in "biufc" or all(map(is_plain_value, x.ravel().tolist()))
    if kind in (float, int, bool, str, bytes, complex, Fraction, type(None)):
        return True
    if kind in (tuple, list):
        return all(map(is_plain_value, x))
    if isinstance(x, np.number):
        return True
    if not kind.__module__.startswith(("kinetree.joints", "kinetree.model", "kinetree.spatial")):
        return False
    names = _attributes(kind)
    values = vars(x).values() if names is None else [getattr(x, name) for name in names]
    return all(map(is_plain_value, values))
