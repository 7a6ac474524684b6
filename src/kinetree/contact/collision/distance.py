"""Distances between shapes of a model, in compiled code and in batches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kinetree.arrays.host import on_host
from kinetree.arrays.kinds import ArrayLike
from kinetree.contact.collision.detect import touch_table
from kinetree.contact.collision.pair_distance import Questions, distances
from kinetree.contact.collision.shapes import shapes_of
from kinetree.contact.collision.tables import Shapes
from kinetree.contact.finding.pairs import names_of
from kinetree.errors import ModelError, UnknownNameError
from kinetree.model.arrays import as_model
from kinetree.model.geometry import HeightField, Mesh, Plane
from kinetree.model.memo import remember
from kinetree.model.model import Model
from kinetree.quantities import kinematics
from kinetree.spelling import did_you_mean


class Distance(NamedTuple):
    """Distance of shapes, or depth of their overlap.

    Attributes:
        gap: [m]; if they overlap, minus the shortest translation that separates them.
        points: the nearest points, of the first and of the second, in the base [m], (..., 2, 3).
        normal: unit, from the first to the second, (..., 3).
        shapes: numbers of the two shapes in ``model.geometry``, (..., 2).
    """

    gap: np.ndarray
    points: np.ndarray
    normal: np.ndarray
    shapes: np.ndarray


@on_host
def distance(
    model: Model, q: ArrayLike, first: str | Sequence[str], second: str | Sequence[str]
) -> Distance:
    """Signed distances, nearest points and normals between named shapes, links or bodies.

    Exact to rounding error for all convex shapes, whether they are apart or overlap. Nonconvex
    meshes and height fields are treated as surfaces.

    Args:
        model: the mechanism.
        q: joint positions, (..., nq).
        first: name of a shape, link, frame or body, or several of them.
        second: likewise, as many: the distance of each pair.

    Returns:
        ``Distance`` with arrays of shape (...), or (..., n) for n names. A body or link counts with
        those of its shapes that can touch, and of them the nearest.
    """
    names = [[x] if isinstance(x, str) else list(x) for x in (first, second)]
    single = isinstance(first, str) and isinstance(second, str)
    count = max(len(x) for x in names)
    if any(len(x) not in (1, count) for x in names):
        raise ModelError(
            f"first and second must be as many, or one of them a single name, got {len(names[0])} "
            f"and {len(names[1])} names"
        )
    asked = tuple((names[0][k % len(names[0])], names[1][k % len(names[1])]) for k in range(count))
    poses, batch = placed_poses(model, q)
    shapes, numbers, pairs, starts, used = _tables(model, asked)
    samples = int(np.prod(batch, dtype=int))
    out, which = np.empty((samples * count, 10)), np.empty((samples * count, 2), dtype=np.int64)
    questions = Questions(
        bodies=model.body_count + 1,
        poses=poses,
        samples=samples,
        used=used,
        used_count=len(used),
        pairs=pairs,
        starts=starts,
        groups=count,
        nearest=out,
        which=which,
    )
    distances(shapes, questions, touch_table())
    shape = batch if single else (*batch, count)
    return Distance(
        out[:, 3].reshape(shape),
        out[:, 4:].reshape(*shape, 2, 3),
        out[:, :3].reshape(*shape, 3),
        numbers[which].reshape(*shape, 2),
    )


def placed_poses(model, q):
    """Poses (samples * bodies, 12) of all bodies with the base first, and the batch's shape."""
    T = np.asarray(kinematics.poses(as_model(model), q), dtype=float)
    batch = T.shape[:-3]
    poses = np.empty((int(np.prod(batch, dtype=int)), model.body_count + 1, 12))
    poses[:, 0] = np.eye(4)[:3].reshape(12)
    poses[:, 1:] = T[..., :3, :].reshape(len(poses), model.body_count, 12)
    return poses.reshape(-1, 12), batch


def numbers_of(model, name) -> list[int]:
    """Numbers of the shapes that the name of a shape, link, frame or body stands for."""
    found = names_of(model).find(name)
    if not found:
        known = (*names_of(model).own, *model.body_names[1:])
        raise UnknownNameError(
            f"no shape, link, frame or body with shapes is called {name!r}; "
            f"{did_you_mean(name, known)}"
        )
    return found


def chosen_shapes(model, left_out):
    """Tables and numbers of a model's shapes without the left out ones; meshes as triangles."""
    numbers = tuple(k for k in range(len(model.geometry)) if k not in left_out)
    shapes = _shapes(model, numbers, triangles=True)
    return own_poses(shapes), np.array(numbers, dtype=np.int64)


def _shapes(model, numbers, triangles=False):
    """Shape tables of numbered shapes of a model, computed once per model and choice."""

    def make():
        chosen = [model.geometry[k] for k in numbers]
        if triangles:
            chosen = [
                replace(g, shape=replace(g.shape, convex=False)) if isinstance(g.shape, Mesh) else g
                for g in chosen
            ]
        nothing = [0] * (model.body_count + 1)  # pairs are given, so rules do not matter
        return shapes_of(chosen, nothing, nothing, {"friction": None, "restitution": None})

    return remember(model, ("shapes in tables", numbers, triangles), make)


def own_poses(shapes) -> Shapes:
    """Copy of shape tables with separate pose and box arrays; the other arrays are shared."""
    mine = {name: getattr(shapes, name) for name in Shapes.types}
    mine |= {name: np.empty_like(mine[name]) for name in ("pose", "low", "high")}
    return Shapes(**mine)


def _tables(model, asked):
    """Shape tables and row pairs for requested pairs of names, computed once per model."""

    def make():
        groups = [(numbers_of(model, a), numbers_of(model, b)) for a, b in asked]
        used = sorted({k for pair in groups for side in pair for k in side})
        row = {k: r for r, k in enumerate(used)}
        pairs, starts = [], [0]
        for (a, b), names in zip(groups, asked, strict=True):
            found = [(i, j) for i in a for j in b if i != j]
            for i, j in found:
                _check_pair(model, i, j)
            if not found:
                raise ModelError(f"{names[0]!r} and {names[1]!r} are the same shape")
            pairs += [(row[i], row[j]) for i, j in found]
            starts.append(len(pairs))
        return (
            _shapes(model, tuple(used)),
            np.array(used, dtype=np.int64),
            np.array(pairs, dtype=np.int64),
            np.array(starts, dtype=np.int64),
            np.arange(len(used)),
        )

    shapes, *rest = remember(model, ("distances of", asked), make)
    return own_poses(shapes), *rest


def _check_pair(model, i, j):
    """Raise an error if no distance is defined between two shapes."""
    shapes = [model.geometry[k].shape for k in (i, j)]
    endless = sum(isinstance(s, (Plane, HeightField)) for s in shapes)
    concave = any(isinstance(s, Mesh) and not s.convex for s in shapes)
    if endless == 2 or (concave and any(isinstance(s, HeightField) for s in shapes)):
        kinds = " and ".join(type(s).__name__ for s in shapes)
        names = names_of(model).own
        raise ModelError(
            f"there is no distance between {names[i]!r} and {names[j]!r}, {kinds}: of two grounds "
            f"without end, or of a height field and a mesh that is not convex; name other shapes"
        )
