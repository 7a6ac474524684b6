"""Diagrams of mechanisms and of linear models: trees, postures, sparsity patterns, eigenvalues."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kinetree.algorithms.sparsity import pattern
from kinetree.algorithms.sparsity import sparsity as measured
from kinetree.arrays.kinds import ArrayLike
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.functional.layout import velocities
from kinetree.model import Model
from kinetree.model.arrays import as_configuration, as_model
from kinetree.plot.motions import heading, sheet
from kinetree.quantities import kinematics
from kinetree.simulation.results.plotting import COLORS, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_SHORT = 22


def tree(model: Model, *, names: bool = True) -> "Figure":
    """Figure of the kinematic tree, bodies from left to right after their parents.

    A label has the name of the body above and the kind of its joint below; dashed lines are joints
    that close loops, dotted ones couplings.

    Args:
        model: the mechanism.
        names: write the names of bodies; numbers otherwise.
    """
    at = _places(model)
    deep = int(at[:, 0].max()) + 1
    rows = at[:, 1].max() + 1
    longest = max(len(name) for name in model.body_names)
    wide = 0.75 + 0.055 * min(longest, _SHORT) if names else 1.0
    with sheet(size=(max(3.2, wide * deep + 0.8), max(1.8, 0.48 * rows + 0.7))) as (figure, grid):
        axes = grid[0, 0]
        axes.set_axis_off()
        for i, body in enumerate(model.bodies, start=1):
            _edge(axes, at[body.parent], at[i])
        for loop in model.loops:
            _bow(axes, at[loop.predecessor], at[loop.successor], COLORS[1], (0, (5, 2)))
        for c in model.couplings:
            for source in c.leaders:
                _bow(axes, at[source], at[c.joint], COLORS[3], (0, (1, 1.5)))
        for i in range(model.body_count + 1):
            _node(axes, model, i, at[i], names)
        axes.set(xlim=(-0.5, deep - 0.5), ylim=(rows - 0.4, -0.6))
        count = f"{model.body_count} bodies" if model.body_count != 1 else "1 body"
        more = f", {len(model.loops)} loops (dashed)" if len(model.loops) > 1 else ""
        more = ", 1 loop (dashed)" if len(model.loops) == 1 else more
        more += ", couplings (dotted)" if model.couplings else ""
        axes.set_title(
            f"{words(model.name)}: {count}{more}", loc="left", fontsize=10, color="#333333"
        )
    return figure


def _places(model):
    """Depth and row of every body in the tree figure, (NB + 1, 2)."""
    at, free = np.zeros((model.body_count + 1, 2)), 0
    children = [sorted(numbers) for numbers in model.children]
    order, waiting = [], [0]
    while waiting:  # parents before their children; deep trees do not recurse
        order.append(i := waiting.pop())
        waiting += reversed(children[i])
        at[children[i], 0] = at[i, 0] + 1
        if not children[i]:
            at[i, 1], free = free, free + 1
    for i in reversed(order):
        if children[i]:
            at[i, 1] = (at[children[i][0], 1] + at[children[i][-1], 1]) / 2
    return at


def _edge(axes, start, end):
    """Draw an edge of the tree in three straight parts."""
    x = (end[0] - 0.62, end[0] - 0.5)
    axes.plot(
        [start[0], x[0], x[1], end[0]],
        [start[1], start[1], end[1], end[1]],
        color="#8a8f98",
        linewidth=1.1,
        zorder=1,
        solid_joinstyle="round",
    )


def _bow(axes, start, end, color, dash):
    """Draw a loop or coupling as a bow between two nodes."""
    from matplotlib.patches import FancyArrowPatch

    bend = 0.35 if start[0] == end[0] else 0.25
    look = {"arrowstyle": "-", "color": color, "linestyle": dash, "linewidth": 1.3, "zorder": 1.5}
    axes.add_patch(FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", **look))


def _node(axes, model, i, at, names):
    """Draw a body as a node with its name and joint."""
    kind = "" if i == 0 else type(model.bodies[i - 1].joint).__name__
    name = model.body_names[i] if names else str(i)
    name = name if len(name) <= _SHORT else f"{name[: _SHORT - 1]}…"
    box = {"boxstyle": "round,pad=0.28", "edgecolor": "#5b626c", "linewidth": 0.9}
    box["facecolor"] = "#e3e6ea" if i == 0 else "white"
    axes.text(*at, words(name), ha="center", va="center", fontsize=8, bbox=box, zorder=3)
    if kind:
        axes.annotate(
            kind,
            at,
            xytext=(0, -11.5),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=6,
            color="#6a7078",
            zorder=4,
        )


_PLANES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2), "3d": (0, 1, 2)}
_FLAT = 0.05  # of the size: thickness up to which a mechanism is drawn in a plane
_LISTED = 40


def postures(
    model: Model, q: ArrayLike, *, plane: str | None = None, numbers: bool = True
) -> "Figure":
    """Figure of a mechanism as stick figures, in one posture or several.

    Joints are dots, those that close loops squares, and places on the base triangles. Frames have
    the numbers of their bodies, as in ``model.body_names``, those of loop joints the ones after;
    a list has the names of the joints, such as ``kt.linearize(independent=...)`` takes.

    Args:
        model: the mechanism.
        q: joint positions, (nq,) or (n, nq), such as ``trajectory.q[::100]``; earlier ones are
            paler, and the last one has the numbers.
        plane: ``"xy"``, ``"xz"``, ``"yz"`` or ``"3d"``; by default the plane in which the mechanism
            lies, if there is one.
        numbers: write numbers of frames, and the list.
    """
    if not as_model(model).bodies:
        raise ModelError(f"model {model.name!r} has no bodies to draw")
    q = np.atleast_2d(as_configuration(model, q))
    if q.ndim != 2:
        raise ShapeError(f"postures are (nq,) or (n, nq), got q of shape {q.shape}")
    if plane not in (None, *_PLANES):
        raise UnknownNameError(f"there is no plane {plane!r}; use one of {list(_PLANES)}")
    sticks, joints = _skeleton(model, q)
    points = np.concatenate([joints, *sticks.values()], axis=1).reshape(-1, 3)
    extent = np.ptp(points, axis=0)
    size = float(np.max(extent)) or 1.0
    if plane is None:
        thin = int(np.argmin(extent))
        flat = extent[thin] <= _FLAT * size
        plane = ("yz", "xz", "xy")[thin] if flat else "3d"
    axis = list(_PLANES[plane])
    kind = {"projection": "3d"} if plane == "3d" else {}
    with sheet(size=(6.4 if numbers else 4.6, 4.2), subplot_kw=kind) as (figure, grid):
        axes = grid[0, 0]
        axes.plot(*sticks[0][-1][:, axis].T, "^", color="#8a8f98", markersize=11, zorder=1)
        for k in range(len(q)):
            shade = 1.0 if len(q) == 1 else 0.15 + 0.85 * ((k + 1) / len(q)) ** 2
            _figure(axes, model, sticks, joints[k], k, axis, shade)
        if numbers:
            _numbers(axes, model, joints[-1][:, axis], size)
        axes.set_aspect("equal")
        for name, i in zip("xyz", axis, strict=False):
            low, high = np.min(points[:, i]) - 0.1 * size, np.max(points[:, i]) + 0.1 * size
            axes.set(**{f"{name}lim": (low, high), f"{name}label": f"{'xyz'[i]} [m]"})
        count = f", {len(q)} postures" if len(q) > 1 else ""
        heading(axes, f"{model.name}{count}")
    return figure


def _skeleton(model, q):
    """Stick ends of each body, {i: (n, ends, 3)}, and joint positions, (n, NB + loops, 3)."""
    X = np.asarray(kinematics.poses(model, q), dtype=float)
    base = np.broadcast_to(np.eye(4), (len(q), 1, 4, 4))
    X = np.concatenate([base, X.reshape(len(q), -1, 4, 4)], axis=1)

    def at(i, r):
        r = np.asarray(r, dtype=float)
        return X[:, i, :3, :3] @ r + X[:, i, :3, 3]

    ends: dict = {}
    for body in model.bodies:
        ends.setdefault(body.parent, []).append(at(body.parent, body.placement.r))
    loops = []
    for loop in model.loops:
        sides = (
            (loop.predecessor, loop.predecessor_placement.r),
            (loop.successor, loop.successor_placement.r),
        )
        for i, r in sides:
            ends.setdefault(i, []).append(at(i, r))
        loops.append(at(*sides[1]))
    for i, body in enumerate(model.bodies, start=1):
        mass = float(body.inertia.mass)
        if i not in ends and mass > 0:  # to its frames, or twice as far as its mass centre
            tips = [f.placement.r for f in model.frames if f.body == i]
            tips = tips or [2 * np.asarray(body.inertia.first_moment, dtype=float) / mass]
            ends[i] = [at(i, r) for r in tips]
    joints = np.stack([*X[:, 1:, :3, 3].swapaxes(0, 1), *loops], axis=1)
    return {i: np.stack(found, axis=1) for i, found in ends.items()}, joints


def _figure(axes, model, sticks, joints, k, axis, shade):
    """Draw a mechanism's stick figure in one posture."""
    for i, body in enumerate(model.bodies, start=1):
        color, start = COLORS[i % len(COLORS)], joints[i - 1][axis]
        ends = sticks.get(i, np.zeros((k + 1, 0, 3)))[k][:, axis]
        if len(ends) > 1 and len(axis) == 2:
            corners = np.concatenate([start[None], ends])
            around = corners - corners.mean(axis=0)
            corners = corners[np.argsort(np.arctan2(*around.T[::-1]))]
            axes.fill(*corners.T, color=color, alpha=0.25 * shade, linewidth=0)
        for end in ends:
            axes.plot(*np.array([start, end]).T, color=color, alpha=shade, linewidth=2.4)
        siblings = [j for j, b in enumerate(model.bodies, start=1) if b.parent == body.parent]
        rail = np.array([sticks[body.parent][k][siblings.index(i)][axis], start])
        if not np.allclose(*rail):  # of a joint that slides
            axes.plot(*rail.T, color=color, alpha=0.8 * shade, linewidth=1, linestyle=(0, (3, 2)))
    count = model.body_count
    for points, mark in ((joints[:count], "o"), (joints[count:], "s")):
        axes.plot(
            *points[:, axis].T,
            mark,
            color="#333333",
            markerfacecolor="white",
            markersize=5,
            alpha=shade,
            zorder=4,
        )


