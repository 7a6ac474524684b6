"""Worlds put together: names, places, and the dynamics of every part as it is alone."""

import numpy as np
import pytest
from support.effort import assert_quick

import kinetree as kt
from kinetree import geometry as shapes

BOX, BALL = shapes.Box((0.1, 0.2, 0.3)), shapes.Sphere(0.05)


def two_arms_and_a_dog() -> kt.World:
    world = kt.World("workshop")
    world.add_ground(friction=0.5)
    world.add("panda", name="left", at=(0, 1, 0))
    world.add(kt.samples.panda(), name="right", at=kt.rotz(0.3) @ kt.xlt([0, -1, 0.2]))
    world.add("quadruped", name="dog", at=(2, 0, 0))
    world.add(BOX, mass=2.0, at=(0.5, 0, 0.15), restitution=0.3)
    world.add([(BALL, (0, 0, 0.1)), (BOX, None)], density=300.0, name="box", at=(3, 0, 1))
    return world


@pytest.fixture(scope="module")
def world():
    return two_arms_and_a_dog()


def test_names_do_not_clash(world):
    assert list(world) == ["ground", "left", "right", "dog", "box", "box_2"]
    assert {"left.link1", "right.link1", "dog.trunk", "box", "box_2"} <= {*world.model.body_names}
    assert {"box_joint", "box_2_joint"} <= {*world.model.joint_names}
    assert {"left.base", "right.base"} <= {*world.model.frame_names}
    assert world.model.actuators[0].name.startswith("left.")
    assert [p.name for p in world.model.postures] == ["home"]


def test_parts_of_robots_go_along(world):
    alone, model = kt.samples.panda(), world.model
    own = [g for g in model.geometry if model.body_names[g.body].startswith("right.")]
    assert len(own) == sum(g.body > 0 for g in alone.geometry)
    assert len(model.frames) >= 2 * len(alone.frames)
    i = model.joint_index("right." + alone.joint_names[0])
    assert model.bodies[i - 1].limits == alone.bodies[0].limits
    assert len(model.actuators) == 2 * len(alone.actuators) + len(kt.samples.quadruped().actuators)


def test_each_part_moves_as_it_does_alone(world):
    rng = np.random.default_rng(0)
    model, q = world.model, world.q
    qd, qdd = rng.standard_normal((2, model.nv))
    tau, H = kt.inverse_dynamics(model, q, qd, qdd), kt.mass_matrix(model, q)
    rest = np.ones((model.nv, model.nv), dtype=bool)
    for name, alone in (("left", kt.samples.panda()), ("dog", kt.samples.quadruped())):
        part = world[name]
        at, q_part = part.v_indices, part.q
        tau_alone = kt.inverse_dynamics(alone, q_part, qd[at], qdd[at])
        np.testing.assert_allclose(tau[at], tau_alone, rtol=1e-12, atol=1e-12 * np.abs(tau).max())
        H_alone = kt.mass_matrix(alone, q_part)
        np.testing.assert_allclose(H[np.ix_(at, at)], H_alone, atol=1e-13 * np.abs(H).max())
        rest[np.ix_(at, at)] = False
    for name in ("right", "box", "box_2"):
        rest[np.ix_(world[name].v_indices, world[name].v_indices)] = False
    assert not np.any(H[rest])  # a forest


def test_an_object_has_the_inertia_of_its_shapes(world):
    model = world.model
    I = model.inertia[model.body_index("box")]
    expected = kt.shapes.box(0.1, 0.2, 0.3, mass=2.0)
    np.testing.assert_allclose(I.to_matrix(), expected.to_matrix(), rtol=1e-14)
    both = model.inertia[model.body_index("box_2")]
    ball = kt.shapes.sphere(0.05, density=300.0, at=(0, 0, 0.1))
    expected = ball + kt.shapes.box(0.1, 0.2, 0.3, density=300.0)
    np.testing.assert_allclose(both.to_matrix(), expected.to_matrix(), rtol=1e-14)


