"""A model as TOML of the native format, which reads back as exactly the same model."""

import json
import math
from dataclasses import fields

import numpy as np

from kinetree import joints
from kinetree.errors import InteropError, ModelError
from kinetree.joints.axis import index_of
from kinetree.model import geometry
from kinetree.model.actuator import commands_of
from kinetree.model.constraint_function import require_none_written
from kinetree.model.coupling import require_written
from kinetree.model.fingerprint import is_default
from kinetree.model.muscle import Muscle
from kinetree.model.parts import is_identity
from kinetree.model.serialize import surface
from kinetree.spatial import Inertia
from kinetree.spatial.rotation import euler_angles, euler_rotation
from kinetree.spatial.vector3 import symmetric

_IDENTITY = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def placement_keys(X) -> dict:
    """TOML keys of a placement: ``at`` and an orientation, where not zero."""
    keys = {}
    if np.any(X.r != 0):
        keys["at"] = X.r
    if X.E.tolist() != _IDENTITY:
        rpy = _rpy(X.E)
        keys |= {"rotation": X.E.T} if rpy is None else {"rpy": rpy}
    return keys


def _rpy(E):
    """Roll, pitch and yaw that reproduce ``E`` exactly, or None."""
    if E.dtype.kind not in "if":
        return None
    angles = euler_angles("zyx", E)[::-1]
    quarters = np.round(angles / (math.pi / 2))
    size = np.abs(E)
    if np.all((size == 0) | (size == 1)):  # the reader takes quarter turns for what they are
        return [f"{round(90 * k)} deg" if k else 0 for k in quarters]
    if np.any((size != 0) & (size < 1e-15)) or np.any((size != 1) & (abs(size - 1) < 1e-15)):
        return None
    for digits in (6, 9, 12, 17):
        rounded = [float(f"{angle:.{digits}g}") for angle in angles]
        if np.array_equal(euler_rotation("zyx", rounded[::-1]), E):
            return [angle if angle else 0 for angle in rounded]
    return None


def inertia_table(inertia) -> dict | None:
    """TOML table of an inertia about the mass centre, if exact; None for no mass."""
    m, h, I = inertia.mass, inertia.first_moment, inertia.rotational
    if m == 0 and not np.any(h != 0) and not np.any(I != 0):
        return None
    return _about_center(inertia) or {"mass": m, "first_moment": h, "rotational": I}


def _about_center(inertia):
    """Mass, centre and central inertia that reproduce an inertia exactly, or None."""
    m, h, I = inertia.mass, inertia.first_moment, inertia.rotational
    if not isinstance(m, (int, float)) or not m > 0 or np.any(I != I.T):
        return None
    center = np.array([_such_that(lambda c: m * c, x, x / m) for x in h])
    shift = -(Inertia.from_mass_center(m, center, np.zeros((3, 3))).rotational)
    at_center = np.array(
        [
            [_such_that(lambda x, s=s: x - s, y, y + s) for y, s in zip(*rows, strict=True)]
            for rows in zip(I, shift, strict=True)
        ]
    )
    again = Inertia.from_mass_center(m, center, symmetric(*at_center[np.tril_indices(3)]))
    if not (np.array_equal(again.first_moment, h) and np.array_equal(again.rotational, I)):
        return None
    table: dict = {"mass": m}
    if np.any(center):
        table["center"] = center
    if np.any(at_center):
        table["moments"] = np.diagonal(at_center)
        if np.any(at_center != np.diag(np.diagonal(at_center))):
            table["products"] = at_center[[0, 0, 1], [1, 2, 2]]
    return table


def _such_that(f, target, guess):
    """Float next to ``guess`` that ``f`` maps exactly to ``target``, or None."""
    near = [guess]
    for _ in range(3):
        near += [
            np.nextafter(near[-1], math.inf),
            np.nextafter(near[-2 if len(near) > 1 else 0], -math.inf),
        ]
    return next((float(x) for x in near if f(x) == target), float(guess))


