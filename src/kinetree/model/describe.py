"""A model as a table for people."""

from kinetree.model.validate import joints_without_inertia

__all__ = ["summary"]


def summary(model) -> str:
    """One line per body: number, name, parent, joint, degrees of freedom, mass."""
    rows = [("body", "name", "parent", "joint", "dof", "mass [kg]")]
    rows.append(("0", model.base_name, "", "", "", ""))
    for i, body in enumerate(model.bodies, start=1):
        parent = model.body_names[body.parent]
        dof, mass = str(body.joint.nv), _number(body.inertia.mass)
        rows.append((str(i), body.name, parent, _kind(body.joint), dof, mass))
    widths = [max(len(row[k]) for row in rows) for k in range(6)]
    right = (True, False, False, False, True, True)
    lines = [f"{model!r}"]
    for row in rows:
        cells = [
            cell.rjust(w) if r else cell.ljust(w)
            for cell, w, r in zip(row, widths, right, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    lines.append(f"total mass {_number(sum(b.inertia.mass for b in model.bodies))} kg")
    for loop in model.loops:
        ends = (model.body_names[k] for k in (loop.predecessor, loop.successor))
        lines.append(f"loop {loop.name}: {_kind(loop.joint)} from {' to '.join(ends)}")
    if model.frames:
        lines.append("frames: " + ", ".join(model.frame_names))
    idle = joints_without_inertia(model) if model.scalar_type().kind == "f" else ()
    if idle:
        lines.append(f"no forward dynamics: {', '.join(idle)} would move no inertia")
    return "\n".join(lines)


def _kind(joint):
    return type(joint).__name__


def _number(x):
    return f"{x:.6g}" if isinstance(x, (int, float)) else str(x)