def test_places(world):
    np.testing.assert_allclose(world["box"].pose[:3, 3], (0.5, 0, 0.15))
    np.testing.assert_allclose(world["left"].pose[:3, 3], (0, 1, 0))
    home = np.array(kt.samples.quadruped().posture("home").q)
    np.testing.assert_allclose(world["dog"].q[:3], home[:3] + np.array([2, 0, 0]))
    pose = kt.pose(world.model, world.q, "right.base")
    expected = (kt.rotz(0.3) @ kt.xlt([0, -1, 0.2])).to_pose()
    np.testing.assert_allclose(pose, expected, atol=1e-15)


def test_files_are_put_on_a_base_of_either_kind(tmp_path):
    """A file with a floating base of its own gets no second one."""
    kt.save(kt.samples.quadruped(), tmp_path / "dog.urdf")
    kt.save(kt.samples.ur5(), tmp_path / "arm.urdf")
    world = kt.World()
    world.add(tmp_path / "dog.urdf", name="dog", fixed=False)
    world.add(tmp_path / "arm.urdf", name="arm", fixed=False, at=(9, 0, 0))
    world.add(tmp_path / "arm.urdf", name="bolted", fixed=True, at=(18, 0, 0))
    assert [world[x].qd.size for x in ("dog", "arm", "bolted")] == [18, 12, 6]


def test_on_puts_parts_down_until_they_touch():
    world = kt.World()
    world.add_ground(normal=(0.3, 0, 1))
    world.add(BOX, name="table", at=(5, 0, 2))
    world.add([BOX, (shapes.Capsule(0.05, 0.4), (0.1, 0, 0.1))], mass=1.0, name="cart",
              at=kt.rotx(0.4) @ kt.xlt([1, 2, -7]), on="ground")  # fmt: skip
    cups = world.add(BALL, mass=1.0, name="cup", at=[(5, 0.09, 0), (5.08, -0.05, 9)], on="table")
    dog = world.add("quadruped", name="dog", at=(0, 0, 3), on="ground")
    gaps = [kt.contact.distance(world.model, world.q, *pair).gap for pair in
            (("ground", "cart"), ("table", "cup"), ("table", "cup_2"))]  # fmt: skip
    np.testing.assert_allclose(gaps, 0, atol=1e-12)
    np.testing.assert_allclose(
        cups[0].position, (5, 0.09, 2.2), atol=1e-12
    )  # half of 0.3, and 0.05
    np.testing.assert_allclose(cups[1].position, (5.08, -0.05, 2.15 + 0.04), atol=1e-12)  # 3, 4, 5
    feet = kt.contact.distance(world.model, world.q, "ground", [*dog.bodies]).gap
    assert abs(feet.min()) < 1e-12
    start = world.q
    world.step(2)
    world.reset()
    np.testing.assert_array_equal(world.q, start)
    with pytest.raises(kt.ModelError, match="nothing of 'table' is under 'ball'"):
        world.add(BALL, mass=1.0, name="ball", on="table")
    assert "ball" not in world
    assert world.q.size == start.size
    assert world.add(BALL, mass=1.0, name="ball", at=(5, 0, 0), on="table").name == "ball"


def test_links_that_overlap_at_the_start_are_left_out():
    """Links that a fixed joint makes part of another body count as well, by their own names."""
    wheel = """<link name="{0}"> <inertial> <mass value="1"/>
        <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/> </inertial>
        <collision> <geometry> <sphere radius="0.2"/> </geometry> </collision> </link>"""
    joint = """<joint name="{0}{1}" type="{2}"> <parent link="{0}"/> <child link="{1}"/>
        <origin xyz="0.12 0 0"/> <axis xyz="0 1 0"/> </joint>"""
    links = "".join(wheel.format(x) for x in "abcd")
    kinds = ("continuous", "continuous", "fixed")
    joints = "".join(map(joint.format, "abc", "bcd", kinds))
    robot = kt.loads(f"<robot name='chain'> {links} {joints} </robot>", floating_base=True)
    world = kt.World(gravity=(0, 0, 0))
    world.add(robot, name="chain")
    world.add(BALL, mass=1.0, name="ball")  # inside 'a': not of the robot
    pairs = [("chain.a", "chain.c"), ("chain.a", "chain.d")]  # neighbours pass through anyway
    with pytest.warns(kt.SimulationWarning, match=r"inside each other.*exclude_overlaps\(\)"):
        world.step()
    world.reset()
    assert world.exclude_overlaps() == pairs
    assert set(world.contacts().names) == {f"chain.{x}/ball:0" for x in "abc"}
    with pytest.raises(kt.UnknownNameError, match="frame or shape 'bal'; did you mean 'ball'"):
        world.exclude("chain", "bal")
    world.exclude("chain", "ball")
    world.step()
    assert not len(world.contacts())


