"""A model as a table for people."""

import os

from kinetree.model.geometry import Mesh
from kinetree.model.limits import joints_with
from kinetree.model.tendon import Pulley, Wrap
from kinetree.model.validate import joints_without_inertia
from kinetree.notebook import block, fold, line, list_in_lines, show, table, text_table

_HEAD = ("body", "name", "parent", "joint", "kind", "dof", "mass [kg]")


def summary(model) -> str:
    """Text table of a model, a line per body: name, parent, joint, freedoms, mass; remarks.

    No line of the table is longer than 100 letters: long names are cut.
    """
    bodies = text_table([_HEAD, *_bodies(model)], right=(0, 5, 6), long=(1, 2, 3, 4))
    return "\n".join([f"{model!r}", bodies, *_remarks(model)])


def as_html(model) -> str:
    """HTML description of a model for a notebook, with a 3D view."""
    files = {g.shape.path for g in model.geometry if g.visual and isinstance(g.shape, Mesh)}
    size = sum(os.path.getsize(path) for path in files if os.path.exists(path))
    large = f"no picture of {size // 1_000_000} MB of meshes; kt.viewer.embedded(model) shows them"
    rows = [
        [int(n), *names, _as_number(dof), _as_number(mass)]
        for n, *names, dof, mass in _bodies(model)
    ]
    return block(
        repr(model),
        line(large) if size > _LARGE else show(model),
        fold("bodies and joints", table(_HEAD, rows), is_open=len(rows) < 20),
        *map(line, _remarks(model)),
    )


_LARGE = 3_000_000  # bytes of meshes, which take a second or two to be read and simplified


def _as_number(text):
    """Text as an integer or float, or the text if it is neither."""
    try:
        return float(text) if "." in text or "e" in text else int(text)
    except ValueError:  # a traced or exact number, or none
        return text


def _bodies(model):
    """Rows of the summary's table of bodies."""
    rows = [("0", model.base_name, "", "", "", "", "")]
    followers = follower_texts(model)
    for i, body in enumerate(model.bodies, start=1):
        parent = model.body_names[body.parent]
        dof, mass = str(model.joint[i].nv), _number(body.inertia.mass)
        kind = ", ".join(filter(None, (_kind(body.joint), followers.get(i))))
        rows.append((str(i), body.name, parent, body.joint_name, kind, dof, mass))
    return rows


def _remarks(model):
    """Lines about a model's mass, loops, couplings, actuators and other attachments."""
    lines = [f"total mass {_number(model.total_mass)} kg"]
    for loop in model.loops:
        ends = (model.body_names[k] for k in (loop.predecessor, loop.successor))
        lines.append(f"loop {loop.name}: {_kind(loop.joint)} from {' to '.join(ends)}")
    for c in model.constraints:
        rows = f"{c.rows} {'row' if c.rows == 1 else 'rows'}"
        lines.append(f"constraint {c.name}: {c.kind.partition(', ')[2]}, {rows}")
    lines += [f"coupling {c.name}: {_formula(model, c)}" for c in model.couplings]
    for what in ("armature", "damping", "friction", "stiffness"):
        joints = joints_with(model, what)
        if joints:
            lines.append(list_in_lines(f"{'springs' if what == 'stiffness' else what} in ", joints))
    driven = joints_with(model, "active_predecessor", "active_successor")
    if driven:
        lines.append(list_in_lines("drives with their own wrenches in ", driven))
    lines += [f"tendon {t.name}: {tendon_text(model, t)}" for t in model.tendons]
    if model.gravity_compensation:
        carried = [
            f"{_number(g.mass)} kg on {model.body_names[g.body]}"
            for g in model.gravity_compensation
        ]
        lines.append(list_in_lines("gravity compensation: ", carried))
    for what, momentum in (("fluid around ", False), ("momentum of armature on ", True)):
        wet = {model.body_names[f.body] for f in model.fluid_forces if f.is_momentum == momentum}
        if wet:
            lines.append(list_in_lines(what, (name for name in model.body_names if name in wet)))
    if model.actuators:
        kinds = (f"{a.name} ({a.kind})" if a.kind != "motor" else a.name for a in model.actuators)
        lines.append(list_in_lines("actuators: ", kinds))
    for what in ("postures", "sensors", "groups", "cameras"):
        if getattr(model, what):
            lines.append(list_in_lines(f"{what}: ", (x.name for x in getattr(model, what))))
    if model.geometry:
        seen, solid = (sum(getattr(g, w) for g in model.geometry) for w in ("visual", "collision"))
        lines.append(f"geometry: {seen} visual shapes, {solid} collision shapes")
    if model.contact_pairs:
        lines.append(f"contact pairs: {contact_text(model)}")
    if model.frames:
        lines.append(list_in_lines("frames: ", model.frame_names))
    idle = joints_without_inertia(model) if model.scalar_type().kind == "f" else ()
    if idle:
        lines.append(f"no forward dynamics: {', '.join(idle)} would move no inertia")
    return lines


