"""Models as plain data: dictionaries, lists, strings and numbers that JSON can hold.

Floats survive exactly, because Python writes the shortest digits that read back as the same
number; so a model that went through a file has the fingerprint of the original.
"""

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

import kinetree.joints
from kinetree.errors import KinetreeError, ModelError
from kinetree.joints import AbstractJoint
from kinetree.model import geometry as shapes
from kinetree.model.actuator import UNBOUNDED
from kinetree.model.constraint_function import require_none_written
from kinetree.model.coupling import GravityCompensation, Tendon, require_written
from kinetree.model.geometry import ContactPair, Geometry, Surface
from kinetree.model.names import Group
from kinetree.model.parts import (
    Actuator,
    Body,
    Coupling,
    Frame,
    JointDynamics,
    Limits,
    Loop,
    Posture,
    is_identity,
)
from kinetree.model.sensors import Sensor
from kinetree.spatial import Inertia, Plucker

# --- numbers, transforms, limits and joints ------------------------------------------------------


def plain(x, what):
    """Numbers and their containers as Python's own."""
    if isinstance(x, (np.ndarray, np.number)):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [plain(item, what) for item in x]
    if isinstance(x, AbstractJoint):
        return joint(x, what)
    if isinstance(x, Plucker):
        return placement(x, what)
    if x is None or isinstance(x, (bool, int, float, str)):
        return x
    raise ModelError(
        f"{what} holds a {type(x).__name__}, which plain data cannot express; only models of "
        f"floats can be written"
    )


def placement(X, what):
    """A transform."""
    what = f"placement of {what!r}"
    return {"E": plain(X.E, what), "r": plain(X.r, what)}


def read_placement(data):
    """Inverse of ``placement``."""
    return Plucker(np.array(data["E"]), np.array(data["r"]))


def bounds(values):
    """Bounds; infinite ones become null, which strict JSON has a word for."""
    return [x if math.isfinite(x) else None for x in values]


def read_bounds(data):
    """Inverse of ``bounds`` for a pair."""
    lower, upper = data
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def limits(given):
    """Limits of a joint."""
    return {f.name: bounds(getattr(given, f.name)) for f in fields(given)}


def read_limits(data):
    """Inverse of ``limits``."""
    free = {"lower": -math.inf}
    return Limits(
        **{
            name: tuple(free.get(name, math.inf) if x is None else x for x in values)
            for name, values in data.items()
        }
    )


def known_joints(more=()):
    """Joint classes by name: kinetree's, those that are registered, and ``more``."""
    return {c.__name__: c for c in (*kinetree.joints.known_joints(), *more)}


def joint(given, name):
    """A joint: its class and parameters."""
    if not is_dataclass(given):
        raise ModelError(
            f"joint {name!r} is a {type(given).__name__}, which is not a dataclass: its "
            f"parameters cannot be listed"
        )
    what = f"joint {name!r}"
    return {"type": type(given).__name__} | {
        f.name: plain(getattr(given, f.name), what) for f in fields(given)
    }


def read_joint(data, known):
    """Inverse of ``joint``."""
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
    if isinstance(x, list):
        return tuple(_read_value(item, known) for item in x)
    if isinstance(x, dict):
        return read_joint(x, known) if "type" in x else read_placement(x)
    return x


FORMAT = "kinetree model 1"


def to_dict(model):
    """A model as plain data."""
    require_none_written(model, "a dictionary")
    names, joint_names = model.body_names, (None, *model.joint_names)
    return {
        "format": FORMAT,
        "name": model.name,
        "base_name": model.base_name,
        "gravity": plain(model.gravity, "gravity"),
        "bodies": [_body(b, names) for b in model.bodies],
        "frames": [
            {
                "name": f.name,
                "body": names[f.body],
                "placement": placement(f.placement, f.name),
            }
            for f in model.frames
        ],
        "loops": [
            {
                "name": loop.name,
                "joint": joint(loop.joint, loop.name),
                "predecessor": names[loop.predecessor],
                "successor": names[loop.successor],
                "predecessor_placement": placement(loop.predecessor_placement, loop.name),
                "successor_placement": placement(loop.successor_placement, loop.name),
                **_of_joint(loop, loop.name),
                **_given(misalignment=loop.misalignment),
            }
            for loop in model.loops
        ],
        "couplings": [_coupling(c, joint_names) for c in model.couplings],
        "geometry": [_geometry(g, names) for g in model.geometry],
        "actuators": [_actuator(a, model.driven_joint(a)) for a in model.actuators],
        "postures": [_posture(p) for p in model.postures],
        "tendons": [_tendon(t, joint_names) for t in model.tendons],
        "gravity_compensation": [
            {**_fields(g, "gravity compensation"), "body": names[g.body]}
            for g in model.gravity_compensation
        ],
        **_given(contact_pairs=[_contact_pair(p) for p in model.contact_pairs] or None),
        **_given(sensors=[_sensor(s) for s in model.sensors] or None),
        **_given(groups=[_fields(g, f"group {g.name!r}") for g in model.groups] or None),
    }


