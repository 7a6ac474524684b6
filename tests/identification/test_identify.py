"""Known models from noisy simulated measurements."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.identification import (
    JointForces,
    MotorForces,
    base_parameters,
    exciting_trajectory,
    identify,
    inertial_parameters,
)
from kinetree.model.validate import inertia_defect


@pytest.fixture(scope="module")
def arm():
    return kt.samples.arm()


@pytest.fixture(scope="module")
def motion(arm):
    return exciting_trajectory(arm, samples=250, candidates=5, rng=1)


@pytest.fixture(scope="module")
def tau(arm, motion):
    return kt.inverse_dynamics(arm, motion.q, motion.qd, motion.qdd)


@pytest.fixture(scope="module")
def noise(tau):
    return 0.02 * np.sqrt(np.mean(tau**2, axis=0))


def test_without_noise_the_base_parameters_come_out_exactly(arm, motion, tau):
    found = identify(arm, motion.q, motion.qd, motion.qdd, tau, weights=np.ones(6))
    true = base_parameters(arm).values()
    assert_close(found.values, true, condition=1e4)
    assert np.max(np.abs(found.residuals)) < 1e-9
    assert found.condition < 100


def test_errors_are_as_large_as_predicted(arm, motion, tau, noise, rng):
    """Many noisy trajectories: errors over standard deviations are standard normal."""
    true, scores = base_parameters(arm).values(), []
    for _ in range(20):
        measured = tau + noise * rng.standard_normal(tau.shape)
        found = identify(arm, motion.q, motion.qd, motion.qdd, measured)
        scores.append((found.values - true) / found.standard_deviations)
        np.testing.assert_allclose(found.noise, noise, rtol=0.25)
    scores = np.array(scores)
    assert abs(np.mean(scores)) < 0.15
    assert 0.9 < np.std(scores) < 1.1
    assert np.max(np.abs(scores)) < 5
    assert np.mean(np.abs(scores) < 1) == pytest.approx(0.683, abs=0.06)


def test_given_weights_are_standard_deviations(arm, motion, tau, noise, rng):
    measured = tau + noise * rng.standard_normal(tau.shape)
    found = identify(arm, motion.q, motion.qd, motion.qdd, measured, weights=1 / noise)
    guessed = identify(arm, motion.q, motion.qd, motion.qdd, measured)
    np.testing.assert_allclose(found.standard_deviations, guessed.standard_deviations, rtol=0.2)
    half = identify(arm, motion.q, motion.qd, motion.qdd, measured, weights=2 / noise)
    assert_close(half.values, found.values, ulps=1e6)
    assert_close(half.standard_deviations, found.standard_deviations / 2, ulps=1e4)
    # Spoiled measurements with no weight do no harm.
    w = np.ones_like(tau) / noise
    w[:40] = 0
    spoiled = measured + np.where(w == 0, 1e3, 0)
    kept = identify(arm, motion.q, motion.qd, motion.qdd, spoiled, weights=w)
    assert np.max(np.abs(kept.values - found.values) / found.standard_deviations) < 3


def test_friction_and_rotors(arm, motion, tau, noise, rng):
    extra = 0.4 * motion.qd + 1.5 * np.sign(motion.qd) + 0.05 * motion.qdd
    measured = tau + extra + noise * rng.standard_normal(tau.shape)
    found = identify(arm, motion.q, motion.qd, motion.qdd, measured, friction=True, rotors=True)
    for joint in arm.joint_names:
        for kind, true in (("viscous", 0.4), ("coulomb", 1.5)):
            name = f"{joint}.{kind}"
            assert abs(found[name] - true) < 5 * found.standard_deviation(name)
            assert found.joint_parameter(name) == found[name]
    assert abs(found["flange_joint.rotor"] - 0.05) < 5 * found.standard_deviation(
        "flange_joint.rotor"
    )
    with pytest.raises(
        kt.errors.IdentifiabilityError, match=r"column_joint.rotor cannot be identified by"
    ):
        found["column_joint.rotor"]


def test_a_floating_base_is_identified_from_its_six_zero_forces(rng):
    """No joint force acts on a satellite; still, three joints turning tell its inertia ratios."""
    m = kt.samples.random_tree(3, 2, joints=[kt.Revolute("z")], floating_base=True)
    q = np.array([m.random_configuration(rng) for _ in range(60)])
    qd, qdd = rng.standard_normal((2, 60, m.nv))
    tau = kt.inverse_dynamics(m, q, qd, qdd)
    found = identify(m, q, qd, qdd, tau + 0.01 * rng.standard_normal(tau.shape))
    true = base_parameters(m).values()
    assert np.max(np.abs(found.values - true) / found.standard_deviations) < 5


def test_unidentifiable_parameters_get_no_number(arm, motion, tau):
    found = identify(arm, motion.q, motion.qd, motion.qdd, tau, weights=np.ones(6))
    for name in ("column.m", "upper.m", "flange.m", "upper.I_yy"):
        with pytest.raises(kt.errors.IdentifiabilityError, match=f"{name} cannot be identified"):
            found[name]
    assert found["flange.I_xy"] == pytest.approx(0, abs=1e-9)
    with pytest.raises(
        kt.errors.IdentifiabilityError, match="36 combinations of the 60 parameters"
    ):
        found.model  # noqa: B018
    assert not np.any(found.identifiable & (np.sum(found.base.combinations != 0, axis=0) != 1))
    assert "upper.h_x + 0.44 elbow.m" in found.summary()
    assert "36 base parameters from 1500 joint forces" in repr(found)
    q, qd, qdd = motion.q[:3], motion.qd[:3], motion.qdd[:3]
    assert_close(found.predict(q, qd, qdd), tau[:3], ulps=1e5)


class TestPoorMotion:
    def test_standing_still_shows_no_inertia(self, arm, motion, tau):
        still = np.zeros_like(motion.qd)
        text = r"does not show all base parameters .* it cannot tell column.I_zz"
        with pytest.raises(kt.errors.ExcitationError, match=text):
            identify(arm, motion.q, still, still, tau)

    def test_one_joint_at_a_time_is_not_enough(self, arm):
        """Only the first joint turns: nothing about the last one's motion."""
        t = np.linspace(0, 5, 200)[:, None] * (np.arange(6) == 0)
        q, qd, qdd = np.sin(t), np.cos(t) * (t != 0), -np.sin(t)
        with pytest.raises(kt.errors.ExcitationError, match="Move more joints at once"):
            identify(arm, q, qd, qdd, kt.inverse_dynamics(arm, q, qd, qdd))

    def test_too_few_measurements(self, arm, motion, tau):
        few = (a[:5] for a in (motion.q, motion.qd, motion.qdd, tau))
        with pytest.raises(kt.errors.ExcitationError, match="30 joint forces do not determine 36"):
            identify(arm, *few)

    def test_a_faint_motion_is_a_warning(self, rng):
        m = kt.samples.double_pendulum()
        q = 1e-4 * rng.standard_normal((50, 2)) + 0.3
        qd, qdd = 1e-4 * rng.standard_normal((2, 50, 2))
        tau = kt.inverse_dynamics(m, q, qd, qdd) + 1e-9 * rng.standard_normal((50, 2))
        with pytest.warns(kt.errors.ExcitationWarning, match="only weakly: condition number"):
            identify(m, q, qd, qdd, tau)