def contact_text(model) -> str:
    """Text with the numbers of contact pairs and exclusions."""
    touch = sum(p.touch for p in model.contact_pairs)
    return f"{touch} that touch, {len(model.contact_pairs) - touch} that do not"


def follower_texts(model) -> dict[int, str]:
    """Text of the leaders of coupled joints, by number of the joint.

    Such as ``follows elbow × -1 + 0.1``, or ``held at 0.1``.
    """
    return {c.joint: _follows(model, c) for c in model.couplings}


def _follows(model, coupling):
    """Text that says how a joint follows another, by which law."""
    leader = leader_text(model, coupling)
    if coupling.function is not None:
        return f"follows {leader}"
    offset, slope, *higher = (*coupling.coefficients, 0, 0)[: max(2, len(coupling.coefficients))]
    if not leader or not any((slope, *higher)):
        return f"held at {_number(offset)}"
    if any(higher):
        return f"follows {_formula(model, coupling).partition(' = ')[2]}"
    factor = "" if slope == 1 else f" × {_number(slope)}"
    shift = f" {'-' if offset < 0 else '+'} {_number(abs(offset))}" if offset else ""
    return f"follows {leader if factor or shift else bare_sum(leader, leader)}{factor}{shift}"


def _formula(model, coupling):
    """Text of a coupling such as ``finger = 0.1 - 0.5 thumb``."""
    names, leader = model.joint_names, leader_text(model, coupling)
    right = ""
    for k, c in enumerate(() if coupling.function else coupling.coefficients):
        if c == 0:
            continue
        power = ("", leader, f"{leader}^{k}")[min(k, 2)]
        size = "" if abs(c) == 1 and k else _number(abs(c))
        sign = ("- " if c < 0 else "+ ") if right else ("-" if c < 0 else "")
        right += f"{sign}{size}{' ' if size and k else ''}{power} "
    right = leader if coupling.function else bare_sum(right.strip(), leader)
    return f"{names[coupling.joint - 1]} = {right or '0'}"


def leader_text(model, coupling):
    """Text of a coupling's leader: a joint name, or a sum such as ``(0.5 left + 0.5 right)``."""
    names = [model.joint_names[i - 1] for i in coupling.leaders]
    if coupling.function is not None:
        return f"{coupling.function.__name__}({', '.join(names)})"
    if not coupling.sources:
        return "".join(names)
    signs = {1: "", -1: "-"}
    terms = (signs.get(w, f"{w:g} ") + n for w, n in zip(coupling.shares, names, strict=True))
    return f"({' + '.join(terms)})".replace("+ -", "- ")


def bare_sum(text: str, leader: str) -> str:
    """Right side of a formula, without parentheses around a sum that is all of it."""
    return text[1:-1] if text == leader and text.startswith("(") else text


def tendon_text(model, tendon):
    """Text of a tendon such as ``0.1 + 0.5 upper - lower, limited, with a spring``."""
    runs = tendon.joints or tendon.path
    terms = [_number(tendon.offset)] if tendon.offset or not runs else []
    for i, c in zip(tendon.joints, tendon.coefficients, strict=True):
        name = model.joint_names[i - 1]
        terms.append(name if c == 1 else f"-{name}" if c == -1 else f"{_number(c)} {name}")
    if tendon.path:
        terms.append(path_text(tendon))
    more = [
        what
        for what, there in (
            ("limited", tendon.is_limited),
            ("with a spring", tendon.has("stiffness")),
            ("damped", tendon.has("damping")),
            ("with friction", tendon.has("friction")),
        )
        if there
    ]
    return ", ".join((" + ".join(terms).replace("+ -", "- "), *more))


def path_text(tendon):
    """Text of a tendon's path such as ``shoulder -> around drum -> hand``."""
    parts: list = [("", [])]
    for x in tendon.path:
        if isinstance(x, Pulley):
            parts.append((f"1/{_number(x.divisor)}: ", []))
        else:
            parts[-1][1].append(f"around {x.frame}" if isinstance(x, Wrap) else x)
    return " | ".join(share + " -> ".join(names) for share, names in parts if names)


def _kind(joint):
    """Class name of a joint, for the summary."""
    return type(joint).__name__


def _number(x):
    """Short text of a number."""
    return f"{x:.6g}" if isinstance(x, (int, float)) else str(x)
