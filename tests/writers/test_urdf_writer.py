"""URDF from a live model, read again."""

import math
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
import sympy
from support.closeness import assert_close
from support.states import random_place

from kinetree.algorithms import crba, jacobians, rnea
from kinetree.errors import InteropError, ModelWarning
from kinetree.joints import (
    Fixed,
    Free,
    Helical,
    Planar,
    Prismatic,
    Reversed,
    Revolute,
    Spherical,
    Universal,
)
from kinetree.loaders import loads
from kinetree.model import JointDynamics, Limits, ModelBuilder
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from kinetree.spatial import Inertia
from kinetree.writers.urdf import to_urdf


def solid(rng):
    A = rng.uniform(-1, 1, (3, 3))
    I = A @ A.T
    return Inertia.from_mass_center(
        rng.uniform(1, 2), rng.uniform(-1, 1, 3), np.trace(I) * np.eye(3) - I
    )


def tree(rng, *joints):
    """A chain of joints, each in a random place, then a frame."""
    builder, on = ModelBuilder("a & 'b' <c>"), None
    for i, joint in enumerate(joints):
        name = f"body {i}"
        builder.body(
            name, on=on, joint=joint, at=random_place(rng), inertia=solid(rng), joint_name=f"j{i}"
        )
        on = name
    return builder.frame("tool", on=on, at=random_place(rng))


def assert_same(model, again, rng):
    assert again.body_names == model.body_names
    assert again.joint_names == model.joint_names
    assert again.frame_names == model.frame_names
    q, qd, qdd = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    H = crba.joint_space_inertia
    assert_close(H(again, q), H(model, q), ulps=1000)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(again, q, qd, qdd), tau, ulps=1000)
    for name in model.frame_names:
        pose = jacobians.frame_pose(model, q, model.frame(name))
        assert_close(jacobians.frame_pose(again, q, again.frame(name)), pose, ulps=1000)


def test_every_joint_that_urdf_has(rng):
    joints = [
        Revolute("x"),
        Revolute((1, -2, 3)),
        Prismatic("-y"),
        Planar("z"),
        Planar((1, 1, 1)),
        Free(),
        Reversed(Revolute("z")),
        Reversed(Prismatic((1, 2, 0))),
    ]
    model = tree(rng, *joints).build()
    assert_same(model, loads(to_urdf(model)), rng)


def test_fixed_bodies(rng):
    model = tree(rng, Revolute("x"), Fixed(), Prismatic("y")).build()
    again = loads(to_urdf(model), lump=False)
    assert again.body_names[:4] == model.body_names
    q = rng.standard_normal(2)
    assert_close(crba.joint_space_inertia(again, q), crba.joint_space_inertia(model, q), ulps=1000)


def test_pinocchio_reads_it(rng):
    model = tree(rng, Revolute("x"), Prismatic((1, 2, 3)), Fixed(), Revolute("z")).build()
    theirs = pin.buildModelFromXML(to_urdf(model))
    theirs_q = pin.neutral(theirs)
    H = pin.crba(theirs, theirs.createData(), theirs_q)
    H = np.triu(H) + np.triu(H, 1).T
    assert_close(crba.joint_space_inertia(model, np.zeros(3)), H, ulps=1000)


@pytest.mark.parametrize(
    "joint",
    [
        Spherical(),
        Helical("z", pitch=0.1),
        Universal("xy"),
        Planar("z", translation="child"),
        Free(translation="child"),
        Reversed(Planar("z")),
    ],
    ids=repr,
)
def test_joints_that_urdf_lacks_are_rejected(joint, rng):
    with pytest.raises(
        InteropError, match=r"joint 'j0' is .* which URDF cannot express; .*save it as kinetree"
    ):
        to_urdf(tree(rng, joint).build())


def test_limits_and_dynamics(rng):
    model = (
        ModelBuilder("m")
        .body(
            "a",
            joint=Revolute("x"),
            limits=Limits(-1, 2, 3, 4),
            dynamics=JointDynamics(0.1, 0.2, 0.3, 0.4, 0.5),
        )
        .body("b", joint=Prismatic("x"), on="a", limits=Limits(effort=5))
        .body("c", joint=Revolute("x"), on="b", limits=Limits(velocity=5))
        .body(
            "d",
            joint=Planar("x"),
            on="c",
            limits=Limits((-1, -math.inf, -2), (1, math.inf, 2)),
            dynamics=JointDynamics(damping=(1, 2, 3)),
        )
        .body("e", joint=Prismatic("x"), on="d", dynamics=JointDynamics(armature=1))
        .build()
    )
    again = loads(to_urdf(model))
    assert again.bodies[0].limits == model.bodies[0].limits
    assert again.bodies[1].limits.lower == (-math.inf,)
    assert again.bodies[1].limits.effort == (5.0,)
    assert again.bodies[2].limits.velocity == (5.0,)
    assert again.bodies[3].limits == model.bodies[3].limits
    assert again.bodies[0].dynamics == model.bodies[0].dynamics
    assert again.bodies[3].dynamics == model.bodies[3].dynamics
    assert again.bodies[4].dynamics == model.bodies[4].dynamics
    types = [j.get("type") for j in ElementTree.fromstring(to_urdf(model)).iter("joint")]
    assert types == ["revolute", "prismatic", "continuous", "planar", "prismatic"]


