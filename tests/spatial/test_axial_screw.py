"""Axial screws against the dense definitions, and general transforms taken apart into screws."""

from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import (
    ArticulatedInertia,
    Force,
    Inertia,
    Motion,
    Plucker,
    rotx,
    roty,
    rotz,
    xlt,
)
from kinetree.spatial.arithmetic import AxialRotation
from kinetree.spatial.axial_screw import AxialScrew, ScrewProduct, dh_step, scrx, scry, scrz
from kinetree.spatial.rotation import euler_angles
from kinetree.spatial.transform import rz

AXES = [(scrx, rotx, 0), (scry, roty, 1), (scrz, rotz, 2)]


def dense_pair(X):
    M = X.to_matrix()
    return M, np.linalg.inv(M)


@pytest.mark.covers("RBDA A.4", by=(scrx, scry, scrz))
@pytest.mark.parametrize(("screw", "turn", "axis"), AXES)
def test_turn_and_shift_commute(screw, turn, axis, rng):
    angle, d = rng.uniform(-3, 3, 2)
    X, shift = screw(angle, d), xlt(d * np.eye(3)[axis])
    assert_close(X.to_matrix(), (turn(angle) @ shift).to_matrix())
    assert_close(X.to_matrix(), (shift @ turn(angle)).to_matrix())
    assert_close((X.inverse().to_plucker() @ X.to_plucker()).to_matrix(), np.eye(6), scale=1)
    assert "xyz"[axis] in repr(X)


@pytest.mark.covers("RBDA A.4", by=scrz)
def test_written_out_product():
    c, s, d = np.cos(0.3), np.sin(0.3), 0.5
    mx, my, mz, mOx, mOy, mOz = m = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    expected = [
        c * mx + s * my,
        c * my - s * mx,
        mz,
        c * (mOx + my * d) + s * (mOy - mx * d),
        c * (mOy - mx * d) - s * (mOx + my * d),
        mOz,
    ]
    assert_close((scrz(0.3, d) @ Motion.from_array(m)).to_array(), expected)


@pytest.mark.covers("RBDA A.4", "RBDA Table A.5", by=(AxialScrew, ScrewProduct))
@pytest.mark.parametrize(
    "make",
    [scrx, scry, scrz, lambda a, d: dh_step(0.4, a, d, 0.8)],
    ids=["scrx", "scry", "scrz", "dh_step"],
)
def test_transforms_every_kind_like_the_dense_matrix(make, rng):
    X = make(*rng.uniform(-2, 2, 2))
    M, M_inv = dense_pair(X)
    A = rng.standard_normal((6, 6))
    v, f = Motion.from_array(A[0]), Force.from_array(A[1])
    assert_close((X @ v).to_array(), M @ A[0])
    assert_close(X.apply(v).to_array(), M @ A[0])
    assert_close(X.inv_apply(v).to_array(), M_inv @ A[0])
    assert_close((X.star @ f).to_array(), M_inv.T @ A[1])
    assert_close((X.T @ f).to_array(), M.T @ A[1])
    columns = Motion.from_array(A[:, :3])
    assert_close((X @ columns).to_array(), M @ A[:, :3])
    for I in (random_inertia(rng), ArticulatedInertia.from_matrix(A + A.T)):
        D = I.to_matrix()
        assert_close(X.apply(I).to_matrix(), M_inv.T @ D @ M_inv, ulps=500)
        assert_close((X.T @ I @ X).to_matrix(), M.T @ D @ M, ulps=500)
        assert type(X.apply(I)) is type(I)


@pytest.mark.covers("RBDA A.4", "RBDA 4.3", by=(dh_step, ScrewProduct))
def test_denavit_hartenberg_step_is_two_screws(rng):
    a, alpha, d, theta = rng.uniform(-2, 2, 4)
    X = dh_step(a, alpha, d, theta)
    expected = rotz(theta) @ xlt(0, 0, d) @ rotx(alpha) @ xlt(a, 0, 0)
    assert len(X.factors) == 2
    assert_close(X.to_matrix(), expected.to_matrix())
    assert_close(X.inverse().to_matrix(), expected.inverse().to_matrix())
    assert repr(X).startswith("AxialScrew(z")


@pytest.mark.covers("RBDA A.4", by=ScrewProduct)
def test_general_transform_is_three_screws(rng):
    for _ in range(10):
        X = random_placement(rng)
        yaw, pitch, roll = euler_angles("zyx", X.E)
        x1, y1, _ = rz(yaw)  # the axes after the first screw, in coordinates of A
        along_x = X.r @ x1 / np.cos(pitch)
        along_z = X.r[2] - along_x * X.E[0, 2]
        screws = scrx(roll, along_x) @ scry(pitch, X.r @ y1) @ scrz(yaw, along_z)
        assert [s.rotation.axis for s in screws.factors] == [0, 1, 2]
        assert_close(screws.to_matrix(), X.to_matrix(), condition=1 / np.cos(pitch))


def test_exact_numbers_stay_exact():
    turn = AxialRotation.from_cosine_sine(1, Fraction(3, 5), Fraction(4, 5))
    X, m = AxialScrew(turn, Fraction(1, 3)), Motion.from_array(np.arange(6))
    assert (X @ m).to_array().tolist() == (X.to_matrix() @ np.arange(6)).tolist()
    assert X.inv_apply(X @ m).to_array().tolist() == list(range(6))
    I = Inertia.from_mass_center(2, np.array([1, 2, 3]), np.eye(3, dtype=int))
    expected = X.to_plucker().apply(I).to_matrix().tolist()
    assert X.apply(I).to_matrix().tolist() == expected
    assert X.apply(ArticulatedInertia.from_rigid(I)).to_matrix().tolist() == expected


def test_products_associate_and_take_general_factors(rng):
    X, Y, Z = scrz(0.3, 0.1), random_placement(rng), scrx(0.2, 0.5)
    expected = X.to_matrix() @ Y.to_matrix() @ Z.to_matrix()
    for product in (X @ Y @ Z, X @ (ScrewProduct(Y) @ Z)):
        assert_close(product.to_matrix(), expected)
        v = Motion.from_array(rng.standard_normal(6))
        assert_close((product @ v).to_array(), expected @ v.to_array())
        assert_close(product.inv_apply(product @ v).to_array(), v.to_array())
    assert isinstance(X.to_plucker(), Plucker)
