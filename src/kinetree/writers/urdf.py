"""``to_urdf``: a model as the text of a URDF file."""

import math
import sys
from dataclasses import astuple, fields, replace
from os.path import isabs
from urllib.parse import quote

import numpy as np
from lxml import etree  # type: ignore[import-untyped]

from kinetree.errors import InteropError, ModelWarning, warn
from kinetree.joints import Fixed, Free, Planar, Prismatic, Reversed, Revolute
from kinetree.model.actuator import commands_of
from kinetree.model.arrays import as_model
from kinetree.model.constraint_function import require_none_written
from kinetree.model.coupling import require_written
from kinetree.model.geometry import SHAPES, Mesh, Surface
from kinetree.model.model import STANDARD_GRAVITY
from kinetree.model.rotors import without_rotors
from kinetree.spatial.rotation import euler_angles


def to_urdf(model) -> str:
    """URDF text of a model.

    The base is the root link, and frames are links without mass. What URDF lacks is written as
    ``kinetree:`` elements, which other programs skip: loops, armature, springs, couplings that are
    no mimic, limits of planar and free joints, gravity other than the standard one, postures,
    tendons, and all of actuators but motors on joints.

    Raises:
        InteropError: for joints of the tree that URDF does not have.
    """
    require_none_written(as_model(model), "a URDF")
    model, armature = without_rotors(model)
    robot = etree.Element("robot", nsmap={"kinetree": NAMESPACE})
    _name(robot, model.name)
    _add_links(robot, model)
    _add_joints(robot, model)
    _add_frames(robot, model)
    _add_friction(robot, model)
    for loop in model.loops:
        add_loop(robot, loop, model.body_names)
    _add_actuators(robot, model)
    _add_rest(robot, model, armature)
    if model.gravity_compensation:
        warn(
            f"model {model.name!r}: gravity compensation not written, since URDF has none",
            ModelWarning,
        )
    if model.fluid_forces:
        warn(f"model {model.name!r}: fluid forces not written, since URDF has none", ModelWarning)
    if model.groups or model.contact_pairs:
        warn(
            f"model {model.name!r}: groups and contact pairs are not written, since URDF has none; "
            f"kinetree.save(model, 'robot.srdf') writes them beside it",
            ModelWarning,
        )
    etree.cleanup_namespaces(robot)
    etree.indent(robot)
    declaration = '<?xml version="1.0" encoding="utf-8"?>\n'
    return declaration + etree.tostring(robot, encoding="unicode") + "\n"


def _name(robot, name):
    """Set the robot's name; an error for characters that XML forbids."""
    try:
        robot.set("name", name)
    except ValueError:
        raise InteropError(f"the model name {name!r} holds characters that XML cannot") from None


def _add_links(robot, model):
    """Write all bodies as links in URDF."""
    links = [add(robot, "link", name=name) for name in model.body_names]
    for link, body in zip(links[1:], model.bodies, strict=True):
        add_inertial(link, body.inertia, f"body {body.name!r}")
    parts = {(f.name, f.body) for f in model.frames}
    lost = [g for g in model.geometry if type(g.shape) not in _SHAPES]
    for g in model.geometry:
        if (g.link, g.body) not in parts:
            add_look(links[g.body], g)
    if lost:
        kinds = ", ".join(sorted({type(g.shape).__name__ for g in lost}))
        warn(
            f"model {model.name!r}: {len(lost)} shapes are not written, since URDF has no {kinds}",
            ModelWarning,
        )


def _add_friction(robot, model):
    """Write friction by Gazebo's extension; a warning for other surface properties."""
    said: dict[str, set] = {}
    lost = []
    for g in model.geometry:
        if g.collision and g.surface is not None:
            s, link = g.surface, g.link or model.body_names[g.body]
            said.setdefault(link, set()).add(0.0 if s.condim == 1 else s.friction)
            plain = replace(s, friction=None, torsion=None, rolling=None, condim=min(s.condim, 3))
            if plain not in (Surface(), Surface(condim=1)):
                lost.append(link)
    lost += [link for link, values in said.items() if len(values) > 1]
    for link, values in said.items():
        if len(values) == 1 and None not in values:
            element = add(robot, "gazebo", reference=link)
            for tag in ("mu1", "mu2"):
                etree.SubElement(element, tag).text = repr(float(*values))
    if lost:
        shown = ", ".join(map(repr, dict.fromkeys(lost[:4])))
        warn(
            f"model {model.name!r}: surfaces of {shown} are written with their friction at most, "
            f"since URDF does not have masks, margins, priorities and restitution of shapes",
            ModelWarning,
        )


