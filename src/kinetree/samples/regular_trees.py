"""Trees of any size that follow a rule: the same every time, for benchmarks and budgets."""

from math import ceil, floor

import numpy as np

from kinetree.joints import Revolute
from kinetree.model import Model, ModelBuilder
from kinetree.samples.random_trees import check_count, random_inertia
from kinetree.spatial import Inertia, rotx, xlt

__all__ = ["chain", "tree"]


def chain(n: int) -> Model:
    """The book's reference chain of ``n`` revolute joints — RBDA §10.3.

    Unbranched, each link with general inertia and with general Denavit–Hartenberg geometry; the
    same every time.
    """
    rng = np.random.default_rng(2008)
    check_count(n, "chain")
    builder = ModelBuilder(f"chain({n})")
    parent = None
    for i in range(1, n + 1):
        a, d, alpha = rng.uniform(0.2, 0.6), rng.uniform(-0.3, 0.3), rng.uniform(0.4, 1.2)
        at = rotx(alpha) if i == 1 else xlt(0, 0, d) @ rotx(alpha) @ xlt(a, 0, 0)
        name = f"link{i}"
        builder.body(name, on=parent, joint=Revolute("z"), at=at, inertia=random_inertia(rng))
        parent = name
    return builder.build()


def tree(bodies: int, branching: float = 2, skew: float = 0.4, taper: float = 0.9) -> Model:
    """A tree of revolute joints whose bodies all have ``branching`` children, as far as they go.

    Args:
        bodies: number of moving bodies.
        branching: children of each body; 1 for a chain, 1.5 for one and two in turn.
        skew: angle between successive joint axes [rad]; 0 makes the tree planar.
        taper: size of a body relative to its parent.
    """
    check_count(bodies, "tree")
    builder = ModelBuilder(f"tree({bodies}, {branching})")
    size = [1.0]
    for i in range(1, bodies + 1):
        parent = floor((i - 2 + ceil(branching)) / branching)
        size.append(1.0 if parent == 0 else taper * size[parent])
        at = rotx(skew) @ xlt(size[parent], 0, 0) if parent else None
        # Thin cylinders, a twentieth of the length in radius, with the density of the first.
        mass, across = size[i] ** 3, size[i] ** 2
        I_C = mass * across * np.diag([0.00125, 1.0075 / 12, 1.0075 / 12])
        inertia = Inertia.from_mass_center(mass, [size[i] / 2, 0, 0], I_C)
        on = f"body{parent}" if parent else None
        builder.body(f"body{i}", on=on, joint=Revolute("z"), at=at, inertia=inertia)
    return builder.build()