def _numbers(axes, model, joints, size):
    """Draw the numbers of joint frames, coincident ones together, with a list of names."""
    names = [*model.joint_names, *model.loop_names]
    middle, left = joints.mean(axis=0), list(range(len(names)))
    while left:
        here = [k for k in left if np.linalg.norm(joints[k] - joints[left[0]]) < 0.02 * size]
        left = [k for k in left if k not in here]
        away = joints[here[0]] - middle
        away = away / (np.linalg.norm(away) or 1.0)
        axes.text(
            *(joints[here[0]] + 0.05 * size * away),
            ",".join(str(k + 1) for k in here),
            ha="center",
            va="center",
            fontsize=8,
            fontweight="bold",
            zorder=5,
        )
    listed = [
        f"{k + 1:2d}".replace(" ", "\u2007") + f"  {words(name)}" for k, name in enumerate(names)
    ]
    listed = listed[:_LISTED]
    listed += ["…"] if len(names) > _LISTED else []
    axes.figure.text(
        0.76, 0.5, "\n".join(listed), ha="left", va="center", fontsize=min(8, 250 / len(listed))
    )
    axes.figure.get_layout_engine().set(rect=(0, 0, 0.74, 1))


_NAMED = 32


def sparsity(what: Model | ArrayLike) -> "Figure":
    """Figure of the sparsity of a model's mass matrix and its factor, or of a matrix.

    Dark squares are entries that may be nonzero. The pattern of a model comes from its tree —
    RBDA §6.4: ``H = Lᵀ L`` has no fill-in.

    Args:
        what: a ``Model``, or a matrix.
    """
    if not isinstance(what, Model):
        matrix = np.asarray(what)
        if matrix.ndim != 2:
            raise ShapeError(f"sparsity is of a model or of a matrix, got shape {matrix.shape}")
        with sheet(size=(4.4, 4.2)) as (figure, grid):
            _squares(grid[0, 0], matrix != 0, ())
            filled = np.count_nonzero(matrix)
            heading(grid[0, 0], f"{filled} of {matrix.size} entries are not zero")
        return figure
    lam = what.expanded_parent
    whole, names = pattern(lam), [v.name for v in velocities(what)]
    numbers = measured(lam)
    side = 2.4 + 0.09 * min(len(lam), 40)
    with sheet(1, 2, (2 * side + 0.9, side + 0.5)) as (figure, grid):
        left, right = grid[0]
        _squares(left, whole, names)
        heading(left, f"mass matrix, {100 * numbers.density:.0f} % filled")
        _squares(right, np.tril(whole), ())
        right.set(xticks=[], yticks=[])
        heading(right, "factor L")
        figure.suptitle(f"{words(what.name)}: {len(lam)} variables", fontsize=11)
    return figure


