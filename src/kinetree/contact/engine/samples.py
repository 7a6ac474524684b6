"""Numbers of the mechanism and the scene in which the motions of a machine differ."""

from itertools import product
from typing import Any

import numpy as np

from kinetree.arrays.kinds import Array
from kinetree.codegen.loops.language import BODIES, SINGLE
from kinetree.contact.engine.engine import Engine
from kinetree.contact.engine.motions import Samples
from kinetree.model.general.tables import data_of
from kinetree.model.limits import joint_values

_OF_SHAPES = {
    "friction": 3, "restitution": 1, "size": 3, "radius": 1, "thin": 1, "box": 6, "place": 12,
}  # fmt: skip


class OwnNumbers:
    """Gives motions their own numbers.

    Args:
        engine: one of the machine, with the numbers that it was made with.
        n: number of motions.

    Attributes:
        record: what steps read.
    """

    def __init__(self, engine: Engine, n: int):
        self.engine, self.n, self.record = engine, n, Samples()

    def give_inertias(self, inertia: Array) -> None:
        """Give each motion individual body inertias, (n, bodies, 10)."""
        self.record.inertia = np.ascontiguousarray(inertia).reshape(-1, 10)
        self.record.bodies = 1

    def give_models(self, models: list) -> None:
        """Give each motion the numbers of an individual model of the same structure."""
        trees = [model.uncoupled.spanning_tree for model in models]
        data: list[Any] = [data_of(tree) for tree in trees]
        tables = [x.numbers for x in data]
        self.give_inertias(np.array([x[BODIES]["inertia"] for x in tables]))
        names, b, m = ("placement", "armature", "dynamics"), self.record, self.engine.mechanism
        b.body = np.concatenate([np.hstack([x[BODIES][y] for y in names]) for x in tables])
        b.gravity, b.bodies = np.array([x[SINGLE]["gravity"][0] for x in tables]), 2
        old, rest = self.engine.tree, (m.damping, m.stiffness)
        own = [
            y - joint_values(old, x) for x, y in zip(("damping", "stiffness"), rest, strict=True)
        ]
        each = [
            (x.armature, joint_values(x, "damping") + own[0], joint_values(x, "stiffness") + own[1])
            for x in trees
        ]
        b.joint = np.ascontiguousarray(np.array(each).swapaxes(1, 2)).reshape(-1, 3)

    def give_levels(self, levels: Array) -> None:
        """Give each motion individual dry-friction levels, (n, friction rows)."""
        self.record.level = np.ascontiguousarray(levels, dtype=float).ravel()
        self.record.rough = 1

    def give_shapes(self, tables: dict[str, Array]) -> None:
        """Give each motion individual shape parameters, fields of ``Shapes`` (n, shapes, ...)."""
        shapes, n = self.engine.tables.shapes, self.n
        parts = [
            np.broadcast_to(
                tables.get(name, getattr(shapes, name)).reshape(-1, shapes.count, width),
                (n, shapes.count, width),
            )
            for name, width in _OF_SHAPES.items()
        ]
        self.record.shape = np.concatenate(parts, axis=2).reshape(-1, 27)
        self.record.shaped = 1

    def give_gains(self, factors: Array) -> None:
        """Scale each motion's actuator gains by ``factors``, (n, actuators)."""
        both = np.concatenate([self.engine.drives.gain, self.engine.drives.bias], axis=1)
        self.record.gain = (factors[:, :, None] * both).reshape(-1, 6)
        self.record.gains = 1


def columns_of(engine: Engine, names: tuple[str, ...]) -> dict[str, Any]:
    """``Storage`` fields that route the forces of named contacts to columns, in order."""
    n, first = engine.tables.shapes.count, {}
    pairs = [name.rpartition(":")[0] for name in names]
    column, points = np.full(n * n, -1, dtype=np.int64), np.ones(n * n, dtype=np.int64)
    for k, pair in enumerate(pairs):
        first.setdefault(pair, k)
    for i, j in product(range(n), range(n)):
        name = engine.pair_name(i, j)
        if i != j and name in first:
            column[i * n + j], points[i * n + j] = first[name], pairs.count(name)
    return {"columns": len(names), "column": column, "points": points}
