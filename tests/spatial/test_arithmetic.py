"""The efficiency tricks compute what they stand for."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.products import compose, rotation_product

from kinetree.samples import random_placement
from kinetree.spatial.arithmetic import (
    AxialRotation,
    rotate_general,
    rotate_symmetric,
)
from kinetree.spatial.transform import Plucker, rx, ry, rz


@pytest.mark.covers("RBDA A.5", by=Plucker)
def test_rotation_product_is_the_matrix_product(rng):
    E = [random_placement(rng).E for _ in range(4)]
    product = rotation_product(*E)
    assert_close(product, E[0] @ E[1] @ E[2] @ E[3])
    assert_close(product @ product.T, np.eye(3))
    assert_close(rotation_product(E[0], E[1]), E[0] @ E[1])


@pytest.mark.covers("RBDA Table A.4", by=Plucker)
def test_compose_is_the_operator(rng):
    X1, X2 = random_placement(rng), random_placement(rng)
    assert_close(compose(X1, X2).to_matrix(), (X1 @ X2).to_matrix())
    assert_close(compose(X1, X2).to_matrix(), X1.to_matrix() @ X2.to_matrix())


@pytest.mark.covers("RBDA A.5", by=(rotate_general, rotate_symmetric))
def test_matrix_rotations_are_congruences(rng):
    E, A = random_placement(rng).E, rng.standard_normal((3, 3))
    assert_close(rotate_general(E, A), E @ A @ E.T)
    assert_close(rotate_general(E, A, by_trace=True), E @ A @ E.T)
    S = A + A.T
    assert_close(rotate_symmetric(E, S), E @ S @ E.T)


@pytest.mark.covers("RBDA A.5", by=AxialRotation)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_axial_rotation_is_the_general_one(axis, rng):
    angle, A = rng.uniform(-3, 3), rng.standard_normal((3, 3))
    turn, E = AxialRotation.from_angle(axis, angle), (rx, ry, rz)[axis](angle)
    assert_close(turn.to_matrix(), E)
    assert_close(turn.inverse().to_matrix(), E.T)
    for R, turned in ((E, turn), (E.T, turn.inverse())):
        assert_close(turned.vectors(A[0]), R @ A[0])
        assert_close(turned.vectors(A[:, :2]), R @ A[:, :2])
        assert_close(turned.general(A), R @ A @ R.T)
        assert_close(turned.symmetric(A + A.T), R @ (A + A.T) @ R.T)
        (i, j, k), half = turned.indices, A + A.T
        half[i, j] = half[i, k] = half[j, k] = np.nan  # one of each pair is read
        assert np.array_equal(turned.symmetric(half), turned.symmetric(A + A.T))
