"""The Coriolis matrix: its product, its skew-symmetry, its Christoffel symbols."""

import mpmath
import numpy as np
import pytest
import sympy
from support.closeness import assert_close
from support.textbook import Arm, random_state, rate, two_link_arm

from kinetree.algorithms import coriolis, crba, rnea, sparsity
from kinetree.algorithms import fewest_operations as fewest
from kinetree.joints import (
    REPRESENTATIVES,
    Cylindrical,
    Euler,
    Exponential,
    Helical,
    Prismatic,
    RackAndPinion,
    Revolute,
    Universal,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Inertia, Motion, dense
from kinetree.textbook import closed_form

COORDINATES = (
    Revolute("x"), Prismatic((1.0, 2.0, 2.0)), Helical("y", pitch=0.2), Cylindrical("z"),
    Universal("xy"), Euler("zyx"), Exponential(), RackAndPinion(0.3),
)  # fmt: skip


def scale_of(m, q, qd):
    return np.max(np.abs(crba.joint_space_inertia(m, q))) * (1 + qd @ qd)


@pytest.mark.covers("Lynch & Park 9.4", by=coriolis.coriolis_matrix)
@pytest.mark.parametrize("n", range(6))
def test_product_with_velocity_is_the_coriolis_force(n, rng):
    m, q, qd, *_ = random_state(rng)
    C = coriolis.coriolis_matrix(m, q, qd)
    assert_close(C @ qd, rnea.coriolis_force(m, q, qd), scale=scale_of(m, q, qd))


@pytest.mark.covers("Lynch & Park 9.4", by=coriolis.coriolis_matrix)
@pytest.mark.parametrize("joints", [REPRESENTATIVES, COORDINATES], ids=["all", "coordinates"])
@pytest.mark.parametrize("n", range(4))
def test_rate_of_inertia_minus_twice_coriolis_is_skew(joints, n, rng):
    """Passivity: the rate of H is the symmetric part of 2C, on every kind of joint."""
    m, q, qd, *_ = random_state(rng, joints=joints)
    C = coriolis.coriolis_matrix(m, q, qd)
    Hd = rate(lambda q: crba.joint_space_inertia(m, q), m, q, qd)
    N = Hd - 2 * C
    assert_close(N, -N.T, scale=scale_of(m, q, qd))
    x = rng.standard_normal(m.nv)
    assert_close(x @ N @ x, 0.0, scale=scale_of(m, q, qd) * (x @ x))


@pytest.mark.covers("Lynch & Park 9.4", by=coriolis.coriolis_matrix_in_root_coordinates)
@pytest.mark.parametrize("n", range(4))
def test_shorter_formulations_give_the_same_matrix(n, rng):
    """In other coordinates, and with inertia moved across joints; free joints included."""
    m, q, qd, *_ = random_state(rng)
    C, scale = coriolis.coriolis_matrix(m, q, qd), scale_of(m, q, qd)
    assert_close(fewest.coriolis_matrix_by_axial_turns(m, q, qd), C, scale=scale)
    assert_close(fewest.coriolis_matrix_in_root_coordinates(m, q, qd), C, scale=scale)
    constant = [j for j in REPRESENTATIVES if j.constant_subspace]
    m, q, qd, *_ = random_state(rng, joints=constant)
    expected = coriolis.coriolis_matrix(m, q, qd)
    assert_close(
        coriolis.coriolis_matrix_in_root_coordinates(m, q, qd), expected, scale=scale_of(m, q, qd)
    )


@pytest.mark.covers("RBDA 6.4", by=coriolis.coriolis_matrix)
def test_coriolis_matrix_is_as_sparse_as_inertia(rng):
    m, q, qd, *_ = random_state(rng, bodies=9, branching=0.8)
    C = coriolis.coriolis_matrix(m, q, qd)
    assert np.all(C[~sparsity.pattern(m.expanded_parent)] == 0)


@pytest.mark.covers("Lynch & Park 9.4", "Tutorial 2", by=coriolis.christoffel)
@pytest.mark.parametrize("n", range(3))
def test_christoffel_symbols_are_derivatives_of_the_inertia_matrix(n, rng):
    """``½ (∂H_ij/∂q_k + ∂H_ik/∂q_j - ∂H_jk/∂q_i)`` by complex step, where qd = dq/dt."""
    m, q, qd, *_ = random_state(rng, joints=COORDINATES, bodies=5)
    dH = np.stack(
        [rate(lambda q: crba.joint_space_inertia(m, q), m, q, e) for e in np.eye(m.nv)], axis=2
    )
    expected = (dH + dH.transpose(0, 2, 1) - dH.transpose(2, 0, 1)) / 2
    Gamma, scale = coriolis.christoffel(m, q), scale_of(m, q, np.ones(1))
    assert_close(Gamma, expected, scale=scale)
    assert_close(Gamma, Gamma.transpose(0, 2, 1), scale=scale)
    assert_close(Gamma, closed_form.velocity_coefficients(m, q), scale=scale)
    # Tutorial (17): C = dM/dt qd - ½ (∂M/∂q qd)ᵀ qd, element j with qdᵀ ∂M/∂q_j qd
    by_tutorial = (dH @ qd) @ qd - np.einsum("ijk,i,j->k", dH, qd, qd) / 2
    assert_close(rnea.coriolis_force(m, q, qd), by_tutorial, scale=scale_of(m, q, qd))


@pytest.mark.covers("Lynch & Park 9.4", by=coriolis.christoffel)
def test_coefficients_on_any_joint_contract_to_the_matrix_and_the_force(rng):
    m, q, qd, *_ = random_state(rng, bodies=5)
    Gamma, scale = coriolis.christoffel(m, q), scale_of(m, q, qd)
    assert_close(Gamma @ qd, coriolis.coriolis_matrix(m, q, qd), scale=scale)
    symmetric = (Gamma + Gamma.transpose(0, 2, 1)) / 2
    assert_close(symmetric, closed_form.velocity_coefficients(m, q), scale=scale)


@pytest.mark.covers(
    "Lynch & Park 9.1", "Lynch & Park 9.4", by=(coriolis.coriolis_matrix, coriolis.christoffel)
)
def test_planar_arm_of_lynch_and_park():
    m = two_link_arm()
    assert_close(coriolis.coriolis_matrix(m, Arm.q, Arm.qd), Arm.C, ulps=10)
    expected = np.zeros((2, 2, 2))
    h = Arm.m2 * Arm.L1 * Arm.L2 * np.sin(Arm.q[1])
    expected[0, 0, 1] = expected[0, 1, 0] = expected[0, 1, 1] = -h
    expected[1, 0, 0] = h
    assert_close(coriolis.christoffel(m, Arm.q), expected, ulps=10)


@pytest.mark.covers("Lynch & Park 9.4", by=coriolis.coriolis_matrix)
def test_planar_arm_symbolically():
    th1, th2, w1, w2 = sympy.symbols("th1 th2 w1 w2")
    m = two_link_arm(1, sympy.Rational(1, 2), 2, 1)
    q, qd = np.array([th1, th2], dtype=object), np.array([w1, w2], dtype=object)
    C = coriolis.coriolis_matrix(m, q, qd)
    h = sympy.sin(th2) / 2
    expected = [[-h * w2, -h * (w1 + w2)], [h * w1, 0]]
    for actual, formula in zip(C.ravel(), np.array(expected).ravel(), strict=True):
        assert sympy.simplify(sympy.nsimplify(actual) - formula) == 0


@pytest.mark.covers("RBDA 2.13", by=coriolis.BodyCoriolis)
def test_coriolis_matrix_of_a_body(rng):
    """``B v = v ×* I v``, ``B + Bᵀ = v×* I - I v×``, and its change of coordinates."""
    I, v = random_inertia(rng), Motion.from_array(rng.standard_normal(6))
    X = random_placement(rng)
    B = _matrix(coriolis.BodyCoriolis.of(I, v))
    V, M = v.to_array(), I.to_matrix()
    assert_close(B @ V, dense.crf(V) @ M @ V, scale=10)
    assert_close(B + B.T, dense.crf(V) @ M - M @ dense.crm(V), scale=10)
    moved = coriolis.BodyCoriolis.of(I, v).inverse_transformed(X)
    assert_close(_matrix(moved), X.to_matrix().T @ B @ X.to_matrix(), scale=10)
    again = coriolis.BodyCoriolis.of(X.inv_apply(I), X.inv_apply(v))
    assert_close(_matrix(moved), _matrix(again), scale=10)
    transposed = coriolis.BodyCoriolis.of(I, v).T @ Motion.from_array(np.eye(6))
    assert_close(transposed.to_array(), B.T, scale=10)


def _matrix(B):
    return (B @ Motion.from_array(np.eye(6))).to_array()


def test_fifty_digits_survive(rng):
    """Varying and constant subspaces alike, when the model itself is that exact."""

    def exact(x):
        return np.array([mpmath.mpf(float(value)) for value in x], dtype=object)

    with mpmath.workdps(50):
        builder, on = ModelBuilder("exact"), None
        for joint in (Exponential(), Euler("zyx"), Universal("xy"), RackAndPinion(0.5)):
            inertia = Inertia.from_parameters(exact(random_inertia(rng).parameters()))
            name = type(joint).__name__
            builder.body(name, on=on, joint=joint, at=rng.standard_normal(3), inertia=inertia)
            on = name
        m = builder.build()
        q, qd = exact(m.random_configuration(rng)), exact(rng.standard_normal(m.nv))
        difference = coriolis.coriolis_matrix(m, q, qd) @ qd - rnea.coriolis_force(m, q, qd)
        assert max(abs(x) for x in difference) < mpmath.mpf(10) ** -45
