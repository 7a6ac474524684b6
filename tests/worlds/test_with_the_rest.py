"""Worlds in simulations, sweeps, files, copies and pictures."""

import pickle

import numpy as np
import pytest

import kinetree as kt
from kinetree import geometry as shapes
from kinetree.viewer.motions import scene_of

BALL = shapes.Sphere(0.1)
MJCF = """<mujoco model="two"><option timestep="0.004" gravity="0 0 -3" iterations="5"/>
<worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="ball" pos="1 0 .5"><freejoint/><geom type="sphere" size=".1"/></body>
<body name="arm" pos="0 2 1"><joint name="a" axis="0 1 0" damping=".1"/>
<geom type="capsule" size=".03 .2" pos="0 0 -.2"/><body name="fore" pos="0 0 -.4">
<joint name="b" axis="0 1 0"/><geom type="capsule" size=".03 .2" pos="0 0 -.2"/></body></body>
</worldbody><actuator><position name="pa" joint="a" kp="5"/></actuator></mujoco>"""


def falling(height=0.1005) -> kt.World:
    world = kt.World(timestep=1e-3)
    world.add_ground(friction=0.5)
    world.add(BALL, mass=1.0, name="ball", at=(0, 0, height), velocity=(0.3, 0, 0))
    return world


def test_simulate_takes_a_world_and_leaves_it():
    world = kt.World(timestep=1e-3, friction=0.3)
    box = shapes.Box((0.2, 0.2, 0.2))
    world.add(box, name="table")
    world.add(box, mass=1.0, at=(0.02, 0.01, 0.2), velocity=(0.1, 0, 0))
    motion = kt.simulate(world, duration=0.02)
    assert world.time == 0
    np.testing.assert_array_equal(motion.q[0], world.q)
    np.testing.assert_allclose(np.diff(motion.t), 1e-3)
    world.step(20)
    np.testing.assert_allclose(world.q, motion.q[-1], atol=1e-9)
    np.testing.assert_allclose(world.qd, motion.qd[-1], atol=1e-9)


def test_the_state_is_complete():
    world = falling()
    world.step(15)
    state = world.state
    world.step(5)
    end = world.q
    world.set_state(state)
    assert world.time == state.time
    world.step(5)
    np.testing.assert_array_equal(world.q, end)


def test_copies_pickles_and_files_go_on_with_the_same_bits(tmp_path):
    world = falling()
    world.step(15)
    others = [world.copy(), pickle.loads(pickle.dumps(world))]
    others.append(kt.World.load(world.save(tmp_path / "world.npz")))
    world.step(5)
    for other in others:
        assert other.time == pytest.approx(0.015)
        assert list(other) == list(world)
        other.step(5)
        np.testing.assert_array_equal(other.q, world.q)
        np.testing.assert_array_equal(other.qd, world.qd)
        other.reset()
        np.testing.assert_array_equal(other.q, falling().q)


def test_a_world_is_driven_by_part_in_simulations_as_in_steps():
    world = kt.World(timestep=1e-3)
    for name in ("left", "right"):
        world.add("panda", name=name, at=(0, name == "right", 0))
    tau = np.arange(9.0)
    drives = {"controller": lambda t, q, qd: {"right": tau}, "controls": {"right": tau}}
    ends = []
    for how, given in drives.items():
        motion = kt.simulate(world, duration=5e-3, **{how: given}, integrator="rk4")
        ends.append(motion.q[-1])
        assert np.all(motion.tau[:, :9] == 0)
        np.testing.assert_allclose(motion.tau[0, 9:], tau)
    np.testing.assert_allclose(*ends, atol=1e-12)
    world.step(5, tau=lambda t, q, qd: {"right": tau})
    np.testing.assert_allclose(world.q, ends[0], atol=1e-5)
    with pytest.raises(kt.UnknownNameError, match="no part or body 'rigth'; did you mean 'right'"):
        kt.simulate(world, duration=5e-3, controller=lambda t, q, qd: {"rigth": tau})
    with pytest.raises(TypeError, match="the controller returned a dict; joint forces of model"):
        kt.simulate(world.model, world.q, duration=5e-3, controller=lambda t, q, qd: {"left": tau})


def test_a_world_is_not_written_under_the_suffix_of_another_format(tmp_path):
    with pytest.raises(
        kt.LoadError, match=r"world\.xml: worlds are kept in files that end in \.npz"
    ):
        falling().save(tmp_path / "world.xml")


