import numpy as np
import pytest
from support.closeness import assert_close
from support.special_joints import SPECIAL_JOINTS, Slot

from kinetree.algorithms import aba, rnea
from kinetree.algorithms.closed.subspace import Subspace
from kinetree.errors import SingularError
from kinetree.joints import (
    REPRESENTATIVES,
    AbstractJoint,
    Revolute,
    active_subspace_from_wrench,
)
from kinetree.model import ModelBuilder
from kinetree.samples import random_inertia, random_placement
from kinetree.spatial import Force, Inertia, Motion, Plucker, crf, crm
from kinetree.spatial.dense import crf as crf_matrix
from kinetree.textbook.constrained_body import (
    apparent_inverse_inertia,
    equation_of_motion,
    solve_by_constraint_forces,
    solve_by_motion_subspace,
    split_force,
)

JOINTS = [*REPRESENTATIVES, Slot()]


class Case:
    """One body on one joint at a random state, in body coordinates."""

    def __init__(self, joint, rng):
        self.I = random_inertia(rng)
        at = random_placement(rng)
        self.model = ModelBuilder().body("b", joint=joint, at=at, inertia=self.I).build()
        self.q = self.model.random_configuration(rng)
        self.qd = rng.standard_normal(joint.nv)
        X_J, self.S, self.v, c_J = joint.jcalc(self.q, self.qd)
        self.X = X_J @ at
        self.T = joint.constraint_subspace(self.q)
        self.c = c_J + crm(self.v, self.v)
        self.p = crf(self.v, self.I @ self.v) - self.I @ (self.X @ self.model.a_g)
        self.f = Force.from_array(rng.standard_normal(6))
        self.condition = np.linalg.cond(self.I.to_matrix())
        if joint.nv:
            self.condition *= np.linalg.cond(self.S.to_array())


@pytest.fixture(params=JOINTS, ids=repr)
def case(request, rng):
    return Case(request.param, rng)


@pytest.mark.covers("RBDA 3.6", by=(solve_by_motion_subspace, solve_by_constraint_forces))
@pytest.mark.covers("RBDA 3.6", by=equation_of_motion)
def test_three_methods_agree_and_agree_with_the_tree_algorithms(case):
    I, p, S, c, f, condition = case.I, case.p, case.S, case.c, case.f, case.condition
    one = solve_by_motion_subspace(I, p, S, c, f)
    two = solve_by_constraint_forces(I, p, case.T, case.T.T @ c, f)
    three = equation_of_motion(I, p, S, c, f)

    a = one.a.to_array()
    size = np.linalg.norm(a) + np.linalg.norm(f.to_array())
    assert_close(two.a.to_array(), a, condition=condition, scale=size)
    assert_close(three.acceleration(), one.qdd, condition=condition, scale=size)
    assert_close((S @ one.qdd + c).to_array(), a, condition=condition, scale=size)
    # the sum of applied and constraint force is what methods 1 and 3 can still tell
    total = (I @ one.a + p).to_array()
    assert_close((f + two.f_c).to_array(), total, condition=condition, scale=size)

    f_ext = [None, case.X.T @ f]
    no_drive = np.zeros(len(one.qdd))
    qdd = aba.forward_dynamics(case.model, case.q, case.qd, no_drive, f_ext)
    assert_close(qdd, one.qdd, condition=condition, scale=size)
    reaction = rnea.newton_euler(case.model, case.q, case.qd, one.qdd, f_ext).f[1]
    assert_close(two.f_c.to_array(), reaction.to_array(), condition=condition, scale=size)


@pytest.mark.covers("RBDA 3.6", by=solve_by_motion_subspace)
def test_acceleration_is_an_affine_function_of_the_force(case, rng):
    g = Force.from_array(rng.standard_normal(6))
    one = solve_by_motion_subspace(case.I, case.p, case.S, case.c, case.f)
    two = solve_by_motion_subspace(case.I, case.p, case.S, case.c, g)
    for solution, f in ((one, case.f), (two, g)):
        expected = one.Phi @ f.to_array() + one.b.to_array()
        assert_close(solution.a.to_array(), expected, condition=case.condition)


@pytest.mark.covers("RBDA 3.6", by=apparent_inverse_inertia)
def test_apparent_inverse_inertia_has_range_S_and_null_space_S_perp(case):
    Phi = apparent_inverse_inertia(case.I, case.S)
    S = Subspace.span(case.S)
    assert_close(Phi, Phi.T, condition=case.condition)
    assert Subspace.span(Phi, "motion") == S
    assert Subspace.null(Phi, "force") == S.complement()
    assert np.linalg.matrix_rank(Phi) == S.dim
    assert np.all(np.linalg.eigvalsh(Phi + Phi.T) >= -1e-12 * np.linalg.norm(Phi))


