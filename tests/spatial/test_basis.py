import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ShapeError, SingularError, SpatialTypeError
from kinetree.samples import random_placement
from kinetree.spatial import DualBasis, Force, Motion, Plucker, xlt
from kinetree.spatial.dyads import reciprocal


@pytest.fixture
def bases(rng):
    """Two random pairs of dual bases."""
    return [DualBasis.from_motions(random_motion(rng, 6)) for _ in range(2)]


def condition(basis):
    return np.linalg.cond(basis.motions.to_array())


@pytest.mark.covers("RBDA 2.1", "RBDA 2.6", "6-D Guide 1: Formalities", by=DualBasis)
class TestDualBasis:
    """Any six independent motions have one reciprocal set of forces."""

    def test_scalar_products_are_kronecker_deltas(self, bases):
        basis = bases[0]
        assert_close(basis.motions.T @ basis.forces, np.eye(6), condition=condition(basis))

    def test_reciprocal_of_reciprocal_is_the_original(self, bases, rng):
        basis = bases[0]
        back = reciprocal(reciprocal(basis.motions))
        assert isinstance(back, Motion)
        assert_close(back.to_array(), basis.motions.to_array(), condition=condition(basis))
        from_forces = DualBasis.from_forces(basis.forces)
        assert_close(
            from_forces.motions.to_array(), basis.motions.to_array(), condition=condition(basis)
        )

    def test_scalar_product_is_the_same_in_all_dual_coordinates(self, bases, rng):
        basis = bases[0]
        m, f = random_motion(rng), random_force(rng)
        product = basis.coordinates(m) @ basis.coordinates(f)
        assert_close(product, m.dot(f), condition=condition(basis), scale=10)

    def test_coordinates_reproduce_the_vector(self, bases, rng):
        basis = bases[0]
        m, f = random_motion(rng), random_force(rng)
        k = condition(basis)
        assert_close(basis.motion(basis.coordinates(m)).to_array(), m.to_array(), condition=k)
        assert_close(basis.force(basis.coordinates(f)).to_array(), f.to_array(), condition=k)

    def test_forces_transform_by_the_inverse_transpose(self, bases, rng):
        one, two = bases
        X = one.transform_to(two)
        m, f = random_motion(rng), random_force(rng)
        k = condition(one) * condition(two)
        assert_close(X @ one.coordinates(m), two.coordinates(m), condition=k)
        assert_close(np.linalg.solve(X.T, one.coordinates(f)), two.coordinates(f), condition=k)


@pytest.mark.covers(
    "RBDA 2.2", "RBDA 2.3", "RBDA 2.4", "6-D Guide 1: Plücker Coordinates", by=DualBasis.of_frame
)
class TestPluckerBasis:
    """The bases of a Cartesian frame."""

    def test_coordinates_are_plucker_coordinates(self, rng):
        X = random_placement(rng)
        basis = DualBasis.of_frame(X)
        m, f = random_motion(rng), random_force(rng)
        assert_close(basis.motions.T @ basis.forces, np.eye(6))
        assert_close(basis.coordinates(m), (X @ m).to_array())
        assert_close(basis.coordinates(f), (X.star @ f).to_array())

    def test_transform_between_frames_is_the_plucker_transform(self, rng):
        X, Y = random_placement(rng), random_placement(rng)
        A, B = DualBasis.of_frame(X), DualBasis.of_frame(Y)
        assert_close(A.transform_to(B), (Y @ X.inverse()).to_matrix())

    @pytest.mark.covers("RBDA Example 2.2", by=DualBasis.of_frame)
    def test_basis_at_a_shifted_origin(self):
        """P = (r, 0, 0): d_Px = d_Ox, d_Py = d_Oy + r d_z, d_Pz = d_Oz - r d_y."""
        r = 7
        O = DualBasis.of_frame(Plucker.identity()).motions.to_array().T
        P = DualBasis.of_frame(xlt(r, 0, 0)).motions.to_array().T
        assert np.array_equal(P[0], O[0])
        assert np.array_equal(P[1], O[1] + r * O[5])
        assert np.array_equal(P[2], O[2] - r * O[4])
        assert np.array_equal(P[3:], O[3:])

    def test_force_basis_at_a_shifted_origin(self):
        """Unit forces through P have a moment about O, couples are the same everywhere."""
        O = DualBasis.of_frame(Plucker.identity()).forces.to_array().T
        P = DualBasis.of_frame(xlt(7, 0, 0)).forces.to_array().T
        assert np.array_equal(P[:3], O[:3])
        assert np.array_equal(P[4], O[4] + 7 * O[2])
        assert np.array_equal(P[5], O[5] - 7 * O[1])


def test_dependent_vectors_form_no_basis(rng):
    D = random_motion(rng, 6).to_array()
    D[:, 5] = D[:, 0] + D[:, 1]
    with pytest.raises(SingularError, match=r"dependent \(rank 5\) and form no basis"):
        DualBasis.from_motions(Motion.from_array(D))


def test_wrong_kinds_are_rejected(rng):
    with pytest.raises(SpatialTypeError, match="a basis is a Motion or a Force, got ndarray"):
        reciprocal(np.eye(6))
    with pytest.raises(ShapeError, match="six vectors as columns"):
        reciprocal(random_force(rng, 5))
    with pytest.raises(SpatialTypeError, match="of a Motion or a Force, got ndarray"):
        DualBasis.of_frame(Plucker.identity()).coordinates(np.zeros(6))
    assert isinstance(reciprocal(random_force(rng, 6)), Motion)
    assert isinstance(reciprocal(random_motion(rng, 6)), Force)