@pytest.fixture(scope="module")
def prior(arm):
    """What one might have from drawings: masses and extents off by a third or more."""
    wrong = {
        name: kt.Inertia.from_mass_center(
            1.5 * I.mass, I.center_of_mass + 0.02, 1.3 * I.rotational_at_center
        )
        for name, I in zip(arm.body_names[1:], arm.inertia[1:], strict=True)
    }
    return arm.replace(inertia=wrong)


class TestConsistent:
    def test_a_whole_possible_model_that_fits(self, arm, prior, motion, tau, noise, rng):
        measured = tau + noise * rng.standard_normal(tau.shape)
        found = identify(prior, motion.q, motion.qd, motion.qdd, measured, consistent=True)
        for I in found.model.inertia[1:]:
            assert inertia_defect(I) is None
        true = base_parameters(arm).values()
        assert np.max(np.abs(found.values - true) / found.standard_deviations) < 5
        predicted = kt.inverse_dynamics(found.model, motion.q, motion.qd, motion.qdd)
        np.testing.assert_allclose(np.std(predicted - measured, axis=0), noise, rtol=0.2)
        assert_close(inertial_parameters(found.model), found.parameters)
        free = identify(arm, motion.q, motion.qd, motion.qdd, measured)
        assert np.sum((found.residuals / noise) ** 2) < np.sum((free.residuals / noise) ** 2) + 40

    def test_without_data_against_it_the_prior_stays(self, arm, motion, tau):
        """Exact data of the model itself: nothing changes, not even what cannot be seen."""
        weights = np.full(6, 1e3)
        found = identify(
            arm, motion.q, motion.qd, motion.qdd, tau, weights=weights, consistent=True
        )
        np.testing.assert_allclose(found.parameters, inertial_parameters(arm), rtol=2e-4, atol=1e-5)

    def test_impossible_data_give_a_possible_model(self, rng):
        """Forces that only a negative inertia could explain end at the edge of the possible."""
        m = kt.samples.double_pendulum()
        q, qd, qdd = rng.standard_normal((3, 80, 2))
        p = inertial_parameters(m)
        p[16] = -0.5  # I_yy of the lower rod
        tau = kt.regressor(m, q, qd, qdd) @ p + 0.01 * rng.standard_normal((80, 2))
        free = identify(m, q, qd, qdd, tau)
        assert free["lower.I_yy"] == pytest.approx(-0.5, abs=0.05)
        possible = identify(m, q, qd, qdd, tau, consistent=True)
        assert possible["lower.I_yy"] >= 0
        assert all(inertia_defect(I) is None for I in possible.model.inertia[1:])

    def test_friction_stays_positive(self, arm, prior, motion, tau, noise, rng):
        measured = tau + 0.4 * motion.qd + noise * rng.standard_normal(tau.shape)
        found = identify(
            prior, motion.q, motion.qd, motion.qdd, measured, friction=True, consistent=True
        )
        assert np.all(found.parameters[60:] > 0)
        assert found.joint_parameter("flange_joint.viscous") == pytest.approx(0.4, rel=1e-3)
        assert found.joint_parameter("flange_joint.coulomb") < 1e-3
        with pytest.raises(kt.UnknownNameError, match=r"no parameter 'flange_joint.stiction'"):
            found.joint_parameter("flange_joint.stiction")

    def test_bodies_at_the_edge_are_rejected(self, rng):
        m = kt.samples.pendulum()
        point = kt.Inertia.from_mass_center(1.0, (0, 0, -1.0), np.zeros((3, 3)))
        m = m.replace(inertia={"bob": point})
        q, qd, qdd = rng.standard_normal((3, 20, 1))
        tau = kt.inverse_dynamics(m, q, qd, qdd)
        with pytest.raises(kt.ModelError, match="that of body 'bob' is at the edge"):
            identify(m, q, qd, qdd, tau, weights=[1.0], consistent=True)


