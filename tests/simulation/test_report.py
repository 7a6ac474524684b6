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