def test_a_file_that_is_no_world_is_named(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    with pytest.raises(kt.LoadError, match=r"this is not a file of World\.save"):
        kt.World.load(tmp_path / "other.npz")


def test_a_world_in_an_mjcf_file(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(MJCF)
    world = kt.World.from_file(path)
    assert list(world) == ["floor", "box", "ball", "arm"]
    assert world.timestep == 0.004
    np.testing.assert_array_equal(world.gravity, (0, 0, -3))
    np.testing.assert_array_equal(world["ball"].position, (1, 0, 0.5))
    assert world["arm"].bodies == ("arm", "fore")
    world.add(BALL, mass=1.0, name="ball", at=(0, 0, 3))
    assert list(world)[-1] == "ball_2"
    world.step(2, control={"arm": 0.5})
    assert world["arm"].qd[0] > 0
    np.testing.assert_allclose(world["ball"].velocity, (0, 0, -3 * 0.008), rtol=1e-9, atol=1e-12)


def test_a_sweep_over_a_world():
    def speed(world, push):
        world.step(10, tau=push * np.eye(6)[3])
        return world["ball"].velocity[0]

    world = falling(0.2)
    found = kt.sweep(world, speed, {"push": [0.0, 1.0], "mass:ball": [1.0, 2.0]}, progress=False)
    expected = 0.3 + np.array([[0, 0], [0.01, 0.005]])
    np.testing.assert_allclose(found["result"].reshape(found.shape), expected, atol=1e-6)
    runs = kt.sweep(world, {"duration": 0.01}, {"gravity": [(0, 0, 0), (0, 0, -1)]}, progress=False)
    np.testing.assert_allclose(runs["qd"][:, -1, 5], (0, -0.01), atol=1e-12)


def test_contact_forces_are_drawn_by_default():
    world = falling(0.1)
    world.step(3)
    scene = scene_of(world)
    arrows = [a for a in scene.arrows if a.name == "contact forces"]
    assert len(arrows) == 1
    assert arrows[0].vectors[0, 0, 2] > 0
    scene = scene_of(kt.simulate(world, duration=0.05))
    arrows = [a for a in scene.arrows if a.name == "contact forces"]
    assert np.all(arrows[0].vectors[:, 0, 2] > 0)


def test_bodies_without_shapes_are_seen():
    world = kt.World()
    world.add(BALL, mass=1.0)
    robot = kt.ModelBuilder("bare").body(
        "link", joint=kt.Revolute("z"), inertia=kt.shapes.box(0.1, 0.2, 0.3, mass=1.0)
    )
    world.add(robot.build(), at=(1, 0, 0))
    scene = scene_of(world)
    assert {part.node for part in scene.parts if part.layer == "bodies"} == {1, 2}


def test_a_start_inside_another_body_is_named_and_resolved():
    world = falling(0.08)
    with pytest.warns(
        kt.SimulationWarning, match=r"inside each other: 'ground/ball', up to 0.02 m"
    ):
        world.step()
    world.step(200)
    assert world["ball"].position[2] == pytest.approx(0.1, abs=1e-9)
    assert abs(world["ball"].velocity[2]) < 1e-9


def test_keyframes_and_worlds_of_sdf(tmp_path):
    path = tmp_path / "scene.xml"
    key = '<keyframe><key name="home" qpos="0 0 1 1 0 0 0 2 0 3 1 0 0 0 0 0"/></keyframe></mujoco>'
    path.write_text(MJCF.replace("</mujoco>", key))
    np.testing.assert_array_equal(kt.World.from_file(path)["ball"].position, (1, 0, 0.5))
    world = kt.World.from_file(path, posture="home")
    np.testing.assert_array_equal(world["ball"].position, (2, 0, 3))
    body = (
        "<link name='l'><inertial><mass>1</mass></inertial><collision name='c'><geometry><sphere>"
        "<radius>.1</radius></sphere></geometry></collision></link>"
    )
    sdf = tmp_path / "world.sdf"
    sdf.write_text(
        f"""<sdf version="1.9"><world name="w"><gravity>0 0 -5</gravity>
        <physics name="p" type="ode"><max_step_size>0.004</max_step_size></physics>
        <model name="a"><pose>1 2 0.5 0 0 0</pose>{body}</model>
        <model name="b"><pose>0 0 0.2 0 0 0</pose>{body}</model></world></sdf>"""
    )
    world = kt.World.from_file(sdf)
    assert world.timestep == 0.004
    np.testing.assert_array_equal(world.gravity, (0, 0, -5))
    np.testing.assert_allclose(world["a::l"].position, (1, 2, 0.5))
    np.testing.assert_allclose(world["b::l"].position, (0, 0, 0.2))
