"""Pseudo-inertias and log-Cholesky parameters: all possible bodies and no others."""

import mpmath
import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st
from support.closeness import assert_close

from kinetree.errors import ModelError, ShapeError
from kinetree.model import shapes
from kinetree.model.validate import inertia_defect
from kinetree.samples import random_inertia
from kinetree.spatial import Inertia, rotx
from kinetree.spatial.pseudo_inertia import (
    from_log_cholesky,
    from_pseudo_inertia,
    log_cholesky,
    log_cholesky_jacobian,
    pseudo_inertia,
)

STEP = 1e-30


def test_pseudo_inertia_is_the_matrix_of_second_moments(rng):
    masses, points = rng.uniform(0.1, 1, 5), rng.standard_normal((5, 3))
    x = np.column_stack([points, np.ones(5)])
    I = Inertia.from_particles(masses, points)
    assert_close(pseudo_inertia(I), x.T @ (masses[:, None] * x))
    assert_close(from_pseudo_inertia(pseudo_inertia(I)).parameters(), I.parameters())


def test_possible_bodies_are_the_positive_ones(rng):
    """The same verdict as the triangle inequalities of the principal moments."""
    verdicts = set()
    for _ in range(200):
        moments = rng.uniform(0.1, 1, 3)
        E = rotx(rng.uniform(-3, 3)).E
        I = Inertia.from_mass_center(1.0, rng.standard_normal(3), E @ np.diag(moments) @ E.T)
        possible = np.linalg.eigvalsh(pseudo_inertia(I))[0] > 0
        assert possible == (inertia_defect(I) is None)
        verdicts.add(bool(possible))
    assert verdicts == {True, False}


@given(st.lists(st.floats(-2, 2), min_size=10, max_size=10))
def test_any_ten_numbers_make_a_possible_body(theta):
    I = from_log_cholesky(np.array(theta))
    P = pseudo_inertia(I)
    assert inertia_defect(I) is None
    assert np.linalg.eigvalsh(P)[0] > -1e-14 * np.linalg.norm(P)


def test_there_and_back(rng):
    for _ in range(20):
        theta = rng.uniform(-1, 1, 10)
        assert_close(log_cholesky(from_log_cholesky(theta)), theta, ulps=1e5)
        I = random_inertia(rng)
        assert_close(from_log_cholesky(log_cholesky(I)).parameters(), I.parameters(), ulps=1e4)


def test_meaning_of_the_parameters():
    I = shapes.box(0.3, 0.4, 0.5, mass=2.0, at=(0.1, 0.2, -0.3))
    a, *d, s12, s23, s13, t1, t2, t3 = log_cholesky(I)
    assert_close(np.exp(2 * a), 2.0)
    assert_close(np.exp(d), np.array([0.3, 0.4, 0.5]) / np.sqrt(12))  # radii of second moments
    assert_close(np.array([s12, s23, s13]), np.zeros(3), scale=1)
    assert_close(np.array([t1, t2, t3]), np.array([0.1, 0.2, -0.3]))


def test_jacobian_by_complex_step(rng):
    theta = rng.uniform(-1, 1, 10)
    J = log_cholesky_jacobian(theta)
    for k, e in enumerate(np.eye(10)):
        rate = from_log_cholesky(theta + 1j * STEP * e).parameters().imag / STEP
        assert_close(J[:, k], rate)
    inverse = [
        log_cholesky(Inertia.from_parameters(from_log_cholesky(theta).parameters() + 1j * STEP * e))
        for e in np.eye(10)
    ]
    back = np.array([x.imag / STEP for x in inverse]).T
    assert_close(back @ J, np.eye(10), condition=np.linalg.cond(J))


def test_fifty_digits_and_formulas(rng):
    with mpmath.workdps(50):
        theta = np.array([mpmath.mpf(x) for x in rng.uniform(-1, 1, 10)])
        error = log_cholesky(from_log_cholesky(theta)) - theta
        assert max(abs(x) for x in error) < 1e-46
    symbols = np.array(sympy.symbols("a d1:4 s12 s23 s13 t1:4"), dtype=object)
    I = from_log_cholesky(symbols)
    assert sympy.simplify(I.mass - sympy.exp(2 * symbols[0])) == 0


@pytest.mark.parametrize(
    ("inertia", "what"),
    [
        (Inertia.zero(), "its mass"),
        (Inertia.from_mass_center(1.0, (0.1, 0, 0), np.zeros((3, 3))), "its extent along z"),
        (shapes.rod(1.0, mass=1.0), "its extent in the y-z plane"),
    ],
)
def test_bodies_at_the_edge_have_none(inertia, what):
    with pytest.raises(ModelError, match=f"{what} gives"):
        log_cholesky(inertia)


def test_shapes_are_checked():
    with pytest.raises(ShapeError, match=r"4x4 matrix, got shape \(3, 3\)"):
        from_pseudo_inertia(np.eye(3))
    with pytest.raises(ShapeError, match=r"shape \(10,\), got \(9,\)"):
        from_log_cholesky(np.zeros(9))
