"""A model as TOML of the native format, which reads back as exactly the same model."""

import json
from dataclasses import fields

import numpy as np

from kinetree.errors import InteropError, ModelError
from kinetree.model import geometry
from kinetree.model.actuator import commands_of
from kinetree.model.constraint_function import require_none_written
from kinetree.model.coupling import require_written
from kinetree.model.fingerprint import is_default
from kinetree.model.parts import is_identity
from kinetree.model.serialize import surface
from kinetree.writers.native_parts import inertia_table, joint_table, placement_keys


def to_toml(model) -> str:
    """The text of a file that ``kinetree.load`` reads as this model, to the last digit.

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
        ("gravity_compensation", (_carried(model, g) for g in model.gravity_compensation)),
        ("contact_pair", map(_contact_pair, model.contact_pairs)),
        ("sensor", map(_sensor, model.sensors)),
        ("group", map(_group, model.groups)),
    ):
        for table in tables:
            what = f"{key} {table.get('name', '')!r}"
            lines += ["", f"[[{key}]]"]
            lines += [assignment(k, given, f"{k} of {what}") for k, given in table.items()]
    return "\n".join(lines) + "\n"


def _group(group):
    return {"name": group.name, "joints": group.joints, **_said(group, "tip")}


def _said(part, *names):
    """Those of its fields that do not have their defaults."""
    values = {name: getattr(part, name) for name in names}
    return {name: x for name, x in values.items() if not is_default(part, name, x)}


def _on(model, body):
    return {"on": model.body_names[body]} if body else {}


def _body(model, body):
    own_name = None if body.joint_name == f"{body.name}_joint" else body.joint_name
    table = {"name": body.name, **_on(model, body.parent), **placement_keys(body.placement)}
    table["joint"] = joint_table(body.joint, body.joint_name, own_name)
    inertia = inertia_table(body.inertia)
    if inertia is not None:
        table["inertia"] = inertia
    return table | _of_joint(body)


def _of_joint(part):
    """Limits and dynamics of a body's joint or of a loop joint, as far as there are any."""
    given = {"limits": _values(part.limits), "dynamics": _values(part.dynamics)}
    return {key: values for key, values in given.items() if values is not None}


def _values(part):
    """Limits or dynamics: what is there, a number where there is one."""
    if part is None:
        return None
    given = {f.name: getattr(part, f.name) for f in fields(part)}
    return {name: x[0] if len(x) == 1 else x for name, x in given.items() if x}


def _frame(model, frame):
    return {"name": frame.name, **_on(model, frame.body), **placement_keys(frame.placement)}


def _loop(model, loop):
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
    return table | _said(loop, "misalignment") | _of_joint(loop)


def _coupling(model, coupling):
    require_written(coupling, "a file")
    names = (None, *model.joint_names)
    table = {"name": coupling.name, "joint": names[coupling.joint]}
    if coupling.source:
        table["source"] = names[coupling.source]
    if coupling.sources:
        table["sources"] = [names[i] for i in coupling.sources]
        table["weights"] = coupling.shares
    return table | {"coefficients": coupling.coefficients}


def _geometry(model, part):
    table = {**_said(part, "name"), **_on(model, part.body), **placement_keys(part.placement)}
    table |= _shape(part.shape, part.name) | _said(part, "visual", "collision", "color")
    return table | _surface(part) | _said(part, "link")


def _surface(part):
    """What the surface of a shape or pair says that is not the default, if it has one."""
    return {} if part.surface is None else {"surface": surface(part.surface)}


def _contact_pair(pair):
    ends = {"first": pair.first, "second": pair.second}
    return _said(pair, "name") | ends | _said(pair, "touch") | _surface(pair)


def _shape(shape, name):
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
    gear, joint = actuator.gear, model.driven_joint(actuator)
    table = {"name": actuator.name, **({"joint": joint} if joint else {})}
    table["gear"] = gear[0] if len(gear) == 1 else gear
    named = ("name", "joint", "loop", "gear")
    return table | _said(actuator, *(f.name for f in fields(actuator) if f.name not in named))


def _tendon(model, tendon):
    joints = zip(tendon.joints, tendon.coefficients, strict=True)
    table = {"name": tendon.name, "joints": {model.joint_names[i - 1]: c for i, c in joints}}
    return table | _said(tendon, *(f.name for f in fields(tendon)[3:]))


def _carried(model, given):
    return {**_on(model, given.body), "mass": given.mass, "center": given.center}


def _posture(model, posture):
    q, qd = posture.q.tolist(), posture.qd.tolist()
    table = {"name": posture.name, "q": _by_joint(model, q, model.q_slice, model.neutral())}
    if qd:
        table["qd"] = _by_joint(model, qd, model.v_slice, np.zeros(model.nv))
    return table | {k: x for k, x in commands_of(posture, model.actuators).items() if x}


def _by_joint(model, values, slices, usual):
    """Variables by joint name, as far as they are not the usual ones."""
    given = {}
    for name, part in zip(model.joint_names, slices[1:], strict=True):
        if tuple(values[part]) != tuple(usual[part]):
            given[name] = values[part][0] if len(values[part]) == 1 else values[part]
    return given


def _sensor(s):
    """What is not as usual; ``inertia`` may be that of nothing."""
    table = {"name": s.name, "kind": s.kind, **_said(s, "of", "reference")}
    table |= placement_keys(s.placement)
    if not is_identity(s.reference_placement):
        table["reference_at"] = placement_keys(s.reference_placement)
    table |= _said(s, "cutoff", "noise", "offset", "data", "beyond")
    if s.shape is not None:
        table["shape"] = _shape(s.shape, s.name)
    if s.inertia is not None:
        table["inertia"] = inertia_table(s.inertia) or {"mass": 0.0}
    return table


# --- Values as TOML that reads back exactly ------------------------------------------------------


def assignment(key: str, given, what: str) -> str:
    """A line ``key = value``."""
    return f"{_key(key)} = {value(given, what)}"


def value(given, what: str) -> str:
    """A number, text, list or inline table; ``what`` is named where it cannot be written."""
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
    plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if plain else _text(name, f"name {name!r}")


def _text(given: str, what: str) -> str:
    """A basic string: everything that TOML does not allow in one is escaped."""
    try:
        given.encode("utf-8")
    except UnicodeEncodeError:
        raise ModelError(
            f"{what} holds {given!r}, half a surrogate pair, which no file can hold"
        ) from None
    # JSON and TOML agree on escapes, except that TOML has the character after ~ escaped too.
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")
