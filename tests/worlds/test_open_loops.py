"""Keyframes with few digits: loops that are open by little are closed, with a warning."""

import numpy as np
import pytest

import kinetree as kt

TEXT = """<mujoco model="leg"><worldbody>
  <body pos="0 0 1"><joint name="a" axis="0 1 0" damping=".1"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .2 0 .1" contype="0" conaffinity="0"/>
    <body name="rod" pos=".2 0 .1"><joint name="b" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".02" fromto="0 0 0 .3 0 0" contype="0" conaffinity="0"/></body>
  </body>
  <body name="rocker" pos=".4 0 1"><joint name="c" axis="0 1 0" damping=".1"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .1 0 .1" contype="0" conaffinity="0"/></body>
  </worldbody><equality><connect name="pin" body1="rod" body2="rocker" anchor=".3 0 0"/></equality>
  <keyframe><key name="home" qpos="0.012 -0.004 0.006"/></keyframe></mujoco>"""
"""A four-bar linkage; at its keyframe the pin is open by some millimetres."""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "leg.xml"
    path.write_text(TEXT)
    return kt.load(path)


WARNING = r"does not quite close loop 'pin'.*open by 0\.00\d+ m.*moved by up to"


def test_simulate_and_worlds_close_the_loop_of_a_keyframe(model):
    q0 = np.array(model.posture("home").q)
    assert 1e-3 < np.abs(kt.loops.error(model, q0)).max() < 6e-3
    closed = kt.loops.project_configuration(model, q0)
    with pytest.warns(kt.SimulationWarning, match=f"q0 {WARNING}"):
        motion = kt.simulate(model, q0, duration=0.1, dt=1e-3)
    np.testing.assert_allclose(motion.q[0], closed, atol=1e-9)
    world = kt.World(timestep=1e-3)
    world.add(model, name="leg", prefix="", q="home")
    with pytest.warns(kt.SimulationWarning, match=f"start of world 'world' {WARNING}"):
        world.step(100)
    np.testing.assert_allclose(world.q, motion.q[-1], atol=1e-5)  # by other schemes
    world.step(100)  # it is said once


def test_rollouts_and_gradients_close_it_as_well(model):
    q0 = np.array(model.posture("home").q)
    with pytest.warns(kt.SimulationWarning, match=f"q0 {WARNING}"):
        motion = kt.simulate(model, q0, duration=0.05, dt=1e-3)
    with pytest.warns(kt.SimulationWarning, match=f"q0 {WARNING}"):
        run = kt.rollout(model, q0, steps=50, dt=1e-3)
    np.testing.assert_allclose(run.q[[0, -1]], motion.q[[0, -1]], atol=1e-9)
    starts = np.array([kt.loops.project_configuration(model, q0), q0])
    with pytest.warns(kt.SimulationWarning, match=f"q0 of sample .1,. {WARNING}"):
        runs = kt.rollout(model, starts, steps=50, dt=1e-3)
    np.testing.assert_allclose(runs.q[-1], [run.q[-1]] * 2, atol=1e-12)

    @kt.kernel
    def swing(model, qd):
        return qd[0] ** 2

    with pytest.warns(kt.SimulationWarning, match=f"q0 {WARNING}"):
        found = kt.rollout_gradient(model, q0, steps=50, dt=1e-3, terminal=swing)
    np.testing.assert_allclose(found.value, run.qd[-1, 0] ** 2, rtol=1e-9)


def test_worlds_of_a_batch_are_closed_one_by_one(model):
    q0 = np.array(model.posture("home").q)
    world = kt.World(timestep=1e-3)
    world.add(model, name="leg", prefix="", q=kt.loops.project_configuration(model, q0))
    worlds = world.batch(2)
    states = worlds.q
    states[1] = q0
    worlds.q = states
    with pytest.warns(kt.SimulationWarning, match=WARNING):
        worlds.step(50)
    np.testing.assert_allclose(worlds.q[0], worlds.q[1], atol=1e-9)


def test_loops_that_are_wide_open_are_rejected_as_before(model):
    q0 = np.array([0.3, 0.0, 0.0])
    for run in (
        lambda: kt.simulate(model, q0, duration=0.1),
        lambda: kt.rollout(model, q0, steps=9),
    ):
        with pytest.raises(kt.LoopError, match=r"q0.* does not close loop 'pin'"):
            run()