def test_bordered_matrix_is_nonsingular_but_not_positive_definite(case):
    I, T = case.I.to_matrix(), case.T.to_array()
    n_c = T.shape[1]
    w = np.linalg.eigvalsh(np.block([[I, T], [T.T, np.zeros((n_c, n_c))]]))
    assert np.sum(w > 0) == 6
    assert np.sum(w < 0) == n_c


@pytest.mark.covers("RBDA 3.5", by=AbstractJoint.constraint_subspace)
def test_right_hand_side_is_minus_the_derivative_of_T_times_v():
    """-Tdᵀ v = Tᵀ c with Td = T° + v ×* T; T° by complex step along the motion."""
    joint, q, qd, h = Slot(), np.array([0.4]), np.array([1.7]), 1e-30
    _, _, v, c_J = joint.jcalc(q, qd)
    T = joint.constraint_subspace(q)
    T_ring = np.imag(joint.constraint_subspace(q + 1j * h * qd).to_array()) / h
    Td = T_ring + crf_matrix(v.to_array()) @ T.to_array()
    assert_close(-Td.T @ v.to_array(), T.T @ (c_J + crm(v, v)))


@pytest.mark.covers("RBDA Example 3.1", by=split_force)
def test_force_splits_into_what_accelerates_and_what_is_resisted(case, rng):
    I, S, f = case.I, case.S, case.f
    f_a, f_c = split_force(I, S, f)
    n = S.to_array().shape[1]
    A = rng.standard_normal((n, n)) + 3 * np.eye(n)
    assert_close((f_a + f_c).to_array(), f.to_array())
    other, _ = split_force(I, S @ A, f)
    assert_close(other.to_array(), f_a.to_array(), condition=case.condition * 100, scale=1)
    assert_close(S.T @ f_c, np.zeros(n), scale=1, condition=case.condition)
    a = Motion.from_array(np.linalg.solve(I.to_matrix(), f_a.to_array()))
    Phi = apparent_inverse_inertia(I, S)
    assert_close(a.to_array(), Phi @ f.to_array(), condition=case.condition, scale=1)
    # a body at rest: the constraint force is -f_c
    zero = Motion.zero()
    rest = solve_by_constraint_forces(I, Force.zero(), case.T, case.T.T @ zero, f)
    assert_close(rest.f_c.to_array(), -f_c.to_array(), condition=case.condition, scale=1)


@pytest.mark.covers("RBDA Example 3.2", by=active_subspace_from_wrench)
def test_gear_of_radius_r_pushes_at_its_rim():
    r, f = 0.25, 40.0
    S = Revolute("z").motion_subspace(np.zeros(1))
    contact = Plucker(np.eye(3), np.array([-r, 0, 0]))
    wrench = contact.T @ Force(np.zeros(3), np.array([0, f, 0]))
    assert_close(wrench.to_array(), [0, 0, -r * f, 0, f, 0])
    T_a = active_subspace_from_wrench(Revolute("z"), np.zeros(1), wrench)
    assert_close(T_a.to_array()[:, 0], [0, 0, 1, 0, -1 / r, 0])
    assert_close(T_a.T @ S, [[1]])


@pytest.mark.covers("RBDA 3.5", by=(AbstractJoint, active_subspace_from_wrench))
@pytest.mark.parametrize("joint", [*REPRESENTATIVES, *SPECIAL_JOINTS], ids=repr)
def test_joint_force_is_an_active_and_a_constraint_part(joint, rng):
    """T_aᵀS = 1, TᵀS = 0, T_a ⊕ T = F⁶, τ = Sᵀf_J, and f_J·v_J = τ·qd + f_J·σ."""
    q = joint.random(rng) if joint.nq else np.zeros(0)
    qd = rng.standard_normal(joint.nv)
    _, S, v_J, _ = joint.jcalc(q, qd)
    sigma = joint.jcalc(q, np.zeros(joint.nv))[2]
    T, T_a = joint.constraint_subspace(q), joint.active_subspace(q)
    n_f, n_c = joint.nv, 6 - joint.nv
    assert_close(T_a.T @ S, np.eye(n_f))
    assert_close(T.T @ S, np.zeros((n_c, n_f)), scale=1)
    assert np.linalg.matrix_rank(np.hstack([T_a.to_array(), T.to_array()])) == 6
    tau, lam = rng.standard_normal(n_f), rng.standard_normal(n_c)
    f_J = T_a @ tau + T @ lam
    assert_close(S.T @ f_J, tau, scale=10)
    assert_close(T.T @ (v_J - sigma), np.zeros(n_c), scale=10)
    assert_close(f_J.T @ v_J, tau @ qd + f_J.T @ sigma, scale=10)


def test_a_point_mass_on_the_axis_of_its_hinge_is_named():
    S = Revolute("z").motion_subspace(np.zeros(1))
    I = Inertia.from_mass_center(1.0, np.zeros(3), np.zeros((3, 3)))
    with pytest.raises(SingularError, match="no inertia in some of its 1 degrees of freedom"):
        apparent_inverse_inertia(I, S)