def joint_table(joint, name, joint_name=None) -> dict:
    """TOML table of a joint with its parameters, and its name if unusual."""
    if type(joint) not in joints.known_joints():
        raise ModelError(
            f"joint {name!r} is a {type(joint).__name__}, which the native format does not have; "
            f"kinetree.joints.register makes a dataclass known to it, and a CustomJoint whose "
            f"placement came from a file can be written"
        )
    table: dict = {"type": joint.spelling}
    if joint_name is not None:
        table["name"] = joint_name
    for field in fields(joint):
        given = getattr(joint, field.name)
        if callable(given):
            table |= _formula(given, name)
        elif isinstance(given, joints.AbstractJoint):
            table[field.name] = joint_table(given, name)
        elif field.name == "axis":
            table["axis"] = _axis(given)
        elif field.name != "freedoms":  # which a custom joint knows from its formulas
            table[field.name] = given
    return table


def _axis(axis):
    """Axis as a letter for x, y or z; else as numbers."""
    aligned = index_of(axis)
    if aligned is None or abs(aligned[1]) != 1:
        return axis
    return ("" if aligned[1] > 0 else "-") + "xyz"[aligned[0]]


def _formula(function, name):
    """TOML table of a formula; an error for Python functions."""
    if not hasattr(function, "to_table"):
        raise ModelError(
            f"joint {name!r} moves by a Python function, {function!r}, which no file can hold; "
            f"write it as a formula in a TOML file and load that"
        )
    return function.to_table()


def to_toml(model) -> str:
    """TOML text of a model, exact to the last digit.

    docs/formats.md describes the format. A joint that moves by a Python function cannot be written.
    """
    require_none_written(model, "a file")
    top = {"kinetree": 1, "name": model.name, "base": model.base_name, "gravity": model.gravity}
    lines = [assignment(key, given, key) for key, given in top.items()]
    for key, tables in (
        ("body", (_body(model, b) for b in model.bodies)),
        ("frame", (_frame(model, f) for f in model.frames)),
        ("loop", (_loop(model, loop) for loop in model.loops)),
        ("coupling", (_coupling(model, c) for c in model.couplings)),
        ("geometry", (_geometry(model, g) for g in model.geometry)),
        ("actuator", (_actuator(model, a) for a in model.actuators)),
        ("posture", (_posture(model, p) for p in model.postures)),
        ("tendon", (_tendon(model, t) for t in model.tendons)),
        ("gravity_compensation", (_carried_mass(model, g) for g in model.gravity_compensation)),
        ("fluid_force", (_fluid_force(model, f) for f in model.fluid_forces)),
        ("contact_pair", map(_contact_pair, model.contact_pairs)),
        ("sensor", map(_sensor, model.sensors)),
        ("group", map(_group, model.groups)),
        ("camera", map(_camera, model.cameras)),
    ):
        for table in tables:
            what = f"{key} {table.get('name', '')!r}"
            lines += ["", f"[[{key}]]"]
            lines += [assignment(k, given, f"{k} of {what}") for k, given in table.items()]
    return "\n".join(lines) + "\n"


def _group(group):
    """TOML table of a joint group."""
    return {"name": group.name, "joints": group.joints, **_said_fields(group, "tip")}


def _camera(c):
    """TOML table of a camera."""
    fields = _said_fields(c, "of", "angle", "size", "near")
    return {"name": c.name, **fields, **placement_keys(c.placement)}


def _said_fields(part, *names):
    """Fields of a part that differ from their defaults."""
    values = {name: getattr(part, name) for name in names}
    return {name: x for name, x in values.items() if not is_default(part, name, x)}


def _on(model, body):
    """TOML key for the body that a part is on; empty for the base."""
    return {"on": model.body_names[body]} if body else {}


