"""Positions, velocities and accelerations of trees, against 4×4 products and derivatives."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import STEP, random_state, rate

from kinetree.algorithms import kinematics as kin
from kinetree.joints import REPRESENTATIVES
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia
from kinetree.spatial import dense


@pytest.mark.covers(
    "RBDA Example 4.3", "RBDA 4.2", "6-D Guide 2: Kinematics", by=kin.base_transforms
)
def test_base_transforms_are_products_of_homogeneous_matrices(rng):
    m, q, *_ = random_state(rng)
    X, _ = kin.joint_transforms(m, q)
    X_0 = kin.base_transforms(m, X)
    T = [np.eye(4)]
    for i in range(1, m.body_count + 1):
        joint = m.joint[i].transform(q[m.q_slice[i]]).to_pose()
        T.append(T[m.parent[i]] @ m.tree_transform[i].to_pose() @ joint)
        assert_close(X_0[i].to_pose(), T[i])


@pytest.mark.covers("RBDA Example 4.3", by=kin.base_transforms)
def test_children_of_the_base_need_no_product(rng):
    m, q, *_ = random_state(rng, branching=1.0)
    X, _ = kin.joint_transforms(m, q)
    X_0 = kin.base_transforms(m, X)
    roots = [i for i in range(1, m.body_count + 1) if m.parent[i] == 0]
    assert roots
    assert all(X_0[i] is X[i] for i in roots)


@pytest.mark.covers("RBDA Example 4.1", "RBDA Example 4.4", by=kin.base_velocities)
def test_velocities_in_base_coordinates_sum_over_supporting_joints(rng):
    m, q, qd, *_ = random_state(rng)
    X_0, v = kin.base_velocities(m, q, qd)
    _, v_body = kin.body_velocities(m, q, qd)
    for i in range(1, m.body_count + 1):
        assert_close(v[i].to_array(), X_0[i].inv_apply(v_body[i]).to_array(), scale=10)
        v_J = [X_0[j].inv_apply(m.jcalc(j, q, qd)[2]).to_array() for j in m.support[i]]
        assert_close(v[i].to_array(), sum(v_J), scale=10)


@pytest.mark.covers("RBDA 5.2", "6-D Guide 2: Kinematics", by=kin.body_velocities)
@pytest.mark.parametrize("n", range(3))
def test_velocities_are_derivatives_of_positions(n, rng):
    m, q, qd, *_ = random_state(rng)
    X, v = kin.body_velocities(m, q, qd)
    X_0 = kin.base_transforms(m, X)
    for i in range(1, m.body_count + 1):
        rate_of_X = rate(
            lambda q, i=i: kin.base_transforms(m, kin.joint_transforms(m, q)[0])[i].to_matrix(),
            m, q, qd,
        )  # fmt: skip
        expected = -dense.crm(v[i].to_array()) @ X_0[i].to_matrix()  # RBDA (2.45)
        assert_close(rate_of_X, expected, scale=10)


@pytest.mark.covers(
    "RBDA 5.2", "RBDA Example 2.5", "6-D Guide 2: Acceleration", by=kin.body_accelerations
)
@pytest.mark.parametrize("n", range(3))
def test_accelerations_are_derivatives_of_velocities(n, rng):
    """In base coordinates, where the derivative of coordinates is the derivative."""
    m, q, qd, qdd, _ = random_state(rng)
    X, _, a = kin.body_accelerations(m, q, qd, qdd)
    X_0 = kin.base_transforms(m, X)
    qdot = m.configuration_rate(q, qd)
    _, v = kin.base_velocities(m, q + 1j * STEP * qdot, qd + 1j * STEP * qdd)
    for i in range(1, m.body_count + 1):
        actual = X_0[i].inv_apply(a[i]).to_array()
        assert_close(actual, v[i].to_array().imag / STEP, scale=20 + np.max(np.abs(actual)))


def test_acceleration_of_the_base_is_added_to_every_body(rng):
    m, q, qd, qdd, _ = random_state(rng)
    X, _, a = kin.body_accelerations(m, q, qd, qdd)
    _, _, with_gravity = kin.body_accelerations(m, q, qd, qdd, a_0=-m.a_g)
    X_0 = kin.base_transforms(m, X)
    for i in range(1, m.body_count + 1):
        difference = (a[i] - with_gravity[i]).to_array()
        assert_close(difference, (X_0[i] @ m.a_g).to_array(), scale=50)


def test_restriction_to_some_bodies_gives_the_same_numbers(rng):
    m, q, qd, qdd, _ = random_state(rng)
    kappa = m.support[m.body_count]
    full, some = (kin.body_accelerations(m, q, qd, qdd, bodies=bodies) for bodies in (None, kappa))
    for all_bodies, chosen in zip(full, some, strict=True):
        for i in range(1, m.body_count + 1):
            if i in kappa and hasattr(chosen[i], "to_array"):
                assert np.array_equal(all_bodies[i].to_array(), chosen[i].to_array())
            elif i not in kappa:
                assert chosen[i] is None or not np.any(chosen[i].to_array())


@pytest.mark.covers("RBDA 3.5", by=kin.subspace_rate)
@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_rate_of_the_motion_subspace_of_every_joint(joint, rng):
    """``S° + v × S`` in base coordinates is the complex-step derivative of ``S`` there."""
    builder = ModelBuilder("pair").body("a", joint=joint, inertia=random_inertia(rng))
    m = builder.body("b", on="a", joint=joint, inertia=random_inertia(rng)).build()
    q, qd = m.random_configuration(rng), rng.standard_normal(m.nv)
    X, v = kin.body_velocities(m, q, qd)
    X_0 = kin.base_transforms(m, X)

    def subspace_in_base(q):
        X, S = kin.joint_transforms(m, q)
        return kin.base_transforms(m, X)[2].inv_apply(S[2]).to_array()

    actual = X_0[2].inv_apply(kin.subspace_rate(m, 2, q, qd, v[2])).to_array()
    assert_close(actual, rate(subspace_in_base, m, q, qd), scale=10)


def test_external_forces_of_every_body_transform_to_its_coordinates(rng):
    m, q, _, _, f_ext = random_state(rng)
    X, _ = kin.joint_transforms(m, q)
    f = kin.external_forces(m, X, f_ext)
    X_0 = kin.base_transforms(m, X)
    for i in range(1, m.body_count + 1):
        expected = np.linalg.inv(X_0[i].to_matrix()).T @ f_ext[i].to_array()
        assert_close(f[i].to_array(), expected)
