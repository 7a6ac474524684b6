import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion
from support.states import conditioning

from kinetree.algorithms import aba, rnea
from kinetree.errors import ShapeError
from kinetree.samples import random_inertia, random_placement, random_tree
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


class LinearFirst:
    """A tree in linear-first coordinates: every matrix and vector of it permuted."""

    def __init__(self, model, q, qd):
        P = swap_vector_order(np.eye(6))
        self.model, n = model, range(1, model.body_count + 1)
        parts = {i: model.jcalc(i, q, qd) for i in n}
        X = {i: (parts[i][0] @ model.tree_transform[i]).to_matrix() for i in n}
        self.X = {i: swap_matrix_order(X[i]) for i in n}
        self.S = {i: swap_vector_order(parts[i][1].to_array()) for i in n}
        self.v_J = {i: swap_vector_order(parts[i][2].to_array()) for i in n}
        self.c_J = {i: swap_vector_order(parts[i][3].to_array()) for i in n}
        self.I = {i: swap_matrix_order(model.inertia[i].to_matrix()) for i in n}
        self.a_0 = swap_vector_order(-model.a_g.to_array())
        self.crm = lambda v: swap_matrix_order(dense.crm(P.T @ v))
        self.crf = lambda v: swap_matrix_order(dense.crf(P.T @ v))
        self.v = {0: np.zeros(6)}
        self.c = {}
        for i in n:
            self.v[i] = self.X[i] @ self.v[model.parent[i]] + self.v_J[i]
            self.c[i] = self.c_J[i] + self.crm(self.v[i]) @ self.v_J[i]

    def inverse_dynamics(self, qdd):
        """RBDA Table 5.1, with plain matrices."""
        m, a, f, tau = self.model, {0: self.a_0}, {}, np.zeros(self.model.nv)
        for i in range(1, m.body_count + 1):
            a[i] = self.X[i] @ a[m.parent[i]] + self.S[i] @ qdd[m.v_slice[i]] + self.c[i]
            f[i] = self.I[i] @ a[i] + self.crf(self.v[i]) @ self.I[i] @ self.v[i]
        for i in range(m.body_count, 0, -1):
            tau[m.v_slice[i]] = self.S[i].T @ f[i]
            if m.parent[i]:
                f[m.parent[i]] = f[m.parent[i]] + self.X[i].T @ f[i]
        return tau

    def forward_dynamics(self, tau):
        """RBDA Table 7.1, with plain matrices."""
        m, IA, pA, qdd = self.model, dict(self.I), {}, np.zeros(self.model.nv)
        n = range(1, m.body_count + 1)
        for i in n:
            pA[i] = self.crf(self.v[i]) @ self.I[i] @ self.v[i]
        U, D, u = {}, {}, {}
        for i in reversed(n):
            U[i] = IA[i] @ self.S[i]
            D[i] = np.linalg.inv(self.S[i].T @ U[i])
            u[i] = tau[m.v_slice[i]] - self.S[i].T @ pA[i]
            if p := m.parent[i]:
                Ia = IA[i] - U[i] @ D[i] @ U[i].T
                pa = pA[i] + Ia @ self.c[i] + U[i] @ D[i] @ u[i]
                IA[p] = IA[p] + self.X[i].T @ Ia @ self.X[i]
                pA[p] = pA[p] + self.X[i].T @ pa
        a = {0: self.a_0}
        for i in n:
            a[i] = self.X[i] @ a[m.parent[i]] + self.c[i]
            qdd[m.v_slice[i]] = D[i] @ (u[i] - U[i].T @ a[i])
            a[i] = a[i] + self.S[i] @ qdd[m.v_slice[i]]
        return qdd


@pytest.mark.covers("RBDA 2.4", by=(swap_vector_order, swap_matrix_order))
@pytest.mark.parametrize("seed", range(4))
def test_joint_forces_and_accelerations_of_a_tree_do_not_depend_on_the_order(seed):
    """T7: v, f, X, I, crm and crf permuted leave tau and qdd of the library as they are."""
    rng = np.random.default_rng(seed)
    model = random_tree(6, rng, floating_base=bool(seed % 2))
    q, (qd, qdd, tau) = model.random_configuration(rng), rng.standard_normal((3, model.nv))
    tree = LinearFirst(model, q, qd)
    for X in tree.X.values():  # what a linear-first motion transform looks like
        assert not np.any(X[3:, :3])
    expected = rnea.inverse_dynamics(model, q, qd, qdd)
    found = tree.inverse_dynamics(qdd)
    assert_close(found, expected, scale=100 + np.max(np.abs(expected)))
    expected = aba.forward_dynamics(model, q, qd, tau)
    scale = float(np.max(np.abs(expected)))
    found = tree.forward_dynamics(tau)
    assert_close(found, expected, scale=scale, condition=conditioning(model, q))
    half = LinearFirst(model, q, qd)
    half.I = {i: model.inertia[i].to_matrix() for i in half.I}  # one thing left in the old order
    assert np.max(np.abs(half.inverse_dynamics(qdd) - tree.inverse_dynamics(qdd))) > 1e-3


def test_shapes_are_checked():
    with pytest.raises(ShapeError, match=r"needs shape \(6,\) or \(6, n\), got \(4, 6\)"):
        swap_vector_order(np.zeros((4, 6)))
    with pytest.raises(ShapeError, match="needs a 6x6 matrix"):
        swap_matrix_order(np.zeros((6, 4)))
