import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_articulated, random_motion, random_rotation

from kinetree.errors import ModelError, ShapeError, SpatialTypeError
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import ArticulatedInertia, Inertia, dense, skew, xlt
from kinetree.textbook.constrained_body import kinetic_energy


@pytest.fixture
def cloud(rng):
    """Masses and positions of a few particles."""
    return rng.uniform(0.1, 1, 7), rng.standard_normal((7, 3))


@pytest.mark.covers(
    "RBDA 2.13", "6-D Guide 1: Inertia", "Lynch & Park 9.2", by=Inertia.from_mass_center
)
class TestMassCenter:
    """Mass, mass centre and rotational inertia about it, in and out."""

    def test_numbers_by_hand(self):
        I = Inertia.from_mass_center(2, [1, 0, 0], np.diag([1, 2, 3]))
        assert np.array_equal(I.to_matrix(), dense.mcI(2, [1, 0, 0], np.diag([1, 2, 3])))
        assert np.array_equal(I.rotational, np.diag([1, 4, 5]))
        assert np.array_equal(I.first_moment, [2, 0, 0])

    def test_equals_the_dense_definition(self, rng):
        A, c = rng.standard_normal((3, 3)), rng.standard_normal(3)
        I = Inertia.from_mass_center(1.7, c, A @ A.T)
        assert_close(I.to_matrix(), dense.mcI(1.7, c, A @ A.T))

    def test_round_trip(self, rng):
        A, c = rng.standard_normal((3, 3)), rng.standard_normal(3)
        I = Inertia.from_mass_center(1.7, c, A @ A.T)
        assert_close(I.center_of_mass, c)
        assert_close(I.rotational_at_center, A @ A.T, scale=10)
        assert I.mass == 1.7

    def test_block_diagonal_only_at_the_mass_center(self, rng):
        I = random_inertia(rng)
        at_center = xlt(I.center_of_mass).apply(I).to_matrix()
        expected = np.zeros((6, 6))
        expected[:3, :3], expected[3:, 3:] = I.rotational_at_center, I.mass * np.eye(3)
        assert_close(at_center, expected)

    def test_a_massless_body_has_no_center(self):
        with pytest.raises(ModelError, match="a massless inertia has no mass centre"):
            _ = Inertia.zero().center_of_mass

    def test_wrong_shapes_are_named(self):
        with pytest.raises(ShapeError, match="rotational inertia must be a 3x3 matrix"):
            Inertia.from_mass_center(1, np.zeros(3), np.zeros(3))
        with pytest.raises(ShapeError, match="the mass centre must have 3 components"):
            Inertia.from_mass_center(1, np.zeros(2), np.eye(3))


@pytest.mark.covers("Lynch & Park 9.2", "Tutorial 3", by=Inertia.from_particles)
class TestParticles:
    """Sums over particles, the definition of inertia."""

    def test_eight_unit_masses_on_a_cube(self):
        corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        I = Inertia.from_particles(np.ones(8, dtype=int), corners)
        assert np.array_equal(I.rotational, 16 * np.eye(3))
        assert I.mass == 8

    def test_degenerate_bodies_are_semidefinite(self):
        point = Inertia.from_particles([2.0], [[1.0, 2, 3]]).rotational
        rod = Inertia.from_particles([1.0, 1.0], [[1.0, 1, 1], [-2, -2, -2]]).rotational
        for I in (point, rod):
            assert np.linalg.matrix_rank(I) == 2
            assert_close(
                I @ np.array([1.0, 2, 3] if I is point else [1.0, 1, 1]), np.zeros(3), scale=28
            )

    def test_products_of_inertia_carry_a_minus_sign(self):
        I = Inertia.from_particles([2.0], [[1.0, 3.0, 0.0]]).rotational
        assert I[0, 1] == -6

    def test_two_formulas_for_the_rotational_inertia(self, cloud):
        m, p = cloud
        one = sum(
            mi * ((pi @ pi) * np.eye(3) - np.outer(pi, pi)) for mi, pi in zip(*cloud, strict=True)
        )
        two = -sum(mi * skew(pi) @ skew(pi) for mi, pi in zip(m, p, strict=True))
        assert_close(one, two)
        assert_close(Inertia.from_particles(m, p).rotational, one)

    def test_momentum_and_energy_are_the_sums_over_particles(self, cloud, rng):
        m, p = cloud
        I, v = Inertia.from_particles(m, p), random_motion(rng)
        velocities = v.linear + np.cross(v.angular, p)
        h = I @ v
        assert_close(h.linear, m @ velocities, scale=10)
        assert_close(h.angular, np.cross(p, m[:, None] * velocities).sum(axis=0), scale=20)
        assert_close(kinetic_energy(I, v), (m * (velocities**2).sum(axis=1)).sum() / 2)

    def test_shapes_are_checked(self):
        with pytest.raises(ShapeError, match=r"masses \(n,\) and positions \(n, 3\)"):
            Inertia.from_particles([1.0], [1.0, 2, 3])


