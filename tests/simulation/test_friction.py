"""Dry friction, smooth and exact: stopping, sticking, slipping."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.mechanisms import arm, assert_balanced, block

import kinetree as kt
from kinetree.errors import LoopError, ModelError, SimulationError, UnknownNameError
from kinetree.simulation.forces.modes import solve_box


def test_a_sliding_block_stops_when_coulomb_says():
    m, c, v = 2.0, 3.0, 1.5
    motion = kt.simulate(block(m, friction=c), [0.0], [v], duration=2.0, dt=0.01, friction="exact")
    (stop,) = motion.events
    assert stop.name == "block_joint comes to rest"
    assert abs(stop.t - v * m / c) < 1e-11
    assert_close(motion.q[-1], np.array([m * v * v / (2 * c)]), ulps=1e4)
    after = motion.t > stop.t
    assert np.all(motion.qd[after] == 0)  # exactly
    assert_balanced(motion, 1e-13)


def test_smooth_friction_is_the_default_and_comes_closer_as_it_gets_steeper():
    m, c, v = 2.0, 3.0, 1.5
    model, exact = block(m, friction=c), m * v * v / (2 * c)
    errors = []
    for width in (0.04, 0.02, 0.01):
        law = kt.Friction(width=width)
        motion = kt.simulate(model, [0.0], [v], duration=3.0, dt=1e-3, friction=law)
        errors.append(abs(motion.q[-1, 0] - exact))
        assert_balanced(motion, 1e-6)
    assert errors[0] > 1.7 * errors[1] > 1.7**2 * errors[2]
    default = kt.simulate(model, [0.0], [v], duration=3.0, dt=1e-3)
    assert abs(default.q[-1, 0] - exact) < 1e-2
    assert_balanced(default, 1e-3)


def test_smooth_friction_needs_no_smaller_steps_than_usual():
    # Light joints with much friction: the width follows from the inertia.
    light = block(1e-3, friction=1.0)
    motion = kt.simulate(light, [0.0], [1.0], duration=0.5, dt=1e-3)
    assert np.all(np.abs(motion.qd[-1]) < 1e-6)
    assert np.all(motion.qd >= 0)


def drag(k, speed):
    @kt.kernel
    def spring(model, t, q, qd):
        return np.array([k * (speed * t - q[0])])

    return spring


def stick_slip(m, k, speed, c, s):
    """Times at which a block dragged by a spring breaks away and comes to rest, alternately.

    While it slides, the extension of the spring swings about c/k, from s/k with the rate of the
    dragging; it comes to rest when that rate returns.
    """
    w, a = np.sqrt(k / m), (s - c) / k
    slide = (2 * np.pi - 2 * np.arctan(a * w / speed)) / w
    stick = 2 * (s - c) / (k * speed)  # from 2c - s to s
    first = s / (k * speed)
    return first, first + slide, first + slide + stick, first + 2 * slide + stick


def test_stick_slip_of_a_block_on_a_belt():
    m, k, speed, c, ratio = 2.0, 50.0, 0.1, 3.0, 1.5
    model = block(m, friction=c)
    law = kt.Friction(exact=True, static=ratio, stribeck_velocity=0.0)
    motion = kt.simulate(model, [0.0], duration=3.5, dt=5e-3, forces=drag(k, speed), friction=law)
    expected = stick_slip(m, k, speed, c, ratio * c)
    assert [e.name.split(" ", 1)[1] for e in motion.events] == ["breaks away", "comes to rest"] * 2
    assert np.max(np.abs(np.array([e.t for e in motion.events]) - expected)) < 1e-8
    stuck = (motion.t > expected[1]) & (motion.t < expected[2])
    assert np.all(motion.qd[stuck] == 0)
    assert_balanced(motion, 1e-8)


def test_stick_slip_with_steps_that_adapt_and_plain_forces():
    m, k, speed, c, ratio = 2.0, 50.0, 0.1, 3.0, 1.5
    law = kt.Friction(exact=True, static=ratio, stribeck_velocity=0.0)
    expected = stick_slip(m, k, speed, c, ratio * c)

    def spring(model, t, q, qd):
        return k * (speed * t - q)

    motion = kt.simulate(
        block(m, friction=c), [0.0], duration=3.5, dt=0.05, rtol=1e-9, forces=spring, friction=law
    )
    assert np.max(np.abs(np.array([e.t for e in motion.events]) - expected)) < 1e-7
    assert_balanced(motion, 1e-7)


def test_stribeck_friction_falls_with_speed():
    # At a constant speed the force is that of the curve: measured by what a motor must exert.
    law = kt.Friction(static=2.0, stribeck_velocity=0.1, width=1e-6)
    model = block(friction=3.0)
    resolved = law.of(model)
    for v in (0.05, 0.1, 1.0):
        force = resolved(model, 0.0, np.zeros(1), np.array([v]))
        assert np.allclose(force, -(3.0 + 3.0 / (1 + (v / 0.1) ** 2)), rtol=1e-6)
    exact = kt.Friction(exact=True, static=2.0, stribeck_velocity=0.1).of(model)
    assert_close(exact.sliding(np.array([0.1]), np.array([1.0])), np.array([-4.5]))


def test_stribeck_smooth_and_exact_tell_the_same_story():
    model, force = block(friction=3.0), drag(50.0, 0.1)
    ends = []
    for options in ({"exact": True}, {"width": 2e-3}):
        law = kt.Friction(static=1.5, stribeck_velocity=0.05, **options)
        motion = kt.simulate(model, [0.0], duration=2.0, dt=1e-3, forces=force, friction=law)
        ends.append(motion.q[-1, 0])
        assert_balanced(motion, 1e-4)
    assert abs(ends[0] - ends[1]) < 5e-3


def test_a_load_below_the_friction_moves_nothing():
    model = block(friction=3.0, gravity=(1.0, 0.0, -9.81))  # pulls with 2 N
    held = kt.simulate(model, [0.0], duration=1.0, dt=0.01, friction="exact")
    assert np.all(held.q == 0)
    assert held.events == ()
    assert_balanced(held, 1e-15)
    creeping = kt.simulate(model, [0.0], duration=1.0, dt=1e-3)
    assert 0 < creeping.q[-1, 0] < 5e-3
    assert_balanced(creeping, 1e-3)


def test_a_force_that_jumps_breaks_a_joint_away():
    def controller(t, q, qd):
        return 2.0 if t < 0.5 else 5.0

    motion = kt.simulate(
        block(2.0, friction=3.0), [0.0], duration=1.0, dt=0.01, controller=controller,
        friction="exact",
    )  # fmt: skip
    assert_close(motion.q[-1], np.array([0.5 * 1.0 * 0.5**2]), ulps=1e4)
    assert np.all(motion.qd[motion.t <= 0.5] == 0)
    assert_balanced(motion, 1e-12)


@pytest.mark.parametrize("integrator", ["rk4", "dopri5", "heun"])
def test_two_joints_with_friction_only_lose_energy(integrator):
    model = arm(friction=1.5)
    motion = kt.simulate(
        model, [1.2, -0.8], duration=3.0, dt=2e-3, friction="exact", integrator=integrator
    )
    assert np.all(np.diff(motion.energy) <= 1e-6)
    assert motion.report.energy_error < (1e-4 if integrator == "heun" else 1e-7)
    assert np.all(motion.qd[-1] == 0)  # both rest where friction holds them
    tau = kt.gravity_force(model, motion.q[-1])
    assert np.all(np.abs(tau) <= 1.5)
    names = {e.name for e in motion.events}
    assert {"upper_joint comes to rest", "fore_joint comes to rest"} <= names


def test_samples_of_a_batch_stick_on_their_own():
    model, q0 = arm(friction=1.5), np.array([[1.2, -0.8], [0.05, 0.05]])
    options = {"duration": 1.0, "dt": 5e-3, "friction": "exact"}
    motion = kt.simulate(model, q0, **options)
    for k in range(2):
        alone = kt.simulate(model, q0[k], **options)
        assert np.max(np.abs(motion.q[:, k] - alone.q)) < 1e-8
    assert np.all(motion.q[:, 1] == q0[1])  # too little load to move at all
    assert_balanced(motion, 1e-6)


def test_no_friction_on_request():
    motion = kt.simulate(block(friction=3.0), [0.0], [1.0], duration=1.0, dt=0.1, friction=None)
    assert_close(motion.q[-1], np.array([1.0]))
    assert_balanced(motion, 1e-14)


def test_friction_is_checked():
    with pytest.raises(UnknownNameError, match="friction must be 'smooth', 'exact'"):
        kt.simulate(block(friction=1.0), [0.0], duration=0.1, friction="coulomb")
    with pytest.raises(TypeError, match="friction must be 'smooth', 'exact', None or a Friction"):
        kt.simulate(block(friction=1.0), [0.0], duration=0.1, friction=0.3)
    with pytest.raises(ModelError, match=r"at least 1; got 0\.5"):
        kt.Friction(static=0.5)
    with pytest.raises(ModelError, match="Stribeck velocity must be positive"):
        kt.Friction(stribeck_velocity=0.0)
    with pytest.raises(ModelError, match="width of smooth friction must be positive"):
        kt.Friction(width=-1.0)
    with pytest.raises(ModelError, match="one number or nv = 1, got 2"):
        kt.simulate(block(friction=1.0), [0.0], duration=0.1, friction=kt.Friction(width=(1, 2)))
    with pytest.raises(UnknownNameError, match=r"'implicit_midpoint' .* needs derivatives"):
        kt.simulate(
            block(friction=1.0), [0.0], duration=0.1, friction="exact",
            integrator="implicit_midpoint",
        )  # fmt: skip
    m = kt.samples.four_bar()
    joint = m.joint_names[0]
    rough = m.replace(dynamics={joint: kt.model.JointDynamics(friction=1.0)})
    with pytest.raises(LoopError, match="friction holds single joints"):
        kt.simulate(rough, m.neutral(), duration=0.1, friction="exact")


def test_box_program_satisfies_its_conditions(rng):
    for n in (1, 3, 8):
        B = rng.standard_normal((n, n))
        A, b = B @ B.T + 0.1 * np.eye(n), 3 * rng.standard_normal(n)
        low, high = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
        high[0] = np.inf
        f, inside = solve_box(A, b, low, high)
        w = A @ f + b
        scale = np.max(np.abs(A)) * max(np.max(np.abs(f)), 1.0)
        assert np.all((low <= f) & (f <= high))
        assert np.max(np.abs(w[inside]), initial=0.0) < 1e-12 * scale
        assert np.all(w[f == low] >= -1e-12 * scale)
        assert np.all(w[f == high] <= 1e-12 * scale)


def test_forces_that_switch_without_end_raise_an_error_with_advice():
    def switches(model, t, q, qd):
        return np.array([12.0 if qd[0] <= 0 else -12.0])

    with pytest.raises(SimulationError, match=r"comes to rest' happens faster.*smoothly.*'smooth'"):
        kt.simulate(
            block(2.0, friction=3.0), [0.0], [0.05], duration=0.1, friction="exact", forces=switches
        )
