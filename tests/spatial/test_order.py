import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ShapeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import dense, swap_matrix_order, swap_vector_order


@pytest.mark.covers("RBDA 2.4", "Tutorial 3", by=(swap_vector_order, swap_matrix_order))
class TestOrder:
    """Linear-first coordinates say the same."""

    def test_swapping_twice_is_nothing(self, rng):
        for shape in ((6,), (6, 4)):
            x = rng.standard_normal(shape)
            assert np.array_equal(swap_vector_order(swap_vector_order(x)), x)
        A = rng.standard_normal((6, 6))
        assert np.array_equal(swap_matrix_order(swap_matrix_order(A)), A)

    def test_it_is_a_permutation(self, rng):
        P = swap_vector_order(np.eye(6))
        x, A = rng.standard_normal(6), rng.standard_normal((6, 6))
        assert np.array_equal(swap_vector_order(x), P @ x)
        assert np.array_equal(swap_matrix_order(A), P @ A @ P.T)

    def test_equation_of_motion_of_one_body(self, rng):
        """f = I a + v x* I v, transforms and power, all in linear-first order."""
        I, v, a, X = (
            random_inertia(rng),
            random_motion(rng),
            random_motion(rng),
            random_placement(rng),
        )
        f = I @ a + v.cross(I @ v)
        I_, crf_ = swap_matrix_order(I.to_matrix()), swap_matrix_order(dense.crf(v.to_array()))
        v_, a_ = swap_vector_order(v.to_array()), swap_vector_order(a.to_array())
        f_ = I_ @ a_ + crf_ @ I_ @ v_
        assert_close(f_, swap_vector_order(f.to_array()))
        assert_close(f_ @ v_, f.dot(v))
        X_ = swap_matrix_order(X.to_matrix())
        assert_close(X_ @ v_, swap_vector_order((X @ v).to_array()))

    def test_inertia_at_the_mass_center_is_mass_first(self):
        I = swap_matrix_order(dense.mcI(4, [0, 0, 0], np.diag([1, 2, 3])))
        assert np.array_equal(I, np.diag([4, 4, 4, 1, 2, 3]))

    def test_generalized_force_does_not_depend_on_the_order(self, rng):
        J, f = rng.standard_normal((6, 3)), random_force(rng).to_array()
        assert_close(swap_vector_order(J).T @ swap_vector_order(f), J.T @ f, scale=10)


def test_shapes_are_checked():
    with pytest.raises(ShapeError, match=r"needs shape \(6,\) or \(6, n\), got \(4, 6\)"):
        swap_vector_order(np.zeros((4, 6)))
    with pytest.raises(ShapeError, match="needs a 6x6 matrix"):
        swap_matrix_order(np.zeros((6, 4)))