@pytest.mark.covers("Lynch & Park 9.2", by=Inertia.from_density)
class TestDensity:
    """Volume integrals of a density."""

    BOX = ((-0.5, 0.5), (-1, 1), (-1.5, 1.5))  # 1 by 2 by 3 metres

    def test_uniform_box(self):
        I = Inertia.from_density(2.0, self.BOX, n=3)
        assert_close(I.mass, 12.0)
        assert_close(I.first_moment, np.zeros(3), scale=12)
        assert_close(I.rotational, np.diag([4 + 9, 1 + 9, 1 + 4]) * 1.0)

    def test_polynomial_density_is_integrated_exactly(self):
        """rho = 1 + x on the unit cube: moments are elementary."""
        I = Inertia.from_density(lambda x, y, z: 1 + x, ((0, 1),) * 3, n=3)
        assert_close(I.mass, 3 / 2)
        assert_close(I.center_of_mass, np.array([5 / 9, 1 / 2, 1 / 2]))
        xx, yy, xy, yz = 7 / 12, 1 / 2, 5 / 12, 3 / 8
        expected = [[2 * yy, -xy, -xy], [-xy, xx + yy, -yz], [-xy, -yz, xx + yy]]
        assert_close(I.rotational, np.array(expected))

    def test_ellipsoid_by_change_of_variables(self):
        """A density that falls off smoothly, with known Gaussian moments."""
        s = np.array([0.1, 0.2, 0.3])

        def density(x, y, z):
            return np.exp(-((x / s[0]) ** 2 + (y / s[1]) ** 2 + (z / s[2]) ** 2) / 2)

        I = Inertia.from_density(density, [(-9 * a, 9 * a) for a in s], n=60)
        mass = (2 * np.pi) ** 1.5 * s.prod()
        second = mass * s**2
        assert_close(I.mass, mass, ulps=2000)
        assert_close(I.rotational, np.diag(second.sum() - second), ulps=2000)

    def test_solid_sphere_converges_to_two_fifths(self):
        """A density that jumps converges slowly but surely."""
        errors = []
        for n in (16, 64):
            I = Inertia.from_density(
                lambda x, y, z: 1.0 * (x * x + y * y + z * z < 1), ((-1, 1),) * 3, n
            )
            errors.append(abs(I.rotational[0, 0] / I.mass - 0.4))
        assert errors[1] < errors[0] < 0.02
        assert errors[1] < 1e-3

    def test_bounds_are_checked(self):
        with pytest.raises(ShapeError, match=r"bounds must have shape \(3, 2\)"):
            Inertia.from_density(1.0, (0, 1))


