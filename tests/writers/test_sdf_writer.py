"""SDF from a live model, read again."""

import warnings

import numpy as np
import pytest
from support.closeness import assert_close
from support.sdf_files import axis, joint, link, load, poses, sdf
from support.sdf_files import model as file_of
from support.states import random_place

import kinetree as kt
from kinetree.algorithms import crba, rnea
from kinetree.errors import InteropError, ModelWarning
from kinetree.joints import (
    Free,
    Helical,
    Planar,
    Prismatic,
    Reversed,
    Revolute,
    Spherical,
    Universal,
)
from kinetree.model import Coupling, JointDynamics, Limits, Loop, ModelBuilder
from kinetree.model.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Plane, Sphere
from kinetree.spatial import Inertia, xlt
from kinetree.writers.sdf import to_sdf

SPRING = JointDynamics(stiffness=1.0)
IMPOSSIBLE = Inertia(0.0, np.array([1.0, 0, 0]), np.eye(3))
SOLID = Inertia.from_mass_center(1.5, (0.1, 0.2, -0.1), np.diag([0.1, 0.2, 0.15]))


def chain(rng, *joints):
    builder, on = ModelBuilder("chain", base_name="world"), None
    for i, kind in enumerate(joints):
        on = (
            builder.body(
                f"b{i}", on=on, joint=kind, at=random_place(rng), inertia=SOLID, joint_name=f"j{i}"
            )
            and f"b{i}"
        )
    return builder.frame("tool", on=on, at=random_place(rng))


def assert_same(model, again, rng):
    assert again.body_names == model.body_names
    assert again.joint_names == model.joint_names
    q, qd, qdd = model.random_configuration(rng), *rng.standard_normal((2, model.nv))
    H = crba.joint_space_inertia
    assert_close(H(again, q), H(model, q), ulps=2000)
    tau = rnea.inverse_dynamics(model, q, qd, qdd)
    assert_close(rnea.inverse_dynamics(again, q, qd, qdd), tau, ulps=2000)
    ours, theirs = poses(model, q), poses(again, q)
    for name, pose in ours.items():
        assert_close(theirs[name], pose, ulps=2000)


def test_every_joint_that_sdf_has(rng):
    joints = [
        Revolute("x"), Prismatic((1, 2, -2)), Helical("z", pitch=0.1), Spherical(),
        Universal("xy"), Reversed(Spherical()), Reversed(Prismatic("y")), Revolute((1, -2, 3)),
    ]  # fmt: skip
    model = chain(rng, *joints).build()
    assert_same(model, load(to_sdf(model)), rng)


