from fractions import Fraction

import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Inertia, InverseInertia, Motion


@pytest.mark.covers("RBDA 2.15", by=InverseInertia)
class TestInverseInertia:
    """Φ from mass, mass centre and rotational inertia, without inverting a 6x6 matrix."""

    def test_inverts_the_inertia(self, rng):
        I = random_inertia(rng)
        Phi = InverseInertia.from_inertia(I)
        condition = np.linalg.cond(I.to_matrix())
        assert_close(Phi.to_matrix() @ I.to_matrix(), np.eye(6), condition=condition)
        v = random_motion(rng)
        assert_close((Phi @ (I @ v)).to_array(), v.to_array(), condition=condition)

    def test_block_diagonal_at_the_mass_center(self):
        Phi = InverseInertia.from_mass_center(4.0, np.zeros(3), np.diag([1.0, 2, 5]))
        assert np.array_equal(Phi.to_matrix(), np.diag([1, 0.5, 0.2, 0.25, 0.25, 0.25]))

    def test_exact_on_fractions(self):
        I_C = np.array([[3, 1, 0], [1, 4, -1], [0, -1, 5]], dtype=object) * Fraction(1)
        c = np.array([Fraction(1, 3), Fraction(-2), Fraction(1, 7)])
        Phi = InverseInertia.from_mass_center(Fraction(5, 2), c, I_C)
        I = Inertia.from_mass_center(Fraction(5, 2), c, I_C)
        assert np.array_equal(Phi.to_matrix() @ I.to_matrix(), np.eye(6, dtype=int))

    @pytest.mark.covers("RBDA Table 2.5", by=InverseInertia.transformed)
    def test_transforms_by_its_own_rule(self, rng):
        Phi, X = InverseInertia.from_inertia(random_inertia(rng)), random_placement(rng)
        X_ = X.to_matrix()
        assert_close(X.apply(Phi).to_matrix(), X_ @ Phi.to_matrix() @ X_.T)
        assert_close(X.inv_apply(X.apply(Phi)).to_matrix(), Phi.to_matrix())
        f = random_force(rng)
        assert_close((X.apply(Phi) @ (X.star @ f)).to_array(), (X @ (Phi @ f)).to_array(), ulps=300)

    @pytest.mark.covers("RBDA 3.6", by=InverseInertia.from_motions)
    def test_of_a_constrained_body_it_is_singular(self, rng):
        I, S = random_inertia(rng), random_motion(rng, 2)
        H = S.T @ (I @ S)
        Phi = InverseInertia.from_motions(S, np.linalg.inv(H))
        assert np.linalg.matrix_rank(Phi.to_matrix()) == 2
        S_, I_ = S.to_array(), I.to_matrix()
        projector = Phi.to_matrix() @ I_
        assert_close(projector @ S_, S_, condition=np.linalg.cond(H), ulps=500)
        across = np.linalg.svd(S_.T)[2][2:].T  # forces that do no work on S
        assert_close(Phi.to_matrix() @ across, np.zeros((6, 4)), scale=100)

    def test_algebra(self, rng):
        A, B = (InverseInertia.from_inertia(random_inertia(rng)) for _ in range(2))
        expected = 2 * A.to_matrix() - B.to_matrix()
        assert_close((2 * A - B).to_matrix(), expected, scale=np.abs(expected).max() * 10)
        assert np.array_equal(InverseInertia.from_matrix(A.to_matrix()).to_matrix(), A.to_matrix())

    def test_acts_on_columns(self, rng):
        Phi, F = InverseInertia.from_inertia(random_inertia(rng)), random_force(rng, 3)
        assert_close((Phi @ F).to_array(), Phi.to_matrix() @ F.to_array(), ulps=300)


def test_rejects_motions_and_other_kinds(rng):
    Phi = InverseInertia.from_inertia(random_inertia(rng))
    with pytest.raises(SpatialTypeError, match=r"acts on a Force, got Motion.*by an Inertia"):
        Phi @ Motion.zero()
    with pytest.raises(SpatialTypeError, match="cannot add Inertia to an inverse inertia"):
        Phi + random_inertia(rng)
    with pytest.raises(SpatialTypeError, match="needs Motion columns, got Force"):
        InverseInertia.from_motions(random_force(rng, 1), np.eye(1))
    with pytest.raises(ShapeError, match="an inverse inertia is a 6x6 matrix"):
        InverseInertia.from_matrix(np.eye(3))


@pytest.mark.parametrize(
    "inertia",
    [
        Inertia.from_particles([1.0], [[1.0, 2, 3]]),
        Inertia.from_particles([1.0, 2.0], [[1.0, 2, 3], [0, 1, 5]]),
    ],
    ids=["point", "rod"],
)
def test_points_and_rods_have_none(inertia):
    with pytest.raises(SingularError, match="is singular, so some moment would cause infinite"):
        InverseInertia.from_inertia(inertia)


def test_massless_bodies_have_none():
    with pytest.raises(SingularError, match="a body of mass 0 has no inverse inertia"):
        InverseInertia.from_mass_center(0, np.zeros(3), np.eye(3))
    with pytest.raises(ShapeError, match="rotational inertia must be a 3x3 matrix"):
        InverseInertia.from_mass_center(1, np.zeros(3), np.ones(3))


def test_repr_shows_the_matrix():
    assert repr(InverseInertia.from_matrix(np.eye(6))).startswith("InverseInertia([[1.0, 0.0")
