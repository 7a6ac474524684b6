"""Configurations with closed loops that decisions are made from, and the units of constraints."""

from dataclasses import replace

import numpy as np
import pytest
from support import linkages
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed import samples
from kinetree.algorithms.closed.constraints import loop_constraints
from kinetree.algorithms.closed.rank import closed_configurations, scaling
from kinetree.algorithms.closed.scaling import loop_length, typical_length, units_of
from kinetree.joints import Prismatic
from kinetree.model import ModelBuilder
from kinetree.spatial import Inertia


def slide(*constraints, count=1):
    """Carriages on rails of their own, tied by functions."""
    builder = ModelBuilder("slide")
    for n in range(count):
        I = Inertia.from_mass_center(1.0, (0.0, 0, 0), np.eye(3))
        builder.body(f"carriage{n}", joint=Prismatic("x"), inertia=I, at=(0, n, 0))
    return builder.build().replace(constraints=constraints)


def far_apart(model, q):
    """Largest difference between two configurations, in units of the mechanism."""
    columns = units_of(model).columns
    return max(np.max(np.abs(model.difference(a, b) / columns)) for a in q for b in q)


@pytest.mark.parametrize("near", [0.0, 1e-3])
@pytest.mark.parametrize("name", ["four_bar", "stewart"])
def test_samples_lie_all_over_the_manifold_with_their_matrices(name, near):
    model = getattr(kt.samples, name)()
    found = samples.sampled_manifold(model, near, count=8)
    assert found.q.shape == (8, model.nq)
    assert found.misalignment == 0
    assert far_apart(model, found.q) > 0.2
    units = units_of(model)
    for q, K, error in zip(found.q, found.matrices, found.errors, strict=True):
        c = loop_constraints(model, q, model.zero_velocity)
        assert_close(K, units.apply(c.K), ulps=1e3)
        assert_close(error, c.error * units.rows, scale=1.0)
        assert np.max(np.abs(error)) < 1e-14  # one step more than the tolerance needs


@pytest.mark.parametrize("count", [1, 4, 10, 13])
def test_as_many_closed_configurations_as_wanted(count):
    model = linkages.four_bar()
    q = closed_configurations(model, count)
    assert q.shape == (count, 3)
    for x in q:
        assert np.max(np.abs(kt.loops.constraint(model, x, np.zeros(3)).error)) < 1e-11


def test_newtons_steps_are_bounded_and_end_at_the_next_root():
    """x² = 4, from where the tangent leads far away."""
    model = slide(kt.ConstraintFunction("square", position=lambda q: [q[0] ** 2 - 4]))
    space = samples._Space(model)
    starts = np.array([[1e-4], [-1e-4], [0.3], [9.0], [-2.0]])
    found = samples._close(space, starts, 0.0)
    assert_close(found, [[2.0], [-2.0], [2.0], [2.0], [-2.0]], ulps=10)
    # what is closed up to a tolerance, at first or in the end, is polished
    for start in ([[2 + 1e-12]], *([[2 + 1e-12], [2 + far]] for far in (3e-7, 1e-6, 2e-6))):
        found = samples._close(space, np.array(start), 0.0)
        assert_close(found, np.full_like(found, 2.0), ulps=4)


def test_where_a_function_has_no_value_nothing_is_found():
    root = kt.ConstraintFunction("root", position=lambda q: [np.sqrt(q[0]) - 2])
    model = slide(root)
    space = samples._Space(model)
    with np.errstate(all="ignore"):
        found = samples._close(space, np.array([[-1.0], [5.0], [-3.0], [3.0]]), 0.0)
    assert_close(found, [[4.0], [4.0]], ulps=10)
    q, K, error = space.where_defined(np.array([[-1.0], [4.0], [9.0]]))
    assert_close(q, [[4.0], [9.0]])
    assert_close(K / space.units.apply([[1.0]]), [[[1 / 4]], [[1 / 6]]], ulps=10)
    assert_close(error / space.units.rows, [[0.0], [1.0]], ulps=10)
    none = space.where_defined(np.zeros((0, 1)))
    assert [part.shape for part in none] == [(0, 1), (0, 1, 1), (0, 1)]


def test_constraints_that_cannot_be_met_give_no_matrices():
    never = kt.ConstraintFunction("never", position=lambda q: [q[0] ** 2 + 1])
    model = slide(never)
    found = samples.sampled_manifold(model, 1e-3, count=5)
    assert found.matrices is None
    assert found.q.shape == (5, 1)
    assert found.misalignment == 0
    assert_close(found.errors, (found.q**2 + 1) * units_of(model).rows, ulps=10)


def test_a_single_point_does_not_decide_about_others():
    """x² + y² = 0 holds in one configuration, whose matrix is singular."""
    point = kt.ConstraintFunction("point", position=lambda q: [q[0] ** 2 + q[1] ** 2])
    model = slide(point, count=2)
    found = samples.sampled_manifold(model, 1e-3, count=5)
    assert found.matrices is None


