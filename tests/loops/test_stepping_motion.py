"""Accelerations and projections of steps as written, without compiler, against dense solutions."""

from functools import cache

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms import crba, rnea
from kinetree.algorithms.closed.rank import scaling
from kinetree.loops.kinematics.compiled_projection import (
    Chosen,
    close_loops,
    largest,
    scale_to_energy,
)
from kinetree.loops.kinematics.constraint import constraint
from kinetree.loops.kinematics.projection import project_velocity
from kinetree.loops.kinematics.whitening import multipliers, orthogonal, smallest, whitening
from kinetree.loops.stepping.choice import _health, choose
from kinetree.loops.stepping.motion import (
    Regularization,
    acceleration,
    driven_acceleration,
    post_stabilized,
)
from kinetree.loops.stepping.projected import Checks, _worst


@cache
def four_bar(massless):
    model = kt.samples.four_bar()
    return model.replace(inertia={"coupler": kt.Inertia.zero()}) if massless else model


def moving(model, rng):
    q = np.array(model.posture("home").q, dtype=float)
    return q, project_velocity(model, q, rng.normal(size=model.nv)), rng.normal(size=model.nv)


# --- Accelerations --------------------------------------------------------------------------------


@pytest.mark.parametrize("massless", [False, True])
@pytest.mark.parametrize("prescribed", [(), (0,), (2,)])
def test_accelerations_and_forces_of_drives(massless, prescribed, rng):
    """All equations at once, by least squares: accelerations, constraint forces, drive forces."""
    model = four_bar(massless)
    q, qd, tau = moving(model, rng)
    choice, given = choose(model, q, prescribed).chosen, rng.normal(size=3)
    assert bool(choice.weight) == massless
    c, H = constraint(model, q, qd), crba.joint_space_inertia(model, q).astype(float)
    E = np.eye(3)[list(prescribed)]
    rows = np.concatenate([c.K, E])
    matrix = np.block([[H, -rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    right = [*(tau - rnea.bias_force(model, q, qd)), *c.k, *given[list(prescribed)]]
    expected = np.linalg.lstsq(matrix, np.array(right, dtype=float), rcond=1e-12)[0]
    if prescribed:
        reference = driven_acceleration.reference
        found, forces = reference(model, q, qd, tau, given, chosen=choice)
        assert_close(forces[list(prescribed)], expected[3 + len(c.K) :], ulps=1e8)
        assert np.count_nonzero(forces) == 1
    else:
        found = acceleration.reference(model, q, qd, tau, chosen=choice)
    assert_close(np.asarray(found, dtype=float), expected[:3], ulps=1e8)


def test_sequential_regularization_converges_with_its_rounds(rng):
    model = four_bar(False)
    q, qd, tau = moving(model, rng)
    choice = choose(model, q).chosen
    exact = acceleration.reference(model, q, qd, tau, chosen=choice)
    errors = []
    for rounds in (1, 2, 3):
        found = acceleration.reference(
            model, q, qd, tau, chosen=choice, regularization=Regularization(1e-3, rounds)
        )
        errors.append(np.max(np.abs(found - exact)))
    assert errors[0] > 1e-6
    assert errors[1] < 2e-2 * errors[0]
    assert errors[2] < 2e-2 * errors[1]
    H, K = crba.joint_space_inertia(model, q), np.array([[1.0, 0.5, 0.2], [0.0, 1.0, -1.0]])
    a, forces = Regularization(1e-4, 6)(model, H, tau, K, np.array([0.3, -0.2]))
    assert_close(K @ a, [0.3, -0.2], ulps=1e4)
    assert_close(H @ a - tau - K.T @ forces, np.zeros(3), ulps=1e6, scale=1.0)


def test_a_share_of_the_errors_is_taken_away(rng):
    model = four_bar(False)
    q, *_ = moving(model, rng)
    choice = choose(model, q).chosen
    q, qd = q + 1e-6 * rng.normal(size=3), 1e-6 * rng.normal(size=3)
    before = constraint(model, q, qd)
    for share, repeats in ((1.0, 1), (0.25, 1), (0.25, 3)):
        state = post_stabilized.reference(model, q, qd, share, chosen=choice, repeats=repeats)
        after = constraint(model, *(np.asarray(x, dtype=float) for x in state))
        left = (1 - share) ** repeats
        for old, new in ((before.error, after.error), (before.rate, after.rate)):
            assert np.max(np.abs(new - left * old)) < 1e-3 * np.max(np.abs(old))


# --- Whitened equations ---------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_equations_in_the_metric_of_the_inertia(weight, rng):
    model = kt.samples.bennett()
    q = np.array(model.posture("home").q)
    K, t = rng.normal(size=(2, 3)), rng.normal(size=2)
    H = crba.joint_space_inertia(model, q).astype(float) + weight * K.T @ K
    inertia = whitening(model, q, K, weight)
    rows = orthogonal(inertia, K)
    a = inertia.motion(smallest(rows, t))
    inverse = np.linalg.inv(H)
    assert_close(a, inverse @ K.T @ np.linalg.solve(K @ inverse @ K.T, t), ulps=1e5)
    assert_close(multipliers(rows, t), np.linalg.solve(K @ inverse @ K.T, t), ulps=1e5)
    x = rng.normal(size=3)
    assert_close(rows.apply(x), inertia.forces(K.T).T @ x, ulps=1e3)
    y = inertia.forces(K.T)
    assert_close(y.T @ y, K @ inverse @ K.T, ulps=1e4)
    squares = np.diagonal(np.linalg.qr(y, mode="r")) ** 2
    assert_close(rows.health, squares / (np.sum(y * y) / 2), ulps=1e5)
    assert_close(whitening(model, q).L, whitening(model, q, None, 5.0).L)


def test_the_largest_error_of_any_sign():
    assert largest([-3.0, 1.0, 2.0]) == 3.0
    assert largest([0.5, -0.25]) == 0.5
    assert largest([0.5, 1.0, -4.0, 2.0]) == 4.0
    every = (1.0, 10.0, 1.0, 2.0)
    strict = Chosen((0, 2), (1.0, 1.0), every=every)
    lenient = Chosen((0, 2), (1.0, 1.0), every=every, slack=0.5)
    for error, all_count, slack in (
        ([-0.2, 0.01, 0.1, 0.0], 0.2, 0.2),
        ([0.0, -0.07, 0.1, 0.0], 0.7, 0.2),
        ([0.0, 0.0, -0.3, -0.5], 1.0, 0.5),
        ([0.0, 0.04, 0.0, 0.1], 0.4, 0.0),
    ):
        assert_close(strict.largest_error(np.array(error)), all_count)
        assert_close(lenient.largest_error(np.array(error)), slack)


def test_prescribed_variables_are_equations_in_front():
    choice = Chosen((1,), (2.0,), prescribed=(2, 0), prescribed_units=(4.0, 8.0))
    K = np.array([[1.0, 2, 3], [4, 5, 6]])
    assert choice.matrix(K).tolist() == [[0, 0, 4], [8, 0, 0], [8, 10, 12]]
    assert choice.right(np.array([7.0, 9.0])).tolist() == [0, 0, 18]
    assert choice.right(np.array([7.0, 9.0]), np.array([1.0, 2, 3])).tolist() == [12, 8, 18]
    assert choice.others(np.array([1.0, 2, 3])).tolist() == [0, 2, 0]


@pytest.mark.parametrize("size", [0.0, 1e-4])
def test_a_closed_state_tells_of_the_errors_that_it_had(size, rng):
    model = four_bar(False)
    q, qd, _ = moving(model, rng)
    choice = choose(model, q).chosen
    q, v = q + size * rng.normal(size=3), qd + rng.normal(size=3)
    found = close_loops.reference(model, q, v, chosen=choice, iterations=1)
    c, units = constraint(model, q, v), scaling(model).rows
    assert_close(float(found[2]), np.max(np.abs(c.error * units)), ulps=10, scale=1)
    assert_close(float(found[3]), np.max(np.abs(c.rate * units)), ulps=1e3)
    kick = np.asarray(found[1], dtype=float) - v
    H = crba.joint_space_inertia(model, q).astype(float)
    assert_close(float(found[4]), kick @ H @ kick / 2, ulps=1e6)
    assert_close(float(found[5]), _health(model, q, choice), ulps=1e6)


# --- What projected steps do ----------------------------------------------------------------------


def test_lost_energy_is_given_back_where_there_is_motion_enough():
    qd = np.array([1.0, -2.0])
    for lost, factor2 in (
        (0.1, 0.9),
        (-0.1, 1.1),
        (0.24, 0.76),
        (-0.24, 1.24),
        (0.26, 1.0),
        (-0.26, 1.0),
        (-7.0, 1.0),
    ):
        assert_close(scale_to_energy(qd, -2 * lost, 2.0, 0.25), np.sqrt(factor2) * qd)
    many = scale_to_energy(np.tile(qd, (2, 1)), np.array([-0.1, 0.5]), np.array([1.0, 1.0]), 0.25)
    assert_close(many, [np.sqrt(0.9) * qd, qd])


def test_the_worst_of_several_steps():
    a, b = Checks(1, 2, 3, 0.5, 5, 6), Checks(2, 1, 4, 0.25, -8, 7)
    assert _worst(a, b).tolist() == [2, 2, 4, 0.25, 8, 7]
    assert _worst(a, Checks(0, 3, 1, 0.75, -4, 5)).tolist() == [1, 3, 3, 0.5, 5, 6]


@pytest.mark.parametrize("rate", [1e-3, 0.5, 40.0])
def test_any_positive_rate_will_do(rate):
    assert kt.AscherChin(rate=rate).rate == rate


@pytest.mark.parametrize("rate", [0.0, -0.5, np.inf, np.nan])
def test_other_rates_are_rejected(rate):
    with pytest.raises(kt.ShapeError, match=r"rate of AscherChin must be positive"):
        kt.AscherChin(rate=rate)


def test_forces_that_change_with_time_act_at_the_end_of_an_implicit_step():
    """A slider that is pushed by ``cos(w t)``, welded to another one."""
    ball, w = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3)), 3.0
    model = (
        kt.ModelBuilder("pushed", gravity=(0, 0, 0))
        .body("a", joint=kt.Prismatic("x"), inertia=ball)
        .body("b", joint=kt.Prismatic("x"), inertia=ball)
        .loop("weld", predecessor="a", successor="b", joint=kt.Fixed())
        .build()
    )

    @kt.kernel
    def push(model, t, q, qd):
        return np.array([2 * np.cos(w * t), 0 * t])

    motion = kt.simulate(
        model, np.zeros(2), duration=1.0, dt=0.01, forces=push, constraints="generalized_alpha"
    )
    np.testing.assert_allclose(motion.q[-1], np.full(2, (1 - np.cos(w)) / w**2), atol=1e-4)
    np.testing.assert_allclose(motion.qd[-1], np.full(2, np.sin(w) / w), atol=2e-4)


def test_a_massless_link_is_taken_back_to_the_constraints(rng):
    """In the metric of ``H + weight KᵀK``, which has an inverse where ``H`` has none."""
    model = four_bar(True)
    q, qd, _ = moving(model, rng)
    choice = choose(model, q).chosen
    off = q + 1e-4 * rng.normal(size=3), qd + 1e-3 * rng.normal(size=3)
    before = constraint(model, *off)
    for found in (
        close_loops.reference(model, *off, chosen=choice),
        post_stabilized.reference(model, *off, 1.0, chosen=choice, repeats=3),
    ):
        assert np.max(np.abs(found[0] - q)) < 0.01
        left = constraint(model, *found[:2])
        assert np.max(np.abs(before.error)) > 1e-5
        assert np.max(np.abs(left.error)) < 1e-13
        assert np.max(np.abs(left.rate)) < 1e-12


def test_a_state_at_rest_is_kicked_by_nothing():
    model = four_bar(False)
    q = np.array(model.posture("home").q, dtype=float)
    choice = choose(model, q).chosen
    found = close_loops.reference(model, q + 1e-6, np.zeros(3), chosen=choice)
    assert np.max(np.abs(constraint(model, found[0], np.zeros(3)).error)) < 1e-14
    assert list(found[1]) == [0, 0, 0]
    assert found[4] == 0


def test_the_unit_of_mass_does_not_matter_to_orthogonal_rows(rng):
    model = four_bar(False)
    q, t = np.array(model.posture("home").q, dtype=float), rng.normal(size=2)
    K = choose(model, q).chosen.matrix(constraint(model, q, np.zeros(3)).K)
    health = orthogonal(whitening(model, q), K).health
    for unit in (1e-10, 1e10):
        inertia = {
            name: kt.Inertia(unit * I.mass, unit * I.first_moment, unit * I.rotational)
            for name, I in zip(model.body_names[1:], model.inertia[1:], strict=True)
        }
        rows = orthogonal(whitening(model.replace(inertia=inertia), q), K)
        assert_close(rows.apply(smallest(rows, t)), t, ulps=1e3)
        assert_close(rows.health, health, ulps=1e4)
