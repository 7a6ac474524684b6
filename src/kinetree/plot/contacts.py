"""Contact forces over time, and how close contacts are to sliding."""

import numpy as np

from kinetree.errors import ShapeError
from kinetree.plot.sheet import heading, sheet
from kinetree.simulation.results.panels import COLORS, GREY, dash_of, words

__all__ = ["contact_forces"]


def contact_forces(trajectory=None, *, t=None, forces=None, names=None, friction=None):
    """Normal and tangential forces of contacts over time; those that never push are left out.

    Args:
        trajectory: of a simulation with contacts; or give ``t`` and ``forces``.
        t: times [s], (T,).
        forces: of each contact along its normal and two tangents [N], (T, K, 3).
        names: of the contacts.
        friction: coefficient; then a third panel has the tangential force as part of what friction
            can bear, which is one where a contact slides.
    """
    if trajectory is not None:
        history = getattr(trajectory, "contact", None)
        if history is None:
            raise ShapeError(
                "the trajectory has no contact forces; simulate with contacts, or give t and forces"
            )
        t, forces = trajectory.t, history.force
        names = names or [words(name) for name in history.names]
    forces, t = np.asarray(forces, dtype=float), np.asarray(t, dtype=float)
    if forces.ndim != 3 or forces.shape[-1] != 3 or t.shape != forces.shape[:1]:
        raise ShapeError(
            f"contact forces must be (T, K, 3) with T times, along normal and tangents; got "
            f"forces {forces.shape} and t {t.shape}"
        )
    names = names or [f"contact {k + 1}" for k in range(forces.shape[1])]
    if np.any(pushing := np.any(forces != 0, axis=(0, 2))):
        names, forces = [names[k] for k in np.flatnonzero(pushing)], forces[:, pushing]
    normal, sideways = forces[..., 0], np.linalg.norm(forces[..., 1:], axis=-1)
    panels = [("normal force", "[N]", normal), ("tangential force", "[N]", sideways)]
    if friction is not None:
        bearable = float(friction) * np.where(normal > 0, normal, np.nan)
        panels.append(("part of what friction bears", "[1]", sideways / bearable))
    largest = np.argsort(-np.abs(normal).max(axis=0, initial=0.0), kind="stable")
    named = sorted(int(k) for k in largest[: len(COLORS)])
    others = [k for k in range(len(names)) if k not in named]
    with sheet(len(panels), 1, (8, 1.9 * len(panels) + 0.4), sharex=True) as (figure, grid):
        for axes, (name, unit, values) in zip(grid[:, 0], panels, strict=True):
            for k in (*others, *named):
                c = COLORS[named.index(k)] if k in named else GREY
                label = names[k] if k in named else None
                axes.plot(t, values[:, k], color=c, linestyle=dash_of(c), label=label)
            heading(axes, name)
            axes.set_ylabel(unit)
            axes.margins(x=0.01)
            if np.nanmin(values, initial=0.0) >= 0:
                axes.set_ylim(0, None if np.nanmax(values, initial=0.0) > 0 else 1)
        if friction is not None:
            grid[-1, 0].axhline(1.0, color="#555555", linewidth=0.8)
            grid[-1, 0].set_ylim(0, 1.1)
        grid[-1, 0].set_xlabel("time [s]")
        place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.02), "borderaxespad": 0.3}
        grid[0, 0].legend(handlelength=2.2, **place)
    return figure