def _squares(axes, filled, names):
    """Draw the entries of a matrix as squares, with names at its sides."""
    axes.imshow(filled, cmap="Blues", vmin=0, vmax=1.35, interpolation="nearest")
    rows, columns = filled.shape
    axes.grid(False)
    if max(rows, columns) <= 60:
        axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
        axes.grid(True, which="minor", color="white", linewidth=0.8)
    axes.tick_params(which="both", length=0)
    for spine in axes.spines.values():
        spine.set_visible(True)
    if names and rows <= _NAMED:
        axes.set_yticks(
            range(rows), [words(name) for name in names], fontsize=8 if rows <= 16 else 6
        )
        axes.set_xticks([])


_MARKS = "oxs^d+v*"


def eigenvalues(
    *systems: Any, names: Sequence[str] | None = None, discrete: bool = False
) -> "Figure":
    """Figure of the eigenvalues of linear models in the complex plane.

    The stable region is white, the unstable one grey.

    Args:
        *systems: matrices (n, n), or linear models with a matrix ``A``, as of ``kt.linearize``.
        names: of the systems, for the legend.
        discrete: eigenvalues of steps, stable within the unit circle; else of rates [1/s], stable
            on the left.
    """
    found = [np.linalg.eigvals(_matrix(system)) for system in systems]
    if not found:
        raise ShapeError("eigenvalues needs at least one matrix")
    if names is not None and len(names) != len(found):
        raise ShapeError(f"there are {len(found)} systems and {len(names)} names")
    with sheet(size=(4.8, 4.2)) as (figure, grid):
        axes = grid[0, 0]
        everything = np.concatenate(found)
        reach = 1.15 * max(np.abs(everything.real).max(), np.abs(everything.imag).max(), 1e-9)
        (_circle if discrete else _halves)(axes, max(reach, 1.25 if discrete else 0.0))
        for k, values in enumerate(found):
            mark = _MARKS[k % len(_MARKS)]
            hollow = {} if mark in "x+*" else {"markerfacecolor": "none"}
            axes.plot(
                values.real,
                values.imag,
                mark,
                color=COLORS[k % len(COLORS)],
                markersize=6,
                markeredgewidth=1.4,
                label=names[k] if names else None,
                zorder=3,
                **hollow,
            )
        unit = "" if discrete else " [1/s]"
        axes.set(xlabel=f"real part{unit}", ylabel=f"imaginary part{unit}")
        margin = 1e-9 * np.abs(everything).max(initial=0.0)  # on the border by rounding
        inside = np.abs(everything) < 1 - 1e-9 if discrete else everything.real < -margin
        stable = bool(np.all(inside))
        heading(axes, "eigenvalues" if not stable else "eigenvalues, all stable")
        if names:
            axes.legend(loc="best")
    return figure


def _matrix(system):
    """Square matrix of a linear system or an array; ShapeError for other shapes."""
    A = np.asarray(getattr(system, "A", system))
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ShapeError(
            f"eigenvalues are of square matrices, or of models that have one; got {A.shape}"
        )
    return A


def _halves(axes, reach):
    """Draw the axes and the unstable half of the complex plane."""
    axes.axvspan(0, reach, color="#efefef", zorder=0)
    for draw in (axes.axvline, axes.axhline):
        draw(0, color="#777777", linewidth=0.9, zorder=1)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach))


def _circle(axes, reach):
    """Draw the unit circle, the stable region of discrete systems."""
    from matplotlib.patches import Circle

    axes.set_facecolor("#efefef")
    axes.add_patch(Circle((0, 0), 1.0, facecolor="white", edgecolor="#777777", zorder=0.5))
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
