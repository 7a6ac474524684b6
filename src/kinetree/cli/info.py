"""``kinetree info``: bodies, joints, loops and couplings of a robot, in words and as JSON."""

from dataclasses import replace
from os.path import basename

import numpy as np

from kinetree.cli import options as cli
from kinetree.cli.options import Json, KeepFixed, RobotArgument
from kinetree.cli.records import Reading, with_records
from kinetree.joints import Free, Reversed
from kinetree.model.describe import (
    bare_sum,
    contact_text,
    follower_texts,
    leader_text,
    path_text,
    tendon_text,
)
from kinetree.spelling import printable

_SHOWN = 12


@with_records
def info(
    robot: RobotArgument,
    *,
    reading: Reading,
    keep_fixed: KeepFixed = False,
    as_json: Json = False,
):
    """Draw the tree of a robot: bodies, joints with their axes and limits, masses, counts."""
    found = reading.robot(robot, keep_fixed=keep_fixed)
    model = found.model
    if as_json:
        cli.print_json(
            {"source": robot, **facts(model), "notices": [str(n) for n in found.notices]}
        )
        return
    draw(cli.out(), model, _fixed_base(found))
    _notices(robot, found.notices)


def _notices(robot, notices):
    """Print notices that change motion in full, and the number of the others."""
    from kinetree.loaders.report import in_lines

    motion = [replace(n, file=basename(n.file)) for n in notices if n.effect == "motion"]
    if motion:
        lines = [f"{count_of(len(motion), 'note')} about motion:", *in_lines(motion)]
        cli.err().print("\n  ".join(lines), style="yellow", markup=False, soft_wrap=True)
    pictures = [n for n in notices if n.effect == "picture"]  # one note of kinetree check
    if rest := len(notices) - len(motion) - len(pictures) + bool(pictures):
        count = count_of(rest, "other note" if motion else "note")
        cli.err().print(
            f"{count} about the file: kinetree check {robot}", style="dim", soft_wrap=True
        )


def _fixed_base(found):
    """Text about a root link that is fixed to the ground, or empty."""
    model = found.model
    moves = any(isinstance(model.joint[i], Free) for i in model.children[0])
    if moves or model.base_name == "world" or not found.path.endswith((".urdf", ".sdf")):
        return ""
    return f"{printable(model.base_name)}: fixed, its mass is not counted; --floating lets it move"


def draw(console, model, base=""):
    """Print the tree of a model, its other parts, and a text about its base."""
    console.print(_title(model))
    cli.print_wide(console, _tree(model))
    console.print(_rest(model, base))


def _title(model):
    """Title line about a model: numbers of parts, state sizes, mass."""
    from rich.text import Text

    words = [
        count_of(model.body_count, "body", "bodies"),
        f"nq = {model.nq}",
        f"nv = {model.nv}",
        f"{total_mass(model):.4g} kg" if total_mass(model) is not None else "",
    ]
    for things, one in ((model.loops, "loop"), (model.couplings, "coupling")):
        words += [count_of(len(things), one)] if things else []
    return Text.assemble(
        (printable(model.name), "bold"), "  ", ", ".join(filter(None, words)), "\n"
    )


