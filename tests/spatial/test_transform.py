import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.closeness import assert_close
from support.spatial_quantities import (
    random_articulated,
    random_force,
    random_motion,
    random_rotation,
)

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import (
    InverseInertia,
    Motion,
    Plucker,
    dense,
    rot,
    rotx,
    roty,
    rotz,
    rx,
    ry,
    rz,
    swap_matrix_order,
    xlt,
)


@pytest.mark.covers("RBDA Table 2.2", "6-D Guide 2: Arithmetic", by=(rx, ry, rz))
class TestAxisRotations:
    """Coordinate rotations: transposes of the active ones."""

    @pytest.mark.parametrize(("r", "axis"), [(rx, 0), (ry, 1), (rz, 2)])
    def test_transpose_of_the_active_rotation(self, r, axis):
        active = Rotation.from_rotvec(0.7 * np.eye(3)[axis]).as_matrix()
        assert_close(r(0.7), active.T)

    def test_vector_seen_from_a_turned_frame(self):
        assert_close(rz(np.pi / 2) @ [1, 0, 0], np.array([0.0, -1, 0]))
        assert_close(rx(np.pi / 2) @ [0, 1, 0], np.array([0.0, 0, -1]))
        assert_close(ry(np.pi / 2) @ [0, 0, 1], np.array([-1.0, 0, 0]))

    @pytest.mark.parametrize("r", [rx, ry, rz])
    def test_proper_rotation(self, r):
        E = r(2.1)
        assert_close(E @ E.T, np.eye(3))
        assert_close(np.linalg.det(E), 1.0)

    def test_spatial_versions(self):
        for spatial, r in ((rotx, rx), (roty, ry), (rotz, rz)):
            assert np.array_equal(spatial(0.3).to_matrix(), dense.rot(r(0.3)))


@pytest.mark.covers("RBDA 2.8", "6-D Guide 1: Plücker Transforms", by=Plucker)
class TestPlucker:
    """The four matrices of (2.24)-(2.27) from one pair (E, r)."""

    def test_rotation_after_translation(self, rng):
        E, r = random_rotation(rng), rng.standard_normal(3)
        X = Plucker(E, r)
        assert_close(X.to_matrix(), dense.rot(E) @ dense.xlt(r))
        assert_close((rot(E) @ xlt(r)).to_matrix(), X.to_matrix())
        assert_close(X.to_force_matrix(), dense.rot(E) @ dense.force_transform(dense.xlt(r)))

    def test_four_matrices_are_consistent(self, rng):
        X = random_placement(rng)
        one = np.eye(6)
        assert_close(X.to_matrix() @ X.inverse().to_matrix(), one)
        assert_close(X.to_force_matrix() @ X.to_matrix().T, one)
        assert_close(X.inverse().to_force_matrix(), X.to_matrix().T)

    def test_translations_add(self, rng):
        a, b = rng.standard_normal((2, 3))
        assert_close((xlt(a) @ xlt(b)).to_matrix(), xlt(a + b).to_matrix())
        assert_close(xlt(*a).r, a)

    def test_composition_is_associative_and_equals_the_matrix_product(self, rng):
        X, Y, Z = (random_placement(rng) for _ in range(3))
        assert_close((X @ Y).to_matrix(), X.to_matrix() @ Y.to_matrix())
        assert_close(((X @ Y) @ Z).to_matrix(), (X @ (Y @ Z)).to_matrix())
        assert_close((X @ X.inverse()).to_matrix(), Plucker.identity().to_matrix(), scale=1)

    def test_round_trip_through_the_matrix(self, rng):
        X = random_placement(rng)
        Y = Plucker.from_matrix(X.to_matrix())
        assert np.array_equal(X.E, Y.E)
        assert_close(X.r, Y.r)
        inverted = Plucker.from_matrix(np.linalg.inv(X.to_matrix()))  # zeros up to rounding
        assert_close(inverted.to_matrix(), X.inverse().to_matrix())

    def test_turning_motion_seen_from_a_displaced_frame(self):
        X = rotz(np.pi / 2) @ xlt(1, 2, 3)
        seen = X @ Motion([0, 0, 1], [0, 0, 0])
        assert_close(seen.to_array(), np.array([0.0, 0, 1, 1, 2, 0]), scale=3)

    def test_power_is_invariant(self, rng):
        X, m, f = random_placement(rng), random_motion(rng), random_force(rng)
        assert_close((X @ m).dot(X.star @ f), m.dot(f), scale=30)


