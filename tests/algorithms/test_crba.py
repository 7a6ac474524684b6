"""Composite-rigid-body algorithm."""

import numpy as np
import pytest
from support.closeness import assert_close
from support.textbook import Arm, Mixed, assert_printed, mixed_tree, random_state, two_link_arm

from kinetree.algorithms import aba, crba, energy, minv, rnea, sparsity
from kinetree.algorithms.kinematics import base_transforms, joint_transforms
from kinetree.errors import SingularError
from kinetree.joints import Fixed, Revolute
from kinetree.model import ModelBuilder, shapes
from kinetree.spatial import Inertia, Plucker, rot

ONE = np.eye(3)


@pytest.mark.covers("Lynch & Park 9.1", by=crba.joint_space_inertia)
def test_planar_arm_of_lynch_and_park():
    m = two_link_arm()
    H = crba.joint_space_inertia(m, Arm.q)
    assert_close(H, Arm.M, ulps=8)
    determinant = Arm.m2 * Arm.L1**2 * Arm.L2**2 * (Arm.m1 + Arm.m2 * np.sin(Arm.q[1]) ** 2)
    assert_close(np.linalg.det(H), determinant)
    free = crba.forward_dynamics(m, Arm.q, Arm.qd, np.zeros(2))
    assert_printed(free, (-8.8967315981, 4.7568150498), 10)
    driven = crba.forward_dynamics(m, Arm.q, Arm.qd, np.array([10.0, 2.0]))
    assert_printed(driven, (-6.8509354733, 7.5815965593), 10)


@pytest.mark.covers("Lynch & Park 9.5", by=crba.forward_dynamics)
def test_three_explicit_euler_steps_of_the_planar_arm():
    m, q, qd, h = two_link_arm(), Arm.q, Arm.qd, 0.01
    steps = [
        ((0.305, -0.712), (0.411032684, -1.1524318495)),
        ((0.3091103268, -0.7235243185), (0.322380088, -1.107514449)),
        ((0.3123341277, -0.734599463), (0.2339541314, -1.064758085)),
    ]
    for q_expected, qd_expected in steps:
        q, qd = q + h * qd, qd + h * crba.forward_dynamics(m, q, qd, np.zeros(2))
        assert_printed(q, q_expected, 9)
        assert_printed(qd, qd_expected, 9)


@pytest.mark.covers("Lynch & Park 9.5", by=crba.forward_dynamics)
def test_error_of_the_explicit_euler_steps_halves_with_the_step():
    m = two_link_arm()

    def end(steps):
        q, qd, h = Arm.q, Arm.qd, 0.1 / steps
        for _ in range(steps):
            q, qd = q + h * qd, qd + h * crba.forward_dynamics(m, q, qd, np.zeros(2))
        return np.concatenate([q, qd])

    coarse, fine, finest = end(50), end(100), end(200)
    ratio = np.linalg.norm(coarse - fine) / np.linalg.norm(fine - finest)
    assert 1.95 < ratio < 2.05


@pytest.mark.covers(
    "6-D Guide 2: Composite Rigid-Body Algorithm", "6-D Guide 2: Dynamics",
    by=(crba.joint_space_inertia, crba.forward_dynamics),
)  # fmt: skip
def test_branched_tree_with_mixed_joints():
    m = mixed_tree()
    H = crba.joint_space_inertia(m, Mixed.q)
    assert_printed(np.triu(H), Mixed.H_upper, 10)
    assert_close(H, H.T, ulps=0)
    branches = Mixed.H_upper == 0
    assert np.all(np.triu(H)[branches] == 0)
    assert_printed(crba.forward_dynamics(m, Mixed.q, Mixed.qd, np.zeros(6)), Mixed.free, 12)


@pytest.mark.covers("RBDA 6.2", "RBDA 6.4", by=crba.joint_space_inertia)
@pytest.mark.parametrize("n", range(5))
def test_inertia_matrix_is_symmetric_positive_definite_and_sparse_by_branching(n, rng):
    m, q, *_ = random_state(rng, bodies=9)
    H = crba.joint_space_inertia(m, q)
    assert_close(H, H.T, ulps=4)
    np.linalg.cholesky(H)
    assert np.all(H[~sparsity.pattern(m.expanded_parent)] == 0)


@pytest.mark.covers("RBDA 3.1", "RBDA 6.2", "Lynch & Park 9.4", by=crba.joint_space_inertia)
def test_quadratic_form_of_inertia_is_kinetic_energy(rng):
    m, q, qd, *_ = random_state(rng)
    T = energy.kinetic_energy(m, q, qd)
    assert_close(qd @ crba.joint_space_inertia(m, q) @ qd / 2, T)


@pytest.mark.covers("RBDA 6.2", by=crba.composite_inertias)
def test_composite_inertias_sum_over_the_subtree(rng):
    m, q, *_ = random_state(rng)
    X_0 = base_transforms(m, joint_transforms(m, q)[0])
    in_base = [None, *(X_0[i].inv_apply(m.inertia[i]).to_matrix() for i in range(1, len(X_0)))]
    for i, IC in enumerate(crba.composite_inertias(m, q)):
        if i > 0:
            total = sum(in_base[k] for k in m.subtree[i])
            assert_close(X_0[i].inv_apply(IC).to_matrix(), total)


