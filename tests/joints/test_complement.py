"""Forces that do no work, or unit work, on given motions."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.joints.axis import dual_basis, orthogonal_complement
from kinetree.joints.base import AbstractJoint


@pytest.mark.covers("RBDA 3.5", by=(orthogonal_complement, AbstractJoint.constraint_subspace))
@pytest.mark.parametrize("n", range(7))
def test_orthonormal_and_perpendicular(n, rng):
    S = rng.normal(size=(6, n))
    T = orthogonal_complement(S)
    assert T.shape == (6, 6 - n)
    assert_close(T.T @ T, np.eye(6 - n), ulps=100, scale=1.0)
    assert_close(T.T @ S, np.zeros((6 - n, n)), ulps=1e3, scale=1.0)


@pytest.mark.covers("RBDA 3.5", by=(dual_basis, AbstractJoint.active_subspace))
@pytest.mark.parametrize("n", range(1, 7))
def test_the_dual_basis_is_the_pseudoinverse(n, rng):
    S = rng.normal(size=(6, n))
    assert_close(dual_basis(S), np.linalg.pinv(S).T, ulps=1e4)


def test_for_a_single_motion_the_dual_basis_is_exact():
    S = np.array([[Fraction(3)], [Fraction(4)]])
    assert dual_basis(S).tolist() == [[Fraction(3, 25)], [Fraction(4, 25)]]
