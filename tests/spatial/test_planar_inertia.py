"""Planar inertias against their 3×3 matrices and against the spatial ones."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.samples import random_inertia
from kinetree.spatial import ArticulatedInertia, Motion, dyadic
from kinetree.spatial.planar import PlanarForce, PlanarMotion, Xpln
from kinetree.spatial.planar_inertia import PlanarArticulatedInertia, PlanarInertia, restrict

PLANE = np.ix_([2, 3, 4], [2, 3, 4])


def symmetric(rng):
    A = rng.standard_normal((3, 3))
    return A + A.T


@pytest.mark.covers("RBDA 2.16", "RBDA Table A.1", by=PlanarInertia.from_mass_center)
def test_inertia_from_mass_centre():
    m, (cx, cy), I_C = 2.0, (0.3, -0.5), 0.7
    I = PlanarInertia.from_mass_center(m, (cx, cy), I_C)
    expected = [
        [I_C + m * (cx**2 + cy**2), -m * cy, m * cx],
        [-m * cy, m, 0],
        [m * cx, 0, m],
    ]
    assert_close(I.to_matrix(), np.array(expected))
    assert_close(I.parameters(), [m, m * cx, m * cy, expected[0][0]])
    with pytest.raises(ShapeError, match="mass centre in the plane must have 2 components"):
        PlanarInertia.from_mass_center(1.0, (0, 0, 0), 1.0)


@pytest.mark.covers("RBDA 2.16", by=(PlanarInertia, PlanarArticulatedInertia, restrict))
def test_inertias_are_part_of_the_spatial_ones(rng):
    I = random_inertia(rng)
    assert_close(restrict(I).to_matrix(), I.to_matrix()[PLANE])
    A = rng.standard_normal((6, 6))
    IA = ArticulatedInertia.from_matrix(A + A.T)
    assert_close(restrict(IA).to_matrix(), IA.to_matrix()[PLANE])


@pytest.mark.covers("RBDA 2.16", "RBDA 7.1", by=(PlanarInertia, PlanarArticulatedInertia))
def test_inertias_act_and_transform_like_their_matrices(rng):
    X = Xpln(rng.uniform(-3, 3), rng.standard_normal(2))
    M, M_inv = X.to_matrix(), np.linalg.inv(X.to_matrix())
    v = PlanarMotion.from_array(rng.standard_normal(3))
    S = PlanarMotion.from_array(rng.standard_normal((3, 2)))
    for I in (restrict(random_inertia(rng)), PlanarArticulatedInertia.from_matrix(symmetric(rng))):
        D = I.to_matrix()
        assert_close((I @ v).to_array(), D @ v.to_array())
        assert_close((I @ S).to_array(), D @ S.to_array())
        assert_close(X.apply(I).to_matrix(), M_inv.T @ D @ M_inv, ulps=500)
        assert_close((X.T @ I @ X).to_matrix(), M.T @ D @ M, ulps=500)
        assert_close(X.inv_apply(X.apply(I)).to_matrix(), D, ulps=500)
        assert type(X.apply(I)) is type(I)


@pytest.mark.covers("RBDA 7.1", by=(PlanarInertia, PlanarArticulatedInertia))
def test_sums_and_multiples(rng):
    I, J = restrict(random_inertia(rng)), restrict(random_inertia(rng))
    A, B = (PlanarArticulatedInertia.from_matrix(symmetric(rng)) for _ in range(2))
    for a, b in ((I, J), (I, A), (A, I), (A, B)):
        assert_close((a + b).to_matrix(), a.to_matrix() + b.to_matrix())
        assert_close((a - b).to_matrix(), a.to_matrix() - b.to_matrix())
        assert type(a - b) is type(a + b)
    for a in (I, A):
        assert_close((-(2 * a)).to_matrix(), -2 * a.to_matrix())
    assert_close((I + PlanarInertia.zero()).to_matrix(), I.to_matrix())


@pytest.mark.covers("RBDA 7.1", by=(PlanarForce.dyadic, dyadic))
def test_dyadic_of_planar_forces(rng):
    F, A = rng.standard_normal((3, 2)), rng.standard_normal((2, 2))
    result = dyadic(PlanarForce.from_array(F), A + A.T)
    assert_close(result.to_matrix(), F @ (A + A.T) @ F.T)
    assert_close(dyadic(F, A + A.T), F @ (A + A.T) @ F.T)
    nothing = dyadic(PlanarForce.from_array(np.zeros((3, 0))), np.zeros((0, 0)))
    assert_close(nothing.to_matrix(), np.zeros((3, 3)))


def test_cleared_rows_are_zero(rng):
    A = PlanarArticulatedInertia.from_matrix(symmetric(rng))
    keep = np.array([0, 1, 1])
    assert_close(A.clear(keep).to_matrix(), A.to_matrix() * np.outer(keep, keep))


def test_kinds_do_not_mix(rng):
    I = restrict(random_inertia(rng))
    A = PlanarArticulatedInertia.from_rigid(I)
    for a in (I, A):
        with pytest.raises(SpatialTypeError, match="acts on a PlanarMotion, got Motion"):
            a @ Motion.zero()
        with pytest.raises(SpatialTypeError, match="cannot add Inertia to a planar inertia"):
            a + random_inertia(rng)
        with pytest.raises(SpatialTypeError, match="cannot add Inertia to a planar inertia"):
            a - random_inertia(rng)
    with pytest.raises(SpatialTypeError, match="PlanarTransform does not apply to Inertia"):
        Xpln(0.1, (0, 0)).apply(random_inertia(rng))
    with pytest.raises(ShapeError, match="planar inertia is a 3x3 matrix"):
        PlanarArticulatedInertia.from_matrix(np.eye(6))


def test_repr_shows_the_numbers():
    I = PlanarInertia(1, (2, 3), 4)
    assert repr(I) == "PlanarInertia(mass=1, first_moment=[2, 3], rotational=4)"
    A = PlanarArticulatedInertia.from_rigid(I)
    assert repr(A) == "PlanarArticulatedInertia([[4, -3, 2], [-3, 1, 0], [2, 0, 1]])"


def test_matrices_go_to_articulated_inertias_and_back(rng):
    A = symmetric(rng)
    assert np.array_equal(PlanarArticulatedInertia.from_matrix(A).to_matrix(), A)
