"""States and external forces for tests of the dynamics, and how well posed they are."""

import numpy as np

from kinetree.algorithms.crba import joint_space_inertia
from kinetree.joints import Free, Prismatic, Revolute
from kinetree.loops.dynamics.methods import ConstrainedEquations
from kinetree.model import ModelBuilder
from kinetree.samples import random_closed_mechanism, random_inertia, random_placement
from kinetree.spatial import Force, Plucker
from kinetree.spatial.rotation import euler_rotation

# --- States and external forces for tests of the dynamics, and how well posed they are -----------


def random_state(model, rng):
    """``q, qd, tau`` drawn at random."""
    return model.random_configuration(rng), *rng.standard_normal((2, model.nv))


def random_external_forces(model, rng):
    """A force on every body, in base coordinates; entry 0 unused."""
    return [None, *(Force.from_array(f) for f in rng.standard_normal((model.body_count, 6)))]


def conditioning(model, q):
    """Condition number of H with its diagonal scaled to one, so that units do not count."""
    H = joint_space_inertia(model, q)
    d = np.sqrt(np.diagonal(H))
    return max(float(np.linalg.cond(H / np.outer(d, d))), 1.0) if len(H) else 1.0


def floating_tree(rng, bodies, kinds):
    """A random tree on a single free joint: nothing else hangs on the base."""
    builder = ModelBuilder("floating tree")
    builder.body("body1", joint=Free(), inertia=random_inertia(rng))
    for i in range(2, bodies + 1):
        builder.body(
            f"body{i}",
            on=f"body{rng.integers(1, i)}",
            joint=kinds[rng.integers(len(kinds))],
            at=random_placement(rng),
            inertia=random_inertia(rng),
        )
    return builder.build()


def aligned_chain(rng, kinds=("x", "y", "z")):
    """Hinges along the coordinate axes of parallel frames: no rounded rotation in the model."""
    builder = ModelBuilder("aligned chain")
    for i in range(6):
        builder.body(
            f"body{i}",
            on=f"body{i - 1}" if i else None,
            joint=Revolute(kinds[i % len(kinds)]) if i % 4 else Prismatic(kinds[i % len(kinds)]),
            at=rng.standard_normal(3),
            inertia=random_inertia(rng),
        )
    return builder.build()


# --- Random closed mechanisms at an instant, under random joint forces ---------------------------


def random_instant(seed, **options):
    """An ``ConstrainedEquations``; options are those of ``random_closed_mechanism``."""
    rng = np.random.default_rng(seed)
    model, q, qd = random_closed_mechanism(rng, **options)
    return ConstrainedEquations(model, q, qd, rng.standard_normal(model.nv))


def random_place(rng):
    """A placement of any orientation, within a metre along each axis."""
    return Plucker(euler_rotation("zyx", rng.uniform(-3, 3, 3)), rng.uniform(-1, 1, 3))


def inertial_parameters(model):
    """Parameters of the inertias of all bodies, one after the other."""
    return np.concatenate([I.parameters() for I in model.inertia[1:]])
