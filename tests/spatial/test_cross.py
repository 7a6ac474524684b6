import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import random_force, random_motion

from kinetree.samples import random_placement
from kinetree.spatial import Force, Motion, crf, crm, cross_force, cross_motion, dense, exp

D = {name: Motion.from_array(np.eye(6)[i]) for i, name in enumerate(("Ox", "Oy", "Oz", *"xyz"))}
E = {name: Force.from_array(np.eye(6)[i]) for i, name in enumerate((*"xyz", "Ox", "Oy", "Oz"))}


@pytest.mark.covers("RBDA 2.9", "6-D Guide 1: Differentiation", by=crm)
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        ("Ox", "Ox", None),
        ("Ox", "Oy", "Oz"),
        ("x", "Ox", None),
        ("x", "Oy", "z"),
        ("Oy", "Oz", "Ox"),
        ("Ox", "y", "z"),
        ("x", "y", None),
    ],
)
def test_cross_products_of_the_motion_basis(left, right, result):
    expected = D[result].to_array() if result else np.zeros(6)
    assert np.array_equal(crm(D[left], D[right]).to_array(), expected)


@pytest.mark.covers("RBDA 2.9", by=crf)
@pytest.mark.parametrize(
    ("left", "right", "result"),
    [("Ox", "y", "z"), ("Ox", "Oy", "Oz"), ("x", "Oy", "z"), ("x", "y", None), ("Ox", "x", None)],
)
def test_cross_products_of_the_force_basis(left, right, result):
    expected = E[result].to_array() if result else np.zeros(6)
    assert np.array_equal(crf(D[left], E[right]).to_array(), expected)


@pytest.mark.covers("RBDA Table 2.3", "RBDA 2.9", by=(crm, crf))
class TestTable23:
    """The identities of the spatial cross operators, on the dense definitions."""

    @pytest.fixture
    def uvmf(self, rng):
        u, v, m = (random_motion(rng).to_array() for _ in range(3))
        return u, v, m, random_force(rng).to_array()

    def test_scaling_and_additivity(self, uvmf):
        u, v, _, _ = uvmf
        for cr in (dense.crm, dense.crf):
            assert_close(cr(2.5 * u), 2.5 * cr(u))
            assert_close(cr(u + v), cr(u) + cr(v))

    def test_change_of_coordinates(self, uvmf, rng):
        u = uvmf[0]
        X = random_placement(rng)
        X_, Xf = X.to_matrix(), X.to_force_matrix()
        assert_close(dense.crm(X_ @ u), X_ @ dense.crm(u) @ X.inverse().to_matrix())
        assert_close(dense.crf(X_ @ u), Xf @ dense.crf(u) @ X_.T)

    def test_anticommutation_of_motions(self, uvmf):
        u, v, _, _ = uvmf
        assert_close(dense.crm(u) @ v, -dense.crm(v) @ u)
        assert_close(dense.crm(u) @ u, np.zeros(6), scale=10)

    def test_transpose_rules(self, uvmf):
        u, _, m, f = uvmf
        assert np.array_equal(dense.crf(u), -dense.crm(u).T)
        assert_close((dense.crm(u) @ m) @ f, -m @ (dense.crf(u) @ f), scale=30)
        assert_close((dense.crf(u) @ f) @ m, -f @ (dense.crm(u) @ m), scale=30)

    def test_jacobi_rules(self, uvmf):
        u, v, _, _ = uvmf
        for cr in (dense.crm, dense.crf):
            bracket = cr(u) @ cr(v) - cr(v) @ cr(u)
            assert_close(cr(dense.crm(u) @ v), bracket, scale=30)


def test_typed_products_equal_the_dense_definition(rng):
    v, m, f = random_motion(rng), random_motion(rng), random_force(rng)
    assert_close(crm(v, m).to_array(), dense.crm(v.to_array()) @ m.to_array())
    assert_close(crf(v, f).to_array(), dense.crf(v.to_array()) @ f.to_array())
    assert_close(crm(v.to_array(), m.to_array()), crm(v, m).to_array())
    assert_close(crf(v.to_array(), f.to_array()), crf(v, f).to_array())
    assert cross_motion is crm
    assert cross_force is crf


def test_products_act_on_columns_one_by_one(rng):
    v, S, F = random_motion(rng), random_motion(rng, 3), random_force(rng, 3)
    assert_close(crm(v, S).to_array(), dense.crm(v.to_array()) @ S.to_array())
    assert_close(crf(v, F).to_array(), dense.crf(v.to_array()) @ F.to_array())


@pytest.mark.covers("RBDA 2.9", "6-D Guide 1: Differentiation", by=(crm, crf))
def test_cross_products_are_the_rates_of_vectors_carried_along(rng):
    """By complex step: displace the vector with the body for a time of 1e-30 i."""
    v, m, f = random_motion(rng), random_motion(rng), random_force(rng)
    X = exp(v * 1e-30j)
    moved_m, moved_f = X.inv_apply(m), X.T @ f
    assert_close(moved_m.to_array().imag / 1e-30, crm(v, m).to_array())
    assert_close(moved_f.to_array().imag / 1e-30, crf(v, f).to_array())
