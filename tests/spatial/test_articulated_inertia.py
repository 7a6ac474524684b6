import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_articulated, random_force, random_motion

from kinetree.errors import ShapeError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import ArticulatedInertia, dyadic


@pytest.mark.covers("RBDA Table A.3", "RBDA 7.1", by=ArticulatedInertia)
class TestArticulatedInertia:
    """Against the 6x6 matrix it stands for."""

    def test_blocks_are_rotation_coupling_translation(self, rng):
        A = random_articulated(rng)
        M = A.to_matrix()
        assert np.array_equal(A.I, M[:3, :3])
        assert np.array_equal(A.H, M[:3, 3:])
        assert np.array_equal(A.M, M[3:, 3:])

    def test_of_a_single_body_it_is_the_rigid_inertia(self, rng):
        I = random_inertia(rng)
        assert np.array_equal(ArticulatedInertia.from_rigid(I).to_matrix(), I.to_matrix())

    def test_algebra(self, rng):
        A, B, v = random_articulated(rng), random_articulated(rng), random_motion(rng, 2)
        A_, B_ = A.to_matrix(), B.to_matrix()
        assert_close((A + B).to_matrix(), A_ + B_)
        assert_close((A - 2 * B).to_matrix(), A_ - 2 * B_, scale=50)
        assert_close((-A).to_matrix(), -A_)
        assert_close((A @ v).to_array(), A_ @ v.to_array())

    def test_transforms_keep_symmetry_and_definiteness(self, rng):
        A = random_placement(rng).apply(random_articulated(rng)).to_matrix()
        assert np.array_equal(A, A.T)
        assert np.linalg.eigvalsh(A)[0] > 0

    def test_wrong_kinds_are_rejected(self, rng):
        A = random_articulated(rng)
        with pytest.raises(SpatialTypeError, match="acts on a Motion, got Force"):
            A @ random_force(rng)
        with pytest.raises(SpatialTypeError, match="write I @ v"):
            A * random_motion(rng)
        for wrong in (lambda: A + 1, lambda: A - 1, lambda: 1 - A):
            with pytest.raises(SpatialTypeError, match="cannot add int to an inertia"):
                wrong()
        with pytest.raises(ShapeError, match="6x6"):
            ArticulatedInertia.from_matrix(np.eye(5))


@pytest.mark.covers("RBDA 2.13", by=dyadic)
def test_dyadic_is_a_sum_of_symmetric_dyads(rng):
    F, A = random_force(rng, 3), rng.standard_normal((3, 3))
    A = A + A.T
    F_ = F.to_array()
    assert_close(dyadic(F, A).to_matrix(), F_ @ A @ F_.T)
    assert_close(dyadic(F_, A), F_ @ A @ F_.T)


def test_repr_shows_the_matrix():
    A = ArticulatedInertia.from_matrix(np.eye(6, dtype=int))
    assert repr(A).startswith("ArticulatedInertia([[1, 0, 0, 0, 0, 0], [0, 1,")
