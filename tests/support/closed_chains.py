"""Closed chains for tests of linear models: Spencer's parallel four-bar, and chains at random."""

import numpy as np

import kinetree as kt
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.linear.coordinates import coordinates
from kinetree.loops.linear.velocity_basis import velocity_basis
from kinetree.model import Loop
from kinetree.spatial import Inertia


def parallel_four_bar(L1=1.3, L2=0.8):
    """The four-bar of Spencer's Figures 2.4 and A.1: links 1, and 2, 3, 4, cut at link 1."""
    z = kt.Revolute("z")

    def bar(mass, length):
        moment = mass * length**2 / 12
        center = np.array([length / 2, 0, 0])
        return Inertia.from_mass_center(mass, center, np.diag([0.01, moment, moment]))

    return (
        kt.ModelBuilder("parallel four-bar", gravity=(0, -9.81, 0))
        .body("1", joint=z, inertia=bar(1.0, L1), joint_name="q1")
        .body("2", joint=z, inertia=bar(2.0, L2), joint_name="q2")
        .body("3", on="2", joint=z, at=(L2, 0, 0), inertia=bar(1.5, L1), joint_name="q3")
        .body("4", on="3", joint=z, at=(L1, 0, 0), inertia=bar(1.2, L2), joint_name="q4")
        .loop("A", predecessor="1", successor="4", joint=z, at=(L1, 0, 0), successor_at=(L2, 0, 0))
        .build()
    )


def parallelogram(q1, q2):
    """Its joint variables on the branch of (2.48)."""
    return np.array([q1, q2, q1 - q2, q2 - q1 - np.pi])


def spatial_chain(rng, *joints, cut):
    """A chain whose end a loop joint ties to the base, and a configuration that closes it.

    The place of the loop joint follows from random positions of all joints.
    """
    builder = kt.ModelBuilder("spatial chain")
    for k, joint in enumerate(joints):
        builder.body(
            f"b{k}",
            on=f"b{k - 1}" if k else None,
            joint=joint,
            at=kt.samples.random_placement(rng),
            inertia=kt.samples.random_inertia(rng),
        )
    tree = builder.build()
    q = tree.random_configuration(rng)
    X_0 = base_transforms(tree, joint_transforms(tree, q)[0])
    X_p = kt.samples.random_placement(rng)
    X_s = cut.transform(cut.random(rng)) @ X_p @ X_0[-1].inverse()
    loop = Loop("cut", 0, tree.body_count, cut, X_p, X_s)
    return tree.replace(loops=(loop,)), q


def allowed_velocity(model, q, rng, size=1.0):
    """A random velocity that keeps the loops closed."""
    K = constraint(model, q, np.zeros(model.nv)).K
    G = velocity_basis(model, q, K, coordinates(model, K, "tangent")).G
    return G @ (size * rng.standard_normal(G.shape[1]))
