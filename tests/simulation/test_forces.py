"""Forces that act all the time: springs, dampers, external forces, functions of the user's."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import arm, assert_balanced, block

import kinetree as kt
from kinetree.errors import ShapeError, SimulationError, UnknownNameError
from kinetree.simulation.setup import effects_of


def test_spring_and_damper_of_a_joint_act_by_themselves():
    m, k, d, x0 = 2.0, 50.0, 4.0, 0.3
    motion = kt.simulate(block(m, stiffness=k, damping=d, rest=0.1), [x0], duration=2.0, dt=1e-3)
    decay, w = d / (2 * m), np.sqrt(k / m - (d / (2 * m)) ** 2)
    t, a = motion.t, x0 - 0.1
    x = 0.1 + a * np.exp(-decay * t) * (np.cos(w * t) + decay / w * np.sin(w * t))
    assert np.max(np.abs(motion.q[:, 0] - x)) < 1e-10
    assert_balanced(motion, 1e-9)
    assert np.all(np.diff(motion.energy) <= 1e-15)  # springs included: dampers only take


def test_joints_without_dynamics_have_no_passive_forces():
    assert effects_of(arm()).passive is None
    assert effects_of(block(damping=1.0)).passive is not None


def test_compiled_and_plain_forces_move_alike():
    def push(model, t, q, qd):
        return np.stack([np.sin(3 * t) - 0.5 * qd[..., 0], 0.2 * q[..., 0]], axis=-1)

    @kt.kernel
    def compiled(model, t, q, qd):
        return np.array([np.sin(3 * t) - 0.5 * qd[0], 0.2 * q[0]])

    q0 = np.array([[0.3, -0.2], [1.0, 0.5]])
    one = kt.simulate(arm(), q0, duration=0.5, dt=5e-3, forces=push)
    two = kt.simulate(arm(), q0, duration=0.5, dt=5e-3, forces=[compiled])
    assert_close(one.q, two.q, ulps=1e4)
    assert_close(one.work, two.work, ulps=1e5)
    assert_balanced(one, 1e-7)
    assert_balanced(two, 1e-7)


@pytest.mark.parametrize("coordinates", ["base", "frame"])
def test_power_of_an_external_force_is_force_times_velocity(coordinates, rng):
    m = arm()
    q, qd = rng.standard_normal((2, 5, 2))
    f = rng.standard_normal(6)
    force = kt.ExternalForce("fore", f, coordinates=coordinates)
    v = kt.velocity(m, q, qd, "fore", frame="aligned" if coordinates == "base" else "body")
    assert_close((force(m, 0.0, q, qd) * qd).sum(-1), v @ f, ulps=1000)


def test_a_constant_force_does_the_work_of_a_weight():
    # On the end of a rod: the motion is that with a load there, of no inertia.
    m, f = arm(), 3.0
    down = kt.ExternalForce("fore", (0.0, 0.0, -f))  # the elbow
    motion = kt.simulate(m, [1.0, 0.5], duration=1.0, dt=5e-3, forces=down)
    elbow = kt.pose(m, motion.q, "fore")[:, 2, 3]
    assert np.max(np.abs(motion.work - f * (elbow[0] - elbow))) < 1e-7
    assert_balanced(motion, 1e-7)


def test_force_as_a_function_of_time_compiled_or_not():
    m = block(2.0)

    @kt.kernel
    def compiled(t):
        return np.array([np.cos(t), 0.0, 0.0])

    for function in (lambda t: [np.cos(t), 0.0, 0.0], compiled):
        push = kt.ExternalForce("block", function)
        motion = kt.simulate(m, [0.0], duration=1.0, dt=0.01, forces=push)
        assert np.max(np.abs(motion.q[:, 0] - (1 - np.cos(motion.t)) / 2)) < 1e-10
        assert_balanced(motion, 1e-10)


def test_a_force_lifts_a_mechanism_with_loops():
    m = kt.samples.four_bar()
    push = kt.ExternalForce(m.body_names[2], (1.0, 0.0, 1.0))  # the coupler
    q0 = m.neutral()
    still = kt.simulate(m, q0, duration=0.1, dt=0.005)
    pushed = kt.simulate(m, q0, duration=0.1, dt=0.005, forces=push)
    assert pushed.report.energy_error < 1e-6
    assert pushed.report.loop_error < 1e-6
    assert np.max(np.abs(still.work)) == 0
    assert np.max(np.abs(pushed.q - still.q)) > 1e-6


def test_forces_are_checked():
    def wrong(model, t, q, qd):
        return np.zeros(3)

    def nothing(model, t, q, qd):
        pass

    with pytest.raises(SimulationError, match="what force 'wrong' returned must have shape"):
        kt.simulate(arm(), [0.0, 0.0], duration=0.1, forces=wrong)
    with pytest.raises(SimulationError, match="force 'nothing' returned None"):
        kt.simulate(arm(), [0.0, 0.0], duration=0.1, forces=nothing)
    with pytest.raises(TypeError, match=r"a force must be a function \(model, t, q, qd\)"):
        kt.simulate(arm(), [0.0, 0.0], duration=0.1, forces=3.0)
    with pytest.raises(ShapeError, match="the force on 'fore' must have 3 numbers, or 6"):
        kt.ExternalForce("fore", (1.0, 2.0))
    with pytest.raises(UnknownNameError, match="must be 'base' or 'frame', got 'world'"):
        kt.ExternalForce("fore", (1.0, 2.0, 3.0), coordinates="world")
    with pytest.raises(UnknownNameError, match="'fora'"):
        kt.simulate(
            arm(), [0.0, 0.0], duration=0.1, forces=kt.ExternalForce("fora", (1.0, 0.0, 0.0))
        )