def _sensor(s):
    """What is not as usual; older versions read models without sensors."""
    what, usual, found = f"sensor {s.name!r}", Sensor("", ""), {}
    for f in fields(s):
        x = getattr(s, f.name)
        if f.name in ("shape", "inertia"):
            if x is not None:
                found[f.name] = _shape(x, what) if f.name == "shape" else _inertia(x, what)
        elif isinstance(x, Plucker):
            if not is_identity(x):
                found[f.name] = placement(x, s.name)
        elif x != getattr(usual, f.name):
            found[f.name] = plain(x, what)
    return found


def _read_sensor(data):
    found: dict[str, Any] = {name: _tuples(x) for name, x in data.items()}
    for name in ("placement", "reference_placement"):
        if name in data:
            found[name] = read_placement(data[name])
    if "shape" in data:
        found["shape"] = _read_shape(data["shape"])
    if "inertia" in data:
        found["inertia"] = Inertia(**data["inertia"])
    return Sensor(**found)


def _actuator(a, driven):
    """What is not as in a plain motor of a joint stands only where it is there."""
    later = ("tendon", "frame", "reference", "gain", "bias", "activation", "time_constant")
    given = {k: getattr(a, k) for k in later if getattr(a, k) != getattr(Actuator, k)}
    if a.activation_range != UNBOUNDED:
        given["activation_range"] = bounds(a.activation_range)
    return {
        "name": a.name,
        "joint": driven,
        "gear": list(a.gear),
        "control": bounds(a.control),
        "effort": bounds(a.effort),
        **{k: list(x) if isinstance(x, tuple) else x for k, x in given.items()},
    }


def _posture(p):
    given = {k: getattr(p, k).tolist() for k in ("controls", "activation") if getattr(p, k).size}
    return {"name": p.name, "q": p.q.tolist(), "qd": p.qd.tolist(), **given}


def _coupling(c, joint_names):
    require_written(c, "a dictionary")
    several = {"sources": [joint_names[i] for i in c.sources], "weights": list(c.weights)}
    return {
        "name": c.name,
        "joint": joint_names[c.joint],
        "source": joint_names[c.source],
        "coefficients": list(c.coefficients),
        **(several if c.sources else {}),
    }


def _tendon(t, joint_names):
    joints = {joint_names[i]: c for i, c in zip(t.joints, t.coefficients, strict=True)}
    found = _fields(t, f"tendon {t.name!r}") | {"joints": joints}
    found["lower"], found["upper"] = bounds((t.lower, t.upper))
    return {key: x for key, x in found.items() if key != "coefficients"}


def _body(b, names):
    return {
        "name": b.name,
        "parent": names[b.parent],
        "joint_name": b.joint_name,
        "joint": joint(b.joint, b.joint_name),
        "placement": placement(b.placement, b.joint_name),
        "inertia": _inertia(b.inertia, f"body {b.name!r}"),
        **_of_joint(b, b.joint_name),
    }


def _inertia(I, what):
    names = ("mass", "first_moment", "rotational")
    return {name: plain(getattr(I, name), f"inertia of {what}") for name in names}


def _given(**values):
    return {name: value for name, value in values.items() if value is not None}


def _of_joint(part, name):
    """Limits and dynamics of a body's joint or of a loop joint."""
    return {
        "limits": part.limits and limits(part.limits),
        "dynamics": part.dynamics and _dynamics(part.dynamics, f"dynamics of joint {name!r}"),
    }


def _dynamics(given, what):
    """Dynamics of a joint; older versions read those without a drive of its own."""
    found = _fields(given, what).items()
    return {key: x for key, x in found if x or not key.startswith("active_")}


def _shape(shape, what):
    return {"type": type(shape).__name__} | _fields(shape, f"shape of {what}")


def _geometry(g, names):
    return {
        "body": names[g.body],
        "shape": _shape(g.shape, repr(g.name)),
        "placement": placement(g.placement, g.name),
        "name": g.name,
        "visual": g.visual,
        "collision": g.collision,
        "color": g.color and list(g.color),
        **_given(surface=g.surface and surface(g.surface), link=g.link or None),
    }


def _contact_pair(p):
    of_pair = {"first": p.first, "second": p.second, "touch": p.touch, "name": p.name}
    return of_pair | _given(surface=p.surface and surface(p.surface))


def surface(given):
    """What a surface says that is not the default."""
    usual = vars(Surface())
    return {name: x for name, x in vars(given).items() if x != usual[name]}


def _fields(x, what):
    return {f.name: plain(getattr(x, f.name), what) for f in fields(x)}


