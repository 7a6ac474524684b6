"""Long motions of mechanisms whose energy and momentum cannot change: 1,000 s each."""

import numpy as np
import pytest
from support.motions import assert_trusted
from support.states import floating_tree

import kinetree as kt

SECONDS = 1000.0


def box(gravity=(0, 0, 0)):
    """A rigid body with three different moments of inertia, floating."""
    inertia = kt.shapes.box(0.1, 0.2, 0.4, mass=2.0)
    return kt.ModelBuilder("box", gravity=gravity).body("box", joint=kt.Free(), inertia=inertia)


def run(model, q, qd, dt, integrator="rk4", **options):
    every = round(0.5 / dt)
    return kt.simulate(
        model, q, qd, duration=SECONDS, dt=dt, store_every=every, integrator=integrator, **options
    )


def tumble(dt, integrator):
    model = box().build()
    spin = [1e-3, 2.0, 1e-3, 0.1, 0.0, 0.0]  # about the intermediate axis, a little off
    return run(model, model.neutral(), spin, dt, integrator)


def test_a_double_pendulum_keeps_its_energy_to_the_order_of_the_integrator():
    model = kt.samples.double_pendulum()
    errors = []
    for dt in (2e-3, 1e-3):
        motion = run(model, [2.0, 1.0], None, dt)
        assert_trusted(motion, energy=2e-5)
        errors.append(motion.report.energy_error)
    assert np.log2(errors[0] / errors[1]) > 3.8


def test_a_gyroscope_keeps_energy_and_momentum_about_the_vertical():
    model = kt.samples.gyroscope()
    start = model.posture("spinning")
    errors = []
    for dt in (2e-3, 1e-3):
        motion = run(model, start.q, start.qd, dt)
        assert_trusted(motion, energy=1e-9)
        errors.append(motion.report.energy_error)
        momenta = (kt.mass_matrix(model, motion.q) @ motion.qd[..., None])[..., 0]
        vertical, spin = momenta[:, 0], momenta[:, 2]
        assert np.ptp(vertical) < 1e-9 * np.max(np.abs(spin))
        assert np.ptp(spin) < 1e-7 * np.max(np.abs(spin))
    assert np.log2(errors[0] / errors[1]) > 3.8


def test_a_gyroscope_precesses_at_the_rate_of_its_weight_over_its_spin():
    """Slow precession, m g r / (J ω), to the first order in 1/ω."""
    model = kt.samples.gyroscope()
    start = model.posture("spinning")
    motion = kt.simulate(model, start.q, start.qd, duration=20.0, dt=1e-3, store_every=10)
    assert_trusted(motion, energy=1e-9)
    J = 2.0 * 0.1**2 / 2
    expected = 0.1 * 9.81 * 0.13 / (J * 200.0)
    mean = (motion.q[-1, 0] - motion.q[0, 0]) / motion.t[-1]
    assert abs(abs(mean) - expected) < 0.05 * expected


@pytest.mark.parametrize("integrator", ["rk4", "dopri5"])
def test_a_tumbling_satellite_flips_and_keeps_energy_and_momentum(integrator):
    errors = []
    for dt in (0.02, 0.01):
        motion = tumble(dt, integrator)
        assert_trusted(motion, energy=1e-5, momentum=1e-4)
        errors.append((motion.report.energy_error, motion.report.momentum_error))
        spin = motion.qd[:, 1]
        assert spin.min() < -1.9  # over and over, like a T-handle in orbit
        assert spin.max() > 1.9
    orders = np.log2(np.array(errors[0]) / errors[1])
    assert np.all(orders > {"rk4": 3.8, "dopri5": 4.8}[integrator])


def test_a_variational_integrator_keeps_momentum_to_rounding_and_energy_without_drift():
    motion = tumble(0.02, "variational")
    assert_trusted(motion, energy=1e-4, momentum=1e-12)
    halves = np.split(motion.energy[1:], 2)
    first, second = (np.ptp(half) for half in halves)
    assert second < 1.1 * first


def test_implicit_midpoint_keeps_the_energy_of_a_body_that_turns_freely():
    """It is a quadratic function of body velocities, which the rule conserves. Not its momentum."""
    with pytest.warns(kt.SimulationWarning, match="floats freely and yet its momentum changes"):
        motion = tumble(0.02, "implicit_midpoint")
    assert motion.report.energy_error < 1e-12


def arm(rng):
    """A floating body with a branched arm of revolute and prismatic joints, without gravity."""
    joints = [kt.Revolute("x"), kt.Revolute((1.0, 2.0, 3.0)), kt.Revolute("z"), kt.Spherical()]
    return floating_tree(rng, 4, joints).replace(gravity=(0, 0, 0))


def test_a_free_floating_arm_keeps_energy_and_momentum_to_the_order_of_the_integrator(rng):
    """The order from short motions: long ones are chaotic, and differ with the step."""
    model = arm(rng)
    q = np.array([model.random_configuration(rng) for _ in range(15)])
    qd = 0.5 * rng.uniform(-1, 1, (15, model.nv))
    assert_trusted(run(model, q[0], qd[0], 0.02), energy=1e-5)
    coarse, fine = (_losses(model, q, qd, dt) for dt in (0.02, 0.01))
    orders = np.median(np.log2(coarse / fine), axis=-1)
    assert np.all(np.abs(orders - 4) < 0.2)


def _losses(model, q, qd, dt):
    """The largest changes of energy and of momentum within 4 s, (2, samples)."""
    motion = kt.simulate(model, q, qd, duration=4.0, dt=dt, integrator="rk4")
    momentum = kt.momentum(model, motion.q, motion.qd)
    changes = (
        np.abs(motion.energy - motion.energy[0]),
        np.linalg.norm(momentum - momentum[0], axis=-1),
    )
    return np.max(changes, axis=1)


def test_a_floating_arm_cannot_move_itself_whatever_its_motors_do(rng):
    model = arm(rng)
    inside = np.r_[np.zeros(6), np.ones(model.nv - 6)]

    def motors(t, q, qd):
        return inside * (np.sin(t + np.arange(model.nv)) - 0.5 * qd)

    q = model.random_configuration(rng)
    motion = kt.simulate(model, q, duration=5.0, dt=5e-3, controller=motors)
    assert_trusted(motion, energy=1e-6, momentum=1e-7)
    assert np.max(np.abs(motion.qd)) > 0.1


def test_a_thrown_body_keeps_its_spin_and_gains_momentum_by_its_weight():
    model = box(gravity=(0, 0, -9.81)).build()
    motion = kt.simulate(
        model, model.neutral(), [1.0, 2.0, 3.0, 1.0, 0.0, 5.0], duration=3.0, dt=0.01
    )
    assert_trusted(motion, energy=1e-7)
    fall = kt.center_of_mass(model, motion.q)[-1, 2]
    np.testing.assert_allclose(fall, 5 * 3.0 - 9.81 * 9 / 2, rtol=1e-7)


def test_quaternions_keep_unit_length_over_a_million_steps():
    model = box().build()
    motion = kt.simulate(
        model, model.neutral(), [3.0, 2.0, 1.0, 0.0, 0.0, 0.0], duration=1000.0, dt=1e-3,
        store_every=100_000,
    )  # fmt: skip
    assert_trusted(motion, energy=1e-9, momentum=1e-9)
    assert motion.report.steps == 1_000_000
    assert np.max(np.abs(np.linalg.norm(motion.q[:, 3:], axis=-1) - 1)) < 1e-10
