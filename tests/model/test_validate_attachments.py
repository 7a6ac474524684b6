"""Parts that fit nothing are refused, with a word about what is wrong."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.mechanisms import gripper

from kinetree.errors import ModelError, ModelWarning
from kinetree.joints import Revolute, Spherical
from kinetree.model import Actuator, Coupling, JointDynamics, ModelBuilder, Posture, geometry
from kinetree.model.geometry import Geometry
from kinetree.spatial import Plucker


@pytest.fixture
def model():
    builder = ModelBuilder("m").body("s", joint=Spherical())
    for name in "abc":
        builder.body(name, joint=Revolute("x"))
    return builder.build()


NAN = float("nan")


@pytest.mark.parametrize(
    ("dynamics", "message"),
    [
        (JointDynamics(armature=(1, 2)), "'a_joint': armature needs 1 entries, got 2"),
        (JointDynamics(rest=(1, 2)), "'a_joint': rest needs 1 entries, got 2"),
        (JointDynamics(damping=NAN), "damping must be finite"),
        (JointDynamics(friction=-1), "friction must not be negative, got -1"),
        ({"armature": 1}, "dynamics of joint 'a_joint' must be JointDynamics, got dict"),
    ],
)
def test_dynamics(model, dynamics, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        model.replace(dynamics={"a_joint": dynamics})


def test_dynamics_of_quaternions_and_text(model):
    bad = JointDynamics(stiffness=(1, 1, 1), rest=(1, 1, 0, 0))
    with pytest.raises(ModelError, match="rest position: quaternion"):
        model.replace(dynamics={"s_joint": bad})
    with pytest.raises(ModelError, match="armature must hold numbers, got 'heavy'"):
        JointDynamics(armature="heavy")


def test_negative_damping_is_a_warning_where_impossible_inertias_are():
    builder = ModelBuilder().body("a", joint=Revolute("x"), dynamics=JointDynamics(damping=-1))
    with pytest.warns(ModelWarning, match="damping must not be negative"):
        builder.build(strict=False)


@pytest.mark.parametrize(
    ("couplings", "message"),
    [
        ([Coupling("c", 2, 2)], "couplings lead in a circle: 'a_joint' -> 'a_joint'"),
        ([Coupling("c", 2, 3), Coupling("d", 3, 2)], "'a_joint' -> 'b_joint' -> 'a_joint'"),
        ([Coupling("c", 2, 3), Coupling("d", 2, 4)], "joint 'a_joint' follows two couplings"),
        ([Coupling("c", 1, 3)], "joint 's_joint', a Spherical with 3 degrees of freedom"),
        ([Coupling("c", 2, 5)], "coupling 'c' refers to joint 5; the model has joints 1 to 4"),
        ([Coupling("c", 2, "a")], "must refer to a joint by its number, got 'a'"),
        ([Coupling("c", 2, 3, ())], "needs at least one coefficient"),
        ([Coupling("c", 2, 3, (0.0, NAN))], "must be finite, got nan"),
        ([Coupling("c", 2, 3, ("x",))], "must hold numbers, got 'x'"),
        ([Coupling("c", 2, 0, (0.0, 1.0))], "has 2 coefficients and no joint that leads"),
        ([Coupling("a_joint", 2, 3)], "joint name 'a_joint' is used 2 times"),
        (["c"], "needs Coupling objects here, got str"),
    ],
)
def test_couplings(model, couplings, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        model.replace(couplings=couplings)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint": 0}, "actuator 'u' drives nothing: give a joint, a tendon or a frame"),
        ({"gear": (1.0, 2.0)}, "joint 'a_joint' with 1 degrees of freedom; gear needs 1 entry"),
        ({"gear": 2.0}, "gear of actuator 'u' must be a tuple of numbers, got 2.0"),
        ({"control": (1.0, -1.0)}, "must be the smallest and the largest value, got (1.0, -1.0)"),
        ({"effort": (0.0, NAN)}, "effort of actuator 'u' must be numbers, got nan"),
        ({"name": ""}, "actuator name must be a non-empty string"),
    ],
)
def test_actuators(model, change, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        model.replace(actuators=[replace(Actuator("u", 2), **change)])


@pytest.mark.parametrize(
    ("posture", "message"),
    [
        (Posture("p", (1.0,)), "q of posture 'p' needs 7 entries, got 1"),
        (Posture("p", (1.0, *[0.0] * 6), (1.0,)), "qd of posture 'p' needs 6 entries, got 1"),
        (Posture("p", (1.0, *[NAN] * 6)), "must be finite, got nan"),
        (Posture("p", (2.0, *[0.0] * 6)), "posture 'p', joint 's_joint': quaternion"),
    ],
)
def test_postures(model, posture, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        model.replace(postures=[posture])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (geometry.Sphere(0.0), "radius of geometry 'g' on body 'a' must be positive, got 0"),
        (geometry.Box((1, 2)), "size of geometry 'g' on body 'a' needs 3 numbers, got 2"),
        (geometry.Cylinder(1, -1), "length of geometry 'g' on body 'a' must not be negative"),
        (geometry.Ellipsoid((1, 2, NAN)), "must be finite, got nan"),
        (geometry.Mesh(""), "must be the name of a file"),
        ("ball", "must be one of kinetree.geometry, such as Sphere(0.1), got str"),
    ],
)
def test_shapes(model, shape, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        model.replace(geometry=[Geometry(2, shape, name="g")])


def test_geometry(model):
    ball = geometry.Sphere(1.0)
    with pytest.raises(ModelError, match="refers to body 9; the model has bodies 0 to 4"):
        model.replace(geometry=[Geometry(9, ball)])
    with pytest.raises(ModelError, match="color of geometry on body 'a' must be red"):
        model.replace(geometry=[Geometry(2, ball, color=(2, 0, 0, 1))])
    with pytest.raises(ModelError, match="placement of geometry on body 'a' is not a proper"):
        model.replace(geometry=[Geometry(2, ball, Plucker(2 * np.eye(3), np.zeros(3)))])


def test_names_of_actuators_and_postures_are_unique(rng):
    model = gripper(rng)
    for kind in ("actuators", "postures"):
        with pytest.raises(ModelError, match=f"{kind[:-1]} name '.*' is used 2 times"):
            model.replace(**{kind: [getattr(model, kind)[0]] * 2})
