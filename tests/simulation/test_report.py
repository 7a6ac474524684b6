"""What a simulation says about itself, and when it warns."""

import numpy as np
import pytest
from support.motions import assert_trusted

import kinetree as kt

PENDULUM = kt.samples.double_pendulum()


def warned(match, *args, **options):
    with pytest.warns(kt.SimulationWarning, match=match):
        return kt.simulate(*args, **options)


def test_a_good_result_comes_without_warnings():
    motion = kt.simulate(PENDULUM, [1.0, 0.5], duration=1.0, dt=1e-3)
    assert_trusted(motion, energy=1e-8)
    report = motion.report
    assert report.warnings == ()
    assert report.steps == 1000
    assert report.rejected == 0
    assert report.momentum_error is None
    assert 0.1 < report.smallest_pivot < 1
    assert 0 < report.largest_advance < 0.1


def test_a_report_can_be_printed():
    text = str(kt.simulate(PENDULUM, [1.0, 0.5], duration=0.1, dt=1e-3).report)
    assert "energy error" in text
    assert "integrator       rk4" in text
    assert text.endswith("result           can be trusted")
    for line in ("momentum error", "loop error", "rejected"):  # nothing to tell of a fixed tree
        assert line not in text


def test_energy_from_nowhere_is_warned_of():
    motion = warned(
        "'double pendulum' gains or loses energy: .*smaller dt, or an integrator of higher order",
        PENDULUM, [2.0, 0.5], duration=2.0, dt=0.01, integrator="euler",
    )  # fmt: skip
    assert motion.report.energy_error > 0.01
    assert len(motion.report.warnings) == 1


def test_work_that_is_done_is_not_energy_from_nowhere():
    def push(t, q, qd):
        return np.array([5.0, 0.0])

    motion = kt.simulate(PENDULUM, [0.0, 0.0], duration=1.0, dt=1e-3, controller=push)
    assert_trusted(motion, energy=1e-8)
    assert np.ptp(motion.energy) > 1


def test_a_mechanism_at_rest_has_no_energy_error():
    motion = kt.simulate(PENDULUM, [0.0, 0.0], duration=0.1, dt=1e-3)
    assert_trusted(motion, energy=1e-9)


def test_a_joint_that_moves_far_in_one_step_is_named():
    model = kt.samples.gyroscope()
    warned(
        r"joint 'spin' moves by 2 rad or m in one step",
        model, model.neutral(), [0.0, 0.0, 200.0], duration=0.1, dt=0.01,
    )  # fmt: skip


def test_a_nearly_singular_inertia_matrix_is_warned_of():
    gimbal = kt.ModelBuilder("gimbal", gravity=(0, 0, 0)).body(
        "ball", joint=kt.joints.Euler("zyx"), inertia=kt.shapes.box(0.1, 0.2, 0.3, mass=1.0)
    )
    motion = warned(
        r"close to a singular inertia matrix at t = .*variables of joint 'ball_joint' \(Euler\)",
        gimbal.build(), [0.0, np.pi / 2 - 2e-6, 0.0], duration=1e-3, dt=1e-4,
    )  # fmt: skip
    assert motion.report.smallest_pivot < 1e-10


def test_of_a_batch_the_worst_is_reported():
    q = np.array([[0.1, 0.0], [3.0, 2.0]])
    both = kt.simulate(PENDULUM, q, duration=2.0, dt=2e-3)
    errors = [kt.simulate(PENDULUM, x, duration=2.0, dt=2e-3).report.energy_error for x in q]
    assert_trusted(both, energy=1e-5)
    np.testing.assert_allclose(both.report.energy_error, max(errors), rtol=1e-3)


def rising_rod(dt, hooks=()):
    """A rod that swings up while its round end slides on the ground, without friction."""
    inertia = kt.shapes.box(0.05, 0.05, 1.0, mass=2.0)
    b = kt.ModelBuilder("rod").body("rod", joint=kt.Free(), inertia=inertia)
    b.geometry(kt.geometry.Sphere(0.02), on="rod", at=(0, 0, -0.5), name="end")
    model = kt.contact.with_ground(b.build())
    q = model.neutral()
    s, c, spin = np.sin(0.9), np.cos(0.9), -3.0
    q[2], q[3], q[5] = 0.5 * c + 0.02, np.cos(0.45), np.sin(0.45)
    up = -0.5 * s * spin  # velocity of its middle, while the end stays on the ground
    return kt.simulate(
        model, q, [0, spin, 0, -s * up, 0, c * up], duration=0.24, dt=dt, hooks=hooks,
        contact=kt.contact.TimeStepping(kt.contact.Scene(model, friction=0.0)),
    )  # fmt: skip


def test_penetration_is_measured_and_as_small_as_the_bending_of_the_motion_in_a_step():
    found = []
    for dt in (4e-3, 2e-3):
        motion = rising_rod(dt)
        upright = 1 - 2 * (motion.q[:, 4] ** 2 + motion.q[:, 5] ** 2)  # cosine of its inclination
        gap = motion.q[:, 2] - 0.5 * upright - 0.02
        assert motion.report.penetration == pytest.approx(-gap.min(), abs=1e-15)
        assert not motion.report.warnings
        found.append(motion.report.penetration)
    assert 0 < found[1] < found[0] / 4 < 1e-6


def test_measured_penetration_that_the_step_does_not_explain_is_a_warning():
    def sink(step):
        if abs(step.t1 - 0.12) < 1e-9:
            step.q1[2] -= 1e-4

    with pytest.warns(
        kt.SimulationWarning, match="lets bodies penetrate.* by up to (0.0001|9.*e-05) m"
    ):
        rising_rod(4e-3, hooks=[sink])
