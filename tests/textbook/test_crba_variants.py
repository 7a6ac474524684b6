"""Every route to the joint-space inertia matrix ends in the same matrix."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import Mixed, assert_printed, mixed_tree, random_state

from kinetree import samples
from kinetree.algorithms import crba, rnea
from kinetree.algorithms.kinematics import base_transforms
from kinetree.model import Model
from kinetree.textbook import crba_variants

ROUTES = (
    crba_variants.from_definition,
    crba_variants.from_jacobians,
    crba_variants.from_base_coordinates,
    crba_variants.from_unit_accelerations,
)


@pytest.mark.covers(
    "RBDA 6.1", "RBDA 6.2", "Lynch & Park 9.4", "Tutorial 5", "6-D Guide 2: Dynamics", by=ROUTES
)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("n", range(3))
def test_all_routes_agree(route, n, rng):
    m, q, *_ = random_state(rng, bodies=8)
    H = route(m, q)
    assert_close(H, crba.joint_space_inertia(m, q))
    assert H.dtype == float


@pytest.mark.parametrize("route", ROUTES)
def test_branched_tree_with_mixed_joints(route):
    assert_printed(np.triu(route(mixed_tree(), Mixed.q)), Mixed.H_upper, 10)


@pytest.mark.parametrize("route", ROUTES)
def test_model_without_bodies(route):
    assert route(Model(), np.zeros(0)).shape == (0, 0)


@pytest.mark.covers("RBDA 6.2", by=crba_variants.from_base_coordinates)
def test_unbranched_tree_needs_the_composite_of_the_farther_body(rng):
    """``H_ij = S_iᵀ I_max(i,j)ᶜ S_j`` — RBDA (6.15), (6.16)."""
    m = samples.chain(5)
    q = m.random_configuration(rng)
    H = crba_variants.from_base_coordinates(m, q)
    IC = crba.composite_inertias(m, q)
    X_0 = base_transforms(m, rnea.newton_euler(m, q, *np.zeros((2, 5))).X)
    s = [X_0[i].inv_apply(m.joint[i].motion_subspace(q[:1])) for i in range(1, 6)]
    for i in range(5):
        for j in range(5):
            k = max(i, j) + 1
            expected = s[i].T @ (X_0[k].inv_apply(IC[k]) @ s[j])
            assert_close(H[i, j], expected[0, 0], scale=np.max(np.abs(H)))


@pytest.mark.covers("RBDA 6.2", by=Model)
def test_intersection_of_subtrees_is_a_subtree_or_empty(rng):
    """RBDA (6.9), and the exchange of sums over joints and bodies it rests on, (4.3)."""
    m = samples.random_tree(12, rng)
    nu, bodies = m.subtree, range(1, 13)
    for i in bodies:
        for j in bodies:
            both = set(nu[i]) & set(nu[j])
            if i in nu[j]:
                assert both == set(nu[i])
            elif j in nu[i]:
                assert both == set(nu[j])
            else:
                assert not both
    pairs = {(k, i) for k in bodies for i in m.support[k]}
    assert pairs == {(k, i) for i in bodies for k in nu[i]}


@pytest.mark.covers("RBDA Table 6.1", "RBDA 6.1", by=rnea.inertia_product)
def test_differential_inverse_dynamics(rng):
    """``H qdd`` is what the acceleration adds to the joint forces, with gravity, in any motion."""
    m, q, qd, qdd, f_ext = random_state(rng)
    actual = rnea.inertia_product(m, q, qdd)
    assert_close(actual, crba.joint_space_inertia(m, q) @ qdd)
    tau, C = rnea.inverse_dynamics(m, q, qd, qdd, f_ext), rnea.bias_force(m, q, qd, f_ext)
    assert_close(actual, tau - C, scale=np.max(np.abs(tau)) + np.max(np.abs(C)))


@pytest.mark.covers("RBDA 6.3", by=crba_variants.column)
def test_one_accelerating_variable_moves_its_subtree_as_a_rigid_body(rng):
    m, q, *_ = random_state(rng)
    H = crba.joint_space_inertia(m, q)
    for k in range(m.nv):
        column = crba_variants.column(m, q, k)
        assert_close(column.tau, H[:, k], scale=np.max(np.abs(H)))
        delta = np.eye(m.nv)[k]
        direct = rnea.newton_euler(m, q, m.zero_velocity, delta, gravity=False)
        X_0 = base_transforms(m, direct.X)
        for j in range(1, m.body_count + 1):
            for actual, expected in ((column.a, direct.a), (column.f, direct.f)):
                in_base = X_0[j].inv_apply(expected[j]).to_array()
                assert_close(actual[j].to_array(), in_base, scale=np.max(np.abs(H)))
