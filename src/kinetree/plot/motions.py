"""Motions over time: joints, energy, how well loops stay closed."""

import numpy as np

from kinetree.errors import ModelError
from kinetree.plot.sheet import heading, sheet
from kinetree.simulation.results.observables import loop_errors
from kinetree.simulation.results.panels import draw_rows, title
from kinetree.simulation.results.plotting import (
    as_motion,
    balance_panel,
    chosen_joints,
    energy_panel,
    force_panel,
    motion_rows,
    plot,
)

__all__ = ["constraint_error", "energy", "joints", "overview"]


def overview(trajectory, *, joints=None):
    """Joints, forces, energy and loops at once: what ``trajectory.plot()`` draws."""
    return plot(trajectory, joints=joints)


def joints(trajectory, names=None):
    """Positions and velocities of the joints over time, and the forces of the controller.

    Args:
        trajectory: one motion, or many.
        names: of the joints to show; all by default.
    """
    chosen = chosen_joints(as_motion(trajectory).model, names)
    rows = motion_rows(trajectory, chosen)
    forces = force_panel(trajectory, chosen)
    return draw_rows(trajectory, rows + ([(forces, None)] if forces else []))


def energy(trajectory):
    """Kinetic, potential and total energy over time, and what does not balance."""
    panels = energy_panel(as_motion(trajectory)), balance_panel(trajectory)
    return draw_rows(trajectory, [panels])


def constraint_error(trajectory):
    """How far loops are from closed over time, and how fast they open, on logarithmic axes."""
    model = as_motion(trajectory).model
    if not model.loops:
        raise ModelError(f"model {model.name!r} has no loops that could be open")
    found = loop_errors(model, trajectory.q, trajectory.qd)
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
        title(figure, trajectory)
    return figure
