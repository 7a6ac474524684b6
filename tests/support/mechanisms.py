"""Small mechanisms whose motions have formulas."""

import numpy as np

import kinetree as kt
from kinetree.model import JointDynamics, Limits


def block(mass=2.0, gravity=(0.0, 0.0, -9.81), limits=None, **dynamics):
    """A block that slides along x."""
    inertia = kt.shapes.box(0.1, 0.1, 0.1, mass=mass)
    model = kt.ModelBuilder("block").body("block", joint=kt.Prismatic("x"), inertia=inertia).build()
    return model.replace(
        gravity=gravity,
        dynamics={"block_joint": JointDynamics(**dynamics)},
        limits={"block_joint": limits or Limits()},
    )


def ball(mass=1.0):
    """A ball that moves up and down."""
    inertia = kt.shapes.sphere(0.1, mass=mass)
    return kt.ModelBuilder("ball").body("ball", joint=kt.Prismatic("z"), inertia=inertia).build()


def wheel(inertia=0.5, **dynamics):
    """A wheel on a vertical axle, with a motor: gear 10, told torques of at most 2."""
    I = kt.Inertia.from_mass_center(1.0, np.zeros(3), inertia * np.eye(3))
    model = (
        kt.ModelBuilder("wheel")
        .body("wheel", joint=kt.Revolute("z"), inertia=I)
        .actuator("motor", joint="wheel_joint", gear=10.0, control=(-2, 2))
        .build()
    )
    return model.replace(dynamics={"wheel_joint": JointDynamics(**dynamics)})


def arm(limits=None, **dynamics):
    """Two links that swing in a vertical plane, with the same limits and dynamics in both."""
    rod = kt.shapes.rod(0.5, mass=1.0, at=(0, 0, -0.25))
    model = (
        kt.ModelBuilder("arm")
        .body("upper", joint=kt.Revolute("y"), inertia=rod)
        .body("fore", on="upper", joint=kt.Revolute("y"), at=(0, 0, -0.5), inertia=rod)
        .build()
    )
    names = ("upper_joint", "fore_joint")
    return model.replace(
        dynamics={n: JointDynamics(**dynamics) for n in names},
        limits={n: limits or Limits() for n in names},
    )


def assert_balanced(trajectory, error=1e-9):
    """All energy is accounted for: changes of energy are the work done."""
    assert trajectory.report.energy_error < error
    assert not trajectory.report.warnings
    assert np.all(trajectory.loop_error == 0)
