"""The same text on fractions, complex numbers, 50-digit numbers and formulas."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import sympy
from support.closeness import assert_close
from support.spatial_quantities import random_motion

from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import (
    ArticulatedInertia,
    Force,
    Inertia,
    Motion,
    Plucker,
    carried_rate,
    crf,
    crm,
    dense,
    dyadic,
    exp,
    log,
    rotx,
    rotz,
)
from kinetree.spatial.rotation import (
    quaternion_from_rotation,
    rotation_exp,
    rotation_from_quaternion,
    rotation_log,
)
from kinetree.textbook.constrained_body import force_on_body, kinetic_energy


def fractions(rng, shape):
    return np.vectorize(lambda n: Fraction(int(n), 7), otypes=[object])(
        rng.integers(-20, 20, shape)
    )


@pytest.fixture
def exact(rng):
    """A transform by a quarter turn, vectors and an inertia, all in exact fractions."""
    quarter = np.array([[0, 0, 1], [0, -1, 0], [1, 0, 0]])
    third = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    X = Plucker(third, fractions(rng, 3)) @ Plucker(quarter, fractions(rng, 3))
    m, a, f = (kind.from_array(fractions(rng, 6)) for kind in (Motion, Motion, Force))
    A = fractions(rng, (3, 3))
    return X, m, a, f, Inertia.from_mass_center(Fraction(5, 3), fractions(rng, 3), A @ A.T)


class TestFractions:
    """Not one rounding error."""

    def test_transforms(self, exact):
        X, m, _, f, _ = exact
        assert np.array_equal((X @ m).to_array(), X.to_matrix() @ m.to_array())
        assert np.array_equal((X.star @ f).to_array(), X.to_force_matrix() @ f.to_array())
        assert np.array_equal((X.T @ f).to_array(), X.to_matrix().T @ f.to_array())
        assert np.array_equal(X.inv_apply(X @ m).to_array(), m.to_array())
        assert np.array_equal((X @ X.inverse()).to_matrix(), np.eye(6, dtype=int))
        assert (X @ m).dot(X.star @ f) == m.dot(f)

    def test_inertias(self, exact):
        X, m, _, _, I = exact
        X_, I_ = X.to_matrix(), I.to_matrix()
        assert np.array_equal((X.T @ I @ X).to_matrix(), X_.T @ I_ @ X_)
        assert np.array_equal(X.inv_apply(X.apply(I)).to_matrix(), I_)
        A = ArticulatedInertia.from_rigid(I) + dyadic(
            Force.from_array((I @ m).to_array()[:, None]), np.array([[Fraction(2, 3)]])
        )
        A_ = A.to_matrix()
        assert np.array_equal(A.transformed(X.inverse()).to_matrix(), X_.T @ A_ @ X_)
        assert np.array_equal(A.inverse_transformed(X).to_matrix(), X_.T @ A_ @ X_)
        assert all(isinstance(x, (int, Fraction)) for x in A.inverse_transformed(X).I.flat)

    def test_equation_of_motion(self, exact):
        X, v, a, _, I = exact
        f = force_on_body(I, v, a)
        v_, a_, I_ = v.to_array(), a.to_array(), I.to_matrix()
        assert np.array_equal(f.to_array(), I_ @ a_ + dense.crf(v_) @ I_ @ v_)
        assert np.array_equal(
            (X.T @ force_on_body(X.apply(I), X @ v, X @ a)).to_array(), f.to_array()
        )
        assert isinstance(kinetic_energy(I, v), Fraction)

    def test_cross_products_and_rates(self, exact):
        _, v, a, f, I = exact
        assert np.array_equal(crm(v, v).to_array(), [0] * 6)
        assert np.array_equal(crm(v, a).to_array(), (-crm(a, v)).to_array())
        assert crf(v, f).dot(a) == -f.dot(crm(v, a))
        v_, I_ = v.to_array(), I.to_matrix()
        expected = dense.crf(v_) @ I_ - I_ @ dense.crm(v_)
        assert np.array_equal(carried_rate(I, v).to_matrix(), expected)

    def test_mass_center_round_trip(self, exact):
        I = exact[-1]
        again = Inertia.from_mass_center(I.mass, I.center_of_mass, I.rotational_at_center)
        assert np.array_equal(again.to_matrix(), I.to_matrix())


class TestComplex:
    """Everything is analytic, so the imaginary part is the derivative."""

    def test_energy_along_a_screw_motion(self, rng):
        I, v, w = random_inertia(rng), random_motion(rng), random_motion(rng)
        h = 1e-30
        moved = exp(w * (1j * h)).apply(I)
        rate = kinetic_energy(moved, v).imag / h
        assert_close(rate, -v.dot(carried_rate(I, w) @ v) / 2)

    def test_real_parts_are_the_real_results(self, rng):
        X, I = random_placement(rng), random_inertia(rng)
        shifted = Plucker(X.E + 0j, X.r + 1e-200j)
        assert_close(shifted.apply(I).to_matrix().real, X.apply(I).to_matrix())
        assert_close(log(shifted).to_array().real, log(X).to_array())


class TestMpmath:
    """Fifty digits in, fifty digits out."""

    @pytest.fixture(autouse=True)
    def fifty_digits(self):
        with mpmath.workdps(50):
            yield

    @staticmethod
    def exact(x):
        return np.vectorize(lambda a: mpmath.mpf(float(a)), otypes=[object])(x)

    def close(self, a, b):
        return max(abs(x) for x in np.ravel(a - b)) < mpmath.mpf(10) ** -47

    def test_rotations(self, rng):
        for angle in (1e-25, 1e-3, 0.2, 0.3, 1.9, 2.1, 3.1):
            n = rng.standard_normal(3)
            phi = self.exact(n / np.linalg.norm(n) * angle)
            E = rotation_exp(phi)
            assert self.close(E @ E.T, np.eye(3, dtype=int))
            assert self.close(rotation_log(E), phi)
            assert self.close(rotation_from_quaternion(quaternion_from_rotation(E)), E)

    def test_screw_motions(self, rng):
        v = Motion(self.exact(rng.standard_normal(3)), self.exact(rng.standard_normal(3)))
        assert self.close(log(exp(v)).to_array(), v.to_array())
        assert self.close((exp(v) @ v).to_array(), v.to_array())

    def test_inertia(self, rng):
        X = rotz(mpmath.mpf("0.3")) @ rotx(mpmath.mpf("1.2"))
        I = Inertia.from_particles(
            self.exact(rng.uniform(1, 2, 4)), self.exact(rng.standard_normal((4, 3)))
        )
        X_, I_ = X.to_matrix(), I.to_matrix()
        assert self.close(X.inv_apply(I).to_matrix(), X_.T @ I_ @ X_)


class TestSympy:
    """Formulas."""

    def test_rotations_about_one_axis_add(self):
        a, b = sympy.symbols("a b", real=True)
        E = (rotz(a) @ rotz(b)).E
        assert all(sympy.simplify(x) == 0 for x in (E - rotz(a + b).E).flat)

    def test_equation_of_motion_of_a_pendulum(self):
        """A point mass m at distance l from the z axis: tau = m l² qdd + m g l cos q."""
        m, l, q, qdd, g = sympy.symbols("m l q qdd g", positive=True)
        I = Inertia.from_mass_center(m, np.array([l, 0, 0]), np.zeros((3, 3), dtype=int))
        S = Motion(np.array([0, 0, 1]), np.zeros(3, dtype=int))
        gravity = rotz(q) @ Motion(np.zeros(3, dtype=int), np.array([0, -g, 0]))
        f = I @ (S * qdd - gravity)
        tau = S.dot(f)
        assert sympy.simplify(tau - (m * l**2 * qdd + m * g * l * sympy.cos(q))) == 0

    def test_exponential_of_a_symbolic_turn(self):
        t = sympy.Symbol("t", positive=True)
        E = rotation_exp(np.array([sympy.Integer(0), sympy.Integer(0), t]))
        assert all(sympy.simplify(x) == 0 for x in (E - rotz(t).E).flat)

    def test_symbolic_mass_in_an_articulated_inertia(self):
        m = sympy.Symbol("m", positive=True)
        I = Inertia.from_mass_center(m, np.array([1, 0, 0]), np.eye(3, dtype=int))
        A = ArticulatedInertia.from_rigid(I) + I
        assert A.to_matrix()[5, 5] == 2 * m
        assert A.to_matrix()[1, 1] == 2 * m + 2
