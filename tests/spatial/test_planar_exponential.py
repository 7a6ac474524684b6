"""Displacements in the plane against the matrix exponential and the book's approximations."""

import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close

from kinetree.spatial import dense
from kinetree.spatial.planar import (
    PlanarMotion,
    PlanarTransform,
    Xpln,
    displacement_velocity,
    exp,
    log,
    simple_displacement_velocity,
)


def matrix_exponential(u):
    """``X`` after moving at ``u`` for one second: ``Ẋ = -u× X`` for a constant ``u``."""
    return expm(-dense.crm(u.to_array()))


@pytest.mark.covers("RBDA A.1", by=(exp, log))
@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-4, 0.5, -1.5, 2.5, -3.1])
def test_exponential_and_logarithm(angle, rng):
    u = PlanarMotion(angle, rng.standard_normal(2))
    X = exp(u)
    assert_close(X.to_matrix(), matrix_exponential(u))
    assert_close((X @ u).to_array(), u.to_array())
    # The shift is recovered by a factor θ/2 cot(θ/2), whose condition grows towards 180°.
    assert_close(log(X).to_array(), u.to_array(), condition=1 / abs(np.cos(angle / 2)))


def test_logarithm_at_180_degrees():
    X = PlanarTransform(-1.0, 0.0, (2.0, 0.0))
    u = log(X)
    assert_close(u.to_array(), [np.pi, 0.0, -np.pi])
    assert_close(exp(u).to_matrix(), X.to_matrix(), scale=2)


@pytest.mark.covers("RBDA Table A.1", "RBDA A.1", by=displacement_velocity)
def test_version_2_is_invariant_and_parallel_to_the_exact_velocity(rng):
    for angle in (0.3, -1.2, 1.5, 2.5):
        X = Xpln(angle, rng.standard_normal(2))
        v = displacement_velocity(X)
        assert_close((X @ v).to_array(), v.to_array())
        assert_close(X.inv_apply(v).to_array(), v.to_array())
        scale = angle / np.sin(angle)
        assert_close((scale * v).to_array(), log(X).to_array())
        if abs(angle) < np.pi / 2:  # beyond, the arcsine is on the wrong branch
            X23 = X.to_matrix()[1, 2]
            u = v * (np.arcsin(X23) / X23)
            assert_close(matrix_exponential(u), X.to_matrix())


@pytest.mark.covers("RBDA Table A.1", by=simple_displacement_velocity)
def test_both_versions_as_printed(rng):
    X = Xpln(0.7, rng.standard_normal(2))
    M = X.to_matrix()
    X21, X22, X23, X31 = M[1, 0], M[1, 1], M[1, 2], M[2, 0]
    assert_close(simple_displacement_velocity(X).to_array(), [X23, X31, -X21])
    printed = [X23, (X31 + X22 * X31 + X23 * X21) / 2, (-X21 - X22 * X21 + X23 * X31) / 2]
    assert_close(displacement_velocity(X).to_array(), printed)
    not_invariant = simple_displacement_velocity(X)
    assert np.max(np.abs((X @ not_invariant - not_invariant).to_array())) > 1e-3


@pytest.mark.covers("RBDA A.1", by=displacement_velocity)
def test_approximations_are_exact_for_translations_and_converge(rng):
    r = rng.standard_normal(2)
    for version, order in ((simple_displacement_velocity, 1), (displacement_velocity, 2)):
        assert_close(version(Xpln(0.0, r)).to_array(), [0.0, *r])
        near, nearer = (version(X) - log(X) for X in (Xpln(1e-2, r), Xpln(1e-3, r)))
        error = np.max(np.abs(near.to_array())) / np.max(np.abs(nearer.to_array()))
        assert abs(np.log10(error) - order) < 0.05
