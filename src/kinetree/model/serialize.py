"""Models as plain data: dictionaries, lists, strings and numbers that JSON can hold.

Floats survive exactly, because Python writes the shortest digits that read back as the same
number; so a model that went through a file has the fingerprint of the original.
"""

import math
from dataclasses import fields, is_dataclass

import numpy as np

import kinetree.joints
from kinetree.errors import ModelError
from kinetree.joints import AbstractJoint
from kinetree.model.parts import Body, Frame, Limits, Loop
from kinetree.spatial import Inertia, Plucker

__all__ = ["FORMAT", "from_dict", "to_dict"]

FORMAT = "kinetree model 1"


def to_dict(model):
    """A model as plain data."""
    names = model.body_names
    return {
        "format": FORMAT,
        "name": model.name,
        "base_name": model.base_name,
        "gravity": _plain(model.gravity, "gravity"),
        "bodies": [
            {
                "name": b.name,
                "parent": names[b.parent],
                "joint_name": b.joint_name,
                "joint": _joint(b.joint, b.joint_name),
                "placement": _placement(b.placement, b.joint_name),
                "inertia": {
                    name: _plain(getattr(b.inertia, name), f"inertia of body {b.name!r}")
                    for name in ("mass", "first_moment", "rotational")
                },
                "limits": b.limits and _limits(b.limits),
            }
            for b in model.bodies
        ],
        "frames": [
            {"name": f.name, "body": names[f.body], "placement": _placement(f.placement, f.name)}
            for f in model.frames
        ],
        "loops": [
            {
                "name": loop.name,
                "joint": _joint(loop.joint, loop.name),
                "predecessor": names[loop.predecessor],
                "successor": names[loop.successor],
                "predecessor_placement": _placement(loop.predecessor_placement, loop.name),
                "successor_placement": _placement(loop.successor_placement, loop.name),
            }
            for loop in model.loops
        ],
    }


def from_dict(cls, data, joints=()):
    """The model (of class ``cls``) that ``to_dict`` described."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ModelError(f"expected a dictionary with format {FORMAT!r}, got {found!r}")
    known = {c.__name__: c for c in (*vars(kinetree.joints).values(), *joints) if _is_joint(c)}
    try:
        return _read(cls, data, known)
    except KeyError as error:
        raise ModelError(
            f"the data of model {data.get('name')!r} have no {error}: an entry is missing, or a "
            f"body that others refer to"
        ) from None


def _read(cls, data, known):
    number = {data["base_name"]: 0}
    number |= {b["name"]: i for i, b in enumerate(data["bodies"], start=1)}
    bodies = [
        Body(
            b["name"],
            number[b["parent"]],
            _read_joint(b["joint"], known),
            _read_placement(b["placement"]),
            Inertia(**b["inertia"]),
            b["joint_name"],
            b["limits"] and _read_limits(b["limits"]),
        )
        for b in data["bodies"]
    ]
    frames = [
        Frame(f["name"], number[f["body"]], _read_placement(f["placement"])) for f in data["frames"]
    ]
    loops = [
        Loop(
            loop["name"],
            number[loop["predecessor"]],
            number[loop["successor"]],
            _read_joint(loop["joint"], known),
            _read_placement(loop["predecessor_placement"]),
            _read_placement(loop["successor_placement"]),
        )
        for loop in data["loops"]
    ]
    return cls(
        tuple(bodies),
        frames=tuple(frames),
        loops=tuple(loops),
        gravity=data["gravity"],
        name=data["name"],
        base_name=data["base_name"],
    )


def _plain(x, what):
    """Numbers and their containers as Python's own."""
    if isinstance(x, (np.ndarray, np.number)):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [_plain(item, what) for item in x]
    if isinstance(x, AbstractJoint):
        return _joint(x, what)
    if isinstance(x, Plucker):
        return _placement(x, what)
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    raise ModelError(
        f"{what} holds a {type(x).__name__}, which plain data cannot express; only models of "
        f"floats can be written"
    )


def _placement(X, what):
    what = f"placement of {what!r}"
    return {"E": _plain(X.E, what), "r": _plain(X.r, what)}


def _read_placement(data):
    return Plucker(np.array(data["E"]), np.array(data["r"]))


def _limits(limits):
    """Infinite bounds become null, which strict JSON has a word for."""
    return {
        f.name: [x if math.isfinite(x) else None for x in getattr(limits, f.name)]
        for f in fields(limits)
    }


def _read_limits(data):
    free = {"lower": -math.inf}
    return Limits(
        **{
            name: tuple(free.get(name, math.inf) if x is None else x for x in values)
            for name, values in data.items()
        }
    )


def _is_joint(c):
    return isinstance(c, type) and issubclass(c, AbstractJoint)


def _joint(joint, name):
    if not is_dataclass(joint):
        raise ModelError(
            f"joint {name!r} is a {type(joint).__name__}, which is not a dataclass: its "
            f"parameters cannot be listed"
        )
    what = f"joint {name!r}"
    return {"type": type(joint).__name__} | {
        f.name: _plain(getattr(joint, f.name), what) for f in fields(joint)
    }


def _read_joint(data, known):
    kind = data["type"]
    if kind not in known:
        raise ModelError(
            f"unknown joint type {kind!r}; known: {sorted(known)}. Pass classes of your own as "
            f"Model.from_dict(data, joints=[...])"
        )
    values = {name: _read_value(x, known) for name, x in data.items() if name != "type"}
    joint = known[kind](**values)
    for name, value in values.items():
        # The constructor may have normalised an axis once more, which moves its last digit.
        object.__setattr__(joint, name, value)
    return joint


def _read_value(x, known):
    if isinstance(x, list):
        return tuple(_read_value(item, known) for item in x)
    if isinstance(x, dict):
        return _read_joint(x, known) if "type" in x else _read_placement(x)
    return x
