"""Pendulums: the smallest interesting mechanisms. They swing in the x-z plane and hang at q = 0."""

from kinetree.joints import Prismatic, Revolute
from kinetree.model import Model, ModelBuilder, shapes

__all__ = ["cart_pole", "double_pendulum", "pendulum"]


def pendulum() -> Model:
    """A rod of 1 m with a bob at its end."""
    rod = shapes.rod(1.0, mass=0.2, at=(0, 0, -0.5))
    ball = shapes.sphere(0.05, mass=1.0, at=(0, 0, -1))
    return (
        ModelBuilder("pendulum")
        .body("bob", joint=Revolute("y"), inertia=rod + ball, joint_name="pivot")
        .frame("tip", on="bob", at=(0, 0, -1))
        .build()
    )


def double_pendulum() -> Model:
    """Two slender rods of 1 m and 0.8 m, one below the other."""
    return (
        ModelBuilder("double pendulum")
        .body(
            "upper",
            joint=Revolute("y"),
            inertia=shapes.cylinder(0.02, 1.0, mass=1.0, at=(0, 0, -0.5)),
            joint_name="shoulder",
        )
        .body(
            "lower",
            on="upper",
            joint=Revolute("y"),
            at=(0, 0, -1.0),
            inertia=shapes.cylinder(0.02, 0.8, mass=0.8, at=(0, 0, -0.4)),
            joint_name="elbow",
        )
        .frame("tip", on="lower", at=(0, 0, -0.8))
        .build()
    )


def cart_pole() -> Model:
    """A cart on a rail along x with a pole that hangs from it."""
    return (
        ModelBuilder("cart-pole")
        .body(
            "cart",
            joint=Prismatic("x"),
            inertia=shapes.box(0.3, 0.2, 0.1, mass=1.0),
            joint_name="rail",
        )
        .body(
            "pole",
            on="cart",
            joint=Revolute("y"),
            inertia=shapes.cylinder(0.01, 0.6, mass=0.1, at=(0, 0, -0.3)),
            joint_name="pivot",
        )
        .frame("tip", on="pole", at=(0, 0, -0.6))
        .build()
    )
