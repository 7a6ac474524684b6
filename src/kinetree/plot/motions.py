"""Motions over time: joints, energy, loop errors, phase portraits, contact forces, reactions."""

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, ShapeError, need, require_known
from kinetree.functional.layout import positions, velocities
from kinetree.quantities.dynamics import Forces
from kinetree.quantities.reactions import Part
from kinetree.simulation.results import plotting
from kinetree.simulation.results.observables import loop_errors
from kinetree.simulation.results.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = {
    **plotting.STYLE,
    "axes.prop_cycle": f"cycler(color={list(plotting.COLORS)})",
    "figure.constrained_layout.use": True,
    "figure.figsize": (5.6, 3.4),
}
"""Settings of Matplotlib for figures of your own: ``plt.style.use(kt.plot.STYLE)``."""


@contextmanager
def sheet(rows=1, columns=1, size=(5.0, 3.6), **options):
    """Context that yields a figure and its axes, (rows, columns), in the house style."""
    pyplot = need("matplotlib.pyplot", "kinetree.plot", "plot")
    with plotting.style_context(pyplot):
        figure, axes = pyplot.subplots(
            rows, columns, figsize=size, layout="constrained", squeeze=False, **options
        )
        plotting.show_once(figure)
        yield figure, axes


def heading(axes, text):
    """Set the title of a pair of axes."""
    axes.set_title(plotting.words(text), loc="left", fontweight="bold", color="#333333")


def overview(trajectory: Trajectory, *, joints: Sequence[str] | None = None) -> "Figure":
    """Figure of joints, forces, energy and loops of a motion over time."""
    return plotting.plot(trajectory, joints=joints)


def joints(trajectory: Trajectory, names: Sequence[str] | None = None) -> "Figure":
    """Figure of joint positions, velocities and controller forces over time.

    Args:
        trajectory: one motion, or many.
        names: of the joints to show; all by default.
    """
    chosen = plotting.chosen_joints(plotting.as_motion(trajectory).model, names)
    rows = plotting.motion_rows(trajectory, chosen)
    forces = plotting.force_panel(trajectory, chosen)
    return plotting.draw_rows(trajectory, rows + ([(forces, None)] if forces else []))


def energy(trajectory: Trajectory) -> "Figure":
    """Figure of kinetic, potential and total energy over time, and the balance error."""
    panels = (
        plotting.energy_panel(plotting.as_motion(trajectory)),
        plotting.balance_panel(trajectory),
    )
    return plotting.draw_rows(trajectory, [panels])


def constraint_error(trajectory: Trajectory) -> "Figure":
    """Figure of the loops' position and velocity errors over time, logarithmic."""
    model = plotting.as_motion(trajectory).model
    if not model.is_constrained:
        raise ModelError(f"model {model.name!r} has no loops that could be open")
    found = loop_errors(model, trajectory.t, trajectory.q, trajectory.qd)
    names = (("position error", "m or rad"), ("velocity error", "m/s or rad/s"))
    with sheet(1, 2, (9, 2.8), sharex=True) as (figure, grid):
        for axes, error, (name, unit) in zip(grid[0], found, names, strict=True):
            values = np.asarray(error).reshape(len(trajectory.t), -1)
            seen = np.where(values > 0, values, np.nan)  # zero has no logarithm
            many = values.shape[1]
            axes.semilogy(trajectory.t, seen, color="#b00020", alpha=max(0.15, many**-0.5))
            if not np.any(values > 0):
                axes.set_ylim(1e-17, 1e-15)
            heading(axes, f"{name} of loops")
            axes.set(xlabel="time [s]", ylabel=f"[{unit}]")
            axes.margins(x=0.01)
        plotting.title(figure, trajectory)
    return figure


_MOST, _ACROSS = 12, 4