def _add_joints(robot, model):
    """Write all joints with limits, dynamics and mimic laws."""
    mimics = {c.joint: c for c in model.couplings if c.is_mimic}
    for i, body in enumerate(model.bodies, start=1):
        element = add_joint(robot, body, model.body_names[body.parent])
        add_limits(element, body)
        add_dynamics(element, body)
        if i in mimics:
            c = mimics[i]
            offset, multiplier = c.coefficients
            source = model.joint_names[c.source - 1]
            add(element, "mimic", joint=source, multiplier=multiplier, offset=offset)


def _add_frames(robot, model):
    """Write each frame as a link on a fixed joint in URDF."""
    taken = {*model.joint_names, *(x.name for x in (*model.loops, *model.couplings))}
    for frame in model.frames:
        link = add(robot, "link", name=frame.name)
        for g in model.geometry:
            if (g.link, g.body) == (frame.name, frame.body):
                add_look(link, replace(g, placement=g.placement @ frame.placement.inverse()))
        name = frame.name
        while name in taken:
            name += "_fixed"
        taken.add(name)
        add_fixed(robot, name, model.body_names[frame.body], frame.name, frame.placement)


def _add_actuators(robot, model):
    """Write actuators as transmissions, or as elements of kinetree's extension."""
    for a in model.actuators:
        more = {k: getattr(a, k) for k in _LAW if getattr(a, k) != getattr(type(a), k)}
        if a.muscle is not None:
            more["muscle"] = np.hstack(astuple(a.muscle)).tolist()
        for key in ("control", "effort", "activation_range", "integral_range"):
            if np.any(np.isfinite(getattr(a, key))):
                more[key] = " ".join(repr(float(x)) for x in getattr(a, key))
        if not model.driven_joint(a):
            add(robot, own("actuator"), name=a.name, gear=a.gear, **more)
            continue
        element = add(robot, "transmission", name=f"{a.name}_transmission")
        etree.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
        joint = add(element, "joint", name=model.driven_joint(a))
        actuator = add(element, "actuator", name=a.name)
        servo = {"position": "Position", "velocity": "Velocity"}.get(a.kind, "Effort")
        for part in (joint, actuator):
            interface = f"hardware_interface/{servo}JointInterface"
            etree.SubElement(part, "hardwareInterface").text = interface
        if len(a.gear) == 1:
            etree.SubElement(actuator, "mechanicalReduction").text = repr(float(a.gear[0]))
        else:
            more["gear"] = a.gear
        if more:
            add(actuator, own("actuator"), **more)


def _part(x):
    """Attributes of an element of a tendon's path."""
    if isinstance(x, str):
        return {"frame": x}
    return {f.name: value for f in fields(x) if (value := getattr(x, f.name)) != ""}


_LAW = (
    "tendon", "frame", "reference", "gain", "bias", "activation", "time_constant",
    "deactivation_time", "crank", "adhesion", "integral", "integral_zero",
)  # fmt: skip


def _add_rest(robot, model, armature):
    """Write the parts that only kinetree's extension can express."""
    if not np.array_equal(model.gravity, STANDARD_GRAVITY):
        add(robot, own("gravity"), xyz=model.gravity)
    for c in model.couplings:
        if not c.is_mimic:
            require_written(c, "a URDF")
            joint = model.joint_names[c.joint - 1]
            if c.tendon:
                add(robot, own("coupling"), name=c.name, joint=joint, tendon=c.tendon)
                continue
            ends = {"source": model.joint_names[c.source - 1]} if c.source else {}
            if c.sources:
                ends["sources"] = " ".join(model.joint_names[i - 1] for i in c.sources)
            law = {"weights": c.shares} if c.sources else {}
            law["coefficients"] = c.coefficients
            add(robot, own("coupling"), name=c.name, joint=joint, **ends, **law)
    for t in model.tendons:
        numbers = {f.name: getattr(t, f.name) for f in fields(t)[2:] if f.name != "path"}
        numbers = {k: x for k, x in numbers.items() if x != getattr(type(t), k, None)}
        numbers |= {"armature": armature[t.name]} if t.name in armature else {}
        bounds = {k: repr(numbers.pop(k)) for k in ("lower", "upper") if k in numbers}
        names = [model.joint_names[i - 1] for i in t.joints]
        joints = {"joints": " ".join(names)} if names else {}
        element = add(robot, own("tendon"), name=t.name, **joints, **numbers, **bounds)
        for x in t.path:
            tag = "through" if isinstance(x, str) else type(x).__name__.lower()
            add(element, tag, **_part(x))
    for posture in model.postures:
        element = add(robot, own("posture"), name=posture.name)
        for i, name in enumerate(model.joint_names, start=1):
            if model.joint[i].nq:
                part = add(element, "joint", name=name, q=posture.q[model.q_slice[i]].tolist())
                if posture.moves:
                    part.set("qd", " ".join(map(repr, posture.qd[model.v_slice[i]].tolist())))
        commands = commands_of(posture, model.actuators)
        for tag, what in (("control", "controls"), ("activation", "activation")):
            for name, x in commands[what].items():
                add(element, tag, name=name, value=x)