def _body(model, body):
    """TOML table of a body."""
    own_name = None if body.joint_name == f"{body.name}_joint" else body.joint_name
    table = {"name": body.name, **_on(model, body.parent), **placement_keys(body.placement)}
    table["joint"] = joint_table(body.joint, body.joint_name, own_name)
    inertia = inertia_table(body.inertia)
    if inertia is not None:
        table["inertia"] = inertia
    return table | _of_joint(body)


def _of_joint(part):
    """TOML keys of a joint's limits and dynamics."""
    given = {"limits": _values(part.limits), "dynamics": _values(part.dynamics)}
    return {key: values for key, values in given.items() if values is not None}


def _values(part):
    """Nonempty fields of limits or dynamics; single entries as numbers."""
    if part is None:
        return None
    given = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: x[0] if len(x) == 1 else x for name, x in given.items() if x}


def _frame(model, frame):
    """TOML table of a frame."""
    return {"name": frame.name, **_on(model, frame.body), **placement_keys(frame.placement)}


def _loop(model, loop):
    """TOML table of a loop."""
    table = {
        "name": loop.name,
        "predecessor": model.body_names[loop.predecessor],
        "successor": model.body_names[loop.successor],
        "joint": joint_table(loop.joint, loop.name),
    }
    for side in ("predecessor", "successor"):
        keys = placement_keys(getattr(loop, f"{side}_placement"))
        if keys:
            table[f"{side}_at"] = keys["at"] if set(keys) == {"at"} else keys
    return table | _said_fields(loop, "misalignment") | _of_joint(loop)


def _coupling(model, coupling):
    """TOML table of a coupling."""
    require_written(coupling, "a file")
    names = (None, *model.joint_names)
    table = {"name": coupling.name, "joint": names[coupling.joint]}
    if coupling.tendon:
        return table | {"tendon": coupling.tendon}
    if coupling.source:
        table["source"] = names[coupling.source]
    if coupling.sources:
        table["sources"] = [names[i] for i in coupling.sources]
        table["weights"] = coupling.shares
    return table | {"coefficients": coupling.coefficients}


def _geometry(model, part):
    """TOML table of a shape on a body."""
    table = {
        **_said_fields(part, "name"),
        **_on(model, part.body),
        **placement_keys(part.placement),
    }
    table |= _shape(part.shape, part.name) | _said_fields(part, "visual", "collision", "color")
    return table | _surface(part) | _said_fields(part, "link")


def _surface(part):
    """Fields of a contact surface that differ from the defaults."""
    return {} if part.surface is None else {"surface": surface(part.surface)}


def _contact_pair(pair):
    """TOML table of a contact pair."""
    ends = {"first": pair.first, "second": pair.second}
    return _said_fields(pair, "name") | ends | _said_fields(pair, "touch") | _surface(pair)


def _shape(shape, name):
    """TOML table of a shape's kind and sizes."""
    sizes = [getattr(shape, f.name) for f in fields(shape)]
    if isinstance(shape, geometry.HeightField):
        raise InteropError(
            f"shape {name!r} is a height field, which the format for writing by hand has no "
            f"word for; save the model as JSON, or leave it out: model.replace(geometry=...)"
        )
    if not isinstance(shape, geometry.Mesh):
        return {type(shape).__name__.lower(): sizes[0] if len(sizes) == 1 else sizes}
    scale = {} if tuple(shape.scale) == (1, 1, 1) else {"scale": shape.scale}
    return {"mesh": shape.path, **scale, **({} if shape.convex else {"convex": False})}


def _actuator(model, actuator):
    """TOML table of an actuator."""
    gear, joint = actuator.gear, model.driven_joint(actuator)
    table = {"name": actuator.name, **({"joint": joint} if joint else {})}
    table["gear"] = gear[0] if len(gear) == 1 else gear
    named = ("name", "joint", "loop", "gear", "muscle")
    table |= _said_fields(actuator, *(f.name for f in fields(actuator) if f.name not in named))
    if actuator.muscle is not None:
        table["muscle"] = {f.name: getattr(actuator.muscle, f.name) for f in fields(Muscle)}
    return table


