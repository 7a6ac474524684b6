"""Projections onto closed loops: near, nearest, and with the right energy."""

from functools import cache

import numpy as np
import pytest
from support.closeness import assert_close
from support.linkages import sample

import kinetree as kt
from kinetree.errors import AssemblyError, SingularError
from kinetree.loops.kinematics.constraint import closing, closure_error, constraint
from kinetree.loops.kinematics.projection import project_configuration, project_velocity
from kinetree.loops.kinematics.space import tree_inertia
from kinetree.loops.kinematics.state_projection import mechanical_energy, project_state

SAMPLES = ["four_bar", "slider_crank", "bennett", "five_bar"]


@cache
def circle():
    """A point at ``(x, y)`` on a rod of 1 m that turns about the origin: ``q = (x, y, angle)``."""
    bar = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    return (
        kt.ModelBuilder("circle")
        .body("sledge", joint=kt.Prismatic("x"), inertia=bar)
        .body("point", on="sledge", joint=kt.Prismatic("y"), inertia=bar)
        .body("rod", joint=kt.Revolute("z"), inertia=bar)
        .loop("pin", predecessor="rod", successor="point", joint=kt.Revolute("z"), at=(1, 0, 0))
        .build()
    )


@pytest.mark.covers("Spencer 3.1", by=project_configuration)
@pytest.mark.parametrize("away", [0.01, 0.3, -0.5])
def test_the_nearest_point_of_a_circle_lies_on_the_radius(away):
    model, angle = circle(), 0.7
    place = (1 + away) * np.array([np.cos(angle), np.sin(angle)])
    q = project_configuration(model, [*place, angle], weights="plain", nearest=True)
    assert_close(q, np.array([np.cos(angle), np.sin(angle), angle]), ulps=1e5)


def test_shortest_steps_end_on_the_circle_but_not_in_the_nearest_point():
    model, start = circle(), np.array([0.4, 0.9, 0.3])
    near = project_configuration(model, start, weights="plain")
    nearest = project_configuration(model, start, weights="plain", nearest=True)
    for q in (near, nearest):
        assert np.linalg.norm(closure_error(model, q)) < 1e-14
    assert np.linalg.norm(nearest - start) < np.linalg.norm(near - start) - 1e-4
    K = closing(model, nearest)[1]
    multipliers = np.linalg.lstsq(K.T, start - nearest, rcond=1e-10)[0]
    assert np.linalg.norm(K.T @ multipliers - (start - nearest)) < 1e-11  # q + Kᵀ mu = start


@pytest.mark.parametrize("weights", ["mass", "plain", "matrix"])
def test_the_difference_to_the_nearest_point_is_a_combination_of_constraints(weights, rng):
    model = sample("stewart")
    A = rng.standard_normal((model.nv, model.nv))
    given = A @ A.T + model.nv * np.eye(model.nv) if weights == "matrix" else weights
    start = model.integrate(model.neutral(), 0.02 * rng.standard_normal(model.nv))
    q = project_configuration(model, start, weights=given, nearest=True)
    W = {"mass": tree_inertia(model, start), "plain": np.eye(model.nv)}.get(weights, given)
    gradient = W @ model.difference(start, q)
    D = _derivative_of_difference(model, start, q)
    K = closing(model, q)[1]
    multipliers = np.linalg.lstsq(K.T, D.T @ gradient, rcond=1e-10)[0]
    assert np.max(np.abs(K.T @ multipliers - D.T @ gradient)) < 1e-7 * np.max(np.abs(gradient))


def _derivative_of_difference(model, start, q, h=1e-6):
    columns = [
        (model.difference(start, model.integrate(q, h * e))
         - model.difference(start, model.integrate(q, -h * e))) / (2 * h)
        for e in np.eye(model.nv)
    ]  # fmt: skip
    return np.array(columns).T


