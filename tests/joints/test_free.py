"""Free joint: both choices of position variables; falling and spinning bodies."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.algorithms.kinematics import body_accelerations
from kinetree.joints import Free, Spherical, Translation
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement


@pytest.mark.covers("RBDA Table 4.1", by=Free)
def test_child_position_is_that_of_the_table(rng):
    joint = Free(translation="child")
    q = joint.random(rng)
    X_J, S, _, _ = joint.jcalc(q, np.zeros(6))
    assert_close(X_J.E @ X_J.r, q[:3], ulps=8)
    assert_close(S.to_array(), np.eye(6), ulps=0)
    assert joint.constraint_subspace(q).to_array().shape == (6, 0)


@pytest.mark.covers("RBDA Example 4.5", by=Free.configuration_rate)
def test_rates_of_both_choices(rng):
    w, v = rng.standard_normal((2, 3))
    qd = np.concatenate([w, v])
    q = Free().random(rng)
    E = Free().transform(q).E
    assert_close(Free().configuration_rate(q, qd)[:3], E.T @ v, ulps=8)
    child = Free(translation="child").configuration_rate(q, qd)[:3]
    assert_close(child, v - np.cross(w, q[:3]), ulps=8)


@pytest.mark.covers("RBDA 4.4", by=Free)
@pytest.mark.parametrize("translation", ["parent", "child"])
def test_free_body_falls_with_gravity_whatever_it_spins(translation, rng):
    joint = Free(translation=translation)
    model = ModelBuilder().body("b", joint=joint, inertia=random_inertia(rng)).build()
    q, qd = model.random_configuration(rng), rng.standard_normal(6)
    qdd = aba.forward_dynamics(model, q, qd, np.zeros(6))
    X, v, a = body_accelerations(model, q, qd, qdd)
    c = model.inertia[1].center_of_mass
    # Classical acceleration of the mass centre, from the spatial one.
    at_c = a[1].linear + np.cross(a[1].angular, c)
    at_c = at_c + np.cross(v[1].angular, v[1].linear + np.cross(v[1].angular, c))
    assert_close(X[1].E.T @ at_c, model.gravity, ulps=500)


def test_both_choices_have_the_same_dynamics(rng):
    inertia, at = random_inertia(rng), random_placement(rng)
    parent, child = (
        ModelBuilder().body("b", joint=Free(kind), at=at, inertia=inertia).build()
        for kind in ("parent", "child")
    )
    q, qd, tau = parent.random_configuration(rng), *rng.standard_normal((2, 6))
    p = Free("child").coordinates(Free().transform(q))
    a, b = aba.forward_dynamics(parent, q, qd, tau), aba.forward_dynamics(child, p, qd, tau)
    assert_close(a, b, ulps=500)


def test_free_joint_is_a_translation_and_a_ball_with_a_massless_body(rng):
    inertia, at = random_inertia(rng), random_placement(rng)
    free = ModelBuilder().body("b", joint=Free(), at=at, inertia=inertia).build()
    moved = ModelBuilder().body("m", joint=Translation(), at=at)
    chain = moved.body("b", on="m", joint=Spherical(), inertia=inertia).build()
    q, qd, tau = free.random_configuration(rng), *rng.standard_normal((2, 6))
    E = Free().transform(q).E
    qdd = aba.forward_dynamics(free, q, qd, tau)
    chain_qd = np.concatenate([E.T @ qd[3:], qd[:3]])
    chain_qdd = aba.forward_dynamics(chain, q, chain_qd, np.concatenate([E.T @ tau[3:], tau[:3]]))
    a = body_accelerations(free, q, qd, qdd)[2][1]
    b = body_accelerations(chain, q, chain_qd, chain_qdd)[2][2]
    assert_close(a.to_array(), b.to_array(), ulps=1e4)


def test_integration_of_a_screw_motion_returns_after_a_full_turn():
    joint, q = Free(), Free().neutral()
    quarter = np.array([0, 0, np.pi / 2, 1.0, 0, 0.25])
    for _ in range(4):
        q = joint.integrate(q, quarter)
    assert_close(q[:3], [0, 0, 1], ulps=10)
    assert_close(joint.transform(q).E, np.eye(3), ulps=10)