def _tree(model):
    """Table of bodies whose first column draws the tree."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for heading in ("body", "joint", "kind", "range", "mass [kg]"):
        right = heading.startswith("mass")
        table.add_column(Text(heading), justify="right" if right else "left", no_wrap=True)
    table.add_row(Text(printable(model.base_name)))
    followers = follower_texts(model)
    for i, lines in _branches(model):
        body = model.bodies[i - 1]
        name = Text.assemble((lines, "dim"), (printable(body.name), "bold"))
        kind = ", ".join(filter(None, (kind_of(body.joint), followers.get(i))))
        joint = Text(printable(body.joint_name), "cyan")
        table.add_row(name, joint, Text(printable(kind)), Text(range_of(body)), mass_of(body))
    return table


def _branches(model):
    """Bodies in drawing order, with the tree lines before their names."""
    waiting = [(child, "", child == model.children[0][-1]) for child in reversed(model.children[0])]
    while waiting:
        i, before, is_last = waiting.pop()
        yield i, before + ("└ " if is_last else "├ ")
        children = model.children[i]
        inner = before + ("  " if is_last else "│ ")
        waiting += [(child, inner, child == children[-1]) for child in reversed(children)]


def _rest(model, base):
    """Lines about parts other than bodies, one per kind."""
    gravity = ", ".join(f"{g:g}" for g in model.gravity) if model.gravity.dtype != object else ""
    rows = [("base", base)] if base else []
    rows += [("gravity", f"({gravity}) m/s²" if gravity else "symbolic")]
    rows += [("loop", loop_text(model, loop)) for loop in model.loops[:_SHOWN]]
    rows += [("coupling", coupling_text(model, c)) for c in model.couplings[:_SHOWN]]
    rows += [("tendon", f"{t.name}: {tendon_text(model, t)}") for t in model.tendons[:_SHOWN]]
    rows += _motion(model)
    names = (
        ("frames", model.frame_names),
        ("actuators", [actuator_text(a) for a in model.actuators]),
        ("postures", [p.name for p in model.postures]),
        ("sensors", [f"{s.name} ({s.kind})" for s in model.sensors]),
        ("groups", [f"{g.name} ({count_of(len(g.joints), 'joint')})" for g in model.groups]),
        (
            "gravity compensation",
            list(dict.fromkeys(model.body_names[g.body] for g in model.gravity_compensation)),
        ),
        (
            "fluid around",
            list(
                dict.fromkeys(
                    model.body_names[f.body] for f in model.fluid_forces if not f.is_momentum
                )
            ),
        ),
    )
    rows += [(label, some(found, _SHOWN)) for label, found in names if found]
    if model.geometry:
        seen = sum(g.visual for g in model.geometry)
        touching = sum(g.collision for g in model.geometry)
        shown = f"{count_of(seen, 'visual shape')}, {count_of(touching, 'collision shape')}"
        rows.append(("geometry", shown))
    if model.contact_pairs:
        rows.append(("contact pairs", contact_text(model)))
    return cli.labels_and_texts(rows)


def _motion(model):
    """Line about the mobility of a mechanism with loops or couplings."""
    if not model.loops:
        return []
    found = mobility_of(model)
    if found is None:
        return [("mobility", "unknown: its loops do not close")]
    text = f"{found.mobility}: {found.tree_dof} degrees of freedom of the tree"
    text += f", {found.rank} independent of {found.constraints} constraints"
    rows = [("mobility", text)]
    if found.is_variable:
        others = " or ".join(map(str, found.nearby))
        rows.append(("singular", f"where it is; close by the mobility is {others}"))
    if found.redundant:
        rows.append(("redundant", some(found.redundant, 6)))
    return rows


# --- Parts of a model in words, and as data for JSON ---------------------------------------------


def count_of(number, one, many=None) -> str:
    """Count with its noun: ``1 body``, ``2 bodies``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def kind_of(joint) -> str:
    """Kind and axis of a joint as text, such as ``revolute -z``."""
    if isinstance(joint, Reversed):
        return f"reversed {kind_of(joint.joint)}"
    kind, axis = joint.spelling, getattr(joint, "axis", None)
    return kind if axis is None else f"{kind} {_axis(axis)}"


def _axis(axis):
    """Name of the coordinate axis nearest to a direction, if close; else its numbers."""
    k = max(range(3), key=lambda k: abs(axis[k]))
    rest = max(abs(axis[j]) for j in range(3) if j != k)
    if rest < 1e-3:  # exactly along an axis, or as nearly as a file of few digits says it
        return ("" if rest == 0 else "~") + ("-" if axis[k] < 0 else "") + "xyz"[k]
    return "(" + ", ".join(f"{k:.3g}" for k in axis) + ")"


def range_of(body) -> str:
    """Position limits of a one-variable joint as text."""
    limits = body.limits
    if limits is None or body.joint.nq != 1 or not (limits.lower or limits.upper):
        return ""
    lower = limits.lower[0] if limits.lower else -np.inf
    upper = limits.upper[0] if limits.upper else np.inf
    if np.isinf(lower) and np.isinf(upper):
        return ""
    return f"{lower:.4g} to {upper:.4g} {body.joint.position_units()[0]}"


def mass_of(body) -> str:
    """Mass of a body as text, a number or formula."""
    m = body.inertia.mass
    return f"{float(m):.4g}" if isinstance(m, (int, float, np.number)) else str(m)


def total_mass(model):
    """Mass of all moving bodies [kg]; None if it is a formula."""
    mass = model.total_mass
    return float(mass) if isinstance(mass, (int, float, np.number)) else None


def actuator_text(actuator) -> str:
    """Name of an actuator, with its kind unless it is a plain motor."""
    return actuator.name + (f" ({actuator.kind})" if actuator.kind != "motor" else "")


def loop_text(model, loop) -> str:
    """Ends of a loop joint as text."""
    p, s = (model.body_names[k] for k in (loop.predecessor, loop.successor))
    return f"{loop.name}: {kind_of(loop.joint)} from {p} to {s}"