def test_the_residual_decreases_quadratically():
    model, q = sample("four_bar"), np.array([0.05, -0.03, 0.04])
    sizes = [np.linalg.norm(closure_error(model, q))]
    for _ in range(3):
        e, K = closing(model, q)
        q = q - np.linalg.pinv(K, rcond=1e-10) @ e
        sizes.append(np.linalg.norm(closure_error(model, q)))
    assert sizes[1] < 10 * sizes[0] ** 2
    assert sizes[2] < 10 * sizes[1] ** 2
    expected = project_configuration(model, [0.05, -0.03, 0.04], weights="plain")
    assert np.max(np.abs(q - expected)) < 1e-3


@pytest.mark.covers("RBDA 8.12", "Spencer 3.1", by=(project_configuration, project_velocity))
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("weights", ["mass", "plain"])
def test_projected_states_keep_loops_closed_and_stay(name, weights, rng):
    model = sample(name)
    q = model.integrate(model.neutral(), 0.03 * rng.standard_normal((5, model.nv)))
    q = project_configuration(model, q, weights=weights)
    qd = project_velocity(model, q, rng.standard_normal((5, model.nv)), weights=weights)
    c = constraint(model, q, qd)
    assert np.max(np.abs(c.error)) < 1e-13
    assert np.max(np.abs(c.rate)) < 1e-13
    assert_close(project_configuration(model, q, weights=weights), q, ulps=200, scale=1.0)
    assert_close(project_velocity(model, q, qd, weights=weights), qd, ulps=100)


def test_velocities_change_as_an_impulse_of_the_constraints_changes_them(rng):
    model = sample("bennett")
    q, before = model.neutral(), rng.standard_normal(model.nv)
    after = project_velocity(model, q, before)
    impulse = tree_inertia(model, q) @ (after - before)
    K = closing(model, q)[1]
    assert_close(K.T @ np.linalg.lstsq(K.T, impulse, rcond=1e-10)[0], impulse, ulps=1e3)
    assert after @ tree_inertia(model, q) @ (before - after) == pytest.approx(0, abs=1e-15)


def test_a_body_without_mass_may_take_part(rng):
    model = sample("four_bar")
    nothing = kt.Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    model = model.replace(inertia={"coupler": nothing})
    q = project_configuration(model, [0.01, 0.02, -0.01])
    assert np.max(np.abs(closure_error(model, q))) < 1e-13
    assert np.max(np.abs(constraint(model, q, project_velocity(model, q, [1, 2, 3])).rate)) < 1e-10


def test_what_cannot_be_projected_is_named():
    model = sample("four_bar")
    with pytest.raises(AssemblyError, match=r"sample \(1,\) is too far.*loop 'pin' stays open"):
        project_configuration(model, [[0.0, 0, 0], [0.0, 2.9, 2.9]], iterations=2)


def test_a_search_for_the_nearest_point_that_does_not_end(monkeypatch):
    monkeypatch.setattr("kinetree.loops.kinematics.projection._NEAREST_STEPS", 2)
    with pytest.raises(SingularError, match="no nearest configuration of 'circle'"):
        project_configuration(circle(), [0.4, 0.9, 0.3], weights="plain", nearest=True)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("masses", "'mass', 'plain'"),
        ([1.0, 2.0], r"got shape \(2,\)"),
        ([1.0, 0.0, 1.0], "not positive"),
        (np.diag([1.0, -1.0, 1.0]), "positive definite"),
    ],
)
def test_weights_that_make_no_sense(weights, message):
    with pytest.raises(kt.ShapeError, match=message):
        project_configuration(sample("four_bar"), np.zeros(3), weights=weights)


# --- states ------------------------------------------------------------------------------------


def drifted(name, rng, size=1e-4):
    model = sample(name)
    q = model.neutral()
    qd = project_velocity(model, q, rng.standard_normal(model.nv))
    energy = mechanical_energy(model, q, qd)
    q = model.integrate(q, size * rng.standard_normal(model.nv))
    return model, q, qd + size * rng.standard_normal(model.nv), energy


