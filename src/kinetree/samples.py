"""Models that ship with the package, and random ones of any size.

``names()`` lists the fixed ones. Random mechanisms are as much for users' tests as for ours.
"""

import numpy as np

from kinetree.joints import Fixed, Free, Prismatic, Revolute, Spherical
from kinetree.model import Model, ModelBuilder
from kinetree.spatial import Inertia, Plucker, rotx, xlt
from kinetree.spatial.rotation import rotation_exp

__all__ = ["chain", "names", "random_inertia", "random_placement", "random_tree"]


def names():
    """Names of the fixed sample models; each is a function of this module."""
    return ()


def chain(n: int) -> Model:
    """The book's reference chain of ``n`` revolute joints — RBDA §10.3.

    Unbranched, each link with general inertia and with general Denavit–Hartenberg geometry; the
    same every time.
    """
    rng = np.random.default_rng(2008)
    builder = ModelBuilder(f"chain({n})")
    parent = None
    for i in range(1, n + 1):
        a, d, alpha = rng.uniform(0.2, 0.6), rng.uniform(-0.3, 0.3), rng.uniform(0.4, 1.2)
        at = rotx(alpha) if i == 1 else xlt(0, 0, d) @ rotx(alpha) @ xlt(a, 0, 0)
        name = f"link{i}"
        builder.body(name, on=parent, joint=Revolute("z"), at=at, inertia=random_inertia(rng))
        parent = name
    return builder.build()


def random_tree(bodies=8, rng=None, *, joints=None, branching=0.5, floating_base=False) -> Model:
    """A random kinematic tree with random geometry and inertias.

    Args:
        bodies: number of moving bodies.
        rng: a NumPy random generator or a seed.
        joints: kinds to draw from, as joint instances; revolute, prismatic, spherical, free and
            fixed ones by default.
        branching: chance that a body does not continue the chain of the one before it.
        floating_base: connect the first body to the base by a free joint.
    """
    rng = np.random.default_rng(rng)
    kinds = _DEFAULT_JOINTS if joints is None else tuple(joints)
    builder = ModelBuilder(f"random_tree({bodies})")
    names = ["base"]
    for i in range(1, bodies + 1):
        on = names[rng.integers(len(names))] if rng.random() < branching else names[-1]
        joint = Free() if floating_base and i == 1 else kinds[rng.integers(len(kinds))]
        at, inertia = random_placement(rng), random_inertia(rng)
        names.append(f"body{i}")
        builder.body(names[-1], on=on, joint=joint, at=at, inertia=inertia)
    return builder.build()


_DEFAULT_JOINTS = (
    *(Revolute(axis) for axis in ("x", "y", "z", (1.0, 2.0, -3.0))),
    *(Prismatic(axis) for axis in ("x", "-y", (2.0, -1.0, 2.0))),
    Spherical(),
    Free(),
    Fixed(),
)


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
