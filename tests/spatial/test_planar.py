"""Planar vectors and transforms: every operator is rows and columns 3, 4, 5 of the spatial one."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.spatial import Motion, crf, crm, dense, rotz, xlt
from kinetree.spatial.planar import PlanarForce, PlanarMotion, PlanarTransform, Xpln
from kinetree.spatial.planar_inertia import PlanarArticulatedInertia, PlanarInertia, lift, restrict

PLANE = np.ix_([2, 3, 4], [2, 3, 4])


@pytest.fixture
def v(rng):
    return PlanarMotion.from_array(rng.standard_normal(3))


@pytest.fixture
def f(rng):
    return PlanarForce.from_array(rng.standard_normal(3))


@pytest.fixture
def X(rng):
    return Xpln(rng.uniform(-3, 3), rng.standard_normal(2))


@pytest.mark.covers("RBDA 2.16", "RBDA Table A.1", "RBDA A.1", by=(crm, crf, dense.crm, dense.crf))
def test_cross_products_are_part_of_the_spatial_ones(v, f, rng):
    m = PlanarMotion.from_array(rng.standard_normal(3))
    V = lift(v).to_array()
    assert_close(crm(v, m).to_array(), dense.crm(V)[PLANE] @ m.to_array())
    assert_close(crf(v, f).to_array(), dense.crf(V)[PLANE] @ f.to_array())
    assert_close(dense.crm(v.to_array()), dense.crm(V)[PLANE])
    assert_close(dense.crf(v.to_array()), -dense.crm(v.to_array()).T)
    assert crm(v, m).angular[0] == 0
    S = PlanarMotion.from_array(rng.standard_normal((3, 2)))
    assert_close(crm(v, S).to_array(), dense.crm(v.to_array()) @ S.to_array())
    F = PlanarForce.from_array(rng.standard_normal((3, 2)))
    assert_close(crf(v, F).to_array(), dense.crf(v.to_array()) @ F.to_array())


@pytest.mark.covers("RBDA 2.16", "RBDA Table A.1", by=(Xpln, PlanarTransform))
def test_transform_is_part_of_the_spatial_one(rng):
    theta, (x, y) = rng.uniform(-3, 3), rng.standard_normal(2)
    X, spatial = Xpln(theta, (x, y)), rotz(theta) @ xlt(x, y, 0)
    c, s = np.cos(theta), np.sin(theta)
    expected = [[1, 0, 0], [s * x - c * y, c, s], [c * x + s * y, -s, c]]
    assert_close(X.to_matrix(), np.array(expected))
    assert_close(X.to_matrix(), spatial.to_matrix()[PLANE])
    assert_close(X.to_force_matrix(), np.linalg.inv(X.to_matrix()).T)
    assert_close(lift(X).to_matrix(), spatial.to_matrix())
    assert_close(restrict(spatial).to_matrix(), X.to_matrix())
    assert_close(PlanarTransform.from_matrix(X.to_matrix()).r, X.r)
    assert_close(PlanarTransform.identity().to_matrix(), np.eye(3))


@pytest.mark.covers("RBDA 2.16", by=PlanarTransform)
def test_transform_acts_like_its_matrix(X, v, f, rng):
    M = X.to_matrix()
    assert_close((X @ v).to_array(), M @ v.to_array())
    assert_close(X.inv_apply(v).to_array(), np.linalg.solve(M, v.to_array()))
    assert_close((X.star @ f).to_array(), np.linalg.inv(M).T @ f.to_array())
    assert_close((X.T @ f).to_array(), M.T @ f.to_array())
    assert_close(X.inverse().to_matrix(), np.linalg.inv(M))
    Y = Xpln(0.4, (0.1, -0.7))
    assert_close((Y @ X).to_matrix(), Y.to_matrix() @ M)
    S = PlanarMotion.from_array(rng.standard_normal((3, 2)))
    assert_close((X @ S).to_array(), M @ S.to_array())
    assert_close(X.inv_apply(X @ S).to_array(), S.to_array())
    F = PlanarForce.from_array(rng.standard_normal((3, 2)))
    assert_close((X.T @ F).to_array(), M.T @ F.to_array())
    assert_close((X.star @ F).to_array(), np.linalg.inv(M).T @ F.to_array())


def test_power_and_points_do_not_depend_on_the_frame(X, v, f, rng):
    assert_close((X @ v).dot(X.star @ f), v.dot(f))
    assert_close(f.dot(v), v.dot(f))
    p = rng.standard_normal(2)
    here, there = v.linear + v.angular * np.array([-p[1], p[0]]), X.point(p)
    u = X @ v
    assert_close(u.linear + u.angular * np.array([-there[1], there[0]]), X.E @ here)


def test_vector_space_and_columns(v, rng):
    m = PlanarMotion.from_array(rng.standard_normal(3))
    expected = 2 * v.to_array() - m.to_array() / 4
    assert_close((2 * v - m / 4).to_array(), expected)
    assert_close((-v + PlanarMotion.zero()).to_array(), -v.to_array())
    S = PlanarMotion.from_array(rng.standard_normal((3, 2)))
    assert_close((S @ np.array([1.0, 2.0])).to_array(), S.to_array() @ [1.0, 2.0])
    assert_close(S[:1].to_array(), S.to_array()[:, :1])
    F = PlanarForce.from_array(rng.standard_normal((3, 3)))
    assert_close(S.T @ F, S.to_array().T @ F.to_array())
    assert_close(F.T @ S, F.to_array().T @ S.to_array())
    assert S.T.T is S
    assert_close(PlanarMotion(1.5, (2.0, 3.0)).to_array(), [1.5, 2.0, 3.0])


def test_kinds_do_not_mix(X, v, f):
    with pytest.raises(SpatialTypeError, match="cannot add a PlanarForce and a PlanarMotion"):
        v + f
    with pytest.raises(SpatialTypeError, match="PlanarMotion needs a PlanarForce, got PlanarMot"):
        v.dot(v)
    with pytest.raises(SpatialTypeError, match="PlanarForce needs a PlanarMotion, got Motion"):
        f.dot(Motion.zero())
    with pytest.raises(SpatialTypeError, match="crm got a PlanarForce; use crf"):
        crm(v, f)
    with pytest.raises(SpatialTypeError, match="crf got a PlanarMotion; use crm"):
        crf(v, v)
    with pytest.raises(SpatialTypeError, match="planar motion or force, got Motion"):
        v.cross(Motion.zero())
    with pytest.raises(SpatialTypeError, match="only a motion can stand on the left"):
        f.cross(v)
    with pytest.raises(SpatialTypeError, match=r"X\.star @ f"):
        X @ f
    with pytest.raises(SpatialTypeError, match=r"X\.T takes a PlanarForce back, got PlanarMotion"):
        X.T @ v
    for operation in (X.apply, X.inv_apply, X.compose):
        with pytest.raises(SpatialTypeError, match="PlanarTransform does not apply to Motion"):
            operation(Motion.zero())


def test_exact_numbers_stay_exact():
    third = Fraction(1, 3)
    X = PlanarTransform(Fraction(3, 5), Fraction(4, 5), np.array([third, 2 * third]))
    I = PlanarInertia.from_mass_center(third, np.array([third, third]), third)
    m = PlanarMotion.from_array(np.array([third, 1, 2]))
    assert X.inv_apply(X @ m).to_array().tolist() == m.to_array().tolist()
    assert X.inv_apply(X.apply(I)).parameters().tolist() == I.parameters().tolist()
    A = PlanarArticulatedInertia.from_rigid(I)
    assert X.apply(A).to_matrix().tolist() == X.apply(I).to_matrix().tolist()
    assert (X.apply(I) @ (X @ m)).dot(X @ m) == (I @ m).dot(m)


def test_shapes_are_checked():
    with pytest.raises(ShapeError, match=r"PlanarMotion needs three coordinates, .* got \(6,\)"):
        PlanarMotion.from_array(np.zeros(6))
    with pytest.raises(ShapeError, match="planar motion transform is 3x3, got shape"):
        PlanarTransform.from_matrix(np.eye(6))
    with pytest.raises(ShapeError, match="position in the plane must have 2 components"):
        Xpln(0.1, (1, 2, 3))


def test_repr_shows_the_numbers():
    assert repr(PlanarMotion(1, (2, 3))) == "PlanarMotion([1], [2, 3])"
    assert repr(PlanarTransform(1, 0, (2, 3))) == "PlanarTransform(c=1, s=0, r=[2, 3])"
