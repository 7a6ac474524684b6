"""Actuators: ranges, gears, torque–speed curves."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import assert_balanced, ball, wheel

import kinetree as kt
from kinetree.errors import ModelError, ShapeError, UnknownNameError
from kinetree.simulation.controllers import Controls


def test_controls_are_cut_to_their_range_and_geared():
    m = wheel(0.5)
    motion = kt.simulate(m, [0.0], duration=1.0, dt=0.01, controls=[1.5])
    assert_close(motion.qd[-1], np.array([1.5 * 10 / 0.5]), ulps=1000)
    motion = kt.simulate(m, [0.0], duration=1.0, dt=0.01, controls=lambda t, q, qd: [7.0])
    assert_close(motion.qd[-1], np.array([2 * 10 / 0.5]), ulps=1000)
    assert_close(motion.tau, np.full((101, 1), 20.0))
    assert_balanced(motion, 1e-13)


def test_effort_before_the_gear_is_a_range_too():
    m = wheel()
    weak = (
        kt.ModelBuilder("weak")
        .body("wheel", joint=kt.Revolute("z"), inertia=m.bodies[0].inertia)
        .actuator("motor", joint="wheel_joint", gear=-3.0, control=(-9, 9), effort=(-0.5, 2.0))
        .build()
    )
    controls = Controls(weak, lambda t, q, qd: np.array([[-4.0], [4.0]]))
    assert_close(controls(0.0, None, None), np.array([[1.5], [-6.0]]))


def test_a_motor_with_a_load_turns_as_fast_as_its_curve_lets_it():
    # gear·stall (1 - gear·w/free) = d w at the steady state.
    stall, free, gear, d = 1.5, 300.0, 10.0, 0.4
    m = wheel(0.05, damping=d)
    steady = gear * stall / (d + gear**2 * stall / free)
    motors = {"motor": kt.TorqueSpeed(stall=stall, free_speed=free)}
    motion = kt.simulate(m, [0.0], duration=2.0, dt=2e-3, controls=[2.0], motors=motors)
    assert abs(motion.qd[-1, 0] - steady) < 1e-9
    # On the way there, exponentially: the curve holds inside steps, not at their starts alone.
    rate = (d + gear**2 * stall / free) / 0.05
    assert np.max(np.abs(motion.qd[:, 0] - steady * (1 - np.exp(-rate * motion.t)))) < 1e-7
    assert_balanced(motion, 1e-7)


def test_a_motor_below_its_curve_follows_its_command_and_brakes_at_full_force():
    m = wheel(0.5)
    motors = {"motor": kt.TorqueSpeed(stall=1.5, free_speed=300.0)}
    motion = kt.simulate(m, [0.0], duration=1.0, dt=0.01, controls=[0.5], motors=motors)
    assert_close(motion.qd[-1], np.array([10.0]), ulps=1000)
    motion = kt.simulate(m, [0.0], [20.0], duration=0.5, dt=0.01, controls=[-2.0], motors=motors)
    assert_close(motion.qd[-1], np.array([20.0 - 0.5 * 15 / 0.5]), ulps=1000)  # 1.5, not 2
    assert_balanced(motion, 1e-12)


def test_curves_are_polygons(rng):
    speeds, forces = (0, 100, 200, 300), (2.0, 2.0, 1.0, 0.5)
    curve = kt.TorqueSpeed(speeds=speeds, forces=forces)
    s = rng.uniform(-100, 400, 200)
    expected = np.where(s > 0, np.interp(s, speeds, forces), 2.0)
    assert_close(curve(s), expected)


def test_actuators_are_checked():
    m = wheel()
    with pytest.raises(ModelError, match="'ball' has no actuators to control"):
        kt.simulate(ball(), [0.0], duration=0.1, controls=[1.0])
    with pytest.raises(ShapeError, match=r"shape \(..., 1\), one for each actuator .*\(motor\)"):
        kt.simulate(m, [0.0], duration=0.1, controls=[1.0, 2.0])
    with pytest.raises(ShapeError, match="controls are not numbers"):
        kt.simulate(m, [0.0], duration=0.1, controls=[np.nan])
    with pytest.raises(ModelError, match="not both"):
        kt.simulate(m, [0.0], duration=0.1, controls=[1.0], controller=lambda t, q, qd: q)
    curve = kt.TorqueSpeed(stall=1.0, free_speed=1.0)
    with pytest.raises(UnknownNameError, match="no actuator 'moto'; did you mean 'motor'"):
        kt.simulate(m, [0.0], duration=0.1, controls=[1.0], motors={"moto": curve})
    with pytest.raises(TypeError, match=r"motors\['motor'\] must be a TorqueSpeed"):
        kt.simulate(m, [0.0], duration=0.1, controls=[1.0], motors={"motor": 3.0})
    with pytest.raises(ModelError, match="needs stall and free_speed, or speeds and forces"):
        kt.TorqueSpeed(stall=1.0)
    with pytest.raises(ModelError, match="as many speeds as forces"):
        kt.TorqueSpeed(speeds=(0, 1), forces=(1, 2, 3))
    with pytest.raises(ModelError, match="must start at 0 and increase"):
        kt.TorqueSpeed(speeds=(0, 2, 1), forces=(1, 2, 3))
    two = (
        kt.ModelBuilder("two")
        .body("wheel", joint=kt.Revolute("z"), inertia=m.bodies[0].inertia)
        .actuator("a", joint="wheel_joint")
        .actuator("b", joint="wheel_joint")
        .build()
    )
    with pytest.raises(ModelError, match="drives one variable, alone"):
        kt.simulate(two, [0.0], duration=0.1, controls=[1.0, 0.0], motors={"a": curve})