@pytest.mark.parametrize("name", SAMPLES)
def test_the_compiled_projection_is_the_one_in_two_stages(name, rng):
    model, q, qd, _ = drifted(name, rng, 1e-7)
    fast_q, fast_qd = project_state(model, q, qd)
    slow_q = project_configuration(model, q)
    slow_qd = project_velocity(model, slow_q, qd)
    assert np.max(np.abs(fast_q - slow_q)) < 1e-11
    assert np.max(np.abs(fast_qd - slow_qd)) < 1e-11


@pytest.mark.covers("Spencer 3.1", "Spencer 3.2", by=project_state)
@pytest.mark.parametrize("name", ["four_bar", "five_bar"])
@pytest.mark.parametrize("simultaneous", [False, True])
@pytest.mark.parametrize("weights", ["mass", "plain"])
def test_energy_is_one_more_invariant(name, simultaneous, weights, rng):
    model, q, qd, energy = drifted(name, rng)
    options = {"simultaneous": simultaneous, "weights": weights}
    p, pd = project_state(model, q, qd, energy=energy, **options)
    c = constraint(model, p, pd)
    assert np.max(np.abs([*c.error, *c.rate])) < 1e-12
    assert abs(mechanical_energy(model, p, pd) - energy) < 1e-11
    without = mechanical_energy(model, *project_state(model, q, qd, **options))
    assert abs(without - energy) > 1e-6


def test_a_batch_of_states(rng):
    model, q, qd, energy = drifted("four_bar", rng)
    Q, QD = np.tile(q, (3, 1)), np.tile(qd, (3, 1))
    for options in ({}, {"energy": energy}, {"energy": energy, "simultaneous": True}):
        one, many = project_state(model, q, qd, **options), project_state(model, Q, QD, **options)
        assert_close(many[0][1], one[0], ulps=1e3, scale=1.0)
        assert_close(many[1][2], one[1], ulps=1e3)


def test_almost_at_rest_the_energy_does_not_determine_the_velocity():
    model = sample("four_bar")
    q, qd = model.neutral(), np.zeros(3)
    energy = mechanical_energy(model, q, qd) + 1e-3
    assert_close(project_state(model, q, qd, energy=energy)[1], qd)


def test_springs_count():
    model = sample("stewart")
    q = model.integrate(model.neutral(), np.eye(model.nv)[2] * 0.01)
    spring = sum(
        b.dynamics.stiffness[0] * (q[model.q_slice[i]][0] - b.dynamics.rest[0]) ** 2 / 2
        for i, b in enumerate(model.bodies, start=1)
        if b.dynamics is not None and b.dynamics.stiffness
    )
    tree = model.replace(loops=())
    expected = kt.potential_energy(tree, q) + spring
    assert mechanical_energy(model, q, np.zeros(model.nv)) == pytest.approx(expected)


def test_a_velocity_for_many_positions_at_once(rng):
    model = sample("four_bar")
    home = np.array(model.posture("home").q, dtype=float)
    q, qd = home + 1e-3 * rng.normal(size=(2, 3)), rng.normal(size=3)
    found = project_state(model, q, qd, simultaneous=True)
    other = project_state(model, home, np.stack([qd, -qd]), simultaneous=True)
    for k in range(2):
        for many, one in zip(found, project_state(model, q[k], qd, simultaneous=True), strict=True):
            assert_close(many[k], one)
        signed = project_state(model, home, (-1) ** k * qd, simultaneous=True)
        for many, one in zip(other, signed, strict=True):
            assert_close(many[k], one)


def test_states_of_a_tree_stay(rng):
    model = kt.samples.satellite()
    q, qd = model.random_configuration(rng), rng.normal(size=model.nv)
    for options in ({}, {"weights": "plain"}, {"simultaneous": True}):
        found = project_state(model, q, qd, **options)
        assert_close(found[0], q)
        assert_close(found[1], qd)
