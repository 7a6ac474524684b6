"""A mechanism that has everything a model can have, and joint dynamics for any model."""

import numpy as np

from kinetree.joints import Fixed, Free, Prismatic, Revolute, Spherical
from kinetree.model import JointDynamics, Limits, ModelBuilder, geometry
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import rotx, xlt


def gripper(rng):
    """A floating palm with a finger that leads, one that follows, a spring and a loop."""
    return (
        ModelBuilder("gripper")
        .body("palm", joint=Free(), inertia=random_inertia(rng), joint_name="float")
        .body(
            "left", on="palm", joint=Revolute("y"), at=random_placement(rng),
            inertia=random_inertia(rng), joint_name="lead", limits=Limits(lower=-1, upper=2),
            dynamics=JointDynamics(armature=0.1, damping=0.2, friction=0.3, stiffness=4, rest=0.5),
        )
        .body("pad", on="left", joint=Fixed(), at=(0, 0, 0.1), inertia=random_inertia(rng))
        .body(
            "right", on="palm", joint=Prismatic("x"), at=random_placement(rng),
            inertia=random_inertia(rng), joint_name="follow", dynamics=JointDynamics(armature=0.7),
        )
        .body("ball", on="pad", joint=Spherical(), inertia=random_inertia(rng), joint_name="socket")
        .frame("tip", on="pad", at=(0, 0, 0.2))
        .loop("string", predecessor="ball", successor="right", joint=Free())
        .coupling("gear", joint="follow", source="lead", coefficients=(0.1, -2.0, 0.3))
        .geometry(geometry.Box((0.1, 0.2, 0.3)), on="palm", name="case", color=(1, 0.5, 0, 1))
        .geometry(geometry.Capsule(0.01, 0.1), on="pad", at=xlt(0, 0, 1) @ rotx(0.3), visual=False)
        .geometry(geometry.Mesh("/hand.stl", (1.0, 1.0, -1.0)), on="right", collision=False)
        .geometry(geometry.Plane())
        .actuator("motor", joint="lead", gear=50.0, control=(-1, 1), effort=(-3, 3))
        .actuator("muscle", joint="socket", gear=(1, 0, 2))
        .posture("home", q={"lead": 0.5, "follow": -0.825})
        .posture("thrown", q={"float": (1, 2, 3, 0, 1, 0, 0)}, qd={"float": (1, 2, 3, 4, 5, 6)})
        .build()
    )  # fmt: skip


def with_armature(model, rng):
    """The model with armature in most of its joints."""
    dynamics = {
        b.joint_name: JointDynamics(armature=rng.uniform(0.1, 2.0, b.joint.nv))
        for b in model.bodies
        if b.joint.nv and rng.random() < 0.8
    }
    return model.replace(dynamics=dynamics)


def without_armature(model):
    """The same bodies alone."""
    return model.replace(dynamics=dict.fromkeys(model.joint_names))


def assert_same_parts(a, b):
    """Everything that is attached to two models is the same, by names; placements to rounding."""
    assert a.joint_names == b.joint_names
    assert [x.dynamics for x in a.bodies] == [x.dynamics for x in b.bodies]
    for kind in ("couplings", "actuators", "postures"):
        assert getattr(a, kind) == getattr(b, kind)
    for x, y in zip(a.geometry, b.geometry, strict=True):
        assert (x.body, x.shape, x.name, x.color) == (y.body, y.shape, y.name, y.color)
        assert (x.visual, x.collision) == (y.visual, y.collision)
        assert np.allclose(x.placement.E, y.placement.E, rtol=0, atol=1e-14)
        assert np.allclose(x.placement.r, y.placement.r, rtol=0, atol=1e-14)