def test_arguments_are_checked(arm, motion, tau):
    state = (motion.q, motion.qd, motion.qdd)
    with pytest.raises(kt.ShapeError, match=r"weights must be finite and not negative"):
        identify(arm, *state, tau, weights=np.ones(5))
    with pytest.raises(kt.ShapeError, match=r"weights must be finite and not negative"):
        identify(arm, *state, tau, weights=-np.ones(6))
    with pytest.raises(kt.ShapeError, match=r"tau must have shape"):
        identify(arm, *state, tau[:, :5])


def test_forces_of_motors_and_of_joints(arm, motion):
    """A robot with springs and friction: both give its parameters, and a warning asks which."""
    part = kt.JointDynamics(damping=3.0, stiffness=20.0, friction=2.0)
    m = arm.replace(dynamics=dict.fromkeys(arm.joint_names, part))
    state = motion.q, motion.qd, motion.qdd
    whole = kt.inverse_dynamics(m, *state)
    motors = whole - kt.passive_force(m, motion.q, motion.qd)
    w = np.ones(6)
    exact = identify(m, *state, JointForces(whole), weights=w)
    found = identify(m, *state, MotorForces(motors), weights=w)
    assert np.abs(found.values - exact.values).max() < 1e-8 * np.abs(exact.values).max()
    assert np.abs(exact.values - exact.base.values()).max() < 1e-8 * np.abs(exact.values).max()
    rubbed = identify(m, *state, MotorForces(motors), friction=True, weights=w)
    values = dict(zip(rubbed.names, rubbed.values, strict=True))
    assert abs(values[f"{arm.joint_names[2]}.viscous"] - 3.0) < 1e-6
    assert abs(values[f"{arm.joint_names[2]}.coulomb"] - 2.0) < 1e-6
    with pytest.warns(kt.ModelWarning, match=r"MotorForces\(tau\) if it is that of the motors"):
        identify(m, *state, motors, weights=w)