@pytest.mark.covers("RBDA 2.13", "RBDA 2.7", "6-D Guide 1: Inertia", by=Inertia)
class TestAlgebra:
    """Sums, products, transforms against 6x6 matrices."""

    def test_sum_is_the_inertia_of_the_bodies_glued_together(self, cloud):
        m, p = cloud
        parts = [Inertia.from_particles(m[s], p[s]) for s in (slice(0, 3), slice(3, 7))]
        glued = parts[0] + parts[1]
        assert_close(glued.to_matrix(), Inertia.from_particles(m, p).to_matrix())
        # the 3-D way: masses, centres and parallel axes one by one
        mass = parts[0].mass + parts[1].mass
        c = sum(I.mass * I.center_of_mass for I in parts) / mass
        I_C = 0
        for I in parts:
            d = skew(I.center_of_mass - c)
            I_C = I_C + I.rotational_at_center - I.mass * d @ d
        assert_close(glued.rotational_at_center, I_C, scale=10)

    def test_difference_and_scaling(self, rng):
        I, J = random_inertia(rng), random_inertia(rng)
        assert_close((I - J).to_matrix(), I.to_matrix() - J.to_matrix())
        assert_close((2 * I).to_matrix(), 2 * I.to_matrix())
        assert_close((-I + I).to_matrix(), Inertia.zero().to_matrix(), scale=1)

    def test_product_with_vectors_and_columns(self, rng):
        I = random_inertia(rng)
        for columns in (None, 3):
            v = random_motion(rng, columns)
            assert_close((I @ v).to_array(), I.to_matrix() @ v.to_array())

    def test_positive_definite_and_symmetric(self, rng):
        I = random_inertia(rng).to_matrix()
        assert np.array_equal(I, I.T)
        assert np.linalg.eigvalsh(I)[0] > 0

    def test_kinetic_energy_does_not_depend_on_coordinates(self, rng):
        I, v, X = random_inertia(rng), random_motion(rng), random_placement(rng)
        assert_close(kinetic_energy(X.apply(I), X @ v), kinetic_energy(I, v))

    def test_principal_moments_do_not_depend_on_coordinates(self, rng):
        I, X = random_inertia(rng), random_placement(rng)
        moved = X.apply(I)
        assert_close(moved.center_of_mass, X.point(I.center_of_mass))
        assert_close(
            np.linalg.eigvalsh(moved.rotational_at_center),
            np.linalg.eigvalsh(I.rotational_at_center),
            scale=10,
        )

    def test_ten_parameters(self, rng):
        I = random_inertia(rng)
        p = I.parameters()
        assert p.shape == (10,)
        assert np.array_equal(Inertia.from_parameters(p).to_matrix(), I.to_matrix())

    def test_round_trip_through_the_matrix(self, rng):
        I = random_inertia(rng)
        assert np.array_equal(Inertia.from_matrix(I.to_matrix()).to_matrix(), I.to_matrix())

    def test_a_matrix_without_mass_center_is_rejected(self, rng):
        with pytest.raises(ModelError, match=r"not the inertia of a rigid body.*Articulated"):
            Inertia.from_matrix(random_articulated(rng).to_matrix())
        with pytest.raises(ShapeError, match="a spatial inertia is a 6x6 matrix"):
            Inertia.from_matrix(np.eye(3))

    def test_adding_something_else_is_rejected(self, rng):
        with pytest.raises(SpatialTypeError, match="cannot add int to an inertia"):
            random_inertia(rng) + 1


@pytest.mark.covers("Spencer A.2.4", "Lynch & Park 9.2", by=Inertia.from_mass_center)
def test_inertia_from_principal_axes_at_a_displaced_center(rng):
    """Ad* diag(J, m 1) Ad of a frame with rotation R at p, in closed form."""
    R, p, m = random_rotation(rng).T, rng.standard_normal(3), 1.3
    J = np.diag(rng.uniform(1, 2, 3))
    at_frame = xlt(p).inv_apply(Inertia.from_mass_center(m, np.zeros(3), R @ J @ R.T))
    assert_close(at_frame.to_matrix(), Inertia.from_mass_center(m, p, R @ J @ R.T).to_matrix())
    P = skew(p)
    expected = np.block([[R @ J @ R.T - m * P @ P, m * P], [-m * P, m * np.eye(3)]])
    assert_close(at_frame.to_matrix(), expected)


def test_repr_names_the_parameters():
    assert repr(Inertia.zero()).startswith("Inertia(mass=0, first_moment=[0, 0, 0], rotational=")


def test_rigid_and_articulated_inertias_add_to_articulated_ones(rng):
    I, A = random_inertia(rng), random_articulated(rng)
    for sum_ in (I + A, A + I):
        assert isinstance(sum_, ArticulatedInertia)
        assert_close(sum_.to_matrix(), I.to_matrix() + A.to_matrix())
    assert_close((I - A).to_matrix(), I.to_matrix() - A.to_matrix())
    assert_close((A - I).to_matrix(), A.to_matrix() - I.to_matrix())
