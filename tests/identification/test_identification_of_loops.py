"""Base parameters of closed chains: found, counted, and identified from motions they allow."""

import numpy as np
import pytest

import kinetree as kt
from kinetree.identification import exciting_trajectory, inertial_parameters
from kinetree.identification.base import allowed_states
from kinetree.spatial import Inertia


def measured(model, rng, samples=60):
    """Random states that the loops allow, and forces of the motors that cause them."""
    q, qd, qdd, _ = allowed_states(model, samples, rng)
    return q, qd, qdd, kt.inverse_dynamics(model, q, qd, qdd) - kt.passive_force(model, q, qd)


@pytest.mark.parametrize("independent", [None, ["link1_joint", "link4_joint"]])
def test_the_regressor_projects_what_the_spanning_tree_needs(independent, rng):
    model = kt.samples.five_bar()
    q, qd, qdd, _ = allowed_states(model, 7, rng)
    Y = kt.regressor(model, q, qd, qdd, independent=independent)
    tree = kt.inverse_dynamics(model.spanning_tree, q, qd, qdd)
    G = kt.loops.null_space(model, q, qd, independent=independent).G
    expected = np.einsum("...np,...n->...p", G, tree)
    assert Y.shape == (7, 2, 40)
    np.testing.assert_allclose(Y @ inertial_parameters(model), expected, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(
        kt.regressor(model, q[0], qd[0], qdd[0], independent=independent), Y[0], atol=1e-12
    )
    many = kt.inverse_dynamics(model, q, qd, qdd)  # of any motors: loops carry the difference
    np.testing.assert_allclose(np.einsum("...np,...n->...p", G, many), expected, rtol=1e-8)


def test_what_a_loop_hides_is_no_base_parameter():
    """A particle at the pin of a four-bar does the same on either side of it."""
    model = kt.samples.four_bar()
    base, tree = kt.base_parameters(model), kt.base_parameters(model.spanning_tree)
    assert (len(base), len(tree)) == (8, 9)
    (pin,) = model.loops
    ends = ((pin.predecessor, pin.predecessor_placement), (pin.successor, pin.successor_placement))
    values = []
    for i, placement in ends:
        extra = Inertia.from_particles([0.7], [placement.r])
        heavier = model.replace(inertia={model.body_names[i]: model.inertia[i] + extra})
        values.append(base.values(inertial_parameters(heavier)))
    np.testing.assert_allclose(values[0], values[1], atol=1e-9)
    assert np.abs(values[0] - base.values()).max() > 0.01


@pytest.mark.filterwarnings("ignore::kinetree.errors.ExcitationWarning")  # random states
@pytest.mark.parametrize("sample", ["four_bar", "five_bar", "slider_crank"])
def test_parameters_come_back_from_simulated_forces(sample, rng):
    model = kt.samples.load(sample)
    q, qd, qdd, tau = measured(model, rng)
    found = kt.identify(model, q, qd, qdd, tau)
    true = found.base.values()
    np.testing.assert_allclose(found.values, true, atol=1e-9 * np.abs(true).max())
    q, qd, qdd, tau = measured(model, np.random.default_rng(5), 10)
    predicted = found.predict(q, qd, qdd)
    expected = found.base.projected(q, qd, tau)
    np.testing.assert_allclose(predicted, expected, atol=1e-9 * np.abs(expected).max())


def test_a_floating_linkage_is_identified_with_its_base(rng):
    model = kt.edit.floating(kt.samples.four_bar(), inertia=kt.shapes.box(0.4, 0.3, 0.2, mass=2.0))
    q, qd, qdd, _ = allowed_states(model, 60, rng)
    tau = kt.inverse_dynamics(model.spanning_tree, q, qd, qdd)  # the loop carries nothing then
    found = kt.identify(model, q, qd, qdd, tau)
    true = found.base.values()
    np.testing.assert_allclose(found.values, true, atol=1e-8 * np.abs(true).max())


def test_one_motor_and_an_exciting_motion_suffice(rng):
    """Measured at the crank alone, with noise; friction of the crank is found as well."""
    model = kt.samples.four_bar()
    motion = exciting_trajectory(model, samples=120, candidates=4, period=4.0, rng=0)
    state = (motion.q, motion.qd, motion.qdd)
    tau = kt.inverse_dynamics(model, *state)
    assert np.all(tau[:, 1:] == 0)
    tau[:, 0] += 0.3 * motion.qd[:, 0] + 1e-6 * rng.standard_normal(len(tau))
    found = kt.identify(model, *state, tau, friction="viscous", tolerance=1e-6)
    expected = found.base.projected(motion.q, motion.qd, tau)
    assert np.abs(found.residuals).max() < 1e-4 * np.abs(expected).max()
    assert found.noise.shape == (1,)


@pytest.mark.filterwarnings("ignore::kinetree.errors.ExcitationWarning")  # random states
def test_a_possible_model_is_found_for_a_linkage(rng):
    model = kt.samples.slider_crank()
    guess = model.replace(
        inertia={
            name: 1.3 * I for name, I in zip(model.body_names[1:], model.inertia[1:], strict=True)
        }
    )
    q, qd, qdd, tau = measured(model, rng, 40)
    found = kt.identify(guess, q, qd, qdd, tau, consistent=True, regularisation=1e-6)
    again = kt.inverse_dynamics(found.model, q, qd, qdd)
    np.testing.assert_allclose(again, tau, atol=1e-4 * np.abs(tau).max())


@pytest.mark.filterwarnings("ignore::kinetree.errors.ExcitationWarning")  # random states
def test_a_stewart_platform_is_identified_by_its_six_legs(rng):
    model = kt.samples.stewart()
    q, qd, qdd, tau = measured(model, rng, 40)
    legs = [model.v_slice[model.joint_index(f"leg{i}_stroke")].start for i in range(1, 7)]
    assert np.all(np.delete(tau, legs, axis=1) == 0)
    tau = tau + kt.passive_force(model, q, qd)  # the sum, as at trees
    found = kt.identify(model, q, qd, qdd, kt.identification.JointForces(tau))
    true = found.base.values()
    assert len(found.base) == 82
    np.testing.assert_allclose(found.values, true, atol=1e-9 * np.abs(true).max())
    assert np.abs(found.residuals).max() < 1e-9 * np.abs(tau).max()