def test_a_universal_joint_about_other_axes(rng):
    model = chain(rng, Revolute("y"), Universal("zx")).build()
    again = load(to_sdf(model))
    q = rng.standard_normal(3)
    H = crba.joint_space_inertia
    assert_close(H(again, q), H(model, q), ulps=2000)
    assert_close(poses(again, q)["tool"], poses(model, q)["tool"], ulps=2000)


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda b: b.body("a", joint=Planar("z"), inertia=SOLID), "'a.*Planar.*SDF cannot express"),
        (
            lambda b: b.body("a", joint=Free(), at=(1, 0, 0), inertia=SOLID),
            "links of SDF float in the world from its origin",
        ),
        (
            lambda b: b.body("a", joint=Reversed(Spherical()), inertia=SOLID),
            "SDF has no child 'world'",
        ),
        (
            lambda b: b.body("a", joint=Revolute("x"), inertia=IMPOSSIBLE),
            "first moment without a mass",
        ),
        (lambda b: b.body("world", joint=Revolute("x"), inertia=SOLID), "stands for the world"),
    ],
    ids=["planar", "free", "reversed", "impossible", "world"],
)
def test_what_sdf_lacks_is_rejected(build, match):
    builder = ModelBuilder("m")
    build(builder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        model = builder.build(strict=False)
    with pytest.raises(InteropError, match=match):
        to_sdf(model)


def test_limits_dynamics_and_mimics():
    model = (
        ModelBuilder("m", base_name="world")
        .body(
            "a", joint=Revolute("x"), inertia=SOLID, joint_name="ja", limits=Limits(-1, 2, 3, 4),
            dynamics=JointDynamics(damping=0.2, friction=0.3, stiffness=0.4, rest=0.5),
        )
        .body("b", joint=Prismatic("z"), on="a", inertia=SOLID, joint_name="jb",
              limits=Limits(upper=5))
        .body("c", joint=Universal("xy"), on="b", inertia=SOLID, joint_name="jc",
              limits=Limits((-1, -2), (1, 2)), dynamics=JointDynamics(damping=(1, 2)))
        .coupling("jb_mimic", joint="jb", source="ja", coefficients=(0.1, -2.0))
        .build()
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = load(to_sdf(model))
    for ours, theirs in zip(model.bodies, again.bodies, strict=True):
        assert theirs.dynamics == ours.dynamics
        assert theirs.limits.upper == ours.limits.upper
    assert again.bodies[0].limits == model.bodies[0].limits
    assert again.couplings == model.couplings
    kinds = [line for line in to_sdf(model).splitlines() if "<joint name" in line]
    assert 'type="continuous"' in to_sdf(model.replace(limits={"ja": None}))
    assert len(kinds) == 3


def test_shapes(tmp_path):
    mesh = tmp_path / "part of a body.stl"
    mesh.write_bytes(b"")
    shapes = [
        Box((1, 2, 3)), Sphere(0.5), Cylinder(0.1, 0.4), Capsule(0.1, 0.3), Ellipsoid((1, 2, 3)),
        Plane((4, 5)), Mesh(str(mesh), (1, 2, 0.5)),
    ]  # fmt: skip
    builder = ModelBuilder("m", base_name="world").body("a", joint=Revolute("x"), inertia=SOLID)
    for k, shape in enumerate(shapes):
        options = {"visual": k % 2 == 0, "collision": k % 2 == 1}
        builder.geometry(
            shape, on="a", at=(0.1 * k, 0, 0), name=f"s{k}", color=(0.1, 0.2, 0.3, 0.5), **options
        )
    builder.geometry(Box((9, 9, 0.1)), name="floor", visual=False)
    again = load(to_sdf(builder.build()), folders=[tmp_path])
    on_a = [g for g in again.geometry if g.body == 1]
    assert {g.name: g.shape for g in on_a} == {f"s{k}": shape for k, shape in enumerate(shapes)}
    drawn = {g.name: g for g in on_a}
    assert drawn["s2"].color == (0.1, 0.2, 0.3, 0.5)
    assert not drawn["s2"].collision
    assert drawn["s3"].collision
    assert_close(drawn["s3"].placement.r, (0.3, 0, 0), ulps=4)
    [floor] = [g for g in again.geometry if g.body == 0]
    assert floor.name == "floor"
    assert load(to_sdf(again), folders=[tmp_path]).frame_names == again.frame_names


FOUR_BAR = file_of(
    link("crank", "0 0 1 0 0 0")
    + link("coupler", "1 0 1 0 0 0")
    + link("rocker", "2 0 1 0 0.3 0")
    + joint("a", "revolute", "world", "crank", axis("0 1 0"))
    + joint("b", "revolute", "crank", "coupler", axis("0 1 0"))
    + joint("d", "revolute", "world", "rocker", axis("0 1 0"))
    + joint("c", "ball", "coupler", "rocker", "<pose>0.1 0 0.2 0 0 0</pose>")
)
FLYING = sdf(
    "<world name='w'><gravity>0 0 -3.7</gravity>"
    f"<model name='drone'>{link('hull', '1 2 3 0 0 0.5')}{link('arm', '1 2 4 0 0 0.5')}"
    f"{joint('hinge', 'revolute', 'hull', 'arm', axis('1 0 0'))}"
    "<frame name='eye' attached_to='arm'><pose>0 0 0.5 0 0 0</pose></frame></model>"
    f"<model name='table'>{link('top')}{joint('foot', 'prismatic', 'world', 'top', axis())}</model>"
    "</world>"
)


@pytest.mark.parametrize("text", [FOUR_BAR, FLYING], ids=["loop", "world"])
def test_a_file_read_written_and_read(text, rng):
    """Loops, worlds with their gravity, nested names, floating models and where they start."""
    model = load(text)
    again = load(to_sdf(model))
    assert_same(model, again, rng)
    assert again.frame_names == model.frame_names
    assert [(p.name, p.q.tolist()) for p in again.postures] == [
        (p.name, pytest.approx(p.q.tolist(), abs=1e-14)) for p in model.postures
    ]
    assert np.array_equal(again.gravity, model.gravity)
    for ours, theirs in zip(model.loops, again.loops, strict=True):
        assert theirs.joint == ours.joint
        for end in ("predecessor_placement", "successor_placement"):
            assert_close(getattr(theirs, end).r, getattr(ours, end).r, ulps=100)
    assert to_sdf(again) == to_sdf(load(to_sdf(again)))


def test_a_loop_that_is_open_where_joints_are_at_zero():
    builder = ModelBuilder("m").body("a", joint=Revolute("x"), inertia=SOLID)
    model = builder.body("b", joint=Revolute("x"), inertia=SOLID, at=(0, 1, 0)).build()
    loop = Loop("closing", 1, 2, Revolute("x"), xlt(np.array([0, 0.6, 0])))
    with pytest.raises(InteropError, match=r"'closing' is open by 0.4 m and 0 rad"):
        to_sdf(model.replace(loops=(loop,)))


def test_a_loop_that_ends_on_the_world(rng):
    builder = ModelBuilder("m", base_name="world").body("a", joint=Revolute("x"), inertia=SOLID)
    model = builder.body("b", on="a", joint=Revolute("x"), inertia=SOLID, at=(0, 1, 0)).build()
    model = model.replace(
        loops=(Loop("closing", 2, 0, Prismatic("y"), successor_placement=xlt(np.array([0, 1, 0]))),)
    )
    again = load(to_sdf(model.replace(dynamics={"a_joint": SPRING, "b_joint": SPRING})))
    [loop] = again.loops
    assert (loop.predecessor, loop.successor, loop.joint) == (0, 2, Prismatic("-y"))
    universal = Loop("closing", 2, 0, Universal("yz"), successor_placement=xlt(np.array([0, 1, 0])))
    with pytest.raises(InteropError, match=r"'closing' is Reversed.*SDF cannot express"):
        to_sdf(model.replace(loops=(universal,)))


def test_losses_are_named():
    model = (
        ModelBuilder("m", base_name="world")
        .body(
            "a", joint=Revolute("x"), inertia=SOLID, joint_name="a",
            dynamics=JointDynamics(armature=0.1),
        )
        .actuator("motor", joint="a")
        .posture("home", q={"a": 0.3})
        .build()
        .replace(gravity=(0, 0, -1.6))
    )  # fmt: skip
    with pytest.warns(ModelWarning) as caught:
        text = to_sdf(model)
    message = str(caught[0].message)
    for part in (
        "gravity [0.0, 0.0, -1.6], which SDF has in worlds",
        "joint 'a' is called 'a_joint'",
        "armature or drive of joint 'a_joint'",
        "1 actuators",
        "postures home",
    ):
        assert part in message
    assert load(text).joint_names == ("a_joint",)
    follower = Coupling("c", 1, 0, (0.2,))
    with pytest.raises(InteropError, match="coupling 'c' is not one joint that follows another"):
        to_sdf(model.replace(couplings=(follower,), postures=()))


def test_samples_through_sdf(tmp_path, rng):
    """``save`` writes it, ``load`` reads it: arms and trees of the library."""
    for name in ("panda", "ur5", "double_pendulum", "quadruped"):
        model = getattr(kt.samples, name)()
        path = tmp_path / f"{name}.sdf"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            kt.save(model, path)
        again = kt.load(path)
        q = model.random_configuration(rng)
        bare = model.replace(dynamics=dict.fromkeys(model.joint_names))
        assert_close(kt.mass_matrix(again, q), kt.mass_matrix(bare, q), ulps=5000)


def test_who_follows_a_joint_that_is_called_otherwise_follows_it_still():
    """Its new name must not be that of another joint, either."""
    builder = ModelBuilder("m", base_name="world")
    for name, joint_name in (("finger", "finger"), ("thumb", "finger_joint"), ("other", "k")):
        builder.body(name, joint=Revolute("y"), inertia=SOLID, joint_name=joint_name)
    model = builder.build().replace(couplings=(Coupling("m", 3, 1, (0.1, 2.0)),))
    with pytest.warns(ModelWarning, match="joint 'finger' is called 'finger_joint_'"):
        text = to_sdf(model)
    again = load(text)
    assert again.joint_names == ("finger_joint_", "finger_joint", "k")
    assert again.couplings[0].source == 1
    q = np.array([0.3, -0.2])
    assert_close(kt.mass_matrix(again, q), kt.mass_matrix(model, q), ulps=64)


def test_a_model_without_anything_is_not_written():
    with pytest.raises(InteropError, match="SDF cannot express a model without links; save it"):
        to_sdf(ModelBuilder("nothing").build())