@pytest.mark.covers("RBDA 2.8", by=(Plucker.to_homogeneous, Plucker.to_pose))
def test_homogeneous_transforms_of_points(rng):
    X, p = random_placement(rng), rng.standard_normal(3)
    assert_close(X.to_homogeneous() @ [*p, 1], np.array([*X.point(p), 1]))
    assert_close(X.to_pose() @ X.to_homogeneous(), np.eye(4))
    assert_close(X.to_pose() @ [*X.point(p), 1], np.array([*p, 1]))
    assert_close(Plucker.from_pose(X.to_pose()).to_matrix(), X.to_matrix())


@pytest.mark.covers("RBDA A.3", "RBDA Table A.4", by=(Plucker.apply, Plucker.inv_apply))
class TestApply:
    """apply and inv_apply against the 6x6 definitions, and against each other."""

    def test_vectors(self, rng):
        X = random_placement(rng)
        X_, Xf = X.to_matrix(), X.to_force_matrix()
        for columns in (None, 3):
            m, f = random_motion(rng, columns), random_force(rng, columns)
            assert_close(X.apply(m).to_array(), X_ @ m.to_array())
            assert_close(X.apply(f).to_array(), Xf @ f.to_array())
            assert_close(X.inv_apply(m).to_array(), np.linalg.solve(X_, m.to_array()))
            assert_close(X.inv_apply(f).to_array(), X_.T @ f.to_array())

    @pytest.mark.parametrize("make", [random_inertia, random_articulated])
    def test_inertias(self, make, rng):
        X, I = random_placement(rng), make(rng)
        X_, Xf = X.to_matrix(), X.to_force_matrix()
        I_ = I.to_matrix()
        assert_close(X.apply(I).to_matrix(), Xf @ I_ @ np.linalg.inv(X_))
        assert_close(X.inv_apply(I).to_matrix(), X_.T @ I_ @ X_)
        assert_close((X.T @ I @ X).to_matrix(), X_.T @ I_ @ X_)

    def test_inv_apply_undoes_apply(self, rng):
        X, I = random_placement(rng), random_inertia(rng)
        vectors = (random_motion(rng), random_force(rng))
        for x in vectors:
            assert_close(X.inv_apply(X.apply(x)).to_array(), x.to_array())
        for x in (I, random_articulated(rng), InverseInertia.from_inertia(I)):
            assert_close(X.inv_apply(X.apply(x)).to_matrix(), x.to_matrix())


def test_matrices_of_another_kind_are_rejected(rng):
    X = random_placement(rng)
    for wrong in (X.to_force_matrix(), swap_matrix_order(X.to_matrix())):
        with pytest.raises(SpatialTypeError, match="upper right block is not zero"):
            Plucker.from_matrix(wrong)
    one_sided = X.to_matrix()
    one_sided[0, 3] = -0.1
    with pytest.raises(SpatialTypeError, match="upper right block is not zero"):
        Plucker.from_matrix(one_sided)
    with pytest.raises(ShapeError, match="transform is 6x6, got shape"):
        Plucker.from_matrix(np.eye(4))
    with pytest.raises(ShapeError, match="a pose is a 4x4 homogeneous matrix"):
        Plucker.from_pose(np.eye(6))
    with pytest.raises(ShapeError, match="the translation must have 3 components"):
        xlt([1, 2])


def test_repr_shows_rotation_and_shift():
    assert repr(xlt(1, 2, 3)) == "Plucker(E=[[1, 0, 0], [0, 1, 0], [0, 0, 1]], r=[1, 2, 3])"
