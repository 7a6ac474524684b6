import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.errors import ShapeError
from kinetree.samples import random_placement
from kinetree.spatial import dense, rx, ry, rz, skew


@pytest.mark.covers("RBDA Table A.2", "RBDA A.2", "6-D Guide 2: Arithmetic", by=dense.mcI)
def test_inertia_of_an_offset_body():
    """The book's formula on numbers that can be checked by hand."""
    I = dense.mcI(2, (1, 0, 0), np.diag([1, 2, 3]))
    assert np.array_equal(I[:3, :3], np.diag([1, 4, 5]))
    assert np.array_equal(I[:3, 3:], [[0, 0, 0], [0, 0, -2], [0, 2, 0]])
    assert np.array_equal(I[3:, :3], I[:3, 3:].T)
    assert np.array_equal(I[3:, 3:], 2 * np.eye(3))


@pytest.mark.covers("RBDA Table A.2", "RBDA 2.8", "6-D Guide 2: Arithmetic", by=dense.xlt)
def test_translation_transform_by_hand():
    X = dense.xlt([1, 2, 3])
    assert np.array_equal(X[3:, :3], [[0, 3, -2], [-3, 0, 1], [2, -1, 0]])
    assert np.array_equal(dense.force_transform(X)[:3, 3:], -skew([1, 2, 3]))


@pytest.mark.covers("RBDA 2.8", by=dense.rot)
@pytest.mark.parametrize("r", [rx, ry, rz])
def test_rotations_transform_motions_and_forces_alike(r):
    X = dense.rot(r(0.7))
    assert np.array_equal(dense.force_transform(X), X)
    assert_close(X @ X.T, np.eye(6))


@pytest.mark.covers("RBDA 2.6", "6-D Guide 1: Plücker Transforms", by=dense.force_transform)
def test_force_transform_is_the_inverse_transpose(rng):
    X = random_placement(rng).to_matrix()
    assert_close(dense.force_transform(X), np.linalg.inv(X).T)
    m, f = rng.standard_normal(6), rng.standard_normal(6)
    assert_close((X @ m) @ (dense.force_transform(X) @ f), m @ f, scale=30)


def test_planar_cross_operators_are_rows_and_columns_3_to_5(rng):
    w, x, y = v = rng.standard_normal(3)
    spatial = dense.crm(np.array([0, 0, w, x, y, 0]))
    assert np.array_equal(dense.crm(v), spatial[2:5, 2:5])
    assert np.array_equal(dense.crf(v), -spatial[2:5, 2:5].T)


def test_cross_operator_of_something_else_is_rejected():
    with pytest.raises(ShapeError, match=r"spatial \(6,\) or planar \(3,\) vector, got shape \(4,"):
        dense.crm(np.zeros(4))
