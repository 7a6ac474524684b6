"""A trajectory as a picture: positions, velocities, forces and energy over time."""

import numpy as np

from kinetree.errors import UnknownNameError
from kinetree.functional import layout
from kinetree.simulation.results.observables import loop_errors, observe
from kinetree.simulation.results.panels import COLORS, Line, Panel, draw_rows
from kinetree.spelling import did_you_mean

__all__ = [
    "COLORS", "as_motion", "balance_panel", "chosen_joints", "closure_panels", "energy_panel",
    "force_panel", "motion_rows", "plot",
]  # fmt: skip


def plot(trajectory, *, joints=None):
    """A Matplotlib figure of a trajectory; ``joints`` are the names of those to show."""
    chosen = chosen_joints(as_motion(trajectory).model, joints)
    rows = motion_rows(trajectory, chosen)
    forces = force_panel(trajectory, chosen)
    rows += [(forces, None)] if forces else []
    rows.append((energy_panel(trajectory), balance_panel(trajectory)))
    if trajectory.model.is_constrained:
        rows.append(closure_panels(trajectory))
    return draw_rows(trajectory, rows)


def as_motion(trajectory):
    """``trajectory`` itself, if it is a motion."""
    if not all(hasattr(trajectory, name) for name in ("model", "t", "q", "qd")):
        is_model = hasattr(trajectory, "body_count")
        hint = "; kinetree.plot.tree(model) draws a mechanism" if is_model else ""
        raise TypeError(
            f"this draws a motion, such as kinetree.simulate returns, got "
            f"{type(trajectory).__name__}{hint}"
        )
    return trajectory


def chosen_joints(model, joints):
    """Names of the joints that are meant; all of them by default."""
    if joints is None:
        return set(model.joint_names)
    joints = [joints] if isinstance(joints, str) else list(joints)
    for name in joints:
        if name not in model.joint_names:
            hint = did_you_mean(name, model.joint_names)
            raise UnknownNameError(f"model {model.name!r} has no joint {name!r}; {hint}")
    return set(joints)


def motion_rows(trajectory, chosen):
    """Rows of positions and velocities: of angles, of distances, of orientations."""
    model = trajectory.model
    q, qd = layout.positions(model), layout.velocities(model)
    turning = {v.joint for v in q if v.unit == "1"}  # joints with quaternions
    kinds = (
        ("angles", "rad", lambda v: v.is_turn and v.joint not in turning),
        ("distances", "m", lambda v: v.unit.startswith("m")),
        ("orientations", "1", lambda v: v.joint in turning and not v.unit.startswith("m")),
    )
    rows = []
    for title, unit, belongs in kinds:
        panels = []
        for array, variables, suffix in ((trajectory.q, q, ""), (trajectory.qd, qd, "/s")):
            lines = [
                Line(v.name, _columns(array[..., k]))
                for k, v in enumerate(variables)
                if belongs(v) and v.joint in chosen
            ]
            words = title if not suffix else _rates(title)
            shown = unit if not suffix else f"{'rad' if unit == '1' else unit}/s"
            panels.append(Panel(words, "quaternion" if shown == "1" else f"[{shown}]", lines))
        if panels[0].lines:
            rows.append(tuple(panels))
    return rows


def _rates(title):
    return {"angles": "angular velocities", "distances": "velocities"}.get(
        title, "angular velocities"
    )


def force_panel(trajectory, chosen):
    """The forces of the controller, if it exerted any."""
    variables = layout.velocities(trajectory.model)
    lines = [
        Line(v.name, _columns(trajectory.tau[..., k]))
        for k, v in enumerate(variables)
        if v.joint in chosen
    ]
    if not any(np.any(line.values) for line in lines):
        return None
    units = sorted({v.force_unit for v in variables if v.joint in chosen}, reverse=True)
    return Panel("joint forces", f"[{', '.join(units)}]", lines)


def energy_panel(trajectory):
    """Kinetic, potential and total energy, and work."""
    kinetic = observe(trajectory.model, trajectory.q, trajectory.qd).kinetic
    lines = [
        Line("kinetic", _columns(kinetic), COLORS[1]),
        Line("potential", _columns(trajectory.energy - kinetic), COLORS[2]),
        Line("total", _columns(trajectory.energy), "#222222"),
    ]
    if np.any(trajectory.work):
        lines.append(Line("work", _columns(trajectory.work), COLORS[3]))
    return Panel("energy", "[J]", lines, by_joint=False)


def balance_panel(trajectory):
    """Energy that came from nowhere: the change of energy less the work of all joint forces.

    Springs of the joints count among those forces, and not into the energy. What events took away,
    such as impacts, is accounted for.
    """
    elastic = observe(trajectory.model, trajectory.q, trajectory.qd).elastic
    energy = trajectory.energy - elastic
    error = energy - energy[:1] - trajectory.work
    for event in trajectory.events:
        error[(trajectory.t >= event.t, *event.sample)] -= event.energy
    line = Line("", _columns(error), "#b00020")
    return Panel("energy balance: change less work", "[J]", [line], by_joint=False)


def closure_panels(trajectory):
    """How far loops and couplings are from closed, and how fast they open."""
    found = loop_errors(trajectory.model, trajectory.t, trajectory.q, trajectory.qd)
    titles = ("closure error of loops", "closure velocity error")
    return tuple(
        Panel(title, unit, [Line("", _columns(error), "#b00020")], by_joint=False)
        for title, unit, error in zip(titles, ("[m or rad]", "[m/s or rad/s]"), found, strict=True)
    )


def _columns(array):
    return array.reshape(len(array), -1)
