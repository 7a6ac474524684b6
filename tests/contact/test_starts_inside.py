"""Bodies that start inside each other: a warning, and they are pushed apart slowly."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.contact import Scene, TimeStepping, with_ground
from kinetree.errors import SimulationWarning
from kinetree.model.geometry import Box, Capsule


@pytest.fixture(scope="module")
def arm():
    """A pendulum that hangs through the ground by half a metre."""
    builder = kt.ModelBuilder("pendulum")
    shape = kt.shapes.capsule(0.05, 0.4, mass=1.0, at=(0, 0, -0.25))
    builder.body("arm", joint=kt.Revolute("y"), inertia=shape)
    builder.geometry(Capsule(0.05, 0.4), on="arm", at=(0, 0, -0.25))
    return with_ground(builder.build(), point=(0, 0, -0.02))


@pytest.fixture(scope="module")
def block():
    """A free box, light as a feather against its size, so that gravity moves it little."""
    builder = kt.ModelBuilder("block")
    builder.body("box", joint=kt.Free(), inertia=kt.shapes.box(0.2, 0.2, 0.2, mass=1.0))
    builder.geometry(Box((0.2, 0.2, 0.2)), on="box")
    return with_ground(builder.build())


def started_inside(model, q, duration, **settings):
    """The motion, and the warnings before and after it."""
    contact = TimeStepping(Scene(model, friction=0.0), compiled_rows=0, **settings)
    with pytest.warns(SimulationWarning) as found:
        motion = kt.simulate(model, q, duration=duration, contact=contact)
    return motion, [str(w.message) for w in found]


def test_no_joint_is_thrown_out_of_another_body(arm):
    motion, messages = started_inside(arm, [0.01], 3e-3)
    assert np.max(np.abs(np.diff(motion.q[:, 0]))) <= 10 * 1e-3 + 1e-5  # it was 160 rad
    start = messages[0]
    assert "'pendulum' starts with 'ground/arm' 0.48 m inside each other" in start
    assert "10 rad or lengths of the mechanism per second" in start
    assert "ignore=" in start
    for message in messages[1:]:
        assert "it starts with 'ground/arm' 0.48 m inside each other" in message
        assert "smaller dt" not in message


def test_bodies_part_at_the_speed_that_was_chosen_and_then_rest(block):
    q = block.neutral()
    q[2] = 0.1 - 0.02
    length = 0.2 * np.sqrt(3)
    motion, _ = started_inside(block, q, 0.03, correction_speed=5.0)
    rises = np.diff(motion.q[:, 2])
    assert rises.max() <= 5.0 * length * 1e-3 * (1 + 1e-5)  # and what the velocities add
    assert motion.q[-1, 2] == pytest.approx(0.1, abs=1e-9)
    penetration = motion.contact.residuals[..., 3]
    assert penetration[-1] < 1e-9
    assert np.all(np.diff(penetration[1:]) < 1e-12)  # never deeper again
    last = motion.energy[-10:]
    assert np.ptp(last) < 1e-9


def test_samples_and_pairs_are_named(block):
    q = np.tile(block.neutral(), (2, 1))
    q[:, 2] = 0.1, 0.05
    contact = TimeStepping(Scene(block), compiled_rows=0)
    with pytest.warns(SimulationWarning, match=r"'ground/box' 0.05 m inside.*\(sample \(1,\)\)"):
        kt.simulate(block, q, duration=1e-3, contact=contact)


def test_a_start_within_rounding_errors_is_fine(block):
    q = block.neutral()
    q[2] = 0.1 - 1e-11
    contact = TimeStepping(Scene(block), compiled_rows=0)
    kt.simulate(block, q, duration=1e-3, contact=contact)


def test_joints_that_move_no_inertia_are_named(block):
    bare = kt.ModelBuilder("bare").body("rod", joint=kt.Revolute("z"), joint_name="spin")
    model = with_ground(bare.build(strict=False))
    contact = TimeStepping(Scene(model, []), compiled_rows=0)
    python = pytest.warns(kt.SimulationWarning, match="force '_nothing' is Python code")
    with python, pytest.raises(kt.SimulationError, match=r"joint 'spin' moves none: give body"):
        kt.simulate(model, [0.0], [1.0], duration=1e-3, contact=contact, forces=_nothing)


def _nothing(model, t, q, qd):
    return np.zeros(1)


def test_speed_of_correction_must_be_positive(block):
    with pytest.raises(kt.ModelError, match=r"correction_speed must be positive, got 0"):
        TimeStepping(Scene(block), correction_speed=0)


def test_bodies_part_alike_whatever_the_unit_of_length(tmp_path):
    heights = []
    for unit in (1.0, 1e3, 1e-3):  # metres, millimetres, kilometres
        half, file = 0.1 * unit, tmp_path / "scene.xml"
        file.write_text(
            f"""<mujoco><option timestep="0.002" gravity="0 0 {-9.81 * unit}"/><worldbody>
            <geom type="plane" size="{unit} {unit} {unit}"/><body pos="0 0 {0.05 * unit}">
            <freejoint/><geom type="box" size="{half} {half} {half}" mass="1"/></body>
            </worldbody></mujoco>"""
        )
        world = kt.World.from_file(file)
        with pytest.warns(SimulationWarning):
            world.step(4)
        heights.append(world.q[2] / unit)
    length = 0.2 * np.sqrt(3)
    np.testing.assert_allclose(heights, 0.05 + 4 * 10 * length * 0.002, rtol=1e-6)


def test_what_is_stuck_between_two_bodies_is_not_pressed_by_nothing():
    """Contacts on both sides press against each other as they like: 131 N, and growing."""
    world = kt.World(gravity=(0, 0, 0), timestep=2e-3)
    for side in (-1, 1):
        world.add(Box((1, 1, 1)), at=(0.55 * side, 0, 0), friction=1.0)
    world.add(Box((0.2, 0.2, 0.2)), mass=1.0, spin=(0, 0, 3), friction=1.0)
    with pytest.warns(SimulationWarning, match="bodies inside each other"):
        world.step()
    assert world.contacts().normal_force.sum() > 100  # it stops at once
    world.step(29)
    assert world.contacts().normal_force.sum() < 1
    np.testing.assert_allclose(world.qd, 0, atol=1e-9)