def coupling_text(model, coupling) -> str:
    """Coupling as the text of an equation."""
    names = ("", *model.joint_names)
    source, terms = leader_text(model, coupling), []
    if coupling.function is not None:
        return f"{names[coupling.joint]} = {source}"
    for power, c in enumerate(coupling.coefficients):
        if c == 0 or (power and not source):
            continue
        variable = {0: "", 1: source}.get(power, f"{source}^{power}")
        number = f"{c:g}" if not variable or c != 1 else ""
        terms.append(" ".join(filter(None, (number, variable))))
    right = bare_sum(" + ".join(terms), source)
    return f"{names[coupling.joint]} = {right or '0'}".replace("+ -", "- ")


def some(names, most) -> str:
    """First names as text, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown + (f", and {len(names) - most} more" if len(names) > most else "")


def facts(model) -> dict:
    """Facts about a model as plain data, for ``info --json``."""
    body, followers = model.body_names, follower_texts(model)
    return {
        "name": model.name,
        "nq": model.nq,
        "nv": model.nv,
        "total_mass": total_mass(model),
        "gravity": [_plain(g) for g in model.gravity],
        "base": model.base_name,
        "bodies": [_body(model, i, followers) for i in range(1, model.body_count + 1)],
        "frames": [{"name": f.name, "body": body[f.body]} for f in model.frames],
        "loops": [
            {
                "name": loop.name,
                "kind": kind_of(loop.joint),
                "predecessor": body[loop.predecessor],
                "successor": body[loop.successor],
            }
            for loop in model.loops
        ],
        "couplings": [
            {
                "name": c.name,
                "joint": model.joint_names[c.joint - 1],
                "source": model.joint_names[c.source - 1] if c.source else None,
                "coefficients": list(c.coefficients),
                **({"sources": [model.joint_names[i - 1] for i in c.sources]} if c.sources else {}),
                **({"weights": list(c.shares)} if c.sources else {}),
            }
            for c in model.couplings
        ],
        "actuators": [
            {"name": a.name, "kind": a.kind, "joint": model.driven_joint(a), "gear": list(a.gear)}
            | {k: x for k in ("tendon", "frame", "reference") if (x := getattr(a, k))}
            for a in model.actuators
        ],
        "postures": [{"name": p.name, "q": p.q.tolist()} for p in model.postures],
        "tendons": [
            {"name": t.name, "joints": {model.joint_names[i - 1]: c for i, c in terms}}
            | ({"path": path_text(t)} if t.path else {})
            for t in model.tendons
            for terms in [zip(t.joints, t.coefficients, strict=True)]
        ],
        "gravity_compensation": [
            {"body": body[g.body], "mass": _plain(g.mass)} for g in model.gravity_compensation
        ],
        "fluid_forces": [
            {"body": body[f.body], "shape": type(f.shape).__name__.lower(), "density": f.density}
            for f in model.fluid_forces
        ],
        "groups": [
            {"name": g.name, "joints": list(g.joints), "tip": g.tip or None} for g in model.groups
        ],
        "sensors": [{"name": s.name, "kind": s.kind, "of": s.of or None} for s in model.sensors],
        "geometry": len(model.geometry),
        "contact_pairs": [
            {"first": p.first, "second": p.second, "touch": p.touch} for p in model.contact_pairs
        ],
        "mobility": _mobility(model),
    }


def mobility_of(model):
    """Mobility of an assembled model; None if it cannot be computed."""
    from kinetree.errors import AssemblyError
    from kinetree.loops.kinematics.mobility import mobility

    if model.scalar_type().kind == "O":
        return None
    try:
        return mobility(model.at(0.0))
    except AssemblyError:
        return None


def _mobility(model):
    """Degrees of freedom of a model; None if they cannot be computed."""
    if not model.loops:
        return model.nv
    found = mobility_of(model)
    return None if found is None else found.mobility


def _body(model, i, followers):
    """Facts about a body and its joint as plain data."""
    body = model.bodies[i - 1]
    found = {
        "name": body.name,
        "parent": model.body_names[body.parent],
        "joint": body.joint_name,
        "kind": kind_of(body.joint),
        "nq": model.joint[i].nq,
        "nv": model.joint[i].nv,
        **({"follower": followers[i]} if i in followers else {}),
        "mass": _plain(body.inertia.mass),
    }
    for part in (body.limits, body.dynamics):
        if part is not None:
            found |= {k: list(v) for k, v in vars(part).items() if v}
    return found


def _plain(x):
    """Number or text that JSON can hold."""
    return float(x) if isinstance(x, (int, float, np.number)) else str(x)
