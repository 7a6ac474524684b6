"""Ranks of constraints: units do not decide, and dependent rows have names."""

import numpy as np
import pytest
from support.closeness import assert_close

import kinetree as kt
from kinetree.algorithms.closed.rank import scaling
from kinetree.algorithms.closed.scaling import rows_of, typical_length
from kinetree.loops.kinematics.constraint import closing, dependencies, independent_rows, rank


def scaled_four_bar(unit):
    """The four-bar of RBDA §8.10 with lengths in units of ``unit`` metres, closed at ``CLOSED``."""
    z, bar = kt.Revolute("z"), kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    return (
        kt.ModelBuilder("four-bar")
        .body("crank", joint=z, inertia=bar)
        .body("coupler", on="crank", joint=z, at=(1.0 * unit, 0, 0), inertia=bar)
        .body("rocker", joint=z, at=(2.0 * unit, 0, 0), inertia=bar)
        .loop("pin", predecessor="coupler", successor="rocker", joint=z,
              at=(1.5 * unit, 0, 0), successor_at=(1.3 * unit, 0, 0))
        .build()
    )  # fmt: skip


CLOSED = np.array([1.0, -0.6896063239, 1.5949352798])


@pytest.mark.covers("RBDA 8.8", "RBDA 8.10", by=rank)
@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e3, 1e6])
def test_the_rank_of_a_four_bar_does_not_depend_on_its_size(unit):
    model = scaled_four_bar(unit)
    error, K = closing(model, CLOSED)
    assert np.max(np.abs(error)) < 1e-9 * unit
    assert typical_length(model) == pytest.approx(2 * unit)
    assert rank(K, scaling(model)) == 2
    assert_close(scaling(model).apply(K), scaling(scaled_four_bar(1.0)).apply(
        closing(scaled_four_bar(1.0), CLOSED)[1]), ulps=1e4)  # fmt: skip


def test_where_the_base_stands_does_not_change_the_length():
    near, far = scaled_four_bar(1.0), scaled_four_bar(1.0)
    far = far.replace(
        placement={
            name: kt.xlt(1e5, 0, 0) @ kt.xlt(*(far.bodies[i].placement.r))
            for i, name in ((0, "crank_joint"), (2, "rocker_joint"))
        }
    )
    assert typical_length(far) == pytest.approx(typical_length(near))


def test_rows_say_what_they_forbid():
    names = [str(row) for row in rows_of(scaled_four_bar(1.0))]
    assert names == [
        "loop 'pin': rotation about x", "loop 'pin': rotation about y",
        "loop 'pin': translation along x", "loop 'pin': translation along y",
        "loop 'pin': translation along z",
    ]  # fmt: skip
    units = [row.unit for row in rows_of(kt.samples.bennett())]
    assert units == ["rad", "rad", "m", "m", "m"]


def test_oblique_and_mixed_directions_have_names():
    bar = kt.Inertia.from_mass_center(1.0, (0, 0, 0), np.eye(3))
    model = (
        kt.ModelBuilder("odd")
        .body("a", joint=kt.Revolute("z"), inertia=bar)
        .body("b", on="a", joint=kt.Prismatic("x"), inertia=bar)
        .loop("screw", predecessor="base", successor="b", joint=kt.Helical("z", pitch=0.1))
        .loop(
            "tilted", predecessor="base", successor="b", joint=kt.joints.SphereInCylinder((3, 4, 0))
        )
        .build()
    )
    names = [str(row) for row in rows_of(model)]
    assert any("rotation about z with translation along z" in name for name in names)
    assert any("(0.8, -0.6, 0)" in name or "(-0.8, 0.6, 0)" in name for name in names)


def test_independent_rows_span_what_all_rows_span(rng):
    for _ in range(20):
        basis, mix = rng.standard_normal((3, 7)), rng.standard_normal((6, 3))
        K = mix @ basis
        rows = independent_rows(K)
        assert len(rows) == rank(K) == rank(K[rows]) == 3
        c = dependencies(K)
        assert c.shape == (3, 6)
        assert_close(c @ K, np.zeros((3, 7)), scale=np.max(np.abs(K)), ulps=100)


def test_rows_that_are_needed_take_part_in_no_dependency():
    K = np.array([[1.0, 0, 0], [0, 1, 0], [0, 2, 0], [0, 0, 0]])
    assert independent_rows(K).tolist() == [0, 2]
    touched = np.max(np.abs(dependencies(K)), axis=0)
    assert np.all(touched[1:] > 0.1)
    assert touched[0] < 1e-15


def test_of_equal_rows_the_first_is_kept_and_noise_has_no_rank():
    assert independent_rows(np.array([[0.0, 1], [0, 1], [1, 0]])).tolist() == [0, 2]
    model = scaled_four_bar(1.0)
    assert rank(1e-13 * np.ones((5, 3)), scaling(model)) == 0
    assert rank(1e-13 * np.ones((5, 3))) == 1
    assert independent_rows(np.zeros((0, 3))).tolist() == []


def test_ranks_of_a_batch():
    K = np.stack([np.diag([1.0, 1, 0]), np.eye(3), np.zeros((3, 3))])
    assert rank(K).tolist() == [2, 3, 0]