def _tendon(model, tendon):
    """TOML table of a tendon."""
    joints = zip(tendon.joints, tendon.coefficients, strict=True)
    over = {model.joint_names[i - 1]: c for i, c in joints}
    table = {"name": tendon.name} | ({"joints": over} if over else {})
    table |= _said_fields(tendon, *(f.name for f in fields(tendon)[3:] if f.name != "path"))
    return table | ({"path": [_part(x) for x in tendon.path]} if tendon.path else {})


def _part(x):
    """Element of a tendon's path for TOML: a name, or a table."""
    if isinstance(x, str):
        return x
    return {f.name: value for f in fields(x) if (value := getattr(x, f.name)) != ""}


def _carried_mass(model, given):
    """TOML table of gravity compensation."""
    return {**_on(model, given.body), "mass": given.mass, "center": given.center}


def _fluid_force(model, f):
    """TOML table of a fluid force."""
    names = ("density", "viscosity", "wind", "coefficients", "added_mass", "added_inertia")
    where = {**_on(model, f.body), **placement_keys(f.placement)}
    return where | _shape(f.shape, "") | _said_fields(f, *names)


def _posture(model, posture):
    """TOML table of a posture."""
    q, qd = posture.q.tolist(), posture.qd.tolist()
    table = {"name": posture.name, "q": _by_joint(model, q, model.q_slice, model.neutral())}
    if qd:
        table["qd"] = _by_joint(model, qd, model.v_slice, np.zeros(model.nv))
    return table | {k: x for k, x in commands_of(posture, model.actuators).items() if x}


def _by_joint(model, values, slices, usual):
    """Variables by joint name, where they differ from the usual ones."""
    given = {}
    for name, part in zip(model.joint_names, slices[1:], strict=True):
        if tuple(values[part]) != tuple(usual[part]):
            given[name] = values[part][0] if len(values[part]) == 1 else values[part]
    return given


def _sensor(s):
    """TOML table of a sensor, without usual fields."""
    table = {"name": s.name, "kind": s.kind, **_said_fields(s, "of", "reference")}
    table |= placement_keys(s.placement)
    if not is_identity(s.reference_placement):
        table["reference_at"] = placement_keys(s.reference_placement)
    table |= _said_fields(s, "cutoff", "noise", "offset", "data", "beyond")
    if s.shape is not None:
        table["shape"] = _shape(s.shape, s.name)
    if s.inertia is not None:
        table["inertia"] = inertia_table(s.inertia) or {"mass": 0.0}
    return table


# --- Values as TOML that reads back exactly ------------------------------------------------------


def assignment(key: str, given, what: str) -> str:
    """TOML line ``key = value``."""
    return f"{_key(key)} = {value(given, what)}"


def value(given, what: str) -> str:
    """TOML text of a number, string, list or inline table; errors name ``what``."""
    if isinstance(given, (np.ndarray, np.generic)):
        given = given.tolist()
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, (int, float)):
        return repr(given)
    if isinstance(given, str):
        return _text(given, what)
    if isinstance(given, (list, tuple)):
        return f"[{', '.join(value(x, what) for x in given)}]"
    if isinstance(given, dict):
        inside = ", ".join(assignment(k, x, what) for k, x in given.items())
        return f"{{ {inside} }}" if inside else "{}"
    raise ModelError(
        f"{what} holds a {type(given).__name__}, which a TOML file cannot express; only models of "
        f"floats can be written"
    )


def _key(name: str) -> str:
    """TOML key, quoted if needed."""
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _text(name, f"name {name!r}")


def _text(given: str, what: str) -> str:
    """TOML basic string, with escapes."""
    try:
        given.encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError(
            f"{what} holds {given!r}, half a surrogate pair, which no file can hold"
        ) from None
    # JSON and TOML agree on escapes, except that TOML has the character after ~ escaped too.
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
