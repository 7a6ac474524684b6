import numpy as np
import pytest
from support.closeness import assert_close
from support.special_joints import SPECIAL_JOINTS, Driven, Slot

from kinetree.algorithms.closed import maximal
from kinetree.algorithms.closed.joint_space import joint_constraints
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.joints import REPRESENTATIVES, AbstractJoint, Free, Revolute, Spherical
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement, random_tree


@pytest.mark.covers("RBDA 3.5", "RBDA 3.7", by=joint_constraints)
def test_right_hand_side_is_minus_the_derivative_of_the_constraint_forces(rng):
    """k = -Tdᵀ Pᵀ v, with Td by complex step of T in base coordinates along the motion."""
    model = random_tree(5, rng, joints=[Slot(), Revolute("y"), Slot(-0.3), Spherical()])
    q, qd = model.random_configuration(rng), rng.standard_normal(model.nv)
    eq = maximal.equations(model, q, qd, np.zeros(model.nv))
    h = 1e-30
    q_step = q + 1j * h * model.configuration_rate(q, qd)
    X_0 = base_transforms(model, joint_transforms(model, q_step)[0])
    v_J = (eq.P.T @ eq.v).reshape(-1, 6)
    k = []
    for i in range(1, model.body_count + 1):
        T = model.joint[i].constraint_subspace(q_step[model.q_slice[i]])
        Td = np.imag((X_0[i].T @ T).to_array()) / h
        k.append(-Td.T @ v_J[i - 1])
    assert_close(eq.k, np.concatenate(k))


@pytest.mark.covers("RBDA 3.5", by=AbstractJoint.jcalc)
def test_prescribed_motion_has_the_velocity_and_acceleration_of_its_positions():
    """v_J from X_J by complex step in time; c_J from v_J: sigma and sigma° of (3.32), (3.41)."""
    t, h = 0.37, 1e-30
    none = np.zeros(0)
    X, _, v, c = Driven(t).jcalc(none, none)
    X_step, _, v_step, _ = Driven(t + 1j * h).jcalc(none, none)
    assert_close(np.imag(v_step.to_array()) / h, c.to_array())
    E_rate, r_rate = np.imag(X_step.E) / h, np.imag(X_step.r) / h
    w = -E_rate @ X.E.T  # dE/dt = -w× E — RBDA (2.44)
    assert_close([w[2, 1], w[0, 2], w[1, 0]], v.angular, scale=1)
    assert_close(X.E @ r_rate, v.linear)


@pytest.mark.covers("RBDA 3.5", by=joint_constraints)
@pytest.mark.parametrize("joint", [*REPRESENTATIVES, *SPECIAL_JOINTS], ids=repr)
def test_a_loop_joint_holds_a_free_body_as_a_tree_joint_does(rng, joint):
    """Its variables are measured on the body, its prescribed motion is followed."""
    at, I = random_placement(rng), random_inertia(rng)
    tree = ModelBuilder().body("b", joint=joint, at=at, inertia=I).build()
    q, qd = tree.random_configuration(rng), rng.standard_normal(joint.nv)
    X, _, v, _ = joint.jcalc(q, qd)
    free = (
        ModelBuilder()
        .body("b", joint=Free(), inertia=I)
        .loop("closure", predecessor="base", successor="b", joint=joint, at=at)
        .build()
    )
    q_free = Free().coordinates(X @ at)
    a = maximal.solution(tree, q, qd, np.zeros(joint.nv))
    b = maximal.solution(free, q_free, v.to_array(), np.zeros(6))
    assert b.redundancy == 0
    c = np.linalg.cond(I.to_matrix())
    size = max(np.linalg.norm(x.to_array()) for x in (a.a[1], a.f_J[1], b.f_J[2])) + 1
    assert_close(b.a[1].to_array(), a.a[1].to_array(), condition=c, scale=size)
    assert_close(b.f_J[2].to_array(), a.f_J[1].to_array(), condition=c, scale=size)
    assert_close(b.f_J[1].to_array(), np.zeros(6), scale=size)