def test_joints_that_start_beyond_their_limits_are_named():
    builder = kt.ModelBuilder("arm")
    builder.body("link", joint=kt.Revolute("y"), inertia=kt.shapes.rod(1.0, mass=1.0),
                 limits=kt.Limits(lower=0.5, upper=1.0), joint_name="elbow")  # fmt: skip
    world = kt.World()
    inside = world.add(builder.build(), name="inside")  # by default neutral, but within the limits
    np.testing.assert_array_equal(inside.q, 0.5)
    world.add(builder.build(), name="arm", q=[0.0])
    with pytest.warns(kt.SimulationWarning, match=r"limits: 'arm.elbow' by 0.5; .*limits=None"):
        world.step()


def test_parts_are_read_and_set():
    world = two_arms_and_a_dog()
    dog, box = world["dog"], world["box"]
    pose = (kt.rotx(0.4) @ kt.xlt([1, 2, 3])).to_pose()
    dog.pose = pose
    np.testing.assert_allclose(dog.pose, pose, atol=1e-15)
    np.testing.assert_allclose(kt.pose(world.model, world.q, "dog.trunk"), pose, atol=1e-15)
    dog.set_velocity(velocity=(1, 2, 3), spin=(0, 0, 4))
    np.testing.assert_allclose(dog.velocity, (1, 2, 3), atol=1e-15)
    np.testing.assert_allclose(dog.spin, (0, 0, 4), atol=1e-15)
    v = kt.velocity(world.model, world.q, world.qd, "dog.trunk", frame="aligned")
    np.testing.assert_allclose(v, (0, 0, 4, 1, 2, 3), atol=1e-14)
    world["left"].q = 0.1
    np.testing.assert_array_equal(world["left"].q, np.full(9, 0.1))
    assert box.bodies == ("box",)
    assert box.joints == ("box_joint",)
    elbow = world["left.link4"]
    assert elbow.bodies[0] == "left.link4"
    assert elbow.q.size < world["left"].q.size


def test_what_is_added_later_keeps_the_state():
    world = kt.World()
    box = world.add(BOX, mass=1.0, at=(0, 0, 1))
    box.pose = kt.xlt([4, 5, 6])
    ball = world.add(BALL, mass=1.0, at=(1, 0, 0), velocity=(0, 0, 2))
    np.testing.assert_allclose(box.position, (4, 5, 6))
    np.testing.assert_allclose(ball.velocity, (0, 0, 2))
    world.reset()
    np.testing.assert_allclose(box.position, (0, 0, 1))
    np.testing.assert_allclose(ball.velocity, (0, 0, 2))


def test_postures_by_name_and_by_part():
    world = two_arms_and_a_dog()
    world["left"].q, world["right"].q = 0.1, 0.2
    home = np.array(kt.samples.panda().posture("home").q)
    world.reset({"left": "home"})
    np.testing.assert_array_equal(world["left"].q, home)
    world.reset("home")
    np.testing.assert_array_equal(world["right"].q, home)


