"""Joining two articulated bodies: the three sets of formulae of RBDA Table 7.2."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.spatial_quantities import Pair
from support.states import random_state

from kinetree import samples
from kinetree.algorithms.kinematics import body_velocities
from kinetree.errors import SingularError
from kinetree.joints import REPRESENTATIVES, Free, Revolute
from kinetree.model import ModelBuilder
from kinetree.spatial import crf, crm
from kinetree.textbook import aba_variants, projection


def standard(p):
    return aba_variants.standard(p.I1, p.p1, p.I2, p.p2, p.S, p.c, p.tau)


def variant_1(p):
    return aba_variants.variant_1(p.Phi1, p.b1, p.Phi2, p.b2, p.T, p.Ta, p.c, p.tau)


def variant_2(p):
    return aba_variants.variant_2(p.I1, p.p1, p.I2, p.p2, p.T, p.Ta, p.c, p.tau)


@pytest.mark.covers(
    "RBDA Table 7.2", "RBDA 7.4", by=(aba_variants.variant_1, aba_variants.variant_2)
)
@pytest.mark.parametrize("n", range(7))
def test_the_three_formulae_agree(n, rng):
    pair = Pair(rng, n)
    IA, pA, _, _ = standard(pair)
    IA_2, pA_2, _, _ = variant_2(pair)
    Phi, b, _, _ = variant_1(pair)
    assert_close(IA_2, IA, condition=pair.condition)
    assert_close(pA_2, pA, condition=pair.condition, scale=np.abs(IA).max())
    assert_close(Phi @ IA, np.eye(6), condition=pair.condition)
    assert_close(b, -Phi @ pA, condition=pair.condition, scale=1 + np.abs(b).max())


@pytest.mark.covers("RBDA 7.2", "RBDA Table 7.2", by=aba_variants.standard)
@pytest.mark.covers("RBDA 7.4", by=aba_variants.joint_acceleration)
@pytest.mark.parametrize("n", range(7))
def test_the_joint_variables_satisfy_the_given_equations(n, rng):
    pair = Pair(rng, n)
    a1 = rng.standard_normal(6)
    explicit, inverted, implicit = standard(pair), variant_1(pair), variant_2(pair)
    f = explicit.matrix @ a1 + explicit.bias

    qdd = explicit.gain @ a1 + explicit.offset
    a2 = a1 + pair.c + pair.S @ qdd
    f2 = pair.I2 @ a2 + pair.p2
    size = np.abs(f2).max() + np.abs(pair.I2).max()
    cond = pair.condition
    assert_close(pair.S.T @ f2, pair.tau, scale=size, condition=cond)
    assert_close(pair.I1 @ a1 + pair.p1 + f2, f, scale=size, condition=cond)
    recovered = aba_variants.joint_acceleration(pair.Ta, a1, a2, pair.c)
    assert_close(recovered, qdd, scale=size, condition=cond)

    for lam in (
        implicit.gain @ a1 + implicit.offset,
        inverted.gain @ f + inverted.offset,
    ):
        assert_close(pair.Ta @ pair.tau + pair.T @ lam, f2, scale=size, condition=cond)


def two_floating_bodies(rng, joint):
    builder = ModelBuilder(gravity=np.zeros(3))
    builder.body("one", joint=Free(), inertia=samples.random_inertia(rng))
    at, inertia = samples.random_placement(rng), samples.random_inertia(rng)
    return builder.body("two", on="one", joint=joint, at=at, inertia=inertia).build()


@pytest.mark.covers("RBDA 7.2", by=aba_variants.standard)
@pytest.mark.parametrize("joint", REPRESENTATIVES, ids=repr)
def test_assembly_equals_projection_for_two_bodies_on_any_joint(joint, rng):
    model = two_floating_bodies(rng, joint)
    q, qd, tau = random_state(model, rng)
    tau[:6] = 0
    X, v = body_velocities(model, q, qd)
    X_2 = X[2]  # everything in the coordinates of body 1

    def bias(i):
        return crf(v[i], model.inertia[i] @ v[i])

    _, S, v_J, c_J = model.jcalc(2, q, qd)
    I2, p2 = X_2.inv_apply(model.inertia[2]).to_matrix(), (X_2.T @ bias(2)).to_array()
    S, c = (X_2.inv_apply(m).to_array() for m in (S, c_J + crm(v[2], v_J)))
    IA, pA, _, _ = aba_variants.standard(
        model.inertia[1].to_matrix(), bias(1).to_array(), I2, p2, S, c, tau[6:]
    )
    expected = projection.operational_space_dynamics(model, q, qd, tau, "one")
    cond = np.linalg.cond(I2)
    assert_close(IA, expected.IA, condition=cond)
    assert_close(pA, expected.pA, condition=cond, scale=np.abs(IA).max() * (1 + np.abs(tau).max()))


@pytest.mark.covers("RBDA 7.4", by=aba_variants.variant_1)
def test_variant_1_assembles_grounded_bodies(rng):
    """Handle 1 is a link on the base: it has one freedom and no inertia of its own."""
    joint, link = Revolute("z"), samples.random_inertia(rng)
    S, T = (x.to_array() for x in (joint.motion_subspace([0]), joint.constraint_subspace([0])))
    Ta = joint.active_subspace(np.zeros(1)).to_array()
    none = np.zeros(1)
    ground = np.zeros((6, 6)), np.zeros(6)
    Phi, b = np.linalg.inv(link.to_matrix()), np.zeros(6)
    Phi_link, b_link, _, _ = aba_variants.variant_1(Phi, b, *ground, T, Ta, np.zeros(6), none)
    assert np.linalg.matrix_rank(Phi_link) == 1
    expected = S @ S.T / (S.T @ link.to_matrix() @ S)
    assert_close(Phi_link, expected, condition=np.linalg.cond(Phi))
    with pytest.raises(SingularError, match=r"assembly is singular in Tᵀ \(Phi1 \+ Phi2\) T"):
        # the same hinge once more repeats all of its constraints
        aba_variants.variant_1(Phi_link, b_link, *ground, T, Ta, np.zeros(6), none)


@pytest.mark.covers("RBDA 7.1", by=aba_variants.glue)
def test_gluing_is_assembly_by_a_joint_without_freedom(rng):
    pair = Pair(rng, 0)
    pair.c = np.zeros(6)
    IA, pA = aba_variants.glue(pair.I1, pair.p1, pair.I2, pair.p2)
    assert_close(standard(pair).matrix, IA)
    assert_close(standard(pair).bias, pA)


def test_singular_ingredients_are_named(rng):
    pair = Pair(rng, 2)
    pair.I2 = np.zeros((6, 6))
    with pytest.raises(SingularError, match="Sᵀ I2 S: the joint moves no inertia beyond it"):
        standard(pair)
    with pytest.raises(SingularError, match="I2: handle 2 does not have six degrees of"):
        variant_2(pair)