def test_couplings_actuators_postures_and_gravity():
    builder = ModelBuilder("m", gravity=(0, 1.5, 0))
    for i in range(4):
        builder.body(f"b{i}", joint=Revolute("x"), joint_name=f"j{i}")
    model = (
        builder.body("f", joint=Free())
        .coupling("j1_mimic", joint="j1", source="j0", coefficients=(0.5, -2))
        .coupling("cubic", joint="j2", source="j0", coefficients=(0, 1, 2, 3))
        .coupling("held", joint="j3", coefficients=(0.25,))
        .actuator("motor", joint="j0", gear=50, control=(-1, 2), effort=(-3, math.inf))
        .actuator("thruster", joint="f_joint", gear=(0, 0, 0, 0, 0, 1))
        .posture("home", q={"j0": 0.1}, qd={"j0": 3})
        .build()
    )
    again = loads(to_urdf(model))
    assert again.couplings == model.couplings
    assert again.actuators == model.actuators
    assert again.postures == model.postures
    assert again.gravity.tolist() == [0, 1.5, 0]


def test_geometry(tmp_path):
    mesh = tmp_path / "a mesh & more.stl"
    mesh.write_bytes(b"")
    builder = ModelBuilder("m").body("a", joint=Revolute("x"))
    shapes = [
        Box((1, 2, 3)),
        Sphere(0.1),
        Cylinder(0.1, 0.2),
        Capsule(0.1, 0.2),
        Mesh(str(mesh), (1, 2, 3)),
    ]
    for k, shape in enumerate(shapes):
        builder.geometry(
            shape, on="a", at=(k, 0, 0), name=f"g{k}", color=(0, 0.5, 1, 1), collision=False
        )
    builder.geometry(Box((1, 1, 1)), collision=True, visual=True)
    model = builder.build()
    again = loads(to_urdf(model), folders=[tmp_path])
    found = {(g.name, g.body, g.shape, g.color) for g in again.geometry if g.name}
    assert found == {(g.name, g.body, g.shape, g.color) for g in model.geometry if g.name}
    assert [(g.visual, g.collision) for g in again.geometry if g.body == 0] == [
        (True, False),
        (False, True),
    ]


def test_shapes_that_urdf_lacks_are_reported():
    builder = ModelBuilder("m").geometry(Plane()).geometry(Ellipsoid((1, 2, 3)))
    with pytest.warns(
        ModelWarning, match="2 shapes are not written, since URDF has no Ellipsoid, Plane"
    ):
        to_urdf(builder.build())


def test_loops(rng):
    model = (
        tree(rng, Revolute("x"), Revolute("y"))
        .loop(
            "closure",
            predecessor="body 1",
            successor="base",
            joint=Revolute((1, 2, 3)),
            at=random_place(rng),
        )
        .build()
    )
    [loop], [again] = model.loops, loads(to_urdf(model)).loops
    assert (again.name, again.predecessor, again.successor) == ("closure", 2, 0)
    assert_close(again.predecessor_placement.to_matrix(), loop.predecessor_placement.to_matrix())


def test_names_come_back_as_they_were():
    odd = ["a'b\"c", "x<y>&z", "line\nbreak\ttab", "; rm -rf /", "漢字 é", "../../etc"]
    builder = ModelBuilder("]]>")
    for name in odd:
        builder.body(name, joint=Revolute("x"), joint_name=f"{name} joint")
        builder.frame(f"{name} frame", on=name)
    model = builder.build()
    again = loads(to_urdf(model))
    assert (again.name, again.body_names, again.frame_names) == (
        model.name,
        model.body_names,
        model.frame_names,
    )


@pytest.mark.parametrize("name", ["a\0b", "bell\a", "\ud800"])
def test_names_that_xml_cannot_hold_are_rejected(name):
    for model in (
        ModelBuilder("m").body(name, joint=Revolute("x")).build(),
        ModelBuilder(name).body("a", joint=Revolute("x")).build(),
    ):
        with pytest.raises(InteropError, match="characters that XML cannot"):
            to_urdf(model)


def test_frames_that_share_a_name_with_a_joint_come_back_alone():
    model = (
        ModelBuilder("m").body("a", joint=Revolute("x"), joint_name="f").frame("f", on="a").build()
    )
    again = loads(to_urdf(model))
    assert (again.joint_names, again.frame_names) == (("f",), ("f",))


def test_massless_and_impossible_inertias(rng):
    only_turns = Inertia(0, np.zeros(3), np.eye(3))
    model = (
        ModelBuilder("m")
        .body("a", joint=Revolute("x"))
        .body("b", joint=Revolute("x"), inertia=only_turns)
    )
    with pytest.warns(ModelWarning, match="impossible"):
        model = model.build(strict=False)
    with pytest.warns(ModelWarning, match="impossible"):
        again = loads(to_urdf(model))
    assert again.inertia[1].mass == 0
    assert_close(again.inertia[2].rotational, np.eye(3))
    with pytest.warns(ModelWarning):
        model = model.replace(inertia={"b": Inertia(0, np.ones(3), np.eye(3))})
    with pytest.raises(InteropError, match="body 'b' has a first moment without a mass"):
        to_urdf(model)


def test_fractions_become_floats_and_symbols_are_rejected():
    third = Inertia(Fraction(1, 3), np.zeros(3, dtype=int), np.eye(3, dtype=int))
    model = ModelBuilder("m").body("a", joint=Revolute("x"), inertia=third).build()
    assert loads(to_urdf(model)).inertia[1].mass == 1 / 3
    symbol = Inertia(sympy.Symbol("m"), np.zeros(3, dtype=int), np.eye(3, dtype=int))
    with pytest.raises(InteropError, match="is m, and URDF only holds numbers"):
        to_urdf(model.replace(inertia={"a": symbol}))
