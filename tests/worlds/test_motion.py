"""Steps of worlds: laws of contact, sensors, servos, and MuJoCo beside them."""

import warnings

import mujoco
import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes
from kinetree.spatial.rotation import rotation_exp

GRAVITY = 9.81


def test_forces_of_a_stack_are_its_weights():
    world = kt.World()
    world.add_ground()
    world.add(shapes.Box((0.2, 0.2, 0.2)), mass=2.0, at=[(0, 0, 0.1), (0, 0, 0.3), (0, 0, 0.5)])
    start = world.q
    world.step(50)
    world.step(50)
    table = world.contacts()
    np.testing.assert_allclose(world.q, start, atol=1e-9)
    for below, above, boxes in (("world", "box", 3), ("box", "box_2", 2), ("box_2", "box_3", 1)):
        between = table.between(above, below)
        assert between.normal_force.sum() == pytest.approx(boxes * 2 * GRAVITY, rel=1e-5)
        assert np.all(between.normal_force >= 0)
    np.testing.assert_allclose(table.force_on("box_3"), (0, 0, 2 * GRAVITY), atol=1e-4)
    np.testing.assert_allclose(table.force_on("world"), (0, 0, -6 * GRAVITY), atol=1e-4)
    report = world.report()
    assert report.contacts == len(table) == 12
    assert report.islands == 1
    assert report.penetration < 1e-9
    assert report.residuals.velocity < 1e-6
    assert report.residual <= 1e-6
    assert str(report).startswith("100 steps, 12 contacts in 1 island; velocity error")
    assert "box/box_2" in repr(table)
    assert table.to_pandas().shape == (12, 18)


def test_a_block_slides_and_stops_where_it_should():
    world = kt.World(timestep=1e-3)
    world.add_ground(friction=0.5)
    world.add(
        shapes.Box((0.2, 0.2, 0.1)), mass=1.0, at=(0, 0, 0.05), velocity=(1, 0, 0), friction=0.5
    )
    world.step(50)
    slip = world.contacts().slip
    v = 1 - 0.5 * GRAVITY * 0.05
    np.testing.assert_allclose(slip, np.tile((v, 0, 0), (4, 1)), atol=1e-6)
    world.step(350)
    assert np.abs(world.qd).max() < 1e-9
    assert world["box"].position[0] == pytest.approx(1 / (2 * 0.5 * GRAVITY), rel=1e-2)