def test_loops_couplings_sensors_and_pairs_keep_their_names():
    mechanism = kt.samples.four_bar()
    world = kt.World()
    world.add(mechanism, name="a")
    world.add(mechanism, name="b", at=(0, 0, 2))
    model = world.model
    assert [loop.name for loop in model.loops] == [
        f"{x}.{loop.name}" for x in "ab" for loop in mechanism.loops
    ]
    assert np.abs(kt.loops.error(model, world.q)).max() < 1e-12
    builder = kt.ModelBuilder("gear")
    builder.body("m", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1))
    builder.body("n", joint=kt.Revolute("z"), inertia=kt.shapes.sphere(0.1, mass=1))
    builder.geometry(BALL, on="m", name="knob").geometry(BALL, on="n").exclude("m", "n")
    builder.coupling("mesh", joint="n_joint", source="m_joint", coefficients=(0, -2))
    builder.sensor("angle", "jointpos", of="m_joint").group("all", joints=["m_joint"])
    geared = builder.build()
    world = kt.World()
    one, two = world.add(geared, at=[(0, 0, 0), (1, 0, 0)])
    assert (one.name, two.name) == ("gear", "gear_2")
    assert [c.name for c in world.model.couplings] == ["gear.mesh", "gear_2.mesh"]
    assert [s.of for s in world.model.sensors] == ["gear.m_joint", "gear_2.m_joint"]
    assert [g.joints for g in world.model.groups] == [("gear.m_joint",), ("gear_2.m_joint",)]
    assert [p.first for p in world.model.contact_pairs] == ["gear.m", "gear_2.m"]
    two.q = [0.3]
    assert world.read_sensors()["gear_2.angle"].item() == 0.3


def test_many_boxes_are_put_together_at_once():
    def put_together():
        world = kt.World()
        world.add_ground()
        world.add(BOX, mass=1.0, at=np.random.default_rng(0).uniform(0, 9, (1000, 3)))
        assert world.model.body_count == 1000
        assert world["box_1000"].q.size == 7

    assert_quick(put_together, 5)  # 0.35 s; squared work would take a minute


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda w: w["lft"], r"no part or body 'lft'; did you mean 'left'"),
        (lambda w: w.add("pandaa"), r"no file 'pandaa', and no sample of that name; did you mean"),
        (lambda w: w.add(3.0), r"a world is made of models, files of robots, .* got 3.0"),
        (lambda w: w.add(BOX, mass=-1.0), r"mass of 'box_3' must be a positive number, got -1.0"),
        (lambda w: w.add(BOX, mass=1.0, density=1.0), r"give mass or density, not both"),
        (lambda w: w.add(shapes.Plane(), mass=1.0), r"a Plane has no end and no mass"),
        (lambda w: w.add(BOX, name="a.b"), r"a string without '\.' and '/', got 'a\.b'"),
        (lambda w: w.add(BOX, frction=1.0), r"no argument 'frction'; did you mean 'friction'"),
        (lambda w: w.add("panda", mass=1.0), r"mass= is for objects; 'panda' is a model"),
        (lambda w: w.add(kt.samples.panda(), fixed=False), r"stands on a fixed base, whose mass"),
        (lambda w: w.add("panda", q=[0.0]), r"q of 'panda.*' must be 9 finite numbers"),
        (lambda w: setattr(w["left"], "q", [0.0] * 3), r"q of 'left' must be 9 numbers, got shape"),
        (lambda w: setattr(w["left"], "pose", np.eye(4)), r"'left' is not on a free joint"),
        (lambda w: w.add(BALL, mass=1.0, on="grund"), r"on='grund' is not a part.*mean 'ground'"),
        (lambda w: w.add("panda", on="ground"), r"'panda' is not on a free joint: on= cannot"),
        (lambda w: w.add(BALL, mass=1.0, at=(9, 0, 0), on="box"), r"nothing of 'box' is under"),
        (lambda w: w.reset("hme"), r"no posture 'hme'; did you mean 'home'"),
        (lambda w: w.reset({"box": "home"}), r"'box' has no posture 'home'; it has none"),
        (lambda w: w.step(0.5), r"n must be an integer number of steps, got 0.5"),
        (lambda w: w.step(1, control=[1.0]), r"control must be 30 finite numbers.*\{'left': u\}"),
        (lambda w: w.step(1, control={"left": [1.0]}), r"control of 'left' must be 9 numbers"),
        (lambda w: w.step(1, tau=[1.0]), r"tau must be 48 finite numbers"),
    ],
)  # fmt: skip
def test_messages(call, message):
    with pytest.raises((kt.KinetreeError, TypeError), match=message):
        call(two_arms_and_a_dog())
