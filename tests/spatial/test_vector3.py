import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_rotation

from kinetree.errors import ShapeError
from kinetree.spatial import cross, skew, unskew
from kinetree.spatial.vector3 import as_vector3, identity3, norm, symmetric, symmetric_product


@pytest.fixture
def abc(rng):
    return rng.standard_normal((3, 3))


@pytest.mark.covers("RBDA Table 2.1", "RBDA 2.8", "Tutorial 3", by=skew)
class TestTable21:
    """The nine identities of the 3-D cross operator."""

    def test_skew_symmetry(self, abc):
        assert np.array_equal(skew(abc[0]).T, -skew(abc[0]))

    def test_linearity(self, abc):
        a, b, _ = abc
        assert_close(skew(2.5 * a), 2.5 * skew(a))
        assert_close(skew(a + b), skew(a) + skew(b))

    def test_rotation_of_the_operator(self, abc, rng):
        E = random_rotation(rng)
        assert_close(skew(E @ abc[0]), E @ skew(abc[0]) @ E.T)

    def test_anticommutation(self, abc):
        a, b, _ = abc
        assert np.array_equal(cross(a, b), -cross(b, a))
        assert_close(skew(a) @ b, -skew(b) @ a)

    def test_transpose_rule(self, abc):
        a, b, c = abc
        assert_close((skew(a) @ b) @ c, -b @ (skew(a) @ c), scale=10)

    def test_cross_of_cross_is_commutator(self, abc):
        a, b, _ = abc
        assert_close(skew(cross(a, b)), skew(a) @ skew(b) - skew(b) @ skew(a), scale=10)

    def test_cross_of_cross_is_difference_of_dyads(self, abc):
        a, b, _ = abc
        assert_close(skew(cross(a, b)), np.outer(b, a) - np.outer(a, b))

    def test_product_of_operators(self, abc):
        a, b, _ = abc
        assert_close(skew(a) @ skew(b), np.outer(b, a) - (a @ b) * np.eye(3), scale=10)


@pytest.mark.covers("Lynch & Park 9.2", by=skew)
def test_minus_square_is_the_inertia_of_a_unit_particle(abc):
    a = abc[0]
    assert_close(-skew(a) @ skew(a), (a @ a) * np.eye(3) - np.outer(a, a))


def test_reflection_flips_the_sign_of_the_operator(abc):
    """The rotation rule needs det E = +1."""
    E = np.diag([-1.0, 1, 1])
    assert_close(skew(E @ abc[0]), -E @ skew(abc[0]) @ E.T)


def test_cross_agrees_with_numpy_and_takes_columns(rng):
    a, B = rng.standard_normal(3), rng.standard_normal((3, 5))
    assert_close(cross(a, B), np.cross(a, B, axisb=0).T)
    assert_close(cross(B, a), np.cross(B, a, axisa=0).T)


def test_unskew_inverts_skew_and_drops_the_symmetric_part(rng):
    a, S = rng.standard_normal(3), rng.standard_normal((3, 3))
    assert np.array_equal(unskew(skew(a)), a)
    assert_close(unskew(skew(a) + S + S.T), a, scale=10)


def test_symmetric_from_its_lower_triangle(rng):
    P = rng.standard_normal((3, 4))
    S = P @ P.T
    assert np.array_equal(symmetric(*S[np.tril_indices(3)]), S)
    assert_close(symmetric_product(P, P), S)


def test_structural_ones_are_integers_and_norm_is_the_length():
    assert identity3().dtype.kind == "i"
    assert norm(np.array([2.0, 3.0, 6.0])) == 7


def test_a_vector_of_the_wrong_size_is_named():
    with pytest.raises(ShapeError, match=r"the mass centre must have 3 components.*\(2,\)"):
        as_vector3([1, 2], "the mass centre")
