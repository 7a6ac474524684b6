"""Kinematic trees of any size: random ones, and regular ones for benchmarks and budgets."""

from collections.abc import Sequence
from math import ceil, floor
from typing import TypeAlias

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import REPRESENTATIVES, AbstractJoint, Free, Revolute
from kinetree.model import Model, ModelBuilder
from kinetree.spatial import Inertia, Plucker, rotx, xlt
from kinetree.spatial.rotation import rotation_exp

__all__ = ["chain", "random_inertia", "random_placement", "random_tree", "tree"]

Rng: TypeAlias = int | np.random.Generator
"""A seed, or a generator of random numbers."""


def random_tree(
    bodies: int = 8, rng: Rng | None = None, *, joints: Sequence[AbstractJoint] | None = None,
    branching: float = 0.5, floating_base: bool = False,
) -> Model:  # fmt: skip
    """A random kinematic tree with random geometry and inertias.

    Args:
        bodies: number of moving bodies.
        rng: a NumPy random generator or a seed.
        joints: kinds to draw from, as joint instances; by default every kind there is.
        branching: chance that a body does not continue the chain of the one before it.
        floating_base: connect the first body to the base by a free joint.
    """
    check_count(bodies, "random_tree")
    rng = np.random.default_rng(rng)
    kinds = REPRESENTATIVES if joints is None else tuple(joints)
    builder = ModelBuilder(f"random_tree({bodies})")
    names = ["base"]
    for i in range(1, bodies + 1):
        on = names[rng.integers(len(names))] if rng.random() < branching else names[-1]
        joint = Free() if floating_base and i == 1 else kinds[rng.integers(len(kinds))]
        at, inertia = random_placement(rng), random_inertia(rng)
        names.append(f"body{i}")
        builder.body(names[-1], on=on, joint=joint, at=at, inertia=inertia)
    return builder.build()


def check_count(bodies, what):
    """Raise ModelError unless ``bodies`` is a number of bodies."""
    if not isinstance(bodies, (int, np.integer)) or bodies < 0:
        raise ModelError(f"{what} needs a number of bodies, 0 or more, got {bodies!r}")


def random_placement(rng: np.random.Generator) -> Plucker:
    """A random rotation and a shift of about half a metre."""
    return Plucker(rotation_exp(rng.standard_normal(3)), 0.5 * rng.standard_normal(3))


def random_inertia(rng: np.random.Generator, points: int = 6) -> Inertia:
    """The inertia of a few random point masses: always physically possible, a few kilograms."""
    total = Inertia.zero()
    for _ in range(points):
        mass, position = rng.uniform(0.1, 1.0), 0.3 * rng.standard_normal(3)
        total = total + Inertia.from_mass_center(mass, position, np.zeros((3, 3)))
    return total


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