# --- Joints of the tree, and those that close loops ----------------------------------------------

_TYPES = {Revolute: "revolute", Prismatic: "prismatic", Planar: "planar", Free: "floating",
          Fixed: "fixed"}  # fmt: skip
_IN_TOML = "save it as kinetree's TOML (.toml), which has every joint"


def add_joint(robot, body, parent: str):
    """Write the joint that carries a body in URDF."""
    joint = forward(body.joint)
    kind = _TYPES.get(type(joint))
    if kind is None or getattr(joint, "translation", "parent") != "parent":
        raise InteropError(
            f"joint {body.joint_name!r} is {body.joint!r}, which URDF cannot express; it has "
            f"revolute, continuous, prismatic, planar, floating and fixed joints; {_IN_TOML}"
        )
    if kind == "revolute" and not _is_bounded(body.limits):
        kind = "continuous"
    element = _joint(robot, body.joint_name, kind, parent, body.name, body.placement)
    if hasattr(joint, "axis"):
        add(element, "axis", xyz=joint.axis)  # type: ignore[union-attr]
    return element


def add_fixed(robot, name, parent, child, placement):
    """Write a fixed joint, whose child is a frame."""
    element = _joint(robot, name, "fixed", parent, child, placement)
    if name != child:
        etree.SubElement(element, own("frame"))  # or the name would come back as another frame


def _joint(robot, name, kind, parent, child, placement):
    """Write a joint between two links in URDF."""
    element = add(robot, "joint", name=name, type=kind)
    add_origin(element, placement)
    add(element, "parent", link=parent)
    add(element, "child", link=child)
    return element


def forward(joint):
    """Joint equal to a reversed revolute or prismatic one, about the opposite axis."""
    if isinstance(joint, Reversed) and isinstance(joint.joint, (Revolute, Prismatic)):
        return type(joint.joint)(tuple(-np.array(joint.joint.axis)))
    return joint


def _is_bounded(limits):
    """Whether any position limit is finite."""
    return limits is not None and any(map(math.isfinite, (*limits.lower, *limits.upper)))


def add_limits(element, body):
    """Write the limits of a joint, with URDF's four required numbers."""
    limits, joint = body.limits, body.joint
    if joint.nv != 1:
        _add_own(element, "limits", limits)
        return
    kind = element.get("type")
    if limits is None and kind == "continuous":
        return
    values = {} if limits is None else {f.name: getattr(limits, f.name) for f in fields(limits)}
    if any(values.get(key) for key in values if key.startswith("effort_")):
        _add_own(element, "limits", limits)
    default = {"lower": -math.inf, "upper": math.inf, "velocity": math.inf, "effort": math.inf}
    if kind == "continuous":
        default = {key: default[key] for key in ("velocity", "effort")}
    add(element, "limit", **{key: values.get(key) or x for key, x in default.items()})


def _add_own(element, name, part):
    """Write limits or dynamics as an element of kinetree's extension."""
    if part is not None:
        given = {f.name: getattr(part, f.name) for f in fields(part)}
        add(element, own(name), **{key: _text_of(x) for key, x in given.items() if x})


def _text_of(values):
    """Numbers as text, infinite ones by name."""
    return " ".join(repr(float(x)) for x in values)


def add_dynamics(element, body):
    """Write damping and friction; armature and spring in kinetree's extension."""
    dynamics = body.dynamics
    if dynamics is None:
        return
    values = {f.name: getattr(dynamics, f.name) for f in fields(dynamics)}
    values = {name: given for name, given in values.items() if given}
    if body.joint.nv == 1:
        plain = {k: values.pop(k) for k in ("damping", "friction") if k in values}
        if plain:
            add(element, "dynamics", **plain)
    if values:
        add(element, own("dynamics"), **values)