def from_dict(cls, data, joints=()):
    """The model (of class ``cls``) that ``to_dict`` described."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ModelError(f"expected a dictionary with format {FORMAT!r}, got {found!r}")
    try:
        return _read(cls, data, known_joints(joints))
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


def _read(cls, data, known):
    number = {data["base_name"]: 0}
    number |= {b["name"]: i for i, b in enumerate(data["bodies"], start=1)}
    joint = {None: 0} | {b["joint_name"]: i for i, b in enumerate(data["bodies"], start=1)}
    frames = [
        Frame(f["name"], number[f["body"]], read_placement(f["placement"])) for f in data["frames"]
    ]
    loops = [
        Loop(
            loop["name"],
            number[loop["predecessor"]],
            number[loop["successor"]],
            read_joint(loop["joint"], known),
            read_placement(loop["predecessor_placement"]),
            read_placement(loop["successor_placement"]),
            *_read_of_joint(loop),
            loop.get("misalignment"),
        )
        for loop in data["loops"]
    ]
    loop_number = {loop.name: k for k, loop in enumerate(loops, start=1)}
    couplings = [
        Coupling(
            c["name"],
            joint[c["joint"]],
            joint[c["source"]],
            tuple(c["coefficients"]),
            tuple(joint[name] for name in c.get("sources", ())),
            tuple(c.get("weights", ())),
        )
        for c in data.get("couplings", ())
    ]
    actuators = [_read_actuator(a, joint, loop_number) for a in data.get("actuators", ())]
    return cls(
        tuple(_read_body(b, number, known) for b in data["bodies"]),
        frames=tuple(frames),
        loops=tuple(loops),
        couplings=tuple(couplings),
        geometry=tuple(_read_geometry(g, number) for g in data.get("geometry", ())),
        actuators=tuple(actuators),
        postures=tuple(
            Posture(*(p.get(k, ()) for k in ("name", "q", "qd", "controls", "activation")))
            for p in data.get("postures", ())
        ),
        tendons=tuple(_read_tendon(t, joint) for t in data.get("tendons", ())),
        gravity_compensation=tuple(
            GravityCompensation(number[g["body"]], g["mass"], g["center"])
            for g in data.get("gravity_compensation", ())
        ),
        contact_pairs=tuple(
            ContactPair(**{**p, "surface": _read_surface(p)}) for p in data.get("contact_pairs", ())
        ),
        sensors=tuple(map(_read_sensor, data.get("sensors", ()))),
        groups=tuple(Group(**g) for g in data.get("groups", ())),
        gravity=data["gravity"],
        name=data["name"],
        base_name=data["base_name"],
    )


def _read_actuator(a, joint, loop_number):
    """An actuator of a joint, a loop joint, a tendon or a frame."""
    driven, ranges = a["joint"], ("control", "effort", "activation_range")
    known: dict[str, Any] = {k: _tuples(x) for k, x in a.items() if k != "joint"}
    known |= {k: read_bounds(a[k]) for k in ranges if k in a}
    if driven in loop_number:
        return Actuator(**known, loop=loop_number[driven])
    return Actuator(**known, joint=joint[driven] if driven else 0)


def _read_of_joint(part):
    """Limits and dynamics; loop joints of older files have neither."""
    limits, dynamics = part.get("limits"), part.get("dynamics")
    return limits and read_limits(limits), dynamics and JointDynamics(**dynamics)


def _read_tendon(t, joint):
    lower, upper = read_bounds((t["lower"], t["upper"]))
    joints = tuple(joint[name] for name in t["joints"])
    given = {
        "joints": joints,
        "coefficients": tuple(t["joints"].values()),
        "rest": tuple(t["rest"]),
    }
    return Tendon(**{**t, **given, "lower": lower, "upper": upper})


def _read_body(b, number, known):
    return Body(
        b["name"],
        number[b["parent"]],
        read_joint(b["joint"], known),
        read_placement(b["placement"]),
        Inertia(**b["inertia"]),
        b["joint_name"],
        *_read_of_joint(b),
    )


def _read_shape(data):
    shape = {name: _tuples(x) for name, x in data.items()}
    kinds = {kind.__name__: kind for kind in shapes.Shape.__args__}
    kind = shape.pop("type")
    if kind not in kinds:
        raise ModelError(f"unknown shape {kind!r}; known: {sorted(kinds)}")
    return kinds[kind](**shape)


def _read_geometry(g, number):
    return Geometry(
        number[g["body"]],
        _read_shape(g["shape"]),
        read_placement(g["placement"]),
        g["name"],
        g["visual"],
        g["collision"],
        g["color"] and tuple(g["color"]),
        _read_surface(g),
        g.get("link", ""),
    )


def _read_surface(part):
    given = part.get("surface")
    return None if given is None else Surface(**given)


def _tuples(x):
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
