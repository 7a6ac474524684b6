"""``kinetree info``: what a robot consists of."""

from kinetree.cli.console import err, out, print_json, print_wide
from kinetree.cli.options import Json
from kinetree.cli.robot import Floating, FolderOption, KeepFixed, RobotArgument, open_robot
from kinetree.spelling import printable

__all__ = ["draw", "info"]

_SHOWN = 12


def info(
    robot: RobotArgument,
    floating: Floating = False,
    folder: FolderOption = None,
    keep_fixed: KeepFixed = False,
    as_json: Json = False,
):
    """Draw the tree of a robot: bodies, joints with their axes and limits, masses, counts."""
    from kinetree.cli.describe import counted, facts

    found = open_robot(robot, floating=floating, folders=folder, keep_fixed=keep_fixed)
    model = found.model
    if as_json:
        print_json({"source": robot, **facts(model), "notices": [str(n) for n in found.notices]})
        return
    draw(out(), model)
    if found.notices:
        count = counted(len(found.notices), "note")
        text = f"{count} about the file: kinetree check {robot}"
        err().print(text, style="dim", soft_wrap=True)


def draw(console, model):
    """Print the tree of a model and what else it consists of."""
    console.print(_title(model))
    print_wide(console, _tree(model))
    console.print(_rest(model))


def _title(model):
    from rich.text import Text

    from kinetree.cli.describe import counted, total_mass

    words = [
        counted(model.body_count, "body", "bodies"),
        f"nq = {model.nq}",
        f"nv = {model.nv}",
        f"{total_mass(model):.4g} kg" if total_mass(model) is not None else "",
    ]
    for things, one in ((model.loops, "loop"), (model.couplings, "coupling")):
        words += [counted(len(things), one)] if things else []
    return Text.assemble(
        (printable(model.name), "bold"), "  ", ", ".join(filter(None, words)), "\n"
    )


def _tree(model):
    """A table whose first column is the drawing of the tree."""
    from rich.table import Table
    from rich.text import Text

    from kinetree.cli.describe import kind_of, mass_of, range_of

    table = Table(box=None, padding=(0, 3, 0, 0), header_style="dim", pad_edge=False)
    for heading in ("body", "joint", "kind", "range", "mass [kg]"):
        right = heading.startswith("mass")
        table.add_column(Text(heading), justify="right" if right else "left", no_wrap=True)
    table.add_row(Text(printable(model.base_name)))
    for i, lines in _branches(model):
        body = model.bodies[i - 1]
        name = Text.assemble((lines, "dim"), (printable(body.name), "bold"))
        kind = kind_of(body.joint)
        joint = Text(printable(body.joint_name), "cyan")
        table.add_row(name, joint, kind, Text(range_of(body)), mass_of(body))
    return table


def _branches(model):
    """Bodies in drawing order, with the lines before their names; deep trees do not recurse."""
    waiting = [(child, "", child == model.children[0][-1]) for child in reversed(model.children[0])]
    while waiting:
        i, before, is_last = waiting.pop()
        yield i, before + ("└ " if is_last else "├ ")
        children = model.children[i]
        inner = before + ("  " if is_last else "│ ")
        waiting += [(child, inner, child == children[-1]) for child in reversed(children)]


def _rest(model):
    """Everything that is not a body: a line for each kind of thing."""
    from rich.table import Table
    from rich.text import Text

    from kinetree.cli.describe import coupling_text, loop_text, some

    gravity = ", ".join(f"{g:g}" for g in model.gravity) if model.gravity.dtype != object else ""
    rows = [("gravity", f"({gravity}) m/s²" if gravity else "symbolic")]
    rows += [("loop", loop_text(model, loop)) for loop in model.loops[:_SHOWN]]
    rows += [("coupling", coupling_text(model, c)) for c in model.couplings[:_SHOWN]]
    rows += _motion(model)
    names = (
        ("frames", model.frame_names),
        ("actuators", [a.name for a in model.actuators]),
        ("postures", [p.name for p in model.postures]),
    )
    rows += [(label, some(found, _SHOWN)) for label, found in names if found]
    if model.geometry:
        seen = sum(g.visual for g in model.geometry)
        touching = sum(g.collision for g in model.geometry)
        rows.append(("geometry", f"{seen} shapes to draw, {touching} to touch"))
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="dim")
    grid.add_row()
    for label, text in rows:
        grid.add_row(label, Text(printable(text)))
    return grid


def _motion(model):
    """What loops and couplings leave of the motion."""
    from kinetree.cli.describe import mobility_of, some

    if not model.loops:
        return []
    found = mobility_of(model)
    if found is None:
        return [("mobility", "unknown: its loops do not close")]
    text = f"{found.mobility}: {found.freedoms} freedoms of the tree, {found.rank} independent of "
    rows = [("mobility", f"{text}{found.constraints} constraints")]
    if found.is_variable:
        others = " or ".join(map(str, found.nearby))
        rows.append(("singular", f"where it is; close by the mobility is {others}"))
    if found.redundant:
        rows.append(("redundant", some(found.redundant, 6)))
    return rows
