"""Models as plain data: dictionaries, lists, strings and numbers that JSON can hold.

Floats survive exactly, because Python writes the shortest digits that read back as the same
number; so a model that went through a file has the fingerprint of the original.
"""

from dataclasses import fields

from kinetree.errors import KinetreeError, ModelError
from kinetree.model import geometry as shapes
from kinetree.model import plain
from kinetree.model.coupling import require_written
from kinetree.model.geometry import Geometry
from kinetree.model.parts import Actuator, Body, Coupling, Frame, JointDynamics, Loop, Posture
from kinetree.spatial import Inertia

__all__ = ["FORMAT", "from_dict", "to_dict"]

FORMAT = "kinetree model 1"


def to_dict(model):
    """A model as plain data."""
    names, joint_names = model.body_names, (None, *model.joint_names)
    return {
        "format": FORMAT,
        "name": model.name,
        "base_name": model.base_name,
        "gravity": plain.plain(model.gravity, "gravity"),
        "bodies": [_body(b, names) for b in model.bodies],
        "frames": [
            {
                "name": f.name,
                "body": names[f.body],
                "placement": plain.placement(f.placement, f.name),
            }
            for f in model.frames
        ],
        "loops": [
            {
                "name": loop.name,
                "joint": plain.joint(loop.joint, loop.name),
                "predecessor": names[loop.predecessor],
                "successor": names[loop.successor],
                "predecessor_placement": plain.placement(loop.predecessor_placement, loop.name),
                "successor_placement": plain.placement(loop.successor_placement, loop.name),
                **_of_joint(loop, loop.name),
                **_given(misalignment=loop.misalignment),
            }
            for loop in model.loops
        ],
        "couplings": [_coupling(c, joint_names) for c in model.couplings],
        "geometry": [_geometry(g, names) for g in model.geometry],
        "actuators": [
            {
                "name": a.name,
                "joint": model.driven_joint(a),
                "gear": list(a.gear),
                "control": plain.bounds(a.control),
                "effort": plain.bounds(a.effort),
            }
            for a in model.actuators
        ],
        "postures": [
            {"name": p.name, "q": p.q.tolist(), "qd": p.qd.tolist()} for p in model.postures
        ],
    }


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


def _body(b, names):
    return {
        "name": b.name,
        "parent": names[b.parent],
        "joint_name": b.joint_name,
        "joint": plain.joint(b.joint, b.joint_name),
        "placement": plain.placement(b.placement, b.joint_name),
        "inertia": {
            name: plain.plain(getattr(b.inertia, name), f"inertia of body {b.name!r}")
            for name in ("mass", "first_moment", "rotational")
        },
        **_of_joint(b, b.joint_name),
    }


def _given(**values):
    return {name: value for name, value in values.items() if value is not None}


def _of_joint(part, name):
    """Limits and dynamics of a body's joint or of a loop joint."""
    return {
        "limits": part.limits and plain.limits(part.limits),
        "dynamics": part.dynamics and _fields(part.dynamics, f"dynamics of joint {name!r}"),
    }


def _geometry(g, names):
    shape = {"type": type(g.shape).__name__} | _fields(g.shape, f"shape of {g.name!r}")
    return {
        "body": names[g.body],
        "shape": shape,
        "placement": plain.placement(g.placement, g.name),
        "name": g.name,
        "visual": g.visual,
        "collision": g.collision,
        "color": g.color and list(g.color),
    }


def _fields(x, what):
    return {f.name: plain.plain(getattr(x, f.name), what) for f in fields(x)}


def from_dict(cls, data, joints=()):
    """The model (of class ``cls``) that ``to_dict`` described."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ModelError(f"expected a dictionary with format {FORMAT!r}, got {found!r}")
    try:
        return _read(cls, data, plain.known_joints(joints))
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
        Frame(f["name"], number[f["body"]], plain.read_placement(f["placement"]))
        for f in data["frames"]
    ]
    loops = [
        Loop(
            loop["name"],
            number[loop["predecessor"]],
            number[loop["successor"]],
            plain.read_joint(loop["joint"], known),
            plain.read_placement(loop["predecessor_placement"]),
            plain.read_placement(loop["successor_placement"]),
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
    actuators = [
        Actuator(
            a["name"],
            0 if a["joint"] in loop_number else joint[a["joint"]],
            tuple(a["gear"]),
            plain.read_bounds(a["control"]),
            plain.read_bounds(a["effort"]),
            loop_number.get(a["joint"], 0),
        )
        for a in data.get("actuators", ())
    ]
    return cls(
        tuple(_read_body(b, number, known) for b in data["bodies"]),
        frames=tuple(frames),
        loops=tuple(loops),
        couplings=tuple(couplings),
        geometry=tuple(_read_geometry(g, number) for g in data.get("geometry", ())),
        actuators=tuple(actuators),
        postures=tuple(
            Posture(p["name"], tuple(p["q"]), tuple(p["qd"])) for p in data.get("postures", ())
        ),
        gravity=data["gravity"],
        name=data["name"],
        base_name=data["base_name"],
    )


def _read_of_joint(part):
    """Limits and dynamics; loop joints of older files have neither."""
    limits, dynamics = part.get("limits"), part.get("dynamics")
    return limits and plain.read_limits(limits), dynamics and JointDynamics(**dynamics)


def _read_body(b, number, known):
    return Body(
        b["name"],
        number[b["parent"]],
        plain.read_joint(b["joint"], known),
        plain.read_placement(b["placement"]),
        Inertia(**b["inertia"]),
        b["joint_name"],
        *_read_of_joint(b),
    )


def _read_geometry(g, number):
    shape = {name: _tuples(x) for name, x in g["shape"].items()}
    kinds = {kind.__name__: kind for kind in shapes.Shape.__args__}
    kind = shape.pop("type")
    if kind not in kinds:
        raise ModelError(f"unknown shape {kind!r}; known: {sorted(kinds)}")
    return Geometry(
        number[g["body"]],
        kinds[kind](**shape),
        plain.read_placement(g["placement"]),
        g["name"],
        g["visual"],
        g["collision"],
        g["color"] and tuple(g["color"]),
    )


def _tuples(x):
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