@pytest.mark.covers("RBDA 6.1", "RBDA 3.1", "Lynch & Park 9.2", by=crba.forward_dynamics)
@pytest.mark.parametrize("n", range(5))
def test_forward_dynamics_inverts_inverse_dynamics(n, rng):
    m, q, qd, qdd, f_ext = random_state(rng)
    tau = rnea.inverse_dynamics(m, q, qd, qdd, f_ext)
    H = crba.joint_space_inertia(m, q)
    d = np.sqrt(np.diagonal(H))
    condition = np.linalg.cond(H / np.outer(d, d))
    assert_close(crba.forward_dynamics(m, q, qd, tau, f_ext), qdd, condition=condition)
    assert_close(aba.forward_dynamics(m, q, qd, tau, f_ext), qdd, condition=condition)
    back = rnea.inverse_dynamics(m, q, qd, crba.forward_dynamics(m, q, qd, tau), None)
    assert_close(back, tau, condition=condition)


@pytest.mark.covers("RBDA 6.1", by=crba.joint_space_inertia)
def test_joints_without_freedom_leave_empty_blocks(rng):
    body = Inertia.from_mass_center(1.0, (0.3, 0.1, 0.0), np.eye(3))
    with_weld = (
        ModelBuilder("arm")
        .body("a", joint=Revolute("z"), inertia=body)
        .body("weld", on="a", joint=Fixed(), at=(0.2, 0.0, 0.1), inertia=body)
        .body("b", on="weld", joint=Revolute("x"), inertia=body)
        .build()
    )
    at = with_weld.tree_transform[2]
    merged = (
        ModelBuilder("arm")
        .body("a", joint=Revolute("z"), inertia=body + at.inv_apply(body))
        .body("b", on="a", joint=Revolute("x"), at=at, inertia=body)
        .build()
    )
    q = rng.standard_normal(2)
    H = crba.joint_space_inertia(with_weld, q)
    assert H[with_weld.v_slice[2], with_weld.v_slice[2]].shape == (0, 0)
    assert_close(H, crba.joint_space_inertia(merged, q))


def test_a_joint_that_moves_no_inertia_is_named(rng):
    m = (
        ModelBuilder("idle")
        .body("arm", joint=Revolute("z"), inertia=Inertia.from_mass_center(1, (1, 0, 0), np.eye(3)))
        .body("spindle", on="arm", joint=Revolute("x"), joint_name="spin")
        .build()
    )
    for forward_dynamics in (crba.forward_dynamics, aba.forward_dynamics):
        with pytest.raises(SingularError, match=r"joint 'spin' moves no inertia.*'spindle'.*Fixed"):
            forward_dynamics(m, *rng.standard_normal((3, 2)))


def test_an_inertia_of_rounding_errors_alone_is_no_inertia(rng):
    """The diagonal entry of a mass on a slanted axis is 1e-17, not zero."""
    for _ in range(20):
        axis = rng.standard_normal(3)
        bead = Inertia.from_mass_center(1.0, 0.6 * axis, np.zeros((3, 3)))
        m = (
            ModelBuilder()
            .body("arm", joint=Revolute("y"), inertia=Inertia.from_mass_center(1, (1, 0, 0), ONE))
            .body("rod", on="arm", joint=Revolute(axis), inertia=bead)
            .build()
        )
        q = rng.standard_normal(2)
        crba.joint_space_inertia(m, q)  # exists all the same
        for way in (crba.forward_dynamics, aba.forward_dynamics):
            with pytest.raises(SingularError, match="'rod_joint' moves no inertia"):
                way(m, q, np.zeros(2), np.zeros(2))
        with pytest.raises(SingularError, match="'rod_joint' moves no inertia"):
            minv.inverse_mass_matrix_by_factors(m, q)


def test_small_inertias_on_aligned_and_slanted_axes_pass(rng):
    """A needle 1 m long and 20 micrometres thick, turning about itself."""
    for axis in ("z", rng.standard_normal(3)):
        needle = shapes.cylinder(1e-5, 1.0, mass=1e-3, at=(0, 0, 0.5))
        at = Plucker.identity() if isinstance(axis, str) else rot(turned_to(axis))
        m = ModelBuilder().body("n", joint=Revolute(axis), inertia=at.inv_apply(needle)).build()
        qdd = crba.forward_dynamics(m, np.array([0.4]), np.zeros(1), np.array([1e-14]))
        assert_close(qdd, [1e-14 / (1e-3 * 1e-10 / 2)], condition=1e10)


def turned_to(axis):
    """A rotation matrix to a frame whose z axis is the given one."""
    z = axis / np.linalg.norm(axis)
    x = np.cross((1.0, 0.0, 0.0), z)
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])


def hinges(*inertias):
    """Hinges about one axis, one on the other."""
    builder = ModelBuilder("hinges")
    for n, I in enumerate(inertias):
        on = f"b{n - 1}" if n else None
        builder.body(f"b{n}", on=on, joint=Revolute("z"), joint_name=f"j{n}", inertia=I)
    return builder.build()


def test_joints_that_move_no_inertia_together_are_named():
    full = Inertia.from_mass_center(1.0, np.zeros(3), np.eye(3))
    nothing = Inertia(0.0, np.zeros(3), np.zeros((3, 3)))
    tiny = Inertia.from_mass_center(1e-18, np.zeros(3), 1e-18 * np.eye(3))
    message = "forward dynamics is singular for model 'hinges': joints 'j1', 'j2' can move together"
    with pytest.raises(SingularError, match=message):
        crba.require_independent_joints(hinges(full, nothing, full), "forward dynamics")
    crba.require_independent_joints(hinges(tiny, full), "forward dynamics")  # small, but there
    crba.require_independent_joints(hinges(full, full, full), "forward dynamics")
    crba.require_independent_joints(hinges(), "forward dynamics")