@pytest.mark.parametrize("tilt", [1e-9, 1e-4])
def test_misalignment_is_what_was_taken_for_zero(tilt):
    model = linkages.four_bar()
    bodies = list(model.bodies)
    bodies[1] = replace(bodies[1], placement=kt.rotx(tilt) @ bodies[1].placement)
    model = model.replace(bodies=bodies)
    found = samples.sampled_manifold(model, 1e-3)
    assert len(found.q) == samples.SAMPLES
    s = np.linalg.svd(found.matrices, compute_uv=False)
    assert np.all(s[:, 1] > 1e-2)
    left = max(np.max(s[:, 2:]), np.max(np.abs(found.errors)))
    assert_close(found.misalignment, left)
    assert tilt / 3 < found.misalignment < 3 * tilt
    # along the two rows that count, loops are closed
    for K, error in zip(found.matrices, found.errors, strict=True):
        U = np.linalg.svd(K)[0][:, :2]
        assert np.max(np.abs(U.T @ error)) < 1e-11
    # no configuration closes all rows exactly
    assert samples.sampled_manifold(model, 0.0).matrices is None or tilt < 1e-8


def test_rows_that_are_nearly_the_same_count_once():
    """Together they hold in one point, where the rank says otherwise than all around it."""
    same = kt.ConstraintFunction("same", position=lambda q: [q[0] - q[1]])
    nearly = kt.ConstraintFunction("nearly", position=lambda q: [q[0] - (1 + 1e-5) * q[1]])
    model = slide(same, nearly, count=2)
    found = samples.sampled_manifold(model, 1e-3, count=5)
    assert far_apart(model, found.q) > samples._FAR
    assert 1e-6 < found.misalignment < 1e-4
    exact = samples.sampled_manifold(model, 0.0, count=5)
    assert_close(exact.q, np.zeros((5, 2)), scale=1.0)
    assert exact.misalignment == 0


def test_loops_next_to_one_another_are_spread_only_if_far():
    model = linkages.crank_slider()
    length = loop_length(model, model.loops[0])
    q = np.zeros((2, 3))
    for column, size in ((0, 1.0), (2, length)):
        for factor, expected in ((0.9, False), (1.1, True)):
            for sign in (-1, 1):
                q[1] = 0
                q[1, column] = sign * factor * size * samples._FAR
                assert samples._is_spread(model, q) == expected


# --- units ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-3, 1.0, 50.0])
def test_units_are_angles_and_lengths_of_the_loop(size):
    L1, L2 = 0.2 * size, 0.5 * size
    I = Inertia.from_mass_center(1.0, (0.0, 0, 0), np.eye(3))
    model = (
        ModelBuilder("crank and slider")
        .body("crank", joint=kt.Revolute("z"), inertia=I)
        .body("rod", on="crank", joint=kt.Revolute("z"), at=(L1, 0, 0), inertia=I)
        .body("slider", joint=Prismatic("x"), inertia=I)
        .body("tool", on="slider", joint=Prismatic("y"), at=(0, 0, 2 * size), inertia=I)
        .loop("pin", predecessor="rod", successor="slider", joint=kt.Revolute("z"), at=(L2, 0, 0))
        .build()
    )
    units = scaling(model)
    assert_close(typical_length(model), 2 * size)
    assert_close(loop_length(model, model.loops[0]), L2)
    assert_close(units.columns, [1.0, 1.0, L2, 2 * size])
    assert_close(units.rows, [1, 1, 1 / L2, 1 / L2, 1 / L2])
    assert_close(units.inverse_rows, [1, 1, L2, L2, L2])
    assert_close(units.length, 2 * size)
    assert_close(units.rounding, 4.0)
    K = np.arange(20.0).reshape(5, 4)
    assert_close(units.apply(K), K * np.outer(units.rows, units.columns))
    part = units.part([3, 0], [2])
    assert_close(part.rows, [1 / L2, 1])
    assert_close(part.columns, [L2])


def test_the_scale_of_a_function_is_how_far_joints_move_to_change_it():
    tie = kt.ConstraintFunction("tie", position=lambda q: [1e4 * (q[0] - 2 * q[1])])
    model = slide(tie, count=2)
    units = units_of(model)
    K = loop_constraints(model, np.zeros(2), model.zero_velocity).K
    assert_close(np.linalg.norm(units.apply(K)), 1.0)
    idle = slide(kt.ConstraintFunction("idle", position=lambda q: [0 * q[0]]), count=2)
    assert_close(units_of(idle).rows, [1 / typical_length(idle)])


def test_traced_functions_of_samples_that_some_or_no_result_depends_on():
    traced = samples.Rehearsal(lambda q: (q[:, None] * q, np.zeros((2, 0)), np.eye(2)), q=(2,))
    q = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    products, nothing, same = traced.values(q=q)
    np.testing.assert_array_equal(products, q[:, :, None] * q[:, None])
    assert nothing.shape == (3, 2, 0)
    np.testing.assert_array_equal(same, [np.eye(2)] * 3)
    (same,) = samples.Rehearsal(lambda q: (np.eye(2),), q=(2,)).values(q=q)
    np.testing.assert_array_equal(same, [np.eye(2)] * 3)
