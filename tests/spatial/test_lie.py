import numpy as np
import pytest
from scipy.linalg import expm
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.errors import ShapeError
from kinetree.samples import random_placement
from kinetree.spatial import Plucker, crf, crm, cross, dense, exp, rotz
from kinetree.spatial.lie import (
    adjoint,
    body_velocity,
    bracket,
    dual_adjoint,
    dual_bracket,
    exp_pose,
    hat,
    inverse_pose,
    log_pose,
    space_velocity,
    vee,
)

H = 1e-30


def random_pose(rng):
    return random_placement(rng).to_pose()


@pytest.mark.covers("Spencer A.1.1", "Spencer A.1.2", by=(hat, vee, inverse_pose))
class TestGroupAndAlgebra:
    """SE(3) and se(3) as matrices."""

    def test_hat_and_vee_are_inverse(self, rng):
        for n in (3, 6):
            x = rng.standard_normal(n)
            assert np.array_equal(vee(hat(x)), x)

    def test_hat_of_a_twist(self):
        expected = [[0, -3, 2, 4], [3, 0, -1, 5], [-2, 1, 0, 6], [0, 0, 0, 0]]
        assert np.array_equal(hat([1, 2, 3, 4, 5, 6]), expected)

    def test_inverse_of_a_pose_and_of_a_rotation(self, rng):
        G = random_pose(rng)
        assert_close(G @ inverse_pose(G), np.eye(4))
        assert np.array_equal(inverse_pose(G[:3, :3]), G[:3, :3].T)

    def test_shapes_are_checked(self):
        with pytest.raises(ShapeError, match="three or six coordinates"):
            hat(np.zeros(4))
        with pytest.raises(ShapeError, match="a 3x3 or 4x4 matrix"):
            vee(np.zeros((6, 6)))


@pytest.mark.covers("Spencer A.1.3", by=(exp_pose, log_pose))
class TestExponential:
    """Against the generic matrix exponential."""

    def test_general_twist(self, rng):
        V = rng.standard_normal(6)
        assert_close(exp_pose(V), expm(hat(V)))

    def test_pure_translation(self):
        assert np.array_equal(exp_pose([0, 0, 0, 1, 2, 3])[:3, 3], [1, 2, 3])

    def test_the_denominator_of_the_last_term_is_cubed(self, rng):
        """The thesis prints the square; that fails by far."""
        V = np.array([0.3, -1.2, 0.8, 1, 2, 3])
        w, u = V[:3], hat(V[:3])
        t = np.linalg.norm(w)
        A = np.eye(3) + u * (1 - np.cos(t)) / t**2 + u @ u * (t - np.sin(t)) / t**3
        printed = np.eye(3) + u * (1 - np.cos(t)) / t**2 + u @ u * (t - np.sin(t)) / t**2
        assert_close(A @ V[3:], expm(hat(V))[:3, 3])
        assert np.abs(printed @ V[3:] - exp_pose(V)[:3, 3]).max() > 0.01

    def test_log_inverts_exp(self, rng):
        V = rng.standard_normal(6)
        assert_close(log_pose(exp_pose(V)), V)


@pytest.mark.covers("Spencer A.1.4", "Lynch & Park 9.2", by=(adjoint, bracket))
class TestAdjoint:
    """The adjoint maps and their properties."""

    @pytest.fixture
    def xyz(self, rng):
        return rng.standard_normal((3, 6))

    def test_adjoint_is_conjugation(self, xyz, rng):
        G = random_pose(rng)
        assert_close(hat(adjoint(G) @ xyz[0]), G @ hat(xyz[0]) @ inverse_pose(G))

    def test_blocks(self, rng):
        G = random_pose(rng)
        R, p = G[:3, :3], G[:3, 3]
        expected = np.block([[R, np.zeros((3, 3))], [hat(p) @ R, R]])
        assert_close(adjoint(G), expected)
        assert_close(dual_adjoint(G), expected.T)

    def test_bracket_is_the_commutator(self, xyz):
        x, y, _ = xyz
        commutator = hat(x) @ hat(y) - hat(y) @ hat(x)
        assert_close(hat(bracket(x) @ y), commutator, scale=10)

    def test_commutator_of_rotations(self, xyz):
        a, b = xyz[:2, :3]
        assert_close(hat(cross(a, b)), hat(a) @ hat(b) - hat(b) @ hat(a), scale=10)

    def test_skew_symmetry_and_jacobi(self, xyz):
        x, y, z = xyz
        assert_close(bracket(x) @ y, -bracket(y) @ x)
        total = (
            bracket(x) @ bracket(y) @ z + bracket(z) @ bracket(x) @ y + bracket(y) @ bracket(z) @ x
        )
        assert_close(total, np.zeros(6), scale=100)

    def test_homomorphism(self, xyz, rng):
        G, K = random_pose(rng), random_pose(rng)
        assert_close(adjoint(G) @ adjoint(K), adjoint(G @ K))
        assert_close(adjoint(inverse_pose(G)), np.linalg.inv(adjoint(G)))
        Ad = adjoint(G)
        assert_close(Ad @ bracket(xyz[0]) @ xyz[1], bracket(Ad @ xyz[0]) @ Ad @ xyz[1], scale=50)

    def test_exponential_of_the_bracket(self, xyz):
        assert_close(adjoint(exp_pose(xyz[0])), expm(bracket(xyz[0])))

    def test_numbers(self):
        """Lie bracket and its transpose on (1..6) and (6..1)."""
        V, W = np.arange(1, 7), np.arange(6, 0, -1)
        assert np.array_equal(bracket(V) @ W, [-7, 14, -7, -14, 28, -14])
        assert np.array_equal(dual_bracket(V) @ W, [14, -28, 14, 4, -8, 4])