def add_loop(robot, loop, names):
    """Write a loop as ``<kinetree:loop>``."""
    turned = isinstance(loop.joint, Reversed)
    joint = loop.joint.joint if turned else loop.joint
    element = add(robot, own("loop"), name=loop.name, type=joint.spelling)
    if turned:
        element.set("reversed", "true")
    if loop.misalignment is not None:
        element.set("misalignment", _text_of([loop.misalignment]))
    for end in ("predecessor", "successor"):
        part = etree.SubElement(element, end)
        part.set("link", names[getattr(loop, end)])
        add_origin(part, getattr(loop, f"{end}_placement"))
    _add_own(element, "limits", loop.limits)
    _add_own(element, "dynamics", loop.dynamics)
    for field in fields(joint):
        value = getattr(joint, field.name)
        if field.name == "axis":
            add(element, "axis", xyz=value)
        elif isinstance(value, (str, float, int, tuple)):
            element.set(field.name, value if isinstance(value, str) else _text_of(np.ravel(value)))
        else:
            raise InteropError(
                f"loop joint {loop.name!r} is a {type(joint).__name__}, which is made of code and "
                f"cannot be written to a file"
            )


# --- Elements: numbers, origins, inertias, shapes ------------------------------------------------

NAMESPACE = "urn:kinetree:urdf:1"


def own(tag: str) -> str:
    """Tag in kinetree's XML namespace."""
    return f"{{{NAMESPACE}}}{tag}"


def add(parent, tag: str, **attributes):
    """Append an XML element; numbers are written in full precision."""
    element = etree.SubElement(parent, tag)
    for name, value in attributes.items():
        text = value if isinstance(value, str) else _numbers(value, f"{name} of <{tag}>")
        try:
            element.set(name, text)
        except ValueError:
            raise InteropError(
                f"{text!r} holds characters that XML cannot; rename it before writing URDF"
            ) from None
    return element


def _numbers(values, what):
    """Numbers as text, separated by blanks."""
    return " ".join(_number(x, what) for x in np.ravel(np.asarray(values)))


def _number(x, what):
    """Number as text; an error for symbols."""
    try:
        x = float(x)
    except (TypeError, ValueError):
        raise InteropError(
            f"{what} is {x!r}, and URDF only holds numbers; put values in place of symbols first"
        ) from None
    if math.isinf(x):
        return repr(math.copysign(sys.float_info.max, x))
    return str(int(x)) if x.is_integer() and abs(x) < 1e15 else repr(x)


def add_origin(parent, X):
    """Write an ``<origin>``, unless it is the identity."""
    E, r = np.asarray(X.E, dtype=float), np.asarray(X.r, dtype=float)
    if np.array_equal(E, np.eye(3)) and not np.any(r):
        return
    yaw, pitch, roll = euler_angles("zyx", E)
    add(parent, "origin", xyz=r, rpy=(roll, pitch, yaw))


def add_inertial(link, inertia, what):
    """Write mass, mass centre and inertia about it, if there is mass."""
    if not np.any(inertia.parameters()):
        return
    if inertia.mass == 0 and np.any(inertia.first_moment):
        raise InteropError(
            f"{what} has a first moment without a mass, which is impossible and which URDF cannot "
            f"express; change it with model.replace(inertia=...)"
        )
    inertial = etree.SubElement(link, "inertial")
    massless = inertia.mass == 0
    I = inertia.rotational if massless else inertia.rotational_at_center
    add(inertial, "origin", xyz=(0, 0, 0) if massless else inertia.center_of_mass, rpy=(0, 0, 0))
    add(inertial, "mass", value=inertia.mass)
    add(
        inertial,
        "inertia",
        ixx=I[0, 0],
        ixy=I[0, 1],
        ixz=I[0, 2],
        iyy=I[1, 1],
        iyz=I[1, 2],
        izz=I[2, 2],
    )


def add_look(link, geometry) -> bool:
    """Write visual and collision of a shape; False if URDF has no such shape."""
    if type(geometry.shape) not in _SHAPES:
        return False
    for kind in ("visual", "collision"):
        if getattr(geometry, kind):
            element = add(link, kind, **({"name": geometry.name} if geometry.name else {}))
            add_origin(element, geometry.placement)
            _SHAPES[type(geometry.shape)](etree.SubElement(element, "geometry"), geometry.shape)
            if kind == "visual" and geometry.color is not None:
                add(add(element, "material", name=""), "color", rgba=geometry.color)
    return True


def _mesh(parent, mesh):
    """Write a mesh with its file and scale in URDF."""
    path = "file://" + quote(mesh.path) if isabs(mesh.path) else mesh.path
    add(parent, "mesh", filename=path, scale=mesh.scale)


def _solid(parent, shape):
    """Write a solid with its sizes in URDF."""
    add(parent, shape.spelling(), **{name: getattr(shape, name) for name in shape.counts()})


_SHAPES = {kind: _solid for kind in SHAPES if "urdf" in kind.formats} | {Mesh: _mesh}
