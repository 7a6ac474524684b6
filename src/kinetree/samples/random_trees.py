"""Random mechanisms: any joints, any branching, general geometry and inertias."""

import numpy as np

from kinetree.errors import ModelError
from kinetree.joints import REPRESENTATIVES, Free
from kinetree.model import Model, ModelBuilder
from kinetree.spatial import Inertia, Plucker
from kinetree.spatial.rotation import rotation_exp

__all__ = ["random_inertia", "random_placement", "random_tree"]


def random_tree(bodies=8, rng=None, *, joints=None, branching=0.5, floating_base=False) -> Model:
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


def random_placement(rng) -> Plucker:
    """A random rotation and a shift of about half a metre."""
    return Plucker(rotation_exp(rng.standard_normal(3)), 0.5 * rng.standard_normal(3))


def random_inertia(rng, points=6) -> Inertia:
    """The inertia of a few random point masses: always physically possible, a few kilograms."""
    total = Inertia.zero()
    for _ in range(points):
        mass, position = rng.uniform(0.1, 1.0), 0.3 * rng.standard_normal(3)
        total = total + Inertia.from_mass_center(mass, position, np.zeros((3, 3)))
    return total
