"""Planar joint: printed model, corrected rates, equal to a chain — RBDA Example 4.5."""

import numpy as np
import pytest
from support.closeness import assert_close

from kinetree.algorithms import aba
from kinetree.algorithms.kinematics import body_accelerations
from kinetree.joints import Planar, Prismatic, Revolute
from kinetree.joints.axis import as_axis, completed_basis
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Motion, exp, rz


@pytest.mark.covers("RBDA Table 4.1", "RBDA Example 4.5", by=Planar)
def test_child_variables_are_those_of_the_table(rng):
    q, qd = rng.standard_normal((2, 3))
    joint = Planar("z", translation="child")
    X_J, S, _, c_J = joint.jcalc(q, qd)
    c, s = np.cos(q[0]), np.sin(q[0])
    assert_close(X_J.E, rz(q[0]), ulps=2)
    assert_close(X_J.r, [c * q[1] - s * q[2], s * q[1] + c * q[2], 0], ulps=4)
    assert_close(S.to_array(), np.eye(6)[:, [2, 3, 4]], ulps=1)
    assert_close(joint.constraint_subspace(q).to_array(), np.eye(6)[:, [0, 1, 5]], ulps=1)
    assert not np.any(c_J.to_array())
    expected = [qd[0], qd[1] + q[2] * qd[0], qd[2] - q[1] * qd[0]]  # what the text leaves out
    assert_close(joint.configuration_rate(q, qd), expected, ulps=4)


@pytest.mark.covers("RBDA Example 4.5", by=Planar)
def test_parent_variables_are_the_child_variables_turned(rng):
    child, parent = Planar("z", translation="child"), Planar("z")
    q = child.random(rng)
    turned = np.array([q[0], *(rz(q[0]).T @ [q[1], q[2], 0])[:2]])
    assert_close(parent.transform(turned).to_matrix(), child.transform(q).to_matrix(), ulps=8)
    w, vx, vy = qd = rng.standard_normal(3)
    c, s = np.cos(q[0]), np.sin(q[0])
    rate = parent.configuration_rate(turned, qd)
    assert_close(rate, [w, c * vx - s * vy, s * vx + c * vy], ulps=4)


@pytest.mark.parametrize("translation", ["parent", "child"])
@pytest.mark.parametrize("turn", [0.0, 1e-9, 0.4, -3.0, 5.0])
def test_integrate_is_the_exponential_of_rigid_motions(translation, turn, rng):
    joint = Planar((1, -2, 2), translation=translation)
    q, dv = joint.random(rng), np.array([turn, *rng.standard_normal(2)])
    S = joint.motion_subspace(q)
    step = S @ dv
    expected = exp(Motion(step.angular, step.linear)) @ joint.transform(q)
    reached = joint.integrate(q, dv)
    assert_close(joint.transform(reached).to_matrix(), expected.to_matrix(), ulps=50)
    assert_close(joint.difference(q, reached), dv, ulps=100)


@pytest.mark.covers("RBDA 4.4", "6-D Guide 2: Joint Models", by=Planar)
@pytest.mark.parametrize("axis", ["z", "x", "-y", (1, 2, 3)])
@pytest.mark.parametrize("translation", ["parent", "child"])
def test_planar_is_two_sliders_and_a_hinge_with_massless_bodies(axis, translation, rng):
    joint = Planar(axis, translation=translation)
    at, inertia = random_placement(rng), random_inertia(rng)
    u, v = completed_basis(as_axis(axis))
    one = ModelBuilder().body("b", joint=joint, at=at, inertia=inertia).build()
    chain = ModelBuilder().body("c1", joint=Prismatic(u), at=at)
    chain.body("c2", on="c1", joint=Prismatic(v))
    two = chain.body("b", on="c2", joint=Revolute(axis), inertia=inertia).build()

    q, qd = joint.random(rng), rng.standard_normal(3)
    parent = Planar(axis)
    x = parent.coordinates(joint.transform(q))
    order = [1, 2, 0]  # the chain moves x, y, angle
    Q = parent.rate_matrix(x)[order]
    tau = rng.standard_normal(3)
    qdd = aba.forward_dynamics(one, q, qd, Q.T @ tau)
    chain_qd = Q @ qd
    chain_qdd = aba.forward_dynamics(two, x[order], chain_qd, tau)
    _, v1, a1 = body_accelerations(one, q, qd, qdd)
    _, v2, a2 = body_accelerations(two, x[order], chain_qd, chain_qdd)
    assert_close(v1[1].to_array(), v2[3].to_array(), ulps=20)
    assert_close(a1[1].to_array(), a2[3].to_array(), ulps=2000)