@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
def test_residuals_mean_something_where_nothing_presses(mass):
    """Two boxes side by side slide on without weight; relative to impulses, errors are rounding."""
    world = kt.World(gravity=(0, 0, 0), friction=0.0)
    poses = np.tile(np.eye(4), (3, 1, 1))
    poses[:, :3, :3] = rotation_exp(np.array([0.3, 0.2, 0.0]))
    poses[:, :3, 3] = np.array([(0, 0, 0), (0, 0, 0.05), (0.1, 0, 0.05)]) @ poses[0, :3, :3].T
    v = poses[0, :3, :3] @ (0.3, -0.4, 0.0)
    world.add(shapes.Plane(), at=poses[0])
    world.add(shapes.Box((0.1, 0.1, 0.1)), mass=mass, at=poses[1:], velocity=v)
    for _ in range(20):
        world.step(5)
        report = world.report()
        assert report.residual <= 1e-6
        assert report.residuals.velocity < 1e-13
    np.testing.assert_allclose(world["box"].position, poses[1, :3, 3] + 0.2 * v, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_impacts_keep_the_momentum_of_bodies_with_any_frame(seed):
    """Of two cubes that meet; the spin of others changes by ``h/4 Δω × I Δω`` in steps of ``h``."""
    rng = np.random.default_rng(seed)
    world = kt.World(gravity=(0, 0, 0), friction=0.5, tolerance=1e-9)
    for side in (-1, 1):
        place, at = np.tile(np.eye(4), (2, 1, 1))
        place[:3, :3] = rotation_exp(rng.normal(size=3))
        place[:3, 3] = rng.uniform(-0.5, 0.5, 3)  # of the cube in its frame
        at[:3, 3] = (0.25 * side, 0.02 * side, 0) - place[:3, 3]
        world.add([(shapes.Box((0.2, 0.2, 0.2)), place)], mass=rng.uniform(0.5, 2), at=at,
                  velocity=(-2 * side, 0, 0), spin=rng.normal(size=3))  # fmt: skip
    before, lost = kt.momentum(world.model, world.q, world.qd), 0.0
    for _ in range(60):
        world.step()
        after = kt.momentum(world.model, world.q, world.qd)
        lost += world.report().residuals.loss
        deep = max(0.0, *-world.contacts().gap) if len(world.contacts()) else 0.0
        np.testing.assert_allclose(after[3:], before[3:], atol=1e-9)
        np.testing.assert_allclose(after[:3], before[:3], atol=1e-9 + deep)  # positions are shifted
        before = after
    assert lost > 0.05


def test_sensors_of_a_world():
    builder = kt.ModelBuilder("probe").body(
        "block", joint=kt.Free(), inertia=kt.shapes.box(0.2, 0.2, 0.2, mass=3.0)
    )
    builder.geometry(shapes.Box((0.2, 0.2, 0.2)), on="block").frame(
        "imu", on="block", at=(0.1, 0, 0)
    )
    builder.sensor("acceleration", "accelerometer", of="imu").sensor("feel", "touch", of="block")
    builder.sensor("time", "clock")
    world = kt.World(gravity=(0, 0, -GRAVITY))
    world.add_ground()
    world.add(builder.build(), name="a", at=(0, 0, 0.1))
    world.add(builder.build(), name="b", at=(3, 0, 2))  # falls
    world.step(10)
    read = world.read_sensors()
    np.testing.assert_allclose(read["a.acceleration"], (0, 0, GRAVITY), atol=1e-6)
    np.testing.assert_allclose(read["b.acceleration"], (0, 0, 0), atol=1e-6)
    assert read["a.feel"].item() == pytest.approx(3 * GRAVITY, rel=1e-5)
    assert read["b.feel"].item() == 0
    assert read["a.time"].item() == pytest.approx(0.02)
    world.step()
    world.step(3)  # in place
    read = world.read_sensors()
    np.testing.assert_allclose(read["a.acceleration"], (0, 0, GRAVITY), atol=1e-6)
    np.testing.assert_allclose(read["b.acceleration"], (0, 0, 0), atol=1e-6)


def test_stiff_servos_do_not_chatter():
    builder = kt.ModelBuilder("arm").body(
        "link", joint=kt.Revolute("y"), inertia=kt.shapes.sphere(0.05, mass=0.1, at=(0, 0, -0.2))
    )
    builder.actuator("servo", joint="link_joint", kp=500.0, kv=50.0)
    world = kt.World(timestep=5e-3)  # a spring of 1.7 kHz, a damper of 0.1 ms
    arm = world.add(builder.build())
    world.step(800, control=[0.7])
    assert arm.q[0] == pytest.approx(0.7, abs=1e-3)
    assert abs(arm.qd[0]) < 1e-9
    other = world.copy()
    for _ in range(20):  # in place, and with functions
        world.step(control=np.array([0.3]))
        other.step(control=lambda t, q, qd: [0.3])
    np.testing.assert_allclose(world.q, other.q, rtol=1e-14)
    world.step(5)
    other.step(5, tau=[0.0])
    np.testing.assert_allclose(world.qd, other.qd, rtol=1e-12)
    other = world.copy()
    world.step(7, control=np.array([0.1]))  # servos act anew in each of several steps of one call
    for _ in range(7):
        other.step(control=[0.1])
    np.testing.assert_allclose(world.q, other.q, rtol=1e-14)
    with pytest.raises(kt.ShapeError, match="control must be 1 finite number"):
        world.step(control=np.array([np.nan]))
    np.testing.assert_array_equal(world.q, other.q)


@pytest.mark.parametrize("spin", [(0.5, 1, 0), (3.1, -3.8, 0.6), (0.5, 2.3, -2.7)])
def test_a_humanoid_falls_and_all_of_its_stops_keep_their_law(spin):
    """A stop that opens has no impulse left, which the interior-point method alone never finds."""
    robot = kt.samples.humanoid()
    robot = robot.replace(
        dynamics={
            b.joint_name: kt.JointDynamics(damping=2.0) for b in robot.bodies[1:] if b.joint.nv
        }
    )
    world = kt.World("fall", timestep=2e-3)
    world.add_ground(friction=0.7)
    world.add(robot, name="person", spin=spin)
    assert kt.simulate(world, duration=1.2, store_every=20).report.contact.velocity < 1e-5


@pytest.mark.parametrize(("seed", "damping", "friction"), [(84, 2.0, 0.7), (305, 5.0, 1.0)])
def test_every_step_of_a_fall_is_solved(seed, damping, friction):
    """Impulses of some are ten times those of the step before: they are found from farther away."""
    rng, robot = np.random.default_rng(seed), kt.samples.humanoid()
    joints = [b.joint_name for b in robot.bodies[1:] if b.joint.nv]
    robot = robot.replace(dynamics=dict.fromkeys(joints, kt.JointDynamics(damping=damping)))
    world = kt.World(timestep=2e-3)
    world.add_ground(friction=friction)
    spin, velocity = 1.5 * rng.normal(size=3), rng.normal(size=3) * (0.5, 0.5, 0)
    world.add(robot, spin=spin, velocity=velocity)
    for _ in range(700):
        world.step()
        assert world.report().residual <= 1e-6


def test_limits_of_joints_hold():
    limits = kt.Limits(lower=-0.3, upper=0.4)
    builder = kt.ModelBuilder("arm").body(
        "link", joint=kt.Revolute("y"), limits=limits,
        inertia=kt.shapes.sphere(0.05, mass=1.0, at=(0.3, 0, 0)),
    )  # fmt: skip
    world = kt.World()
    arm = world.add(builder.build())
    world.step(300)
    assert arm.q[0] == pytest.approx(0.4, abs=1e-9)
    assert abs(arm.qd[0]) < 1e-9


def test_a_world_of_mjcf_moves_as_in_mujoco(tmp_path):
    text = """<mujoco><option timestep="0.001" integrator="implicitfast"/><worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="ball" pos="0 0 1"><freejoint/><geom type="sphere" size=".1"/></body>
    <body name="top" pos="1 0 1"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
    <body name="arm" pos="0 2 1"><joint name="a" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .4 0 0" contype="0"/>
      <body name="fore" pos=".4 0 0"><joint name="b" axis="0 1 0" damping=".1"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" contype="0"/></body></body>
    </worldbody><actuator><motor joint="a" gear="2"/></actuator></mujoco>"""
    path = tmp_path / "scene.xml"
    path.write_text(text)
    world = kt.World.from_file(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    top = world["top"]
    top.set_velocity(velocity=(0.1, 0.2, 0.3), spin=(1, 2, 3))
    data.qvel[6:9], data.qvel[9:12], data.ctrl[0] = (0.1, 0.2, 0.3), (1, 2, 3), 0.7
    for _ in range(200):
        mujoco.mj_step(model, data)
    world.step(200, control=[0.7])
    for name in ("ball", "top"):
        np.testing.assert_allclose(
            world[name].position, data.body(name).xpos, atol=5e-3
        )  # 1 ms of first order there, second here
    np.testing.assert_allclose(top.pose[:3, :3].ravel(), data.body("top").xmat, atol=5e-3)
    np.testing.assert_allclose(world["arm"].q, data.qpos[14:], atol=5e-3)


def test_a_conveyor_carries_a_box():
    world = kt.World()
    belt = shapes.Surface(velocity=(0.5, 0, 0), friction=0.8)
    world.add(shapes.Box((4, 1, 0.1)), name="belt", at=(0, 0, -0.05), surface=belt)
    box = world.add(shapes.Box((0.2, 0.2, 0.2)), mass=1.0, at=(0, 0, 0.1))
    world.step(200)
    np.testing.assert_allclose(box.velocity, (0.5, 0, 0), atol=1e-9)


def test_energy_of_objects_never_rises():
    world = kt.World()
    world.add_ground(friction=0.4)
    rng = np.random.default_rng(0)
    for k in range(3):
        spin, velocity = 5 * rng.normal(size=3), rng.normal(size=3)
        world.add(
            shapes.Box((0.1, 0.15, 0.2)),
            mass=1.0,
            at=(0.5 * k, 0, 0.3),
            velocity=velocity,
            spin=spin,
        )
    energy = []
    for _ in range(200):
        world.step()
        now = world.model, world.q, world.qd
        energy.append(kt.kinetic_energy(*now) + kt.potential_energy(*now[:2]))
    assert np.diff(energy).max() < 1e-13 * energy[0]


def test_steps_one_by_one_are_the_same():
    def world():
        made = kt.World()
        made.add_ground()
        made.add(shapes.Box((0.1, 0.2, 0.3)), mass=1.0, at=(0, 0, 0.2), spin=(3, 1, 2))
        return made

    one, all_at_once, looked_at = world(), world(), world()
    for _ in range(60):
        one.step()
        looked_at.step()
        looked_at.q, looked_at["box"].velocity, looked_at.contacts(), looked_at.report()
    all_at_once.step(60)
    np.testing.assert_array_equal(one.q, all_at_once.q)
    np.testing.assert_array_equal(one.qd, looked_at.qd)
    assert one.time == pytest.approx(all_at_once.time)


def test_a_stack_sleeps_until_it_is_hit(tmp_path):
    world = kt.World(sleeping=True)
    world.add_ground()
    world.add(shapes.Box((0.2, 0.2, 0.2)), mass=1.0, at=[(0, 0, 0.1), (0, 0, 0.3), (0, 0, 0.5)])
    small = shapes.Box((0.1, 0.1, 0.1))
    flies = world.add(small, mass=1.0, name="flies", at=(-3, 0, 0.3), velocity=(5, 0, 2.8))
    world.step(120)
    report = world.report()
    assert report.asleep == 3
    assert 0 < report.margin < 1e-3
    assert ", 3 asleep; velocity error" in str(report)
    rests = world.q[:21].copy()
    world.step(120)
    assert np.array_equal(world.q[:21], rests)
    assert world.contacts().of("box").force_on("box")[2] == pytest.approx(9.81, rel=1e-6)
    saved = kt.World.load(world.save(tmp_path / "asleep.npz"))
    assert saved.sleeping
    for each in (world, saved, world.copy()):
        each.step(90)
        assert each.report().asleep == 0  # hit
        assert np.array_equal(each.q, world.q)
    assert flies.velocity[0] < 4
    world.step(3000)
    assert world.report().asleep == 4  # all of them: steps only count the time
    ended, time = world.q.copy(), world.time
    world.step(10)
    assert np.array_equal(world.q, ended)
    assert world.time == pytest.approx(time + 0.02)
    assert not kt.World().sleeping


def test_a_state_that_is_not_finite_is_named():
    world = kt.World()
    world.add(shapes.Sphere(0.1), mass=1.0, name="ball")
    with pytest.raises(kt.KinetreeError, match=r"world'.* joint 'ball_joint'"):
        world.step(5, tau=[0, 0, 0, 1e200, 0, 0])


@pytest.mark.parametrize("ground", [True, False])
def test_a_world_in_which_nothing_moves_can_be_stepped(ground):
    world = kt.World()
    if ground:
        world.add_ground()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", kt.ModelWarning)
        world.step(3)
    assert world.time == pytest.approx(3 * world.timestep)
    assert len(world.contacts()) == 0


def test_moments_of_contacts_slow_down_a_spinning_disc_and_a_rolling_ball():
    """I dω/dt = Σ r x f + m, with m = torsion N about the normal, rolling N against the rolling."""
    world = kt.World()
    world.add_ground(friction=0.5, torsion=0.02, rolling=0.0)
    top = world.add(shapes.Sphere(0.1), mass=2.0, name="top", at=(0, 0, 0.1), spin=(0, 0, 10.0))
    disc = world.add(shapes.Cylinder(0.1, 0.02), mass=2.0, name="disc", at=(1, 0, 0.01),
                     spin=(0, 0, 40.0))  # fmt: skip
    ball = world.add(shapes.Sphere(0.1), mass=2.0, name="ball", at=(2, 0, 0.1), rolling=0.001,
                     velocity=(1.0, 0, 0), spin=(0, 10.0, 0))  # fmt: skip
    world.step(50)
    parts = {top: 0.008, disc: 0.01, ball: 0.008}  # with inertias about the axes of their spins
    before = [(x.spin, x.position) for x in parts]
    world.step()
    table, weight, h = world.contacts(), 2.0 * GRAVITY, world.timestep
    for (part, I), (spin, place) in zip(parts.items(), before, strict=True):
        own = table.of(part.name)
        arm = own.point - (part.position + place) / 2  # contacts are those in the middle
        torque = np.sum(np.cross(arm, own.force) + own.moment, axis=0)
        change = I * (part.spin - spin) / h
        np.testing.assert_allclose(torque[1:], change[1:], atol=2e-6 * weight * 0.1)
        assert np.abs(change).max() > 1e-3 * weight * 0.1
    np.testing.assert_allclose(
        table.of("top").moment[0], (0, 0, -0.02 * weight), rtol=1e-5, atol=1e-6
    )
    along, about = table.of("ball").force[0, 0], table.of("ball").moment[0, 1]
    assert about == pytest.approx(-0.001 * weight, rel=1e-6)
    assert along == pytest.approx(about / 0.1 * 5 / 7, rel=1e-6)  # it does not slip
    assert "moment [N·m]" in repr(table)
    assert "moment.z" in table.to_pandas()


def test_contacts_and_joint_forces_by_part():
    """Also of parts that are fixed to the world; names that are none are named."""
    world = kt.World()
    world.add_ground()
    world.add(shapes.Box((0.2, 0.2, 0.2)), mass=2.0, name="box", at=(0, 0, 0.1))
    arm = world.add("panda", name="arm", at=(2, 0, 0))
    world.step(5)
    table = world.contacts()
    assert len(table.of("ground")) == len(table.between("ground", "box")) == 4
    np.testing.assert_allclose(table.force_on("ground"), (0, 0, -2 * GRAVITY), atol=1e-4)
    with pytest.raises(kt.UnknownNameError, match="has no part 'bix'; did you mean 'box'"):
        table.of("bix")
    tau = np.zeros(world.model.nv)
    tau[arm.v_indices] = 1.0
    other = world.copy()
    world.step(2, tau={"arm": np.ones(9)})
    other.step(2, tau=tau)
    np.testing.assert_array_equal(world.q, other.q)
    both = other.batch(2)
    both.step(1, tau={"arm": np.ones((2, 9))})
    world.step(1, tau=lambda t, q, qd: {"arm": np.ones(9)})
    np.testing.assert_array_equal(both.q[1], world.q)
    with pytest.raises(kt.ShapeError, match="tau of 'arm' must be 9 numbers"):
        world.step(tau={"arm": np.ones(3)})
    with pytest.raises(kt.ModelError, match="'box' of world 'world' has no actuators"):
        world.step(control={"box": 0.0})