def phase(trajectory: Trajectory, names: Sequence[str] | None = None) -> "Figure":
    """Figure of velocity against position for each joint.

    A circle is where a motion begins, a square where it ends.

    Args:
        trajectory: one motion, or many.
        names: of the joints to show; by default all that have one variable, at most twelve.
    """
    model = plotting.as_motion(trajectory).model
    chosen = plotting.chosen_joints(model, names)
    speeds = {v.name: k for k, v in enumerate(velocities(model))}
    pairs = [
        (v, k, speeds[v.name])
        for k, v in enumerate(positions(model))
        if v.name in speeds and v.joint in chosen
    ]
    if not pairs:
        raise ModelError(
            f"no joint of {model.name!r} that was chosen has a position whose rate is a velocity "
            f"variable; phase portraits are of such joints"
        )
    pairs = pairs if names is not None else pairs[:_MOST]
    columns = min(len(pairs), _ACROSS)
    rows = -(-len(pairs) // columns)
    with sheet(rows, columns, (2.9 * columns + 0.3, 2.6 * rows + 0.4)) as (figure, grid):
        for axes in grid.flat[len(pairs) :]:
            axes.set_axis_off()
        for axes, (variable, i, j) in zip(grid.flat, pairs, strict=False):
            _portrait(axes, trajectory.q[..., i], trajectory.qd[..., j])
            heading(axes, variable.name)
            axes.set(xlabel=f"[{variable.unit}]", ylabel=f"[{variable.unit}/s]")
        plotting.title(figure, trajectory)
    return figure


def _portrait(axes, q, qd):
    """Draw velocities over positions, one curve for each motion."""
    q, qd = (np.asarray(x).reshape(len(x), -1) for x in (q, qd))
    many = q.shape[1]
    for k in range(many):
        color = plotting.COLORS[k % len(plotting.COLORS)]
        axes.plot(q[:, k], qd[:, k], color=color, alpha=max(0.2, many**-0.5), linewidth=1.2)
        axes.plot(q[0, k], qd[0, k], "o", color=color, markersize=5, markerfacecolor="white")
        axes.plot(q[-1, k], qd[-1, k], "s", color=color, markersize=4)


def contact_forces(
    trajectory: Trajectory | None = None,
    *,
    t: ArrayLike | None = None,
    forces: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    friction: float | None = None,
) -> "Figure":
    """Figure of normal and tangential contact forces over time.

    Args:
        trajectory: of a simulation with contacts; or give ``t`` and ``forces``.
        t: times [s], (T,).
        forces: of each contact along its normal and two tangents [N], (T, K, 3).
        names: of the contacts.
        friction: coefficient; a third panel then shows the tangential force relative to the limit
            of friction, which is one where a contact slides.
    """
    if trajectory is not None:
        history = getattr(trajectory, "contact", None)
        if history is None:
            raise ShapeError(
                "the trajectory has no contact forces; simulate with contacts, or give t and forces"
            )
        t, forces = trajectory.t, history.force
        names = names or [plotting.words(name) for name in history.names]
    force, t = np.asarray(forces, dtype=float), np.asarray(t, dtype=float)
    if force.ndim != 3 or force.shape[-1] != 3 or t.shape != force.shape[:1]:
        raise ShapeError(
            f"contact forces must be (T, K, 3) with T times, along normal and tangents; got "
            f"forces {force.shape} and t {t.shape}"
        )
    labels = list(names or (f"contact {k + 1}" for k in range(force.shape[1])))
    if np.any(pushing := np.any(force != 0, axis=(0, 2))):
        labels, force = [labels[int(k)] for k in np.flatnonzero(pushing)], force[:, pushing]
    normal, sideways = force[..., 0], np.linalg.norm(force[..., 1:], axis=-1)
    panels = [("normal force", "[N]", normal), ("tangential force", "[N]", sideways)]
    if friction is not None:
        bearable = float(friction) * np.where(normal > 0, normal, np.nan)
        panels.append(("part of what friction bears", "[1]", sideways / bearable))
    with _compare(t, panels, labels) as (figure, grid):
        if friction is not None:
            grid[-1, 0].axhline(1.0, color="#555555", linewidth=0.8)
            grid[-1, 0].set_ylim(0, 1.1)
    return figure


def reactions(
    trajectory: Trajectory,
    names: str | Sequence[str] | None = None,
    *,
    part: Part = "total",
    frame: str = "joint",
    f_ext: Forces = None,
) -> "Figure":
    """Figure of the forces and moments that joints transmit over time.

    Of one joint the components; of several the magnitudes, those of the largest in colour.

    Args:
        trajectory: one motion.
        names: of the joints, of the tree or closing loops; all by default.
        part: ``"total"``; ``"bearing"``, what the drive does not carry; or ``"drive"``.
        frame: coordinates, as in ``kt.joint_reactions``; moments are about its origin.
        f_ext: as in ``trajectory.reactions``.
    """
    model = plotting.as_motion(trajectory).model
    if trajectory.q.ndim != 2:
        raise ShapeError(
            f"reactions are drawn of one motion, such as trajectory.motion(0); this trajectory has "
            f"a batch of shape {trajectory.q.shape[1:-1]}"
        )
    known = [*model.joint_names, *model.loop_names]
    names = [names] if isinstance(names, str) else known if names is None else list(names)
    for name in names:
        require_known(name, known, f"model {model.name!r} has no joint {name!r}")
    found = trajectory.reactions(part=part, frame=frame, f_ext=f_ext)
    chosen = np.asarray(found)[:, [known.index(name) for name in names]]
    moment, force = chosen[..., :3], chosen[..., 3:]
    if len(names) == 1:
        labels, moment, force = ["x", "y", "z"], moment[:, 0], force[:, 0]
    else:
        labels = [plotting.words(name) for name in names]
        moment, force = (np.linalg.norm(x, axis=-1) for x in (moment, force))
    whose = {"total": "reaction", "bearing": "bearing", "drive": "drive"}[part]
    of_one = f" of {names[0]}" if len(names) == 1 else ""
    panels = [(f"{whose} force{of_one}", "[N]", force), (f"{whose} moment", "[N·m]", moment)]
    with _compare(trajectory.t, panels, labels) as (figure, _):
        plotting.title(figure, trajectory)
    return figure


@contextmanager
def _compare(t, panels, labels):
    """Figure of panels with the same lines, the largest in colour."""
    largest = np.argsort(-np.abs(panels[0][2]).max(axis=0, initial=0.0), kind="stable")
    named = sorted(int(k) for k in largest[: len(plotting.COLORS)])
    others = [k for k in range(len(labels)) if k not in named]
    with sheet(len(panels), 1, (8, 1.9 * len(panels) + 0.4), sharex=True) as (figure, grid):
        for axes, (name, unit, values) in zip(grid[:, 0], panels, strict=True):
            for k in (*others, *named):
                c = plotting.COLORS[named.index(k)] if k in named else plotting.GREY
                label = labels[k] if k in named else None
                axes.plot(t, values[:, k], color=c, linestyle=plotting.dash_of(c), label=label)
            heading(axes, name)
            axes.set_ylabel(unit)
            axes.margins(x=0.01)
            if np.nanmin(values, initial=0.0) >= 0:
                axes.set_ylim(0, None if np.nanmax(values, initial=0.0) > 0 else 1)
        yield figure, grid
        grid[-1, 0].set_xlabel("time [s]")
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "borderaxespad": 0.3}
        grid[0, 0].legend(handlelength=2.2, **place)