@pytest.mark.covers("RBDA 2.8", "RBDA 2.9", "Lynch & Park 9.2", by=(adjoint, bracket, dual_bracket))
class TestAgreesWithPlucker:
    """The same objects in the book's notation."""

    def test_transforms(self, rng):
        X = random_placement(rng)
        T = X.to_pose()
        assert_close(adjoint(inverse_pose(T)), X.to_matrix())
        assert_close(Plucker(T[:3, :3].T, T[:3, 3]).to_matrix(), adjoint(inverse_pose(T)))
        assert_close(dual_adjoint(T), X.to_force_matrix())

    def test_cross_products(self, rng):
        V, m, f = random_motion(rng), random_motion(rng), random_force(rng)
        assert np.array_equal(bracket(V.to_array()), dense.crm(V.to_array()))
        assert np.array_equal(dual_bracket(V.to_array()), -dense.crf(V.to_array()))
        assert_close(bracket(V.to_array()) @ m.to_array(), crm(V, m).to_array())
        assert_close(-dual_bracket(V.to_array()) @ f.to_array(), crf(V, f).to_array())

    def test_exponentials(self, rng):
        V = random_motion(rng)
        assert_close(exp_pose(V.to_array()), exp(V).to_pose())
        assert_close(rotz(0.3).to_pose(), exp_pose([0, 0, 0.3, 0, 0, 0]))


@pytest.mark.covers("Spencer A.1.5", "Tutorial 3", by=(body_velocity, space_velocity))
class TestVelocities:
    """Velocities of a moving frame, by complex step."""

    def test_body_and_space_velocity(self, rng):
        G, V = random_pose(rng), rng.standard_normal(6)
        Gd = (G @ exp_pose(V * 1j * H)).imag / H
        assert_close(body_velocity(G, Gd), V)
        assert_close(space_velocity(G, Gd), adjoint(G) @ V)

    def test_angular_velocity_of_a_rotation(self, rng):
        G, w = random_pose(rng), rng.standard_normal(3)
        R = G[:3, :3]
        Rd = R @ hat(w)
        assert_close(body_velocity(R, Rd), w)
        assert_close(space_velocity(R, Rd), R @ w)

    def test_right_translation(self, rng):
        """A frame fixed elsewhere on the body: same space velocity, other body velocity."""
        G, T, V = random_pose(rng), random_pose(rng), rng.standard_normal(6)
        Gd = G @ hat(V)
        assert_close(body_velocity(G @ T, Gd @ T), adjoint(inverse_pose(T)) @ V)
        assert_close(space_velocity(G @ T, Gd @ T), space_velocity(G, Gd))

    @pytest.mark.covers("Spencer A.1.5", "Lynch & Park 9.3", by=dual_adjoint)
    def test_wrench_transport(self, rng):
        G, F, V = random_pose(rng), rng.standard_normal(6), rng.standard_normal(6)
        R, p = G[:3, :3], G[:3, 3]
        moved = dual_adjoint(G) @ F
        assert_close(moved[:3], R.T @ (F[:3] - cross(p, F[3:])))
        assert_close(moved[3:], R.T @ F[3:])
        assert_close(moved @ V, F @ (adjoint(G) @ V), scale=30)


@pytest.mark.covers("Spencer A.1.6", by=(adjoint, dual_adjoint, bracket, dual_bracket))
class TestDerivativeIdentities:
    """(A.1)-(A.4) for f = M exp(S q), by complex step."""

    @pytest.fixture
    def data(self, rng):
        M, S = random_pose(rng), rng.standard_normal(6)
        x, xd, y, yd = rng.standard_normal((4, 6))
        return M, S, 0.7, 0.4, x, xd, y, yd  # M, S, q, dq/dp, x, x', y, y'

    def test_adjoint(self, data):
        M, S, q, qd, x, xd, _, _ = data
        inverse = inverse_pose(M @ exp_pose(S * q))
        later = inverse_pose(M @ exp_pose(S * (q + qd * 1j * H)))
        Ad = adjoint(inverse)
        expected = -qd * bracket(S) @ Ad @ x + Ad @ xd
        assert_close((adjoint(later) @ (x + xd * 1j * H)).imag / H, expected, scale=30)

    def test_dual_adjoint(self, data):
        M, S, q, qd, x, xd, _, _ = data
        inverse = inverse_pose(M @ exp_pose(S * q))
        later = inverse_pose(M @ exp_pose(S * (q + qd * 1j * H)))
        Ad = dual_adjoint(inverse)
        expected = -qd * Ad @ dual_bracket(S) @ x + Ad @ xd
        assert_close((dual_adjoint(later) @ (x + xd * 1j * H)).imag / H, expected, scale=30)

    @pytest.mark.parametrize("ad", [bracket, dual_bracket])
    def test_brackets(self, data, ad):
        x, xd, y, yd = data[4:]
        later = ad(x + xd * 1j * H) @ (y + yd * 1j * H)
        assert_close(later.imag / H, ad(xd) @ y + ad(x) @ yd, scale=30)
